//! Carrying out an edit: the smallest spans, their bytes, and a report of what is there now.

use std::fmt::Write;
use std::ops::Range;
use windlass_text::plurals::quantity;

use crate::change::lacking;
use crate::content::EditableText;
use crate::patch::{Hunk, hunks_from};

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
pub(crate) fn plan(view: &EditableText<'_>, found: &[Range<usize>], old: &str, new: &str) -> Vec<TextChange> {
    debug_assert!(found.iter().all(|place| view.text()[place.clone()] == *old.as_bytes()));
    let (head, tail) = common_ends(old, new);
    let middle = &new[head..new.len() - tail];
    found
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

/// The file with the changes in it. The error is for the model.
pub(crate) fn encode(view: &EditableText<'_>, changes: &[TextChange]) -> Result<Vec<u8>, String> {
    let EditableText { content, shown, .. } = view;
    let encoding = content.encoding;
    let ranges: Vec<_> = changes.iter().map(|change| change.range.clone()).collect();
    let Some(ranges) = view.body_ranges(&ranges) else {
        return Err(format!(
            "Not changed: {shown} is {}, and the position in bytes is not certain. Change it with a command \
             through Bash.",
            encoding.name()
        ));
    };
    let body = content.body();
    let mut encoded = encoding.bom().to_vec();
    let mut from = 0;
    for (change, range) in changes.iter().zip(ranges) {
        let text = view.with_neighbouring_line_ends(&change.new, &change.range);
        let new = encoding.encode(&text).map_err(|character| lacking(character, shown, encoding))?;
        encoded.extend_from_slice(&body[from..range.start]);
        encoded.extend_from_slice(&new);
        from = range.end;
    }
    encoded.extend_from_slice(&body[from..]);
    Ok(encoded)
}

/// The lines around all changes, which are some.
fn window(text: &[u8], changes: &[TextChange]) -> Range<usize> {
    let start = changes.first().map_or(0, |first| lines_back(text, first.range.start, CONTEXT_LINES));
    let end = changes.last().map_or(0, |last| lines_on(text, last.range.end, CONTEXT_LINES));
    start..end
}

/// The text of a range after the changes, all of which lie inside it.
fn apply_changes(text: &[u8], range: &Range<usize>, changes: &[TextChange]) -> Vec<u8> {
    let mut new = Vec::with_capacity(range.len());
    let mut from = range.start;
    for change in changes {
        new.extend_from_slice(&text[from..change.range.start]);
        new.extend_from_slice(change.new.as_bytes());
        from = change.range.end;
    }
    new.extend_from_slice(&text[from..range.end]);
    new
}

pub(super) fn line_ends(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Where the line begins that is `count` lines above the one `at` is in.
pub(super) fn lines_back(text: &[u8], at: usize, count: usize) -> usize {
    memchr::memrchr_iter(b'\n', &text[..at]).nth(count).map_or(0, |end| end + 1)
}

/// Where the line ends that is `count` lines below the one `at` is in.
pub(super) fn lines_on(text: &[u8], at: usize, count: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[at..]).nth(count).map_or(text.len(), |end| at + end + 1)
}

/// The hunks of the changes; none if they span too much text.
pub(crate) fn patch(view: &EditableText<'_>, changes: &[TextChange]) -> Vec<Hunk> {
    let text = view.text();
    let window = window(text, changes);
    if window.len() > WINDOW_BYTES_MAX {
        return Vec::new();
    }
    let (old, new) = (&text[window.clone()], apply_changes(text, &window, changes));
    hunks_from(
        &String::from_utf8_lossy(old),
        &String::from_utf8_lossy(&new),
        line_ends(&text[..window.start]),
    )
}

/// What the model reads: the changed lines as they are now, with their numbers.
pub(crate) fn report(view: &EditableText<'_>, changes: &[TextChange]) -> String {
    let (shown, count) = (view.shown, changes.len());
    let mut text = match count {
        1 => format!("Edited {shown}. New text:\n"),
        _ => format!("Edited {shown} in {count} places. New text:\n"),
    };
    // How many lines there were in the places so far, and how many there are.
    let (mut before, mut now) = (0, 0);
    let (old, mut rest) = (view.text(), changes);
    for index in 0..PLACES_MAX {
        if rest.is_empty() {
            break;
        }
        if index > 0 {
            text.push_str("…\n");
        }
        let (group, others) = rest.split_at(together(old, rest));
        let window = window(old, group);
        let new = apply_changes(old, &window, group);
        let first = line_ends(&old[..window.start]) + now - before + 1;
        push_lines(&mut text, &new, first, LINES_MAX, LINE_BYTES_MAX);
        before += line_ends(&old[window]);
        now += line_ends(&new);
        rest = others;
    }
    if !rest.is_empty() {
        let _ = writeln!(text, "… and {}.", quantity(rest.len(), "more place"));
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

/// Shows lines with their numbers, up to so many, and of each up to so many bytes.
pub(super) fn push_lines(output: &mut String, text: &[u8], first: usize, lines_max: usize, bytes_max: usize) {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    for (number, line) in (first..).zip(lines).take(lines_max) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = String::from_utf8_lossy(&line[..line.len().min(bytes_max * 2)]);
        let end = line.floor_char_boundary(bytes_max);
        let more = if end < line.len() { "…" } else { "" };
        let _ = writeln!(output, "{number}\t{}{more}", &line[..end]);
    }
    let count = line_ends(text) + usize::from(text.last().is_some_and(|last| *last != b'\n'));
    let left_out = count.saturating_sub(lines_max);
    if left_out > 0 {
        let _ = writeln!(output, "… {}", quantity(left_out, "more line"));
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
