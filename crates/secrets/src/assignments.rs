//! A random value beside a name that says it is secret: `password = "…"`, `"token": "…"`, `API_KEY=…`, `--token …`.

use std::ops::Range;

use crate::span::{SecretKind, Span};
use crate::words::{TOKEN, count_back, is, is_random, is_uuid};

/// How far apart name and value may be, in blanks.
const BLANKS_MAX: usize = 8;
const NAME_BYTES_MAX: usize = 64;
/// A quoted value ends before that, or is none.
const QUOTED_BYTES_MAX: usize = 2048;

/// How names of secrets end, without regard to case, `_`, `-` and `.`.
const NAMES: &[&[&str]] = &[
    &["password", "passwd", "passphrase", "pwd", "dbpass", "secret", "token", "apikey", "accesskey"],
    &["secretkey", "secretkeybase", "privatekey", "authkey", "accountkey", "encryptionkey", "signingkey"],
    &["masterkey", "sharedaccesskey", "credential", "credentials", "secretvalue"],
];

/// What such a name may hold that makes it the name of something else.
const HARMLESS: &[&str] =
    &["public", "page", "continuation", "cursor", "cancellation", "resume", "sync", "next"];

/// Secrets of these have the form of a UUID.
const UUID_NAMES: &[&str] = &["heroku", "authtoken"];

/// The secret whose value begins with a word.
pub(crate) fn find(text: &[u8], word: &Range<usize>) -> Option<Span> {
    let (before, quote) = before_value(&text[..word.start]);
    let name = name_before(before, quote.is_some())?;
    let end = match quote {
        Some(quote) => quoted_end(text, word.start, quote)?,
        None => bare_end(text, word.end)?,
    };
    let value = &text[word.start..end];
    is_secret(name, value).then_some(Span { start: word.start, end, kind: SecretKind::Assigned })
}

/// Whether a value is secret that stands under this name.
pub(crate) fn is_secret(name: &[u8], value: &[u8]) -> bool {
    let Some(name) = telling(name) else { return false };
    is_random(value) || (is_uuid(value) && UUID_NAMES.iter().any(|part| name.contains(part)))
}

/// The name without case and marks, if it is one of a secret.
fn telling(name: &[u8]) -> Option<String> {
    let last = name.last()?.to_ascii_lowercase();
    // The last letters of all names: most words are ruled out here.
    matches!(last, b'd' | b'e' | b't' | b'n' | b'y' | b's' | b'l').then_some(())?;
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let name: String = letters.map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    let is_telling = NAMES.iter().copied().flatten().any(|end| name.ends_with(end));
    let is_harmless = HARMLESS.iter().any(|part| name.contains(part));
    (is_telling && !is_harmless).then_some(name)
}

/// What stands before a value and its quote, and the quote.
fn before_value(before: &[u8]) -> (&[u8], Option<u8>) {
    match before {
        [front @ .., quote @ (b'"' | b'\'' | b'`')] => {
            (front.strip_suffix(b"\\").unwrap_or(front), Some(*quote))
        }
        _ => (before, None),
    }
}

/// The name in front of a value: before `=`, `:`, `=>` or `>`, or as a flag of a command.
fn name_before(before: &[u8], is_quoted: bool) -> Option<&[u8]> {
    let front = trim_blanks(before);
    let marks = count_back(front, 3, |byte| matches!(byte, b'=' | b':' | b'>'));
    let sign = &front[front.len() - marks..];
    match sign {
        b"" => flag(front, before.len() - front.len()),
        b"::" | b":::" => None,
        b">" if is_quoted => None,
        _ => {
            let front = trim_blanks(&front[..front.len() - marks]);
            let ends: [&[u8]; 4] = [b"\"]", b"']", b"\"", b"'"];
            let front = ends.iter().find_map(|end| front.strip_suffix(*end)).unwrap_or(front);
            let front = front.strip_suffix(b"\\").unwrap_or(front);
            assigned_name(front).filter(|name| telling(name).is_some()).or_else(|| typed_name(front, sign))
        }
    }
}

/// `--token VALUE`.
fn flag(front: &[u8], blanks: usize) -> Option<&[u8]> {
    let name = assigned_name(front).filter(|_| blanks > 0)?;
    name.starts_with(b"--").then_some(name)
}

/// `token: &str = VALUE`.
fn typed_name<'a>(front: &'a [u8], sign: &[u8]) -> Option<&'a [u8]> {
    let is_type = |byte: u8| is(byte, TOKEN) || matches!(byte, b'&' | b'\'' | b' ' | b'<' | b'>' | b'?');
    let length = count_back(front, 32, is_type);
    let front = front[..front.len() - length].strip_suffix(b":").filter(|_| sign == b"=")?;
    assigned_name(trim_blanks(front))
}

fn assigned_name(front: &[u8]) -> Option<&[u8]> {
    let length = count_back(front, NAME_BYTES_MAX, |byte| is(byte, TOKEN) || byte == b'.');
    (length > 2).then(|| &front[front.len() - length..])
}

fn trim_blanks(text: &[u8]) -> &[u8] {
    &text[..text.len() - count_back(text, BLANKS_MAX, |byte| matches!(byte, b' ' | b'\t'))]
}

/// Where a value without quotes ends. One that something opens behind is code.
fn bare_end(text: &[u8], word_end: usize) -> Option<usize> {
    let is_code = matches!(text.get(word_end), Some(b'(' | b'[' | b'{' | b':'));
    let padding = text[word_end..].iter().take(2).take_while(|byte| **byte == b'=').count();
    (!is_code).then_some(word_end + padding)
}

/// Where a quoted value ends. One with a blank is prose.
fn quoted_end(text: &[u8], start: usize, quote: u8) -> Option<usize> {
    let rest = &text[start..text.len().min(start + QUOTED_BYTES_MAX)];
    let length = rest.iter().position(|byte| *byte == quote || byte.is_ascii_whitespace())?;
    let end = if rest[length] == quote { length } else { return None };
    let escaped = rest[..end].ends_with(b"\\");
    Some(start + end - usize::from(escaped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_by_their_end() {
        let check =
            |name: &str, expected: bool| assert_eq!(telling(name.as_bytes()).is_some(), expected, "{name}");
        check("password", true);
        check("DB_PASSWORD", true);
        check("X-Auth-Token", true);
        check("clientSecret", true);
        check("AWS_SECRET_ACCESS_KEY", true);
        check("api.key", true);
        check("tokenizer", false);
        check("max_tokens", false);
        check("PublicKeyToken", false);
        check("nextPageToken", false);
        check("checksum", false);
        check("key", false);
    }
}
