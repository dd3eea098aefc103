//! Passwords in addresses: `scheme://user:password@host`.

use memchr::memmem;

use crate::span::{SecretKind, Span};

/// User and password are not longer.
const AUTHORITY_BYTES_MAX: usize = 1024;

/// Less keeps nobody out.
const PASSWORD_BYTES_MIN: usize = 4;

/// Words that stand where a password would.
const PLACEHOLDERS: &[&str] = &[
    "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "root", "admin", "test",
    "example", "changeme", "postgres", "mysql", "guest", "dev", "xxx", "xxxx", "xxxxx",
];

/// The passwords in a text.
pub(crate) fn find(text: &[u8], spans: &mut Vec<Span>) {
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
