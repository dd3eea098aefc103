//! Long words: the places where a secret can be. Most text has few, and looking for them touches few bytes.

use std::ops::Range;

use crate::bytes::{TOKEN, WORD, count, count_back, is};

/// Shorter words hold no secret that could be told from other words.
pub(crate) const WORD_BYTES_MIN: usize = 16;

/// The words of at least [`WORD_BYTES_MIN`] bytes, in order.
pub(crate) fn long_words(text: &[u8]) -> LongWords<'_> {
    LongWords { text, at: 0, known_to: 0 }
}

pub(crate) struct LongWords<'a> {
    text: &'a [u8],
    /// Where the next word may begin.
    at: usize,
    /// From `at` to here everything is part of a word.
    known_to: usize,
}

impl Iterator for LongWords<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while let Some(window) = self.text.get(self.at.max(self.known_to)..self.at + WORD_BYTES_MIN) {
            let looked_to = self.at + WORD_BYTES_MIN;
            // From the back: the first byte that is no part of a word rules out every start before it.
            if let Some(gap) = window.iter().rposition(|byte| !is(*byte, WORD)) {
                self.at = looked_to - window.len() + gap + 1;
                self.known_to = looked_to;
            } else {
                let start = self.at;
                let end = looked_to + count(&self.text[looked_to..], WORD);
                (self.at, self.known_to) = (end, end);
                return Some(start..end);
            }
        }
        None
    }
}

/// The parts of a word that are made of letters, digits, `-` and `_` alone, if they are long enough.
pub(crate) fn token_runs(text: &[u8], word: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = word.start;
    std::iter::from_fn(move || {
        while at < word.end {
            let start = at;
            at += count(&text[start..word.end], TOKEN);
            let end = at;
            at += 1;
            if end - start >= WORD_BYTES_MIN {
                return Some(start..end);
            }
        }
        None
    })
}

/// Where in a run a token may begin: behind the rest of an escape, if the run begins inside one.
pub(crate) fn token_start(text: &[u8], run: &Range<usize>) -> usize {
    let may_be_inside = matches!(text[..run.start].last(), Some(b'\\' | b'%' | b'[' | b';'));
    let mut ends = (run.start + 1..=run.end.min(run.start + 5)).rev();
    let end = ends.find(|end| may_be_inside && escape_length(&text[..*end]) > *end - run.start);
    end.unwrap_or(run.start)
}

/// Whether something that begins behind this text does not continue a word.
pub(crate) fn stands_alone(before: &[u8]) -> bool {
    !before.last().is_some_and(u8::is_ascii_alphanumeric) || escape_length(before) > 0
}

/// The length of an escape at the end: `\n`, `\u003d`, `%3D`, or a colour of a terminal.
fn escape_length(text: &[u8]) -> usize {
    match text {
        [.., b'\\', b'n' | b'r' | b't'] => 2,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => 3,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit) => 6,
        [front @ .., b'm' | b'K'] => {
            let digits = count_back(front, 16, |byte| byte.is_ascii_digit() || byte == b';');
            if front[..front.len() - digits].ends_with(b"\x1b[") { digits + 3 } else { 0 }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_found_wherever_they_are() {
        let long = "abcdefghijklmnop";
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<&str> = long_words(text.as_bytes()).map(|range| &text[range]).collect();
            assert_eq!(found, expected, "in {text}");
        };
        check("", &[]);
        check("abcdefghijklmno", &[]);
        check(long, &[long]);
        for before in 0..40 {
            let blank = " a".repeat(before);
            check(&format!("{blank} {long}"), &[long]);
            check(&format!("{blank} {long} "), &[long]);
            check(&format!("{blank} {long}q \"{long}\" x"), &["abcdefghijklmnopq", long]);
            check(&format!("{}é{long}=", "a".repeat(before.min(15))), &[long]);
        }
    }

    #[test]
    fn a_token_may_stand_behind_an_escape() {
        let check = |before: &str, inside: &str, skipped: usize| {
            let text = format!("{before}{inside}");
            let start = token_start(text.as_bytes(), &(before.len()..text.len()));
            assert_eq!(start - before.len(), skipped, "{text:?}");
        };
        check("", "nghp", 0);
        check("\\", "nghp", 1);
        check("\\", "u003dghp", 5);
        check("%", "3Dghp", 2);
        check("%", "zzghp", 0);
        check("\x1b[01;", "31mghp", 3);
        check("\x1b[", "Kghp", 1);
        check("[", "31mghp", 0);
        let check = |before: &[u8], expected: bool| assert_eq!(stands_alone(before), expected, "{before:?}");
        check(b"", true);
        check(b"a ", true);
        check(b"a", false);
        check(b"an", false);
        check(b"a\\n", true);
        check(b"%3D", true);
        check(b"\\u003d", true);
        check(b"\x1b[1;31m", true);
        check(b"[31m", false);
    }
}
