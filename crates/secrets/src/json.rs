//! Secrets in the strings of JSON.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::assignments;
use crate::redactor::Redactor;

const HIDDEN: &str = "[redacted: secret]";

/// Blocks whose `data` is a picture, a sound or encrypted reasoning.
const TYPES_WITH_DATA: &[&str] = &["redacted_thinking", "base64", "image", "audio"];

impl Redactor {
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
