//! Carrying out an edit: the smallest spans, their bytes, and a report of what is there now.

use std::fmt::Write;
use std::ops::Range;

use crate::change::lacking;
use crate::content::{EditableText, FileContent};
use crate::file::TargetFile;
use crate::patch::{Hunk, hunks_from};
use crate::plurals::counted;

const CONTEXT_LINES: usize = 3;
/// Changed places that are shown in the report.
const PLACES_MAX: usize = 3;
/// Lines shown of one place.
const LINES_MAX: usize = 40;
const LINE_BYTES_MAX: usize = 500;
/// A window of changed lines larger than this gets no patch.
const WINDOW_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A span of the text and what takes its place, with `\n` line ends.
pub(crate) struct TextChange {
    range: Range<usize>,
    new: String,
}

/// The changes for all places, each cut down to what really differs, so that line ends in the common part stay.
pub(crate) fn plan(
    view: &EditableText<'_>,
    places: &[Range<usize>],
    old: &str,
    new: &str,
) -> Vec<TextChange> {
    debug_assert!(places.iter().all(|place| view.text()[place.clone()] == *old.as_bytes()));
    let (head, tail) = common_ends(old, new);
    let middle = &new[head..new.len() - tail];
    places
        .iter()
        .map(|place| TextChange { range: place.start + head..place.end - tail, new: middle.to_owned() })
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

pub(crate) struct EncodedChanges {
    spans: Vec<(Range<usize>, Vec<u8>)>,
}

/// The error is for the model.
pub(crate) fn encode(
    view: &EditableText<'_>,
    changes: &[TextChange],
    subject: &TargetFile,
    content: &FileContent,
) -> Result<EncodedChanges, String> {
    let ranges: Vec<_> = changes.iter().map(|change| change.range.clone()).collect();
    let Some(ranges) = view.body_ranges(&ranges) else {
        return Err(format!(
            "Not changed: {} is {}, and the position in bytes is not certain. Change it with a command \
             through Bash.",
            subject.shown,
            content.encoding.name()
        ));
    };
    let spans = changes.iter().zip(ranges).map(|(change, range)| {
        let text = view.with_neighbouring_line_ends(&change.new, &change.range);
        let bytes = content.encoding.encode(&text);
        Ok((range, bytes.map_err(|error| lacking(&error, subject, content))?.into_owned()))
    });
    Ok(EncodedChanges { spans: spans.collect::<Result<_, String>>()? })
}

impl EncodedChanges {
    /// The new content in pieces: what stays is borrowed from the old.
    pub(crate) fn parts<'a>(&'a self, content: &'a FileContent) -> Vec<&'a [u8]> {
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

/// The lines around all changes, before and after.
struct Window {
    /// The number of lines in front of it.
    lines_before: usize,
    old: Range<usize>,
}

fn window(text: &[u8], changes: &[TextChange]) -> Option<Window> {
    let (first, last) = (changes.first()?, changes.last()?);
    let start = lines_back(text, first.range.start, CONTEXT_LINES);
    let end = lines_on(text, last.range.end, CONTEXT_LINES);
    Some(Window { lines_before: memchr::memchr_iter(b'\n', &text[..start]).count(), old: start..end })
}

/// The text of a range after the changes, all of which lie inside it, in pieces.
fn pieces<'a>(
    text: &'a [u8],
    range: &Range<usize>,
    changes: &'a [TextChange],
) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(range.start).chain(changes.iter().map(|change| change.range.end));
    let ends = changes.iter().map(|change| change.range.start).chain([range.end]);
    let kept = starts.zip(ends).map(|(start, end)| &text[start..end]);
    let new = changes.iter().map(|change| change.new.as_bytes()).chain([&[][..]]);
    kept.zip(new).flat_map(|(kept, new)| [kept, new])
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
pub(crate) fn patch(view: &EditableText<'_>, changes: &[TextChange]) -> Vec<Hunk> {
    let text = view.text();
    let Some(window) = window(text, changes) else {
        return Vec::new();
    };
    if window.old.len() > WINDOW_BYTES_MAX {
        return Vec::new();
    }
    let old = String::from_utf8_lossy(&text[window.old.clone()]);
    let new: Vec<u8> = pieces(text, &window.old, changes).flatten().copied().collect();
    hunks_from(&old, &String::from_utf8_lossy(&new), window.lines_before)
}

/// What the model reads: the changed lines as they are now, with their numbers.
pub(crate) fn report(view: &EditableText<'_>, changes: &[TextChange], shown: &str) -> String {
    let count = changes.len();
    let mut text = match count {
        1 => format!("Edited {shown}. New text:\n"),
        _ => format!("Edited {shown} in {count} places. New text:\n"),
    };
    // How many lines the changes so far have added or removed.
    let mut shift = 0_isize;
    let signed =
        |text: &[u8]| isize::try_from(memchr::memchr_iter(b'\n', text).count()).unwrap_or(isize::MAX);
    let mut rest = changes;
    for index in 0..PLACES_MAX {
        let (group, others) = rest.split_at(together(view.text(), rest));
        let Some(window) = window(view.text(), group) else { break };
        if index > 0 {
            text.push_str("…\n");
        }
        let first = window.lines_before.saturating_add_signed(shift) + 1;
        push_lines(&mut text, pieces(view.text(), &window.old, group), first);
        for change in group {
            shift += signed(change.new.as_bytes()) - signed(&view.text()[change.range.clone()]);
        }
        rest = others;
    }
    if !rest.is_empty() {
        let _ = writeln!(text, "… and {}.", counted(rest.len(), "more place"));
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// How many of the first changes are so close to each other that the lines around them touch.
fn together(text: &[u8], changes: &[TextChange]) -> usize {
    let close = |pair: &&[TextChange]| {
        lines_back(text, pair[1].range.start, CONTEXT_LINES)
            <= lines_on(text, pair[0].range.end, CONTEXT_LINES)
    };
    changes.len().min(1 + changes.windows(2).take_while(close).count())
}

/// Collects lines as far as they are shown.
struct Lines<'a> {
    text: &'a mut String,
    first: usize,
    ended: usize,
    /// The start of the line that has not ended, and its length.
    open: Vec<u8>,
    open_len: usize,
}

impl Lines<'_> {
    fn extend(&mut self, part: &[u8]) {
        // One byte more than is shown tells that there is more.
        let room = (LINE_BYTES_MAX + 1).saturating_sub(self.open.len());
        self.open.extend_from_slice(&part[..part.len().min(room)]);
        self.open_len += part.len();
    }

    fn end_line(&mut self) {
        if self.ended < LINES_MAX {
            let line = String::from_utf8_lossy(&self.open);
            let end = line.floor_char_boundary(LINE_BYTES_MAX);
            let more = if self.open_len > LINE_BYTES_MAX { "…" } else { "" };
            let _ = writeln!(self.text, "{}\t{}{more}", self.first + self.ended, &line[..end]);
        }
        self.ended += 1;
        self.open.clear();
        self.open_len = 0;
    }
}

fn push_lines<'a>(text: &mut String, pieces: impl Iterator<Item = &'a [u8]>, first: usize) {
    let mut lines = Lines { text, first, ended: 0, open: Vec::new(), open_len: 0 };
    for mut piece in pieces {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            lines.extend(&piece[..end]);
            lines.end_line();
            piece = &piece[end + 1..];
        }
        lines.extend(piece);
    }
    if lines.open_len > 0 {
        lines.end_line();
    }
    let left_out = lines.ended.saturating_sub(LINES_MAX);
    if left_out > 0 {
        let _ = writeln!(text, "… {}", counted(left_out, "more line"));
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
