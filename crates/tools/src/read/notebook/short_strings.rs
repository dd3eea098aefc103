//! JSON whose long strings are cut while it is read.
//!
//! A parser holds each string whole, and a notebook may hold a hundred megabytes in one. Here such a string ends early,
//! with a mark, and the rest of it is skipped; everything else passes byte for byte.

use std::io::{self, Read};

use memchr::{memchr, memchr2};

use super::Tap;

/// Bytes kept of one string, as it is written in the file: an image of 4 MB as base64.
pub(super) const STRING_BYTES_MAX: usize = 5_600_000;
/// Deeper than any notebook; a parser holds something for every level.
const DEPTH_MAX: usize = 128;
/// Ends a string that was cut, as a character of JSON.
const CUT_MARK: &[u8] = b"\\u0000";

/// A string of the result without the mark, if it was cut. Whatever is taken for cut by mistake is long and ends in NUL,
/// and then all that is said of it is true but for that NUL.
pub(super) fn cut_string(text: &str) -> Option<&str> {
    text.strip_suffix('\0').filter(|start| start.len() >= STRING_BYTES_MAX / 8)
}

/// Where in the JSON the next byte is.
enum Place {
    Outside,
    /// In a string, of which this many bytes have passed.
    Inside(usize),
    /// In the rest of a string that was cut.
    Skipping,
    /// Behind a backslash in that rest.
    SkippingEscape,
}

/// The JSON of a file with its long strings cut.
pub(super) struct ShortStrings<'a> {
    tap: &'a mut Tap,
    cutter: Cutter,
    at: usize,
}

impl<'a> ShortStrings<'a> {
    pub(super) fn new(tap: &'a mut Tap) -> Self {
        Self { tap, cutter: Cutter::new(STRING_BYTES_MAX), at: 0 }
    }
}

impl Read for ShortStrings<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.cutter.kept.len() {
            self.at = 0;
            self.cutter.kept.clear();
            let Some(piece) = self.tap.next()? else {
                return Ok(0);
            };
            self.cutter.feed(piece);
            if self.cutter.depth > DEPTH_MAX {
                return Err(io::Error::other("it is nested too deeply"));
            }
        }
        let count = buffer.len().min(self.cutter.kept.len() - self.at);
        buffer[..count].copy_from_slice(&self.cutter.kept[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

struct Cutter {
    bytes_max: usize,
    place: Place,
    /// An escape whose end has not come yet.
    escape: Vec<u8>,
    /// The last character was the first half of a pair, which must not be parted.
    half: bool,
    depth: usize,
    kept: Vec<u8>,
}

impl Cutter {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, place: Place::Outside, escape: Vec::new(), half: false, depth: 0, kept: Vec::new() }
    }

    fn feed(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let used = match self.place {
                Place::Outside => self.outside(piece),
                Place::Inside(passed) => self.inside(piece, passed),
                Place::Skipping => self.skipping(piece),
                Place::SkippingEscape => {
                    self.place = Place::Skipping;
                    1
                }
            };
            piece = &piece[used..];
        }
    }

    fn outside(&mut self, piece: &[u8]) -> usize {
        let quote = memchr(b'"', piece);
        let used = quote.map_or(piece.len(), |at| at + 1);
        for byte in &piece[..used] {
            match byte {
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.kept.extend_from_slice(&piece[..used]);
        if quote.is_some() {
            self.place = Place::Inside(0);
        }
        used
    }

    fn inside(&mut self, piece: &[u8], passed: usize) -> usize {
        if !self.escape.is_empty() {
            return self.in_escape(piece[0], passed);
        }
        if passed >= self.bytes_max && !self.half && !is_continuation(piece[0]) && piece[0] != b'"' {
            self.cut();
            return 0;
        }
        match piece[0] {
            b'"' => {
                self.kept.push(b'"');
                self.place = Place::Outside;
                1
            }
            b'\\' => {
                self.escape.push(b'\\');
                1
            }
            _ => {
                let end = memchr2(b'"', b'\\', piece).unwrap_or(piece.len());
                // At the limit it goes on character by character.
                let room = self.bytes_max.saturating_sub(passed).max(1);
                let used = end.min(room);
                self.kept.extend_from_slice(&piece[..used]);
                self.half = false;
                self.place = Place::Inside(passed + used);
                used
            }
        }
    }

    fn in_escape(&mut self, byte: u8, passed: usize) -> usize {
        self.escape.push(byte);
        let whole = if self.escape[1] == b'u' { 6 } else { 2 };
        if self.escape.len() == whole {
            let first_half =
                matches!(&*self.escape, [_, b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..]);
            self.half = first_half;
            self.kept.append(&mut self.escape);
            self.place = Place::Inside(passed + whole);
        }
        1
    }

    fn cut(&mut self) {
        self.kept.extend_from_slice(CUT_MARK);
        self.place = Place::Skipping;
    }

    fn skipping(&mut self, piece: &[u8]) -> usize {
        let Some(at) = memchr2(b'"', b'\\', piece) else {
            return piece.len();
        };
        if piece[at] == b'"' {
            self.kept.push(b'"');
            self.place = Place::Outside;
        } else {
            self.place = Place::SkippingEscape;
        }
        at + 1
    }
}

/// Whether a byte goes on with a character of UTF-8.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn cut(json: &str, bytes_max: usize, piece: usize) -> String {
        let mut cutter = Cutter::new(bytes_max);
        json.as_bytes().chunks(piece).for_each(|piece| cutter.feed(piece));
        String::from_utf8(cutter.kept).unwrap()
    }

    #[test]
    fn long_strings_end_early() {
        let check = |json: &str, expected: &str| {
            for piece in 1..9 {
                assert_eq!(cut(json, 4, piece), expected, "{json} by {piece}");
            }
        };
        check(r#"{"a": [1, "bcde"]}"#, r#"{"a": [1, "bcde"]}"#);
        check(r#"["abcdef", "g"]"#, r#"["abcd\u0000", "g"]"#);
        check(r#"["abc\n\"]", 1]"#, r#"["abc\n\u0000", 1]"#);
        check(r#"["abcdef\\", 1]"#, r#"["abcd\u0000", 1]"#);
        check(r#"["abcééé"]"#, r#"["abcé\u0000"]"#);
        check(r#"["\ud83d\ude00x"]"#, r#"["\ud83d\ude00\u0000"]"#);
        check(r#"["\ud83D\ude00"]"#, r#"["\ud83D\ude00"]"#);
        check(r#"["abcdefgh"#, r#"["abcd\u0000"#);
    }

    proptest! {
        #[test]
        fn what_is_cut_is_the_start_of_what_was_there(
            texts in prop::collection::vec("[a-cé😀\"\\\\\n\u{1}]{0,12}", 0..5),
            bytes_max in 1_usize..12,
            piece in 1_usize..9,
            ascii in any::<bool>(),
        ) {
            let mut json = serde_json::json!({ "list": texts }).to_string();
            if ascii {
                json = json.replace('é', "\\u00e9").replace('😀', "\\uD83D\\uDE00");
            }
            let value: Value = serde_json::from_str(&cut(&json, bytes_max, piece)).unwrap();
            // The key may be cut as well.
            let list = value.as_object().unwrap().values().next().unwrap().as_array().unwrap();
            prop_assert_eq!(list.len(), texts.len());
            for (now, was) in list.iter().zip(&texts) {
                let now = now.as_str().unwrap();
                match now.strip_suffix('\0') {
                    None => prop_assert_eq!(now, was),
                    Some(start) => prop_assert!(was.starts_with(start) && start.len() < was.len()),
                }
            }
        }
    }
}
