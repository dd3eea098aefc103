//! JSON as text: objects whose values stay as they were written, and repair ahead of the parser.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of a JSON object in their order, each value as it was written.
///
/// ```
/// use windlass_protocol::RawObject;
/// let object = RawObject::parse(r#"{"b": 1e400, "a": 2}"#)?;
/// assert_eq!(object.with(&[("a", "3"), ("c", "[]")]), r#"{"b":1e400,"a":3,"c":[]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct RawObject<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> RawObject<'a> {
    /// Reads an object.
    pub fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// What the value of a field says, if it is there and of this type.
    pub fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// The fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> + Clone {
        self.fields.iter().map(|(name, value)| (&**name, *value))
    }

    /// The object's JSON with these fields (name and JSON) in the place of those of the same name, or behind all others.
    pub fn with<N: AsRef<str>, J: AsRef<str>>(&self, fields: &[(N, J)]) -> String {
        let new_value = |name: &str| fields.iter().find(|(new, _)| new.as_ref() == name);
        let kept = self
            .iter()
            .map(|(name, value)| (name, new_value(name).map_or(value.get(), |(_, json)| json.as_ref())));
        let added = fields
            .iter()
            .map(|(name, json)| (name.as_ref(), json.as_ref()))
            .filter(|(name, _)| self.get(name).is_none());
        let size: usize =
            kept.clone().chain(added.clone()).map(|(name, json)| name.len() + json.len() + 4).sum();
        let mut json = String::with_capacity(size + 2);
        for (name, value) in kept.chain(added) {
            json.push(if json.is_empty() { '{' } else { ',' });
            // Text always has a JSON form.
            json.push_str(&serde_json::to_string(name).unwrap_or_default());
            json.push(':');
            json.push_str(value);
        }
        json.push_str(if json.is_empty() { "{}" } else { "}" });
        json
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = RawObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(RawObject { fields })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// A `Cow<str>` on its own never borrows with serde; behind this it does.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The text of a JSON string, if it is one.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(value.get()).ok().map(|Text(text)| text)
}

/// Replaces `\uD800`-style escapes that have no partner by the replacement character.
///
/// JSON from a model may hold them; Rust strings and model APIs cannot. Everything else is untouched.
///
/// ```
/// # use windlass_protocol::replace_lone_surrogates as fix;
/// assert_eq!(fix(r#""a\ud83d""#), r#""a\ufffd""#);
/// assert_eq!(fix(r#""\ud83d\ude00 \\ud83d""#), r#""\ud83d\ude00 \\ud83d""#);
/// ```
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
