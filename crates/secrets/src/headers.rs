//! What is shown to get in: `Authorization: Bearer …`, and `Bearer …` alone.

use std::ops::Range;

use memchr::memmem;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::span::{SecretKind, Span};
use crate::words::{WORD_BYTES_MIN, is_random, is_varied};

/// Between the name and what follows: `: "`, `"] = "` and the like.
const GLUE_BYTES_MAX: usize = 8;
const VALUE_BYTES_MAX: usize = 8192;

/// The values of headers in a text.
pub(crate) fn find(text: &[u8], spans: &mut Vec<Span>) {
    for name in [&b"uthorization"[..], b"UTHORIZATION"] {
        let mut done_to = 0;
        for at in memmem::find_iter(text, name) {
            if at < done_to {
                continue;
            }
            let Some((is_basic, Range { start, end })) = value(text, at + name.len()) else { continue };
            done_to = end;
            let value = &text[start..end];
            // Behind `Basic` stand user and password in base64.
            let is_login = || STANDARD.decode(value).is_ok_and(|decoded| decoded.contains(&b':'));
            if if is_basic { is_login() } else { is_token(value) } {
                spans.push(Span { start, end, kind: SecretKind::Header });
            }
        }
    }
}

/// A word that stands behind `Bearer`.
pub(crate) fn bearer(text: &[u8], word: &Range<usize>) -> Option<Span> {
    let before = &text[..word.start];
    (before.ends_with(b"earer ") || before.ends_with(b"EARER ")).then_some(())?;
    let length = value_length(&text[word.start..]);
    let end = word.start + length;
    is_random(&text[word.start..end]).then_some(Span { start: word.start, end, kind: SecretKind::Header })
}

/// Where the value behind the name of a header stands, and whether it says to be `Basic`.
fn value(text: &[u8], name_end: usize) -> Option<(bool, Range<usize>)> {
    let is_glue = |byte: &u8| {
        matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'`' | b']' | b')' | b':' | b'=' | b',' | b'>' | b'\\')
    };
    let glue = text[name_end..].iter().take(GLUE_BYTES_MAX).take_while(|byte| is_glue(byte)).count();
    let has_sign = text[name_end..name_end + glue].iter().any(|byte| matches!(byte, b':' | b'=' | b','));
    has_sign.then_some(())?;
    let start = name_end + glue;
    let is_scheme = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-';
    let scheme = text[start..].iter().take(16).take_while(|byte| is_scheme(byte)).count();
    let (is_basic, start) = match text.get(start + scheme) {
        Some(b' ') if scheme > 0 => {
            (text[start..start + scheme].eq_ignore_ascii_case(b"basic"), start + scheme + 1)
        }
        _ => (false, start),
    };
    Some((is_basic, start..start + value_length(&text[start..])))
}

fn value_length(rest: &[u8]) -> usize {
    let is_value = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
    };
    rest.iter().take(VALUE_BYTES_MAX).take_while(|byte| is_value(byte)).count()
}

fn is_token(value: &[u8]) -> bool {
    let has_digit = value.iter().take(256).any(u8::is_ascii_digit);
    value.len() >= WORD_BYTES_MIN && has_digit && is_varied(value)
}
