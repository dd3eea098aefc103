//! The input of a tool use.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The input of a tool use as the model wrote it.
#[derive(Clone, Debug)]
pub enum ToolInput {
    /// JSON, an object unless the transcript is a foreign one.
    Parsed(Arc<RawValue>),
    /// Text that is no JSON object, most often one that was cut off. Such a call is never run.
    Unparsed(Arc<str>),
}

/// The object that stands for text that is none, since a provider takes nothing else back.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct UnparsedObject {
    unparsed: Arc<str>,
}

impl ToolInput {
    /// The input of a tool use that a session log holds. The log has the JSON of requests, so `{"unparsed":"..."}` with nothing
    /// else in it is text there. A model that sends this object now means an object.
    pub fn from_log(json: Arc<RawValue>) -> Self {
        match serde_json::from_str(json.get()) {
            Ok(UnparsedObject { unparsed }) if json.get().starts_with('{') => Self::Unparsed(unparsed),
            _ => Self::Parsed(json),
        }
    }

    /// The JSON for requests, logs and hosts.
    pub fn json(&self) -> Arc<RawValue> {
        match self {
            Self::Parsed(json) => Arc::clone(json),
            Self::Unparsed(text) => {
                to_raw_value(&UnparsedObject { unparsed: Arc::clone(text) }).unwrap_or_default().into()
            }
        }
    }

    /// The text that the model wrote.
    pub fn get(&self) -> &str {
        match self {
            Self::Parsed(json) => json.get(),
            Self::Unparsed(text) => text,
        }
    }
}

impl From<Arc<RawValue>> for ToolInput {
    fn from(json: Arc<RawValue>) -> Self {
        Self::Parsed(json)
    }
}

impl From<Box<RawValue>> for ToolInput {
    fn from(json: Box<RawValue>) -> Self {
        Self::Parsed(json.into())
    }
}

impl PartialEq for ToolInput {
    fn eq(&self, other: &Self) -> bool {
        matches!(self, Self::Unparsed(_)) == matches!(other, Self::Unparsed(_)) && self.get() == other.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Arc<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap().into()
    }

    #[test]
    fn what_stands_for_no_object_is_known_again_in_a_log() {
        let check = |json: &str, expected: bool| {
            let input = ToolInput::from_log(raw(json));
            assert_eq!(matches!(input, ToolInput::Unparsed(_)), expected, "{json}");
        };
        let cut = ToolInput::Unparsed("{\"a\": \"b".into());
        assert_eq!(ToolInput::from_log(cut.json()), cut);
        check(r#"{ "unparsed" : "x"}"#, true);
        check(r#"{"unparsed":"x","more":1}"#, false);
        check(r#"{"unparsed":1}"#, false);
        check(r#"{"a":"unparsed"}"#, false);
        check(r#"{"unparsed_too":1}"#, false);
        check("{}", false);
        check(r#""unparsed""#, false);
        check(r#"["x"]"#, false);
        assert_eq!(ToolInput::Unparsed("[1]".into()).json().get(), r#"{"unparsed":"[1]"}"#);
    }

    #[test]
    fn what_a_model_sends_is_what_it_is() {
        for json in [r#"{"unparsed":"x"}"#, r#"{"unparsed":"x","more":1}"#] {
            let input = ToolInput::from(raw(json));
            assert!(matches!(input, ToolInput::Parsed(_)), "{json}");
            assert_ne!(input, ToolInput::Unparsed(json.into()));
        }
    }
}
