//! What a conversation knows of a file's content, without the content: one hash over all bytes tells whether it
//! changed, one small hash per line tells where. `XXH3` is fixed by its specification, so stored values hold in every
//! process. Timestamps only spare work: a file that looks as it did is not read; one with the same bytes has not
//! changed.

use std::fmt::Write;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memchr::memchr;
use similar::{Algorithm, DiffTag};
use windlass_protocol::FileSeen;
use windlass_text::plurals::quantity;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::content::without_line_end;
use crate::open::{OpenError, OpenFile, open_regular};
use crate::text_encoding::TextEncoding;

/// Files with more lines than this are compared as a whole: the hashes of a file never take more than 1 MB.
const LINES_MAX: usize = 250_000;
/// Changed places that are shown in full.
const PLACES_MAX: usize = 6;
/// Lines shown of one changed place.
const LINES_SHOWN_MAX: usize = 12;
const LINE_BYTES_MAX: usize = 240;
/// Comparing stops here and falls back to coarser places.
const DIFF_TIME_MAX: Duration = Duration::from_millis(100);
const CHUNK_BYTES: usize = 64 * 1024;

/// Computes a [`FileSeen`] from content that comes in pieces.
#[derive(Default)]
pub(crate) struct SeenBuilder {
    whole: Xxh3Default,
    lines: Vec<u32>,
    /// The line whose end has not come yet.
    open: Option<OpenLine>,
    /// No hashes of lines: there are too many, or bytes do not tell where a line ends.
    has_overflown: bool,
    has_started: bool,
}

/// The hash of a line so far. A carriage return waits until it is known not to be part of the line's end.
#[derive(Default)]
struct OpenLine {
    hash: Xxh3Default,
    has_held_cr: bool,
}

impl OpenLine {
    fn update(&mut self, part: &[u8]) {
        if part.is_empty() {
            return;
        }
        if self.has_held_cr {
            self.hash.update(b"\r");
        }
        self.hash.update(without_cr(part));
        self.has_held_cr = part.ends_with(b"\r");
    }
}

impl SeenBuilder {
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.whole.update(piece);
        if !self.has_started && !piece.is_empty() {
            self.has_started = true;
            self.has_overflown = TextEncoding::has_utf16_bom(piece);
        }
        if self.has_overflown {
            return;
        }
        let mut rest = piece;
        while let Some(end) = memchr(b'\n', rest) {
            self.end_line(&rest[..end]);
            rest = &rest[end + 1..];
            if self.lines.len() > LINES_MAX {
                self.has_overflown = true;
                self.lines = Vec::new();
                return;
            }
        }
        if !rest.is_empty() {
            self.open.get_or_insert_default().update(rest);
        }
    }

    fn end_line(&mut self, part: &[u8]) {
        let hash = match self.open.take() {
            None => xxh3_64(without_cr(part)),
            Some(mut open) => {
                open.update(part);
                open.hash.digest()
            }
        };
        // The low half of a hash is a hash.
        let [a, b, c, d, ..] = hash.to_le_bytes();
        self.lines.push(u32::from_le_bytes([a, b, c, d]));
    }

    /// The knowledge of the file at this resolved path. `is_whole` says whether all of it was shown.
    pub(crate) fn finish(mut self, path: PathBuf, is_whole: bool) -> FileSeen {
        if !self.has_overflown && self.open.is_some() {
            self.end_line(&[]);
        }
        let (hash, lines) = (self.whole.digest(), self.lines.into());
        FileSeen { path, hash, lines, is_whole, shown: Vec::new(), stamp: None }
    }
}

/// Line ends are not part of a line's hash, so that a change of style is not a change of every line.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

pub(crate) fn seen_bytes(path: PathBuf, content: &[u8], is_whole: bool) -> FileSeen {
    let mut builder = SeenBuilder::default();
    builder.update(content);
    builder.finish(path, is_whole)
}

/// What is known of a regular file at its resolved path, for one that a command has just shown. Blocks.
pub(crate) fn seen_file(resolved: &Path, is_whole: bool) -> Result<FileSeen, OpenError> {
    let OpenFile { mut file, stamp } = open_regular(resolved)?;
    let mut builder = SeenBuilder::default();
    let mut piece = vec![0; CHUNK_BYTES];
    while let count @ 1.. = file.read(&mut piece)? {
        builder.update(&piece[..count]);
    }
    Ok(FileSeen { stamp: Some(stamp), ..builder.finish(resolved.to_owned(), is_whole) })
}

/// Shows the lines that differ between what was seen and the content now, in bounded length.
pub(crate) fn describe_change(old: &FileSeen, new: &[u8], encoding: TextEncoding) -> String {
    let now = seen_bytes(PathBuf::new(), new, true);
    if now.hash == old.hash {
        return "The content is the same.".to_owned();
    }
    if now.lines == old.lines && !now.lines.is_empty() {
        return "Only line ends, or the end of the file, changed.".to_owned();
    }
    if now.lines.is_empty() || old.lines.is_empty() {
        return format!("It now has {} bytes; the changed lines are unknown.", new.len());
    }
    let deadline = Instant::now() + DIFF_TIME_MAX;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &old.lines, &now.lines, Some(deadline));
    let changes: Vec<_> = ops.into_iter().filter(|op| op.tag() != DiffTag::Equal).collect();
    let mut text = String::new();
    // As they are hashed.
    let lines: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').map(without_line_end).collect();
    for op in changes.iter().take(PLACES_MAX) {
        describe_place(&mut text, op, &lines, encoding);
    }
    if changes.len() > PLACES_MAX {
        let _ = writeln!(text, "… and {}.", quantity(changes.len() - PLACES_MAX, "more place"));
    }
    text.truncate(text.trim_end().len());
    text
}

fn describe_place(text: &mut String, op: &similar::DiffOp, lines: &[&[u8]], encoding: TextEncoding) {
    let (old, now) = (op.old_range(), op.new_range());
    let span = |range: &Range<usize>| match range.len() {
        1 => format!("line {}", range.start + 1),
        _ => format!("lines {}-{}", range.start + 1, range.end),
    };
    let _ = match op.tag() {
        DiffTag::Delete => {
            let (was, next) = (span(&old), now.start + 1);
            writeln!(text, "Removed: {was} you saw, before what is now line {next}.")
        }
        DiffTag::Insert => writeln!(text, "New {}:", span(&now)),
        _ => writeln!(text, "Changed {} (was {}):", span(&now), span(&old)),
    };
    for (number, line) in (now.start + 1..).zip(&lines[now.clone()]).take(LINES_SHOWN_MAX) {
        let cut = &line[..line.len().min(LINE_BYTES_MAX)];
        let _ = writeln!(text, "{number}\t{}", encoding.decode_lossy(cut));
    }
    if now.len() > LINES_SHOWN_MAX {
        let _ = writeln!(text, "… {}", quantity(now.len() - LINES_SHOWN_MAX, "more line"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(content: &str) -> FileSeen {
        seen_bytes("/f".into(), content.as_bytes(), true)
    }

    fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).map(line).collect::<Vec<_>>().concat()
    }

    fn describe(old: &FileSeen, new: &str) -> String {
        describe_change(old, new.as_bytes(), TextEncoding::detect(new.as_bytes()))
    }

    fn check(old: &str, new: &str, expected: &str) {
        assert_eq!(describe(&seen(old), new), expected);
    }

    #[test]
    fn changes_are_named_and_shown() {
        check("a\nb\n", "a\nb\n", "The content is the same.");
        check("a\nb\n", "a\r\nb\r\n", "Only line ends, or the end of the file, changed.");
        check("a\nb\n", "a\nb", "Only line ends, or the end of the file, changed.");
        check("a\nb\nc\n", "a\nB\nc\n", "Changed line 2 (was line 2):\n2\tB");
        check("a\nc\n", "a\nb1\nb2\nc\n", "New lines 2-3:\n2\tb1\n3\tb2");
        check("a\nb\nc\n", "a\nc\n", "Removed: line 2 you saw, before what is now line 2.");
        check("", "a\n", "It now has 2 bytes; the changed lines are unknown.");
    }

    #[test]
    fn the_description_is_bounded() {
        let old = numbered(400, |n| format!("{n}\n"));
        let new = numbered(400, |n| format!("{n}{}\n", "x".repeat(1000 * (n % 2))));
        let text = describe(&seen(&old), &new);
        assert!(text.contains("more places") && text.len() < 4000, "{} bytes", text.len());
        let text = describe(&seen("one\n"), &new);
        assert!(text.contains("388 more lines") && text.len() < 4000, "{text}");
    }

    #[test]
    fn a_file_of_countless_lines_is_known_as_a_whole() {
        let seen = seen_bytes("/f".into(), &vec![b'\n'; LINES_MAX + 5], true);
        assert!(seen.lines.is_empty());
        let text = describe(&seen, "x\n");
        assert!(text.contains("the changed lines are unknown"), "{text}");
    }

    #[test]
    fn a_file_on_disk_is_seen_as_its_bytes_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("f");
        let content = numbered(40_000, |n| format!("line {n}\r\n"));
        std::fs::write(&path, &content).unwrap();
        let seen = seen_file(&path, true).unwrap();
        assert_eq!(seen.stamp.unwrap().size, content.len() as u64);
        assert_eq!(FileSeen { stamp: None, ..seen }, seen_bytes(path, content.as_bytes(), true));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            parts in prop::collection::vec(prop_oneof![
                Just("\n".to_owned()), Just("\r\n".to_owned()), Just("\r".to_owned()), "[ab]{0,4}",
                Just("l".repeat(CHUNK_BYTES + 1)),
            ], 0..12),
            cut in 1_usize..90_000,
        ) {
            let content = parts.concat().into_bytes();
            let mut builder = SeenBuilder::default();
            for piece in content.chunks(cut) {
                builder.update(piece);
            }
            prop_assert_eq!(builder.finish("/f".into(), true), seen_bytes("/f".into(), &content, true));
        }
    }
}
