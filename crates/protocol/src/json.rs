//! JSON text repair that has to happen before a parser sees the text.

use std::borrow::Cow;

/// Replaces `\uD800`-style escapes that have no partner by the replacement character.
///
/// JSON from a model may hold them; Rust strings and model APIs cannot. Everything else is untouched.
///
/// ```
/// # use windlass_protocol::replace_lone_surrogates as fix;
/// assert_eq!(fix(r#""a\ud83d""#), r#""a\ufffd""#);
/// assert_eq!(fix(r#""\ud83d\ude00 \\ud83d""#), r#""\ud83d\ude00 \\ud83d""#);
/// ```
#[must_use]
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut fixed: Option<String> = None;
    let mut kept_to = 0;
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match surrogate_at(bytes, at) {
            None => at += 2,
            Some(Surrogate::High) if surrogate_at(bytes, at + 6) == Some(Surrogate::Low) => at += 12,
            Some(_) => {
                let text = fixed.get_or_insert_with(String::new);
                text.push_str(&json[kept_to..at]);
                text.push_str("\\ufffd");
                at += 6;
                kept_to = at;
            }
        }
    }
    match fixed {
        None => Cow::Borrowed(json),
        Some(mut text) => {
            text.push_str(&json[kept_to..]);
            Cow::Owned(text)
        }
    }
}

#[derive(PartialEq)]
enum Surrogate {
    High,
    Low,
}

fn surrogate_at(bytes: &[u8], at: usize) -> Option<Surrogate> {
    let escape = bytes.get(at..at + 6)?;
    if escape[0] != b'\\' || escape[1] != b'u' {
        return None;
    }
    let digits = std::str::from_utf8(&escape[2..]).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Surrogate::High),
        0xdc00..=0xdfff => Some(Surrogate::Low),
        _ => None,
    }
}
