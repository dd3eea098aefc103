//! The one way in: for text, for a line that is still being printed, and for the strings of JSON.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use crate::known_values::KnownValues;
use crate::span::{SecretKind, Span, replace};
use crate::words::{BASE64, count, count_back, is_varied, long_words, token_runs};
use crate::{assignments, headers, parts, pem, prefixes};

/// Secrets that touch each other are told apart in so many rounds.
const ROUNDS_MAX: usize = 8;

/// Hides secrets. Cheap to clone.
///
/// ```
/// use windlass_secrets::Redactor;
/// let redactor = Redactor::new(["a key we know"]);
/// assert_eq!(redactor.redact("it is a key we know."), "it is [redacted: known secret].");
/// assert_eq!(redactor.redact("ordinary text"), "ordinary text");
/// assert_eq!(
///     Redactor::default().redact("postgres://me:s3cr3t@db/x"),
///     "postgres://me:[redacted: password]@db/x"
/// );
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    pub(crate) known: KnownValues,
}

impl Redactor {
    /// Hides these values and all shapes of secrets. Values of less than 8 bytes are too common to count.
    pub fn new<S: AsRef<str>>(known: impl IntoIterator<Item = S>) -> Self {
        Self { known: KnownValues::new(known) }
    }

    /// The text without its secrets. What has none is given back as it is.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_with(text, |_| Vec::new())
    }

    /// Known values first, then shapes until none is left: hiding one may set another apart.
    pub(crate) fn redact_with<'a>(&self, text: &'a str, more: impl Fn(&str) -> Vec<Span>) -> Cow<'a, str> {
        let shapes = |text: &str| {
            let mut spans = shapes(text.as_bytes());
            spans.extend(more(text));
            spans
        };
        let mut result = replace(text, self.known.find(text));
        for _ in 0..ROUNDS_MAX {
            match replace(&result, shapes(&result)) {
                Cow::Borrowed(_) => break,
                Cow::Owned(redacted) => result = Cow::Owned(redacted),
            }
        }
        result
    }

    /// One line of output without secrets, as far as it was printed. Stricter than [`Redactor::redact`]: it is only looked at,
    /// so hiding too much does no harm.
    ///
    /// ```
    /// use windlass_secrets::Redactor;
    /// let redactor = Redactor::new(["correct horse battery"]);
    /// assert_eq!(redactor.redact_line("password: correct horse"), "password: [redacted: known secret]");
    /// ```
    pub fn redact_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        self.redact_with(line, |line| {
            let known = self.known.unfinished_start(line).map(|start| (start, SecretKind::Known));
            let token = prefixes::unfinished_start(line.as_bytes())
                .map(|start| (start, SecretKind::Token("unfinished token")));
            let key = is_key_line(line.trim().as_bytes()).then_some((0, SecretKind::PrivateKey));
            let found = [known, token, key].into_iter().flatten();
            found.map(|(start, kind)| Span { start, end: line.len(), kind }).collect()
        })
    }

    /// JSON without secrets in its strings. Names stay as they are, and so do signatures, pictures and encrypted reasoning: a
    /// change would make them worthless. JSON without secrets is given back byte for byte; text that is no JSON is treated as
    /// [`Redactor::redact`] does.
    ///
    /// ```
    /// use windlass_secrets::Redactor;
    /// let redactor = Redactor::new(["a key we know"]);
    /// let json = r#"{"a key we know":["a key we know",1.0],"signature":"a key we know"}"#;
    /// assert_eq!(
    ///     redactor.redact_json(json),
    ///     r#"{"a key we know":["[redacted: known secret]",1.0],"signature":"a key we know"}"#
    /// );
    /// ```
    pub fn redact_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        let Ok(mut value) = serde_json::from_str(json) else { return self.redact(json) };
        if self.redact_value(&mut value) { Cow::Owned(value.to_string()) } else { Cow::Borrowed(json) }
    }

    /// The same for JSON that is parsed already. Says whether there was anything to hide.
    pub fn redact_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.redact_string(None, text),
            Value::Array(items) => {
                items.iter_mut().fold(false, |found, item| self.redact_value(item) | found)
            }
            Value::Object(fields) => self.redact_fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn redact_fields(&self, fields: &mut Map<String, Value>) -> bool {
        let mut found = false;
        let kind = fields.get("type").and_then(Value::as_str);
        let keeps_data = kind.is_some_and(|kind| TYPES_WITH_DATA.contains(&kind));
        for (name, value) in fields {
            found |= match value {
                Value::String(_) if name == "signature" || (keeps_data && name == "data") => false,
                Value::String(text) => self.redact_string(Some(name), text),
                other => self.redact_value(other),
            };
        }
        found
    }

    fn redact_string(&self, name: Option<&str>, text: &mut String) -> bool {
        let is_named_after_it = |name: &str| assignments::is_secret(name.as_bytes(), text.as_bytes());
        let redacted = match self.redact(text) {
            Cow::Owned(redacted) => redacted,
            Cow::Borrowed(_) if name.is_some_and(is_named_after_it) => HIDDEN.to_owned(),
            Cow::Borrowed(_) => return false,
        };
        *text = redacted;
        true
    }
}

/// Everything that looks like a secret.
fn shapes(bytes: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    pem::find(bytes, &mut spans);
    headers::find_passwords(bytes, &mut spans);
    headers::find(bytes, &mut spans);
    for word in long_words(bytes) {
        spans.extend(assignments::find(bytes, &word));
        spans.extend(headers::bearer(bytes, &word));
        for run in token_runs(bytes, word) {
            spans.extend(parts::find(bytes, &run));
            prefixes::find(bytes, &run, &mut spans);
        }
    }
    spans
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

/// A line that is nothing but so much base64 may be of a private key.
const KEY_LINE_BYTES_MIN: usize = 40;

fn is_key_line(line: &[u8]) -> bool {
    let padding = count_back(line, 2, |byte| byte == b'=');
    let length = count(line, BASE64);
    let is_base64 = length + padding == line.len() && length >= KEY_LINE_BYTES_MIN;
    is_base64 && !line.iter().all(u8::is_ascii_hexdigit) && is_varied(line)
}

const HIDDEN: &str = "[redacted: secret]";

/// Blocks whose `data` is a picture, a sound or encrypted reasoning.
const TYPES_WITH_DATA: &[&str] = &["redacted_thinking", "base64", "image", "audio"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_redacted_and_nothing_else() {
        let redactor = Redactor::new(["known-value"]);
        let check =
            |json: &str, expected: &str| assert_eq!(redactor.redact_json(json), expected, "for {json}");
        let unchanged = |json: &str| check(json, json);
        check(r#"["a known-value", 1.0]"#, r#"["a [redacted: known secret]",1.0]"#);
        check(r#""known\u002dvalue""#, r#""[redacted: known secret]""#);
        check(r#"{"a":{"b":"known-value"}}"#, r#"{"a":{"b":"[redacted: known secret]"}}"#);
        check(r#"{"token":"q7Zx2LmV9bTr4WcN8d"}"#, r#"{"token":"[redacted: secret]"}"#);
        check(r#"{"data":"known-value"}"#, r#"{"data":"[redacted: known secret]"}"#);
        unchanged(r#"{ "known-value": 1, "b" : [ 1e3, "x\u0041", "q7Zx2LmV9bTr4WcN8d" ] }"#);
        unchanged(r#"{ "type":"thinking","thinking":"x","signature":"known-value" }"#);
        unchanged(r#"{ "type":"redacted_thinking","data":"known-value" }"#);
        unchanged(r#"{ "source":{"data":"known-value","type":"base64"} }"#);
        check("known-value {", "[redacted: known secret] {");
        check(r#"["known-value",1e999]"#, r#"["[redacted: known secret]",1e999]"#);
    }
}
