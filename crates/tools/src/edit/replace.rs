//! Carrying out an edit: the smallest spans, their bytes, and a report of what is there now.

use std::fmt::Write;
use std::ops::Range;

use crate::content::{Content, View};
use crate::encoding::Unencodable;
use crate::file::Subject;
use crate::patch::{Hunk, hunks_from};

/// Lines of context around a change in the report.
const CONTEXT_LINES: usize = 3;
/// Changed places that are shown in the report.
const PLACES_MAX: usize = 3;
/// Lines shown of one place.
const LINES_MAX: usize = 40;
/// Bytes shown of one line.
const LINE_BYTES_MAX: usize = 500;
/// A window of changed lines larger than this gets no patch.
const WINDOW_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A span of the text and what takes its place, with `\n` line ends.
pub(crate) struct Change {
    range: Range<usize>,
    new: String,
}

/// The changes for all places, each cut down to what really differs, so that line ends in the common part stay.
pub(crate) fn plan(view: &View<'_>, places: &[Range<usize>], old: &str, new: &str) -> Vec<Change> {
    debug_assert!(places.iter().all(|place| view.text()[place.clone()] == *old.as_bytes()));
    let (head, tail) = common_ends(old, new);
    let middle = &new[head..new.len() - tail];
    places
        .iter()
        .map(|place| Change { range: place.start + head..place.end - tail, new: middle.to_owned() })
        .collect()
}

/// How many bytes of two texts are the same at the start and at the end, in whole characters.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
        pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let head = same(&mut old.chars().zip(new.chars()));
    let tail = same(&mut old[head..].chars().rev().zip(new[head..].chars().rev()));
    (head, tail)
}

/// The changes as bytes of the file.
pub(crate) struct Encoded {
    spans: Vec<(Range<usize>, Vec<u8>)>,
}

/// The error is for the model.
pub(crate) fn encode(
    view: &View<'_>,
    changes: &[Change],
    subject: &Subject,
    content: &Content,
) -> Result<Encoded, String> {
    let ranges: Vec<_> = changes.iter().map(|change| change.range.clone()).collect();
    let Some(ranges) = view.body_ranges(&ranges) else {
        return Err(format!(
            "{} is {}, and the place cannot be told in bytes with certainty, so it was not changed. Change it with a \
             command through Bash.",
            subject.shown,
            content.encoding.name()
        ));
    };
    let spans = changes.iter().zip(ranges).map(|(change, range)| {
        let text = view.with_neighbouring_line_ends(&change.new, &change.range);
        let bytes = content.encoding.encode(&text);
        Ok((range, bytes.map_err(|error| lacking(&error, subject, Some(content)))?.into_owned()))
    });
    Ok(Encoded { spans: spans.collect::<Result<_, String>>()? })
}

impl Encoded {
    /// The new content in pieces: what stays is borrowed from the old.
    pub(crate) fn parts<'a>(&'a self, content: &'a Content) -> Vec<&'a [u8]> {
        let body = content.body();
        let mut parts = vec![content.encoding.bom()];
        let mut from = 0;
        for (range, new) in &self.spans {
            parts.push(&body[from..range.start]);
            parts.push(new);
            from = range.end;
        }
        parts.push(&body[from..]);
        parts
    }
}

/// The refusal for a character that the file's encoding does not have.
pub(crate) fn lacking(lacking: &Unencodable, subject: &Subject, content: Option<&Content>) -> String {
    let encoding = content.map_or("UTF-8", |content| content.encoding.name());
    format!(
        "{} is encoded as {encoding}, which has no {:?} (U+{:04X}), so it was not changed. Use only characters of \
         that encoding, or convert the file first.",
        subject.shown,
        lacking.0,
        u32::from(lacking.0)
    )
}

/// The lines around all changes, before and after.
struct Window {
    /// The number of lines in front of it.
    lines_before: usize,
    old: Range<usize>,
}

fn window(text: &[u8], changes: &[Change]) -> Option<Window> {
    let (first, last) = (changes.first()?, changes.last()?);
    let start = lines_back(text, first.range.start, CONTEXT_LINES);
    let end = lines_on(text, last.range.end, CONTEXT_LINES);
    Some(Window { lines_before: memchr::memchr_iter(b'\n', &text[..start]).count(), old: start..end })
}

/// The text of a range after the changes, all of which lie inside it.
fn after(text: &[u8], range: &Range<usize>, changes: &[Change]) -> String {
    let mut new = Vec::with_capacity(range.len());
    let mut from = range.start;
    for change in changes {
        new.extend_from_slice(&text[from..change.range.start]);
        new.extend_from_slice(change.new.as_bytes());
        from = change.range.end;
    }
    new.extend_from_slice(&text[from..range.end]);
    String::from_utf8_lossy(&new).into_owned()
}

/// Where the line begins that is `count` lines above the one `at` is in.
fn lines_back(text: &[u8], at: usize, count: usize) -> usize {
    memchr::memrchr_iter(b'\n', &text[..at]).nth(count).map_or(0, |end| end + 1)
}

/// Where the line ends that is `count` lines below the one `at` is in.
fn lines_on(text: &[u8], at: usize, count: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[at..]).nth(count).map_or(text.len(), |end| at + end + 1)
}

/// The hunks of the changes; none if they span too much text.
pub(crate) fn patch(view: &View<'_>, changes: &[Change]) -> Vec<Hunk> {
    let text = view.text();
    let Some(window) = window(text, changes) else {
        return Vec::new();
    };
    if window.old.len() > WINDOW_BYTES_MAX {
        return Vec::new();
    }
    let old = String::from_utf8_lossy(&text[window.old.clone()]);
    hunks_from(&old, &after(text, &window.old, changes), window.lines_before)
}

/// What the model reads: the changed lines as they are now, with their numbers.
pub(crate) fn report(view: &View<'_>, changes: &[Change], shown: &str) -> String {
    let count = changes.len();
    let mut text = match count {
        1 => format!("Edited {shown}. It now reads:\n"),
        _ => format!("Edited {shown} in {count} places. They now read:\n"),
    };
    // How many lines the changes so far have added or removed.
    let mut shift = 0_isize;
    let ends = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
    let signed = |count: usize| isize::try_from(count).unwrap_or(isize::MAX);
    for (index, change) in changes.iter().take(PLACES_MAX).enumerate() {
        let one = std::slice::from_ref(change);
        if let Some(window) = window(view.text(), one) {
            if index > 0 {
                text.push_str("…\n");
            }
            let first = signed(window.lines_before) + shift + 1;
            push_lines(&mut text, &after(view.text(), &window.old, one), first);
        }
        shift += signed(ends(change.new.as_bytes())) - signed(ends(&view.text()[change.range.clone()]));
    }
    if count > PLACES_MAX {
        let _ = writeln!(text, "… and {} more places.", count - PLACES_MAX);
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

fn push_lines(text: &mut String, lines: &str, first: isize) {
    for (number, line) in (first..).zip(lines.lines()) {
        if number - first >= isize::try_from(LINES_MAX).unwrap_or(isize::MAX) {
            let _ = writeln!(text, "… {} more lines", lines.lines().count() - LINES_MAX);
            return;
        }
        let end = line.floor_char_boundary(LINE_BYTES_MAX);
        let more = if end < line.len() { "…" } else { "" };
        let _ = writeln!(text, "{number}\t{}{more}", &line[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_ends_are_whole_characters_and_do_not_overlap() {
        let check =
            |old: &str, new: &str, expected| assert_eq!(common_ends(old, new), expected, "{old} {new}");
        check("abc", "abd", (2, 0));
        check("abc", "xbc", (0, 2));
        check("aa", "aaa", (2, 0));
        check("aaa", "aa", (2, 0));
        check("é", "è", (0, 0));
        check("xéy", "xèy", (1, 1));
        check("", "a", (0, 0));
    }
}
