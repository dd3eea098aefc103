//! What is shown to get in: `Authorization: Bearer …`, `Bearer …` alone, and `scheme://user:password@host`.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

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

/// User and password are not longer.
const AUTHORITY_BYTES_MAX: usize = 1024;

/// Less keeps nobody out.
const PASSWORD_BYTES_MIN: usize = 4;

/// Words that stand where a password would.
const PLACEHOLDERS: &[&str] = &[
    "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "root", "admin", "test",
    "example", "changeme", "postgres", "mysql", "guest", "dev", "xxx", "xxxx", "xxxxx",
];

/// Finds passwords in addresses: `scheme://user:password@host`.
pub(crate) fn find_passwords(text: &[u8], spans: &mut Vec<Span>) {
    spans.extend(memmem::find_iter(text, b"://").filter_map(|at| password(text, at + 3)));
}

fn password(text: &[u8], start: usize) -> Option<Span> {
    let stands_before_path = |byte: &u8| {
        !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`')
    };
    let rest = &text[start..text.len().min(start + AUTHORITY_BYTES_MAX)];
    let authority = rest.iter().take_while(|byte| stands_before_path(byte)).count();
    let at_sign = memchr::memrchr(b'@', &rest[..authority])?;
    let colon = memchr::memchr(b':', &rest[..at_sign])?;
    let (user, password) = (&rest[..colon], &rest[colon + 1..at_sign]);
    let has_host = rest.get(at_sign + 1).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[');
    (has_host && !is_placeholder(user, password)).then_some(Span {
        start: start + colon + 1,
        end: start + at_sign,
        kind: SecretKind::UrlPassword,
    })
}

/// Whether it is no password, but stands for one, or is so obvious that hiding it helps nobody.
fn is_placeholder(user: &[u8], password: &[u8]) -> bool {
    let is_reference = password.iter().any(|byte| matches!(byte, b'$' | b'{' | b'}' | b'*' | b'\\' | b'('));
    let is_word = PLACEHOLDERS.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    password.len() < PASSWORD_BYTES_MIN || password == user || is_reference || is_word
}
