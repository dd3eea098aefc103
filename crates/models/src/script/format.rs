//! The script file: its fields, and the check of a file against them.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::fault::ScriptFault;

/// The most often one response can be repeated: enough for any measurement, small enough to prepare at once.
const REPEAT_MAX: u32 = 100_000;

/// A file of responses that stands in for a model.
///
/// ```
/// use windlass_models::Script;
/// let script = Script::parse(r#"{"responses": [{"blocks": [{"text": "Hello."}]}]}"#)?;
/// assert_eq!(script.responses.len(), 1);
/// # Ok::<(), windlass_models::ScriptError>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The name of the model that answers.
    #[serde(default = "default_model")]
    pub model: String,
    /// The responses, in the order of the requests.
    pub responses: Vec<ScriptResponse>,
    /// What happens after the last response.
    #[serde(default)]
    pub then: AfterLast,
}

/// What happens after the last response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterLast {
    /// Further requests fail and say that the script is used up.
    #[default]
    Fail,
    /// The script begins again.
    Repeat,
}

/// One response.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ScriptResponse {
    /// What the model says; none only beside a fault.
    pub blocks: Option<Vec<ScriptBlock>>,
    /// Why the model stops; by default `tool_use` if there is a tool block, else `end_turn`.
    pub stop_reason: Option<String>,
    /// The tokens it reports; by default made from sizes.
    #[serde(default)]
    pub usage: UsageSpec,
    /// Wait before the head of the response.
    #[serde(default)]
    pub delay_ms: u64,
    /// Characters in one delta.
    #[serde(default = "default_delta_chars")]
    pub delta_chars: usize,
    /// Wait before each delta.
    #[serde(default)]
    pub delta_delay_ms: u64,
    /// Wait before each block.
    #[serde(default)]
    pub block_delay_ms: u64,
    /// Wait between the last block and the end of the response.
    #[serde(default)]
    pub end_delay_ms: u64,
    /// How many requests in a row it answers.
    #[serde(default = "default_repeat")]
    pub repeat: u32,
    /// What the request must hold.
    pub expect: Option<RequestCondition>,
    /// Which requests it answers; without this, those for which its turn has come.
    pub when: Option<RequestCondition>,
    /// The name of the model that answers, if it is not that of the script.
    pub model: Option<String>,
    /// What the provider says about the request.
    #[serde(default)]
    pub notes: NotesSpec,
    /// What goes wrong.
    pub fault: Option<ScriptFault>,
}

/// The tokens a response reports. Fields that are not given are made from the sizes of the script.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UsageSpec {
    /// Input tokens after the last cache breakpoint.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: Option<u64>,
}

/// What a request must hold for its response to be played.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct RequestCondition {
    /// A text that the newest user message contains: in its own words or in a tool result.
    pub contains: Option<String>,
    /// A part of the name of the model that is asked.
    pub model: Option<String>,
}

/// What the provider says about the request, beside the response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotesSpec {
    /// What it cleared from its copy of the transcript.
    pub cleared: Option<ClearedSpec>,
    /// Which thinking it left out.
    pub thinking_dropped: Option<DroppedSpec>,
    /// Why the model declined.
    pub refusal: Option<RefusalSpec>,
}

/// What a provider cleared.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClearedSpec {
    /// Results.
    pub tool_results: u32,
    /// Answers whose thinking was cleared.
    pub thinking_turns: u32,
    /// Input tokens that were freed.
    pub tokens: u64,
}

/// Thinking that a provider left out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedSpec {
    /// The blocks, for example `messages.1.content.0`.
    pub paths: Vec<String>,
    /// Why, for example `prefix_binding_mismatch`.
    pub reason: String,
}

/// Why a model declined.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefusalSpec {
    /// The provider's category.
    pub category: Option<String>,
    /// For people.
    pub explanation: Option<String>,
}

/// A block of a response and the wait before it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "BlockFields")]
pub struct ScriptBlock {
    /// Wait before the block, on top of the response's wait before each block.
    pub delay_ms: u64,
    /// What it is.
    pub content: ScriptContent,
}

/// What a block is.
#[derive(Clone, Debug)]
pub enum ScriptContent {
    /// Prose.
    Text(String),
    /// A tool use. The id is made from the places of response and block unless it is given.
    Tool {
        /// The tool's name.
        name: String,
        /// The JSON text of the input, not necessarily valid.
        input: String,
        /// The id, if given.
        id: Option<String>,
    },
    /// Reasoning and its signature.
    Thinking {
        /// The reasoning; may be empty.
        thinking: String,
        /// The signature.
        signature: String,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking(String),
    /// Any block, sent in one piece as it stands.
    Raw(Value),
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a script.
    #[error("{}{place}: {what}", file(path.as_deref()))]
    Invalid {
        /// The file, if the text came from one.
        path: Option<PathBuf>,
        /// The field, for example `responses[2].blocks[0]`, with line and column.
        place: String,
        /// What is wrong and what is expected.
        what: String,
    },
}

fn file(path: Option<&Path>) -> String {
    path.map_or_else(|| "invalid script, ".to_owned(), |path| format!("invalid script {}, ", path.display()))
}

impl Script {
    /// Parses and checks a script.
    pub fn parse(json: &str) -> Result<Self, ScriptError> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let script: Self = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| invalid(&error.path().to_string(), &error.into_inner()))?;
        reader.end().map_err(|error| invalid(".", &error))?;
        if script.responses.is_empty() {
            return Err(ScriptError::Invalid {
                path: None,
                place: "at `responses`".to_owned(),
                what: "expected at least one response".to_owned(),
            });
        }
        Ok(script)
    }

    /// Reads a script from a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let read = |source| ScriptError::Read { path: path.to_owned(), source };
        let json = std::fs::read_to_string(path).map_err(read)?;
        Self::parse(&json).map_err(|error| match error {
            ScriptError::Invalid { place, what, .. } => {
                ScriptError::Invalid { path: Some(path.to_owned()), place, what }
            }
            error @ ScriptError::Read { .. } => error,
        })
    }

    /// How many requests the script answers before its end, repeats included; responses with a condition do not count.
    pub fn plays(&self) -> usize {
        self.in_order().map(|response| response.repeat as usize).sum()
    }

    /// Whether which response comes next depends on the request.
    pub fn looks_at_requests(&self) -> bool {
        self.responses.iter().any(|response| response.expect.is_some() || response.when.is_some())
    }

    /// The responses that come one after the other.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &ScriptResponse> {
        self.responses.iter().filter(|response| response.when.is_none())
    }
}

fn invalid(path: &str, error: &serde_json::Error) -> ScriptError {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text).to_owned();
    let position = format!("line {} column {}", error.line(), error.column());
    let place = if path == "." { format!("at {position}") } else { format!("at `{path}` ({position})") };
    ScriptError::Invalid { path: None, place, what }
}

fn default_model() -> String {
    "scripted".to_owned()
}

/// Reads a type by the function that serde makes for its fields as they are written, then checks it.
macro_rules! checked {
    ($($type:ty),*) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = Self::deserialize(deserializer)?;
                read.check().map_err(serde::de::Error::custom)?;
                Ok(read)
            }
        }
    )*};
}

pub(super) use checked;

checked!(RequestCondition, ScriptResponse);

impl RequestCondition {
    fn check(&self) -> Result<(), &'static str> {
        let is_empty = self.contains.is_none() && self.model.is_none();
        if is_empty { Err("expected `contains`, `model` or both") } else { Ok(()) }
    }
}

fn default_delta_chars() -> usize {
    40
}

fn default_repeat() -> u32 {
    1
}

impl ScriptResponse {
    fn check(&self) -> Result<(), String> {
        if self.blocks.is_none() && self.fault.is_none() {
            return Err("expected `blocks` or `fault`".to_owned());
        }
        if self.delta_chars == 0 {
            return Err("`delta_chars` is 0, expected at least 1".to_owned());
        }
        if !(1..=REPEAT_MAX).contains(&self.repeat) {
            return Err(format!("`repeat` is {}, expected 1 to {REPEAT_MAX}", self.repeat));
        }
        if let Some(ScriptFault::Status { code, .. }) = &self.fault
            && !(400..=599).contains(code)
        {
            return Err(format!("`fault.status.code` is {code}, expected 400 to 599"));
        }
        if self.expect.is_some() && self.when.is_some() {
            return Err("expected only one of `expect`, `when`".to_owned());
        }
        Ok(())
    }
}

/// The fields of a block as they are written: one of five says what it is, the others belong to it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BlockFields {
    text: Option<String>,
    tool: Option<String>,
    input: Option<Value>,
    input_json: Option<String>,
    id: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    redacted_thinking: Option<String>,
    raw: Option<Value>,
    delay_ms: u64,
}

impl TryFrom<BlockFields> for ScriptBlock {
    type Error = String;

    fn try_from(fields: BlockFields) -> Result<Self, String> {
        fields.check_companions()?;
        let delay_ms = fields.delay_ms;
        let content = match fields {
            BlockFields { text: Some(text), .. } => ScriptContent::Text(text),
            BlockFields { tool: Some(name), input, input_json, id, .. } => {
                ScriptContent::Tool { name, input: tool_input(input, input_json)?, id }
            }
            BlockFields { thinking: Some(thinking), signature, .. } => ScriptContent::Thinking {
                thinking,
                signature: signature.unwrap_or_else(|| "script".to_owned()),
            },
            BlockFields { redacted_thinking: Some(data), .. } => ScriptContent::RedactedThinking(data),
            BlockFields { raw: Some(block), .. } => ScriptContent::Raw(raw_block(block)?),
            _ => return Err(format!("expected one of {KINDS}")),
        };
        Ok(Self { delay_ms, content })
    }
}

const KINDS: &str = "`text`, `tool`, `thinking`, `redacted_thinking`, `raw`";

impl BlockFields {
    /// Exactly one kind, and no field that belongs to another kind.
    fn check_companions(&self) -> Result<(), String> {
        let kinds = [
            self.text.is_some(),
            self.tool.is_some(),
            self.thinking.is_some(),
            self.redacted_thinking.is_some(),
            self.raw.is_some(),
        ];
        if kinds.iter().filter(|given| **given).count() > 1 {
            return Err(format!("expected only one of {KINDS}"));
        }
        let companions = [
            ("input", self.input.is_some(), self.tool.is_some(), "tool"),
            ("input_json", self.input_json.is_some(), self.tool.is_some(), "tool"),
            ("id", self.id.is_some(), self.tool.is_some(), "tool"),
            ("signature", self.signature.is_some(), self.thinking.is_some(), "thinking"),
        ];
        match companions.iter().find(|(_, given, owner, _)| *given && !owner) {
            Some((field, _, _, owner)) => Err(format!("`{field}` needs `{owner}`")),
            None => Ok(()),
        }
    }
}

fn tool_input(input: Option<Value>, text: Option<String>) -> Result<String, String> {
    match (input, text) {
        (Some(_), Some(_)) => Err("expected only one of `input`, `input_json`".to_owned()),
        (Some(object @ Value::Object(_)), None) => Ok(object.to_string()),
        (Some(_), None) => Err("`input` must be an object; use `input_json` for any other text".to_owned()),
        (None, Some(text)) => Ok(text),
        (None, None) => Ok("{}".to_owned()),
    }
}

fn raw_block(block: Value) -> Result<Value, String> {
    match block.get("type") {
        Some(Value::String(_)) => Ok(block),
        _ => Err("`raw` must be an object with a `type`".to_owned()),
    }
}

#[cfg(test)]
mod tests;
