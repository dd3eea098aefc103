//! A piece of a string that a stream brings in deltas.
//!
//! JSON writes a character beyond the first plane as two escapes, and a server that cuts its deltas between them
//! sends half a character at the end of one and the other half at the start of the next.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// The bytes of a JSON string: UTF-8, except that half a surrogate pair stands as the three bytes that UTF-8's
/// scheme gives its number.
pub(crate) struct StringPiece<'a>(Cow<'a, [u8]>);

/// The first half of a surrogate pair, on its way to the second.
pub(crate) type SurrogateHalf = [u8; 3];

impl StringPiece<'_> {
    /// The text after `half`, which is kept for the next piece if this one ends in one again. Halves without a
    /// partner become the replacement character.
    pub(crate) fn join(self, half: &mut Option<SurrogateHalf>) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let bytes = match half.take() {
            Some(first) => Cow::Owned([&first, &*self.0].concat()),
            None => self.0,
        };
        match String::from_utf8(bytes.into_owned()) {
            Ok(text) => text,
            Err(error) => join_halves(error.as_bytes(), half),
        }
    }

    /// The text of a string that comes in one piece.
    pub(crate) fn into_text(self) -> String {
        let mut half = None;
        let mut text = self.join(&mut half);
        if half.is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        text
    }
}

fn join_halves(mut bytes: &[u8], half: &mut Option<SurrogateHalf>) -> String {
    let mut text = String::with_capacity(bytes.len());
    while let Some(chunk) = bytes.utf8_chunks().next() {
        text.push_str(chunk.valid());
        bytes = &bytes[chunk.valid().len()..];
        let Some((&first, rest)) = bytes.split_first_chunk::<3>() else {
            break;
        };
        bytes = rest;
        let pair = rest.first_chunk::<3>().and_then(|&second| pair(first, second));
        if let Some(character) = pair {
            text.push(character);
            bytes = &rest[3..];
        } else if rest.is_empty() && is_first_half(first) {
            *half = Some(first);
        } else {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

fn pair(first: SurrogateHalf, second: SurrogateHalf) -> Option<char> {
    char::decode_utf16([surrogate(first)?, surrogate(second)?]).next()?.ok()
}

fn is_first_half(half: SurrogateHalf) -> bool {
    surrogate(half).is_some_and(|number| number < 0xdc00)
}

/// The number of a surrogate, if the bytes stand for one.
fn surrogate(bytes: SurrogateHalf) -> Option<u16> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third] => {
            Some(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f))
        }
        _ => None,
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for StringPiece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = StringPiece<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(StringPiece(Cow::Borrowed(bytes)))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(StringPiece(Cow::Owned(bytes.to_owned())))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}
