//! Text files: a page of numbered lines, and notices about what is not shown.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::{self, Read};

use encoding_rs_io::DecodeReaderBytesBuilder;
use serde_json::json;
use windlass_protocol::{FileSeen, ToolOutput};
use windlass_text::plurals::quantity;

use super::page::{LINE_BYTES_MAX, TextPage};
use super::tokens::{BYTES_PER_TOKEN_MAX, TokenEstimate};
use super::{ReadJob, bytes};
use crate::content::STRUCTURED_BYTES_MAX;
use crate::file::without_nulls;
use crate::text_encoding::TextEncoding;

/// Once the page is complete, this much is read to count lines and to know the content; then it stops.
const SCAN_BYTES_MAX: u64 = 256 * 1024 * 1024;

struct Scan {
    page: TextPage,
    /// Missing if the file was too long to read to its end.
    seen: Option<FileSeen>,
    utf16: Option<TextEncoding>,
}

pub(super) fn read(job: &ReadJob<'_>) -> Result<ToolOutput, String> {
    let scan = scan(job).map_err(|error| job.fail(format_args!("cannot be read: {error}.")))?;
    if scan.page.bytes.contains(&0) {
        return Err(job.fail(format_args!(
            "is not text but binary data ({}), which cannot be shown. Use a suitable command through Bash.",
            bytes(job.source.stamp.size)
        )));
    }
    if let Some(outcome) = scan.seen.as_ref().and_then(|seen| job.unchanged_notice(seen)) {
        return Ok(outcome);
    }
    let encoding =
        encoding(job, &scan).map_err(|error| job.fail(format_args!("cannot be read: {error}.")))?;
    let shown = show(&scan.page, encoding, job);
    if shown.has_overflown && job.wanted.is_explicit {
        return Err(too_much(job, &shown));
    }
    Ok(outcome(job, scan, &shown, encoding))
}

fn scan(job: &ReadJob<'_>) -> io::Result<Scan> {
    let bytes_max = job.limits.tokens_max.saturating_mul(BYTES_PER_TOKEN_MAX);
    let mut page = TextPage::new(job.wanted.start, job.wanted.count, bytes_max);
    let utf16 = TextEncoding::from_bom(&job.source.start)
        .filter(|encoding| matches!(encoding, TextEncoding::Utf16(_)));
    if utf16.is_none() {
        page.look_at(&job.source.start);
    }
    let mut reader = job.source.reader(&job.cx.cancel);
    let mut text = DecodeReaderBytesBuilder::new().utf8_passthru(true).strip_bom(true).build(&mut reader);
    let mut buffer = vec![0; job.source.start.len().max(64)];
    let mut scanned = 0;
    let mut complete = true;
    while let count @ 1.. = text.read(&mut buffer)? {
        page.feed(&buffer[..count]);
        scanned += count as u64;
        if page.is_full() && scanned > SCAN_BYTES_MAX {
            complete = false;
            break;
        }
    }
    if complete {
        page.finish();
    }
    let seen = complete.then(|| FileSeen {
        stamp: Some(job.source.stamp),
        ..reader.seen.finish(job.subject.resolved.clone(), false)
    });
    Ok(Scan { page, seen, utf16 })
}

/// The encoding of the lines that were kept. UTF-16 has been turned into UTF-8 on the way.
fn encoding(job: &ReadJob<'_>, scan: &Scan) -> io::Result<TextEncoding> {
    if let Some(utf16) = scan.utf16 {
        return Ok(utf16);
    }
    let is_utf8 = scan.page.lines().all(|(line, bytes)| match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && line.is_cut(),
    });
    if is_utf8 {
        return Ok(TextEncoding::Utf8 { has_bom: false, is_broken: false });
    }
    TextEncoding::detect_file(&job.source.file)
}

/// The lines that fit.
struct Shown {
    /// With numbers, for the model.
    numbered: String,
    /// Without, for hosts.
    plain: String,
    lines: usize,
    cut: usize,
    has_overflown: bool,
}

fn show(page: &TextPage, encoding: TextEncoding, job: &ReadJob<'_>) -> Shown {
    let size = page.bytes.len();
    let mut shown = Shown {
        numbered: String::with_capacity(size + size / 4 + 256),
        plain: String::with_capacity(size + size / 16),
        lines: 0,
        cut: 0,
        has_overflown: page.has_overflown,
    };
    let mut cost = TokenEstimate::default();
    for (number, (line, bytes)) in (job.wanted.start..).zip(page.lines()) {
        let text = decode_line(encoding, bytes, line.is_cut());
        let before = shown.numbered.len();
        let _ = write!(shown.numbered, "{number}\t{text}");
        if line.is_cut() {
            let _ = write!(
                shown.numbered,
                " [line cut here: it has {} bytes; see the rest with Bash, for example `sed -n {number}p \
                 FILE | cut -b {}-`]",
                line.len,
                bytes.len() + 1
            );
        }
        shown.numbered.push('\n');
        cost.add(&shown.numbered[before..]);
        // A single line is always shown, so that there is a way to go on.
        if shown.lines > 0 && cost.exceed(job.limits.tokens_max) {
            shown.numbered.truncate(before);
            shown.has_overflown = true;
            break;
        }
        shown.plain.push_str(&text);
        shown.plain.push('\n');
        shown.lines += 1;
        shown.cut += usize::from(line.is_cut());
    }
    shown
}

fn decode_line(encoding: TextEncoding, bytes: &[u8], is_cut: bool) -> Cow<'_, str> {
    if let TextEncoding::Legacy(_) = encoding {
        return encoding.decode_lossy(bytes);
    }
    // Half a character at the cut.
    let error = std::str::from_utf8(bytes).err().filter(|error| is_cut && error.error_len().is_none());
    String::from_utf8_lossy(&bytes[..error.map_or(bytes.len(), |error| error.valid_up_to())])
}

fn too_much(job: &ReadJob<'_>, shown: &Shown) -> String {
    job.fail(format_args!(
        "has more than {} tokens in these lines, the most shown at once. From line {}, ask for at most {} \
         (`limit`), or find the place with Grep.",
        job.limits.tokens_max,
        job.wanted.start,
        quantity(shown.lines, "line")
    ))
}

fn outcome(job: &ReadJob<'_>, scan: Scan, shown: &Shown, encoding: TextEncoding) -> ToolOutput {
    let mut text = shown.numbered.clone();
    for notice in notices(job, &scan, shown, encoding) {
        if !text.is_empty() && !text.ends_with("\n\n") {
            text.push('\n');
        }
        let _ = writeln!(text, "[{notice}]");
    }
    text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
    let total = scan.page.lines_total;
    let file = without_nulls(json!({
        "filePath": job.subject.file_path(),
        "content": (shown.plain.len() <= STRUCTURED_BYTES_MAX).then_some(&shown.plain),
        "numLines": shown.lines,
        "startLine": job.wanted.start,
        "totalLines": total,
        "truncatedByTokenCap": shown.has_overflown.then_some(true),
    }));
    let outcome = ToolOutput::text(&text).with_structured(&json!({ "type": "text", "file": file }));
    let all_shown = job.wanted.start == 1 && shown.lines == total && shown.cut == 0;
    match scan.seen {
        None => outcome,
        // A first page that nobody chose does not count as read.
        Some(_) if shown.has_overflown => outcome,
        Some(seen) => {
            let part = (shown.lines > 0).then(|| job.wanted.part());
            outcome.with_seen(FileSeen { is_whole: all_shown, shown: part.into_iter().collect(), ..seen })
        }
    }
}

fn notices(job: &ReadJob<'_>, scan: &Scan, shown: &Shown, encoding: TextEncoding) -> Vec<String> {
    let (name, start) = (&job.subject.shown, job.wanted.start);
    let total = scan.page.lines_total;
    let exact = scan.seen.is_some();
    let mut notices = Vec::new();
    if total == 0 {
        notices.push(format!("{name} is empty."));
    } else if start > total {
        notices.push(format!("{name} has only {}; line {start} is past its end.", quantity(total, "line")));
    } else if shown.has_overflown {
        let last = start + shown.lines - 1;
        let more = if exact { "" } else { "more than " };
        notices.push(format!(
            "PARTIAL view: lines {start}-{last} of {more}{total} of {name}; at most {} tokens are shown at \
             once. To continue, call Read with offset {} and limit {}; to find a place, use Grep.",
            job.limits.tokens_max,
            last + 1,
            // Later lines have longer numbers, and may be longer themselves.
            (shown.lines - shown.lines / 4).max(1)
        ));
    }
    if shown.cut > 0 {
        notices.push(format!("Lines longer than {LINE_BYTES_MAX} bytes were cut."));
    }
    match encoding {
        TextEncoding::Utf8 { is_broken: false, .. } => {}
        TextEncoding::Utf8 { is_broken: true, .. } => notices.push(
            "Some bytes are not valid UTF-8 and are shown as \u{fffd}; Edit keeps them if you do not change \
             them."
                .to_owned(),
        ),
        other => notices.push(format!("The file is encoded as {}; Edit and Write keep that.", other.name())),
    }
    notices
}
