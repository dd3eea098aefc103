//! Content blocks: the JSON as it was written, with a view of what the engine needs from it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::json::{self, RawObject};

/// One content block of a message.
///
/// The block's JSON is kept exactly as the model (or this crate) wrote it, so replaying a block never
/// changes a byte: key order, unknown fields and unknown block types included.
///
/// ```
/// use windlass_protocol::{Block, BlockKind};
/// let block = Block::from_json(r#"{"type":"text","text":"hi","citations":null}"#)?;
/// assert_eq!(block.kind(), &BlockKind::Text("hi".into()));
/// assert_eq!(block.json(), r#"{"type":"text","text":"hi","citations":null}"#);
/// # Ok::<(), windlass_protocol::BlockError>(())
/// ```
#[derive(Clone)]
pub struct Block {
    json: Arc<str>,
    kind: BlockKind,
}

/// What the engine knows about a block.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockKind {
    /// Prose.
    Text(Arc<str>),
    /// Reasoning with its signature.
    Thinking,
    /// Reasoning the provider encrypted.
    RedactedThinking,
    /// A request to run a tool.
    ToolUse(ToolUse),
    /// The answer to a tool use.
    ToolResult {
        /// The id of the tool use it answers.
        tool_use_id: Arc<str>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// A picture.
    Image,
    /// A document, for example a PDF.
    Document,
    /// A type this crate does not know, by name.
    Other(Arc<str>),
}

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// The provider's id of the call.
    pub id: Arc<str>,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The input as the model wrote it.
    pub input: ToolInput,
}

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

impl<T: Into<Arc<RawValue>>> From<T> for ToolInput {
    fn from(json: T) -> Self {
        Self::Parsed(json.into())
    }
}

impl PartialEq for ToolInput {
    fn eq(&self, other: &Self) -> bool {
        matches!(self, Self::Unparsed(_)) == matches!(other, Self::Unparsed(_)) && self.get() == other.get()
    }
}

/// Why a text is not a content block.
#[derive(Debug, thiserror::Error)]
#[error("not a content block: {0}")]
pub struct BlockError(String);

/// The fields of any block that the view is made from. What they hold is looked at only for the types that are known:
/// others may use the same names for something else.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
}

impl Block {
    /// Takes a block from its JSON text.
    pub fn from_json(json: &str) -> Result<Self, BlockError> {
        let fields: Fields<'_> = serde_json::from_str(json).map_err(|error| BlockError(error.to_string()))?;
        let missing = |field: &str| BlockError(format!("`{}` without `{field}`", fields.kind));
        let text = |field: Option<&RawValue>, name| -> Result<Arc<str>, BlockError> {
            field.and_then(json::text).map(Arc::from).ok_or_else(|| missing(name))
        };
        let kind = match &*fields.kind {
            "text" => BlockKind::Text(text(fields.text, "text")?),
            "thinking" => BlockKind::Thinking,
            "redacted_thinking" => BlockKind::RedactedThinking,
            "image" => BlockKind::Image,
            "document" => BlockKind::Document,
            "tool_use" => BlockKind::ToolUse(ToolUse {
                id: text(fields.id, "id")?,
                name: text(fields.name, "name")?,
                input: fields.input.ok_or_else(|| missing("input"))?.to_owned().into(),
            }),
            "tool_result" => BlockKind::ToolResult {
                tool_use_id: text(fields.tool_use_id, "tool_use_id")?,
                is_error: fields.is_error.is_some_and(|flag| flag.get() == "true"),
            },
            other => BlockKind::Other(other.into()),
        };
        Ok(Self { json: json.trim().into(), kind })
    }

    /// Takes a block from a session log: see [`ToolInput::from_log`].
    pub fn from_log(json: &str) -> Result<Self, BlockError> {
        let mut block = Self::from_json(json)?;
        if let BlockKind::ToolUse(tool_use) = &mut block.kind {
            tool_use.input = ToolInput::from_log(tool_use.input.json());
        }
        Ok(block)
    }

    /// A text block.
    pub fn text(text: &str) -> Self {
        let json = to_json(&BlockJson::Text { text });
        Self { json, kind: BlockKind::Text(text.into()) }
    }

    /// A tool use, for scripts and tests; live ones come from the model as JSON.
    pub fn tool_use(id: &str, name: &str, input: impl Into<ToolInput>) -> Self {
        let input = input.into();
        let json = to_json(&BlockJson::ToolUse { id, name, input: &input.json() });
        let view = ToolUse { id: id.into(), name: name.into(), input };
        Self { json, kind: BlockKind::ToolUse(view) }
    }

    /// The answer to a tool use. One text is sent as a plain string, the shortest form; blank text is left out.
    pub fn tool_result(tool_use_id: &str, content: &[Block], is_error: bool) -> Self {
        let content: Vec<&Block> = content.iter().filter(|block| !block.is_blank()).collect();
        let content = match &content[..] {
            [] => None,
            [Block { kind: BlockKind::Text(text), .. }] => Some(ResultJson::Text(text)),
            blocks => Some(ResultJson::Blocks(blocks)),
        };
        let json = to_json(&BlockJson::ToolResult { tool_use_id, content, is_error });
        Self { json, kind: BlockKind::ToolResult { tool_use_id: tool_use_id.into(), is_error } }
    }

    /// An image, base64 encoded.
    pub fn image(media_type: &str, base64: &str) -> Self {
        let source = SourceJson { media_type, data: base64 };
        Self { json: to_json(&BlockJson::Image { source }), kind: BlockKind::Image }
    }

    /// The block's JSON, as it goes to the model and to the log.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The view of the block.
    pub fn kind(&self) -> &BlockKind {
        &self.kind
    }

    /// The text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            BlockKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts among these blocks, a line each.
    pub fn texts(blocks: &[Self]) -> String {
        blocks.iter().filter_map(Self::as_text).collect::<Vec<_>>().join("\n")
    }

    /// Whether this is text without a visible character.
    pub fn is_blank(&self) -> bool {
        self.as_text().is_some_and(|text| text.trim().is_empty())
    }

    /// A tool use or tool result under another id, everything else as it was.
    #[must_use]
    pub fn with_tool_use_id(&self, id: &str) -> Self {
        let mut renamed = self.clone();
        let field = match &mut renamed.kind {
            BlockKind::ToolUse(tool_use) => {
                tool_use.id = id.into();
                "id"
            }
            BlockKind::ToolResult { tool_use_id, .. } => {
                *tool_use_id = id.into();
                "tool_use_id"
            }
            _ => return renamed,
        };
        renamed.set_field(field, &to_json(&id));
        renamed
    }

    /// A tool use whose input is text that is no JSON object, everything else as it was.
    #[must_use]
    pub fn with_unparsed_input(mut self, text: &str) -> Self {
        if let BlockKind::ToolUse(tool_use) = &mut self.kind {
            tool_use.input = ToolInput::Unparsed(text.into());
            let json = tool_use.input.json();
            self.set_field("input", json.get());
        }
        self
    }

    fn set_field(&mut self, name: &str, json: &str) {
        if let Ok(object) = RawObject::parse(&self.json) {
            self.json = object.with(&[(name, json)]).into();
        }
    }

    /// The blocks inside a tool result that are not just a plain text.
    pub fn result_blocks(&self) -> Vec<Self> {
        #[derive(Deserialize)]
        struct Inside<'a> {
            #[serde(borrow)]
            content: Vec<&'a RawValue>,
        }
        let inside =
            serde_json::from_str::<Inside<'_>>(&self.json).map(|inside| inside.content).unwrap_or_default();
        inside.iter().filter_map(|block| Self::from_json(block.get()).ok()).collect()
    }

    /// The tool use, if this is one.
    pub fn as_tool_use(&self) -> Option<&ToolUse> {
        match &self.kind {
            BlockKind::ToolUse(tool_use) => Some(tool_use),
            _ => None,
        }
    }

    /// Whether this is reasoning, readable or not.
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind, BlockKind::Thinking | BlockKind::RedactedThinking)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Serialize for Block {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.json).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The blocks that this crate writes itself.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockJson<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<ResultJson<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    Image {
        source: SourceJson<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultJson<'a> {
    Text(&'a str),
    Blocks(&'a [&'a Block]),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
struct SourceJson<'a> {
    media_type: &'a str,
    data: &'a str,
}

/// Serialises a text or one of the blocks above. They hold only strings and JSON, which cannot fail.
fn to_json(value: &impl Serialize) -> Arc<str> {
    serde_json::to_string(value).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        let block = Block::from_json(json);
        let seen = match &block {
            Ok(block) => format!("{:?}", block.kind()),
            Err(error) => error.to_string(),
        };
        assert_eq!(seen, expected);
        if let Ok(block) = block {
            assert_eq!(block.json(), json, "the JSON must survive byte for byte");
        }
    }

    #[test]
    fn blocks_keep_their_json_and_show_their_kind() {
        check(r#"{"type":"text","text":"a\nb","x":1}"#, r#"Text("a\nb")"#);
        check(r#"{"type":"thinking","thinking":"","signature":"s"}"#, "Thinking");
        check(r#"{"data":"z","type":"redacted_thinking"}"#, "RedactedThinking");
        check(r#"{"type":"connector_text","foo":[1,{"b":2,"a":1}]}"#, r#"Other("connector_text")"#);
        check(
            r#"{"type":"tool_result","tool_use_id":"t","is_error":true}"#,
            r#"ToolResult { tool_use_id: "t", is_error: true }"#,
        );
        check(
            r#"{"type":"news", "text":{"a":1.10},"id":7,"name":[],"input":"x","tool_use_id":1e400,"is_error":"no"}"#,
            r#"Other("news")"#,
        );
        check(r#"{"type":"tool_use","id":"a"}"#, "not a content block: `tool_use` without `name`");
        check(r#"{"type":"text","text":7}"#, "not a content block: `text` without `text`");
        check(
            "[]",
            "not a content block: invalid length 0, expected struct Fields with 7 elements at line 1 column 2",
        );
    }

    #[test]
    fn tool_input_keeps_its_key_order() {
        let block =
            Block::from_json(r#"{"type":"tool_use","id":"a","name":"N","input":{"z":1,"a": 2}}"#).unwrap();
        assert_eq!(block.as_tool_use().unwrap().input.get(), r#"{"z":1,"a": 2}"#);
    }

    #[test]
    fn another_id_changes_nothing_else() {
        let check = |json: &str, expected: &str| {
            assert_eq!(Block::from_json(json).unwrap().with_tool_use_id("b").json(), expected);
        };
        check(
            r#"{"type":"tool_use","id":"a:","name":"N","input":{"n": 1e400, "i":12345678901234567890123,"f":1.10}}"#,
            r#"{"type":"tool_use","id":"b","name":"N","input":{"n": 1e400, "i":12345678901234567890123,"f":1.10}}"#,
        );
        check(
            r#"{"tool_use_id":"a:","type":"tool_result","x":-0.0}"#,
            r#"{"tool_use_id":"b","type":"tool_result","x":-0.0}"#,
        );
        let cut = Block::tool_use("a", "N", ToolInput::Unparsed("{\"a".into())).with_tool_use_id("b");
        assert_eq!(cut.json(), r#"{"type":"tool_use","id":"b","name":"N","input":{"unparsed":"{\"a"}}"#);
        assert_eq!(cut.as_tool_use().unwrap().input, ToolInput::Unparsed("{\"a".into()));
        assert_eq!(&*cut.as_tool_use().unwrap().id, "b");
        assert_eq!(Block::from_log(cut.json()).unwrap().kind(), cut.kind());
    }

    #[test]
    fn results_take_the_shortest_form() {
        let check = |content: &[Block], is_error, json: &str| {
            assert_eq!(Block::tool_result("t", content, is_error).json(), json);
        };
        check(&[], false, r#"{"type":"tool_result","tool_use_id":"t"}"#);
        check(&[Block::text(" \n"), Block::text("")], false, r#"{"type":"tool_result","tool_use_id":"t"}"#);
        check(
            &[Block::text("x")],
            true,
            r#"{"type":"tool_result","tool_use_id":"t","content":"x","is_error":true}"#,
        );
        check(
            &[Block::text("x"), Block::image("image/png", "AA==")],
            false,
            r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}"#,
        );
    }
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
