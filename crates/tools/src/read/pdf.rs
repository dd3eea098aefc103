//! PDF files: the text of their pages. `hayro-syntax` reads the syntax; characters, lines and words are worked out
//! here. Pictures of text stay pictures: such a page is said to have no text.

mod cmap;
mod font;
mod glyph;
mod layout;
mod page;

use std::fmt::Write;
use std::io::Read;

use flate2::read::ZlibDecoder;
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use memchr::memmem;
use serde_json::json;
use windlass_ports::CancellationToken;
use windlass_protocol::ToolOutput;
use windlass_text::plurals::quantity;

use super::tokens::TokenEstimate;
use super::{ReadJob, bytes};
use crate::file::CANCELLED;

const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// More pages than this are not shown unless they are asked for.
const PAGES_UNASKED_MAX: usize = 10;
const PAGES_MAX: usize = 20;
/// What one compressed stream may unpack to.
const STREAM_BYTES_MAX: u64 = 24 * 1024 * 1024;
/// The same for pictures, which nobody unpacks for their text.
const PICTURE_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// What all of them may unpack to.
const STREAMS_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Pages that are asked for, counted from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageRange {
    first: usize,
    last: usize,
}

impl PageRange {
    /// The error is for the model.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number > 0);
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!(
                "`pages` is {text:?}; give a page such as \"5\" or a range such as \"3-7\"."
            ));
        };
        if last < first {
            return Err(format!("`pages` is {text:?}, which ends before it begins."));
        }
        if last - first >= PAGES_MAX {
            return Err(format!("`pages` is {text:?}; give at most {PAGES_MAX} pages per call."));
        }
        Ok(Self { first, last })
    }
}

pub(super) fn read(job: &ReadJob<'_>) -> Result<ToolOutput, String> {
    let size = job.source.stamp.size;
    let content = job.source.all(FILE_BYTES_MAX);
    let Some(content) = content.map_err(|error| job.fail(format_args!("cannot be read: {error}.")))? else {
        return Err(job.fail(format_args!(
            "is a PDF of {}; at most {} can be read. Extract the pages you need through Bash.",
            bytes(size),
            bytes(FILE_BYTES_MAX as u64)
        )));
    };
    check_streams(&content, &job.cx.cancel).map_err(|what| job.fail(what))?;
    let pdf = Pdf::new(content).map_err(|error| job.fail(reason(error)))?;
    let total = pdf.pages().len();
    let range = range(job, total)?;
    let (text, last) = show(job, &pdf, range)?;
    let file = json!({
        "filePath": job.subject.file_path(),
        "originalSize": size,
        "pageCount": total,
        "firstPage": range.first,
        "lastPage": last,
    });
    Ok(ToolOutput::text(&text).with_structured(&json!({ "type": "pdf", "file": file })))
}

fn reason(error: LoadPdfError) -> &'static str {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            "is an encrypted PDF that needs a password. Ask for a copy without one."
        }
        LoadPdfError::Decryption(_) => "is an encrypted PDF with an unknown encryption.",
        LoadPdfError::Invalid => "is a damaged PDF that cannot be read.",
    }
}

fn range(job: &ReadJob<'_>, total: usize) -> Result<PageRange, String> {
    match job.wanted.pages {
        None if total == 0 => Err(job.fail("is a PDF without pages.")),
        None if total > PAGES_UNASKED_MAX => Err(job.fail(format_args!(
            "has {total} pages. Choose some with `pages`, such as \"1-{PAGES_UNASKED_MAX}\"; at most \
             {PAGES_MAX} per call."
        ))),
        None => Ok(PageRange { first: 1, last: total }),
        Some(range) if range.first > total => {
            Err(job.fail(format_args!("has only {}.", quantity(total, "page"))))
        }
        Some(range) => Ok(PageRange { last: range.last.min(total), ..range }),
    }
}

/// The text of the pages that fit, and the last of them.
fn show(job: &ReadJob<'_>, pdf: &Pdf, range: PageRange) -> Result<(String, usize), String> {
    let total = pdf.pages().len();
    let mut text = String::new();
    let mut cost = TokenEstimate::default();
    for number in range.first..=range.last {
        let page = &pdf.pages()[number - 1];
        let content = page::text(page, &job.cx.cancel).ok_or(CANCELLED)?;
        let content = if content.is_empty() {
            "[No text on this page. It may be a scan; convert it to an image through Bash to see it.]"
        } else {
            &content
        };
        cost.add(content);
        // A single page is always shown, but cut.
        if number > range.first && cost.exceed(job.limits.tokens_max) {
            let _ = write!(
                text,
                "[PARTIAL view: pages {}-{} of {total}; at most {} tokens are shown at once. To continue, \
                 call Read with pages \"{number}-{}\".]",
                range.first,
                number - 1,
                job.limits.tokens_max,
                range.last
            );
            return Ok((text, number - 1));
        }
        let _ = writeln!(text, "--- page {number} of {total} ---");
        push_cut(&mut text, content, job.limits.tokens_max);
    }
    text.truncate(text.trim_end().len());
    Ok((text, range.last))
}

fn push_cut(text: &mut String, content: &str, tokens_max: usize) {
    // Two bytes are never more than one token.
    let short = &content[..content.floor_char_boundary(tokens_max.saturating_mul(2).max(1000))];
    text.push_str(short);
    let mut cost = TokenEstimate::default();
    cost.add(content);
    if short.len() < content.len() && cost.exceed(tokens_max) {
        let _ = write!(text, "\n[cut: showing {} of {} bytes of this page]", short.len(), content.len());
    } else {
        text.push_str(&content[short.len()..]);
    }
    text.push_str("\n\n");
}

/// Refuses files whose compressed parts unpack to absurd sizes. The parser unpacks without a limit.
fn check_streams(content: &[u8], cancel: &CancellationToken) -> Result<(), &'static str> {
    let mut total = 0;
    for at in memmem::find_iter(content, b"stream") {
        if cancel.is_cancelled() {
            return Err(CANCELLED);
        }
        let before = &content[at.saturating_sub(512)..at];
        let is_end = before.ends_with(b"end");
        if is_end || memmem::find(before, b"/Fl").is_none() {
            continue;
        }
        let data = &content[at + b"stream".len()..];
        let data = data.strip_prefix(b"\r").unwrap_or(data);
        let data = data.strip_prefix(b"\n").unwrap_or(data);
        let unpacked = unpacked_size(data);
        total += unpacked;
        if unpacked > bytes_max(before) || total > STREAMS_BYTES_MAX {
            return Err("is a PDF that unpacks to a huge size, so it was not read.");
        }
    }
    Ok(())
}

/// What the stream with this text before it may unpack to.
fn bytes_max(before: &[u8]) -> u64 {
    let dictionary = memmem::rfind(before, b"obj").map_or(before, |at| &before[at..]);
    let is_picture = memmem::find(dictionary, b"/Image").is_some();
    if is_picture { PICTURE_BYTES_MAX } else { STREAM_BYTES_MAX }
}

fn unpacked_size(data: &[u8]) -> u64 {
    let mut unpacked = ZlibDecoder::new(data).take(PICTURE_BYTES_MAX + 1);
    let mut buffer = [0; 16 * 1024];
    let mut size = 0;
    // What is damaged ends early, here as in the parser.
    while let Ok(count @ 1..) = unpacked.read(&mut buffer) {
        size += count as u64;
    }
    size
}

#[cfg(test)]
mod tests;
