//! The input of a tool use.

use std::sync::Arc;

use serde_json::value::RawValue;

/// The field of the object that stands for an input which is none. Sessions that were written before have it too.
const UNPARSED: &str = "unparsed";

/// The input of a tool use as the model wrote it.
#[derive(Clone, Debug)]
pub enum ToolInput {
    /// JSON. It is an object once it is part of a [`Block`](crate::Block).
    Parsed(Arc<RawValue>),
    /// Text that is no JSON object, most often one that was cut off. Such a call is never run. A provider takes nothing but an
    /// object back, so this one stands for it in requests and in the log: `{"unparsed": "<the text>"}`.
    Unparsed(Arc<RawValue>),
}

impl ToolInput {
    /// What a model wrote that is no JSON object.
    pub fn unparsed(text: &str) -> Self {
        let text = serde_json::Value::from(text);
        Self::Unparsed(RawValue::from_string(format!("{{\"{UNPARSED}\":{text}}}")).unwrap_or_default().into())
    }

    /// The JSON that stands in the transcript.
    pub fn json(&self) -> &Arc<RawValue> {
        match self {
            Self::Parsed(json) | Self::Unparsed(json) => json,
        }
    }

    /// Its text.
    pub fn get(&self) -> &str {
        self.json().get()
    }
}

impl From<Arc<RawValue>> for ToolInput {
    fn from(json: Arc<RawValue>) -> Self {
        let mut rest = json.get().trim_start().strip_prefix('{').unwrap_or_default().trim_start().split('"');
        let is_unparsed = rest.next() == Some("") && rest.next() == Some(UNPARSED);
        if is_unparsed { Self::Unparsed(json) } else { Self::Parsed(json) }
    }
}

impl From<Box<RawValue>> for ToolInput {
    fn from(json: Box<RawValue>) -> Self {
        Arc::<RawValue>::from(json).into()
    }
}

impl PartialEq for ToolInput {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_no_object_is_known_again() {
        let check = |json: &str, expected: bool| {
            let input = ToolInput::from(RawValue::from_string(json.to_owned()).unwrap());
            assert_eq!(matches!(input, ToolInput::Unparsed(_)), expected, "{json}");
        };
        check(ToolInput::unparsed("{\"a\": \"b").get(), true);
        check(r#" { "unparsed" : "x"}"#, true);
        check(r#"{"a":"unparsed"}"#, false);
        check(r#"{"unparsed_too":1}"#, false);
        check("{}", false);
        check(r#""unparsed""#, false);
        assert_eq!(ToolInput::unparsed("[1]").get(), r#"{"unparsed":"[1]"}"#);
    }
}
