//! Picks a run of lines out of a stream of bytes and counts the rest.

use memchr::{memchr, memchr_iter};

/// Bytes kept of one line; what is cut is counted.
pub(super) const LINE_BYTES_MAX: usize = 10_000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextLine {
    start: usize,
    end: usize,
    /// All bytes of the line, shown or not.
    pub(super) len: usize,
}

impl TextLine {
    pub(super) fn is_cut(&self) -> bool {
        self.len > self.end - self.start
    }
}

/// Takes bytes in pieces and keeps the lines that are wanted.
#[derive(Debug, Default)]
pub(super) struct TextPage {
    first: usize,
    /// One past the last wanted line.
    end: usize,
    bytes_max: usize,
    separator: u8,
    /// All that is kept, without line ends.
    pub(super) bytes: Vec<u8>,
    lines: Vec<TextLine>,
    /// Complete lines so far.
    pub(super) lines_total: usize,
    /// Bytes so far of the line that has not ended.
    open: usize,
    /// There was no room for all wanted lines.
    pub(super) has_overflown: bool,
}

impl TextPage {
    /// Lines from `first`, counted from 1, up to `count` of them and not much more than `bytes_max` bytes.
    pub(super) fn new(first: usize, count: Option<usize>, bytes_max: usize) -> Self {
        let end = count.map_or(usize::MAX, |count| first.saturating_add(count));
        Self { first, end, bytes_max, separator: b'\n', ..Self::default() }
    }

    /// Takes the first piece's word for how lines end: a lone `\r` counts if there is no `\n` at all.
    pub(super) fn look_at(&mut self, start: &[u8]) {
        if memchr(b'\n', start).is_none() && memchr(b'\r', start).is_some() {
            self.separator = b'\r';
        }
    }

    pub(super) fn feed(&mut self, mut piece: &[u8]) {
        while !self.is_full() {
            let Some(at) = memchr(self.separator, piece) else {
                self.extend(piece);
                return;
            };
            self.extend(&piece[..at]);
            self.end_line();
            piece = &piece[at + 1..];
        }
        self.lines_total += memchr_iter(self.separator, piece).count();
        let last = piece.iter().rposition(|byte| *byte == self.separator);
        self.open = last.map_or(self.open + piece.len(), |at| piece.len() - at - 1);
    }

    pub(super) fn is_full(&self) -> bool {
        self.has_overflown || self.lines_total + 1 >= self.end
    }

    fn extend(&mut self, part: &[u8]) {
        if self.lines_total + 1 >= self.first {
            let room = LINE_BYTES_MAX.saturating_sub(self.open);
            self.bytes.extend_from_slice(&part[..part.len().min(room)]);
        }
        self.open += part.len();
    }

    fn end_line(&mut self) {
        self.lines_total += 1;
        if self.lines_total >= self.first && self.lines_total < self.end {
            let start = self.lines.last().map_or(0, |line| line.end);
            let mut line = TextLine { start, end: self.bytes.len(), len: self.open };
            let has_cr = self.separator == b'\n' && self.bytes[start..].ends_with(b"\r");
            if has_cr && !line.is_cut() {
                self.bytes.pop();
                line.end -= 1;
                line.len -= 1;
            }
            self.lines.push(line);
            // Its number, the tab and the line end take room too, also in front of an empty line.
            self.has_overflown |= self.bytes.len() + self.lines.len() * 3 > self.bytes_max;
        }
        self.open = 0;
    }

    /// Ends the last line if nothing ended it.
    pub(super) fn finish(&mut self) {
        if self.open > 0 {
            if self.is_full() {
                self.lines_total += 1;
                self.open = 0;
            } else {
                self.end_line();
            }
        }
    }

    /// The lines kept, with their bytes.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&TextLine, &[u8])> {
        self.lines.iter().map(|line| (line, &self.bytes[line.start..line.end]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(content: &[u8], piece: usize, first: usize, count: Option<usize>) -> TextPage {
        let mut page = TextPage::new(first, count, usize::MAX);
        page.look_at(content);
        content.chunks(piece).for_each(|piece| page.feed(piece));
        page.finish();
        page
    }

    #[test]
    fn lines_are_picked_and_counted() {
        let check = |content: &str, first, count, expected: &[&str], total| {
            for piece in [1, 2, 3, 100] {
                let page = page(content.as_bytes(), piece, first, count);
                let lines: Vec<_> =
                    page.lines().map(|(_, bytes)| std::str::from_utf8(bytes).unwrap()).collect();
                assert_eq!((&*lines, page.lines_total), (expected, total), "{content:?} by {piece}");
            }
        };
        check("", 1, None, &[], 0);
        check("a", 1, None, &["a"], 1);
        check("a\n", 1, None, &["a"], 1);
        check("a\n\n", 1, None, &["a", ""], 2);
        check("a\r\nb\r\n", 1, None, &["a", "b"], 2);
        check("a\nb\nc\nd", 2, Some(2), &["b", "c"], 4);
        check("a\nb\nc\nd", 4, Some(2), &["d"], 4);
        check("a\nb", 5, None, &[], 2);
        check("a\rb\rc", 2, None, &["b", "c"], 3);
        check("a\rb\n", 1, None, &["a\rb"], 1);
    }

    #[test]
    fn long_lines_are_cut_and_measured() {
        let content = format!("{}\nb", "x".repeat(LINE_BYTES_MAX + 7));
        let page = page(content.as_bytes(), 999, 1, None);
        let lines: Vec<_> =
            page.lines().map(|(line, bytes)| (line.is_cut(), line.len, bytes.len())).collect();
        assert_eq!(lines, [(true, LINE_BYTES_MAX + 7, LINE_BYTES_MAX), (false, 1, 1)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut page = TextPage::new(1, None, 100);
        for _ in 0..1000 {
            page.feed(b"0123456789\n");
        }
        page.finish();
        assert!(page.bytes.len() <= 120 && page.has_overflown);
        assert_eq!(page.lines_total, 1000);

        let mut empty = TextPage::new(1, None, 100);
        empty.feed(&[b'\n'; 5000]);
        assert_eq!((empty.lines().count(), empty.lines_total), (34, 5000));
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(
            content in "[ab\n]{0,40}",
            piece in 1_usize..9,
            first in 1_usize..8,
            count in prop::option::of(1_usize..8),
        ) {
            let page = page(content.as_bytes(), piece, first, count);
            let all: Vec<_> = content.lines().collect();
            let expected: Vec<_> = all.iter().skip(first - 1).take(count.unwrap_or(99)).copied().collect();
            let lines: Vec<_> = page.lines().map(|(_, bytes)| std::str::from_utf8(bytes).unwrap()).collect();
            prop_assert_eq!(lines, expected);
            prop_assert_eq!(page.lines_total, all.len());
        }
    }
}
