//! One block on its way in: the skeleton it started with, what the deltas added, and the pieces of strings they bring,
//! which may be cut inside of a character that JSON writes as two escapes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;
use windlass_protocol::{Block, RawObject, ToolInput, replace_lone_surrogates};

/// A block between its start and its stop.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    pub(crate) index: u32,
    skeleton: Arc<RawValue>,
    kind: OpenBlockKind,
    text: Option<String>,
    thinking: Option<String>,
    /// The JSON text of the input; parsed only when it is complete.
    input: String,
    /// What the last delta ended in, if that was half a character.
    half: Option<SurrogateHalf>,
    signature: Option<String>,
    /// JSON values with a comma in front of each.
    citations: String,
    /// Whole fields that a delta set, by name, as JSON.
    fields: Vec<(String, Box<RawValue>)>,
}

/// Which deltas fit. A type the engine does not know takes all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBlockKind {
    Text,
    Thinking,
    ToolUse,
    Other,
}

/// JSON of which only the type counts; it may be unknown.
#[derive(Deserialize)]
pub(crate) struct TypedJson<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
}

impl OpenBlock {
    pub(crate) fn new(index: u32, skeleton: Arc<RawValue>) -> Result<Self, String> {
        let fields: TypedJson<'_> =
            serde_json::from_str(skeleton.get()).map_err(|error| format!("`content_block`: {error}"))?;
        let kind = match &*fields.kind {
            "text" => OpenBlockKind::Text,
            "thinking" => OpenBlockKind::Thinking,
            "tool_use" => OpenBlockKind::ToolUse,
            _ => OpenBlockKind::Other,
        };
        Ok(Self {
            index,
            skeleton,
            kind,
            text: None,
            thinking: None,
            input: String::new(),
            half: None,
            signature: None,
            citations: String::new(),
            fields: Vec::new(),
        })
    }

    pub(crate) fn push_text(&mut self, piece: StringPiece<'_>) -> Result<String, String> {
        self.expect(OpenBlockKind::Text, "text_delta")?;
        let text = piece.join(&mut self.half);
        self.text.get_or_insert_default().push_str(&text);
        Ok(text)
    }

    /// Some gateways put the text of the first delta into the start of the block as well; it counts once.
    pub(crate) fn push_thinking(&mut self, piece: StringPiece<'_>) -> Result<String, String> {
        self.expect(OpenBlockKind::Thinking, "thinking_delta")?;
        let text = piece.join(&mut self.half);
        let start = object(self.skeleton.get())?;
        let is_told = text_of(&start, "thinking").is_some_and(|start| start == text);
        if self.thinking.is_none() && !text.is_empty() && is_told {
            self.thinking = Some(String::new());
            return Ok(String::new());
        }
        self.thinking.get_or_insert_default().push_str(&text);
        Ok(text)
    }

    pub(crate) fn push_input(&mut self, piece: StringPiece<'_>) -> Result<String, String> {
        self.expect(OpenBlockKind::ToolUse, "input_json_delta")?;
        let text = piece.join(&mut self.half);
        self.input.push_str(&text);
        Ok(text)
    }

    pub(crate) fn set_signature(&mut self, signature: StringPiece<'_>) -> String {
        let signature = signature.into_text();
        self.signature = Some(signature.clone());
        signature
    }

    pub(crate) fn push_citation(&mut self, citation: &RawValue) {
        self.citations.push(',');
        self.citations.push_str(&replace_lone_surrogates(citation.get()));
    }

    /// Sets every field of a delta, given as JSON, except its type.
    pub(crate) fn set_fields_of(&mut self, delta: &str) -> Result<(), String> {
        for (name, value) in object(delta)?.iter().filter(|(name, _)| *name != "type") {
            self.fields.retain(|(known, _)| known != name);
            self.fields.push((name.to_owned(), value.to_owned()));
        }
        Ok(())
    }

    /// The block as it is replayed: the skeleton, in its own key order, with what the deltas said.
    pub(crate) fn complete(mut self) -> Result<Block, String> {
        if self.half.is_some() {
            self.close_half();
        }
        let skeleton = Arc::clone(&self.skeleton);
        let start = object(skeleton.get())?;
        let input = self.complete_input(&start);
        let fields = self.changed_fields(&start, input.as_ref());
        let json = if fields.is_empty() { skeleton.get().into() } else { Cow::Owned(start.with(&fields)) };
        let block = Block::from_json(&json).map_err(|error| error.to_string())?;
        Ok(match input {
            Some(ToolInput::Unparsed(text)) => block.with_unparsed_input(&text),
            _ => block,
        })
    }

    /// The input if it differs from the skeleton's. A whole answer has text that is no object as a string.
    fn complete_input(&self, start: &RawObject<'_>) -> Option<ToolInput> {
        let is_tool_use = self.kind == OpenBlockKind::ToolUse;
        let text = match text_of(start, "input") {
            Some(text) if is_tool_use && self.input.trim().is_empty() => text,
            _ => Cow::Borrowed(&*self.input),
        };
        if !text.trim().is_empty() {
            return Some(input_of(&text));
        }
        (is_tool_use && !start.get("input").is_some_and(is_object)).then(|| input_of("{}"))
    }

    /// Gives up on the other half of the last character.
    fn close_half(&mut self) {
        let text = match (&mut self.text, &mut self.thinking) {
            (Some(text), _) | (None, Some(text)) => text,
            (None, None) => &mut self.input,
        };
        text.push(char::REPLACEMENT_CHARACTER);
    }

    fn expect(&self, kind: OpenBlockKind, delta: &str) -> Result<(), String> {
        if self.kind == kind || self.kind == OpenBlockKind::Other {
            Ok(())
        } else {
            Err(format!("`{delta}` does not fit the type of block {}", self.index))
        }
    }

    /// The fields whose value differs from the skeleton's, as JSON.
    fn changed_fields(self, start: &RawObject<'_>, input: Option<&ToolInput>) -> Vec<(String, String)> {
        let mut filled = Vec::new();
        let mut add = |name: &str, json: String| filled.push((name.to_owned(), json));
        if let Some(text) = self.text {
            add("text", append_text(start, "text", &text));
        }
        if let Some(thinking) = self.thinking {
            add("thinking", append_text(start, "thinking", &thinking));
        }
        if let Some(signature) = self.signature {
            add("signature", string_json(&signature));
        }
        if let Some(input) = input {
            add("input", input.json().get().to_owned());
        }
        if !self.citations.is_empty() {
            add("citations", append_items(start, "citations", &self.citations));
        }
        for (name, value) in self.fields {
            add(&name, value.get().to_owned());
        }
        filled
    }
}

/// What a delta string makes of a string the skeleton began with.
fn append_text(start: &RawObject<'_>, name: &str, more: &str) -> String {
    match text_of(start, name) {
        Some(before) if !before.is_empty() => string_json(&[&*before, more].concat()),
        _ => string_json(more),
    }
}

/// A string of the skeleton, if the field is one.
fn text_of<'a>(start: &RawObject<'a>, name: &str) -> Option<Cow<'a, str>> {
    start.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The list the skeleton began with, and the values of `more`, which has a comma in front of each.
fn append_items(start: &RawObject<'_>, name: &str, more: &str) -> String {
    let before = start.get(name).map_or("", RawValue::get).trim();
    let inside = before.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inside.map(str::trim) {
        Some(inside) if !inside.is_empty() => format!("[{inside}{more}]"),
        _ => format!("[{}]", &more[1..]),
    }
}

fn input_of(text: &str) -> ToolInput {
    match serde_json::from_str::<Box<RawValue>>(&replace_lone_surrogates(text)) {
        Ok(raw) if is_object(&raw) => raw.into(),
        _ => ToolInput::Unparsed(text.into()),
    }
}

fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Text always has a JSON form.
pub(crate) fn string_json(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn object(json: &str) -> Result<RawObject<'_>, String> {
    RawObject::parse(json).map_err(|error| error.to_string())
}

/// The bytes of a JSON string: UTF-8, except that half a surrogate pair stands as three bytes of its own.
pub(crate) struct StringPiece<'a>(Cow<'a, [u8]>);

/// The first half of a surrogate pair, on its way to the second.
pub(crate) type SurrogateHalf = [u8; 3];

impl StringPiece<'_> {
    /// The text after `half`. A half at its end is kept there for the next piece; others become U+FFFD.
    pub(crate) fn join(self, half: &mut Option<SurrogateHalf>) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let bytes = match half.take() {
            Some(first) => Cow::Owned([&first, &*self.0].concat()),
            None => self.0,
        };
        String::from_utf8(bytes.into_owned()).unwrap_or_else(|error| join_halves(error.as_bytes(), half))
    }

    /// The text of a string that comes in one piece.
    pub(crate) fn into_text(self) -> String {
        let mut half = None;
        let mut text = self.join(&mut half);
        if half.is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        text
    }
}

fn join_halves(mut bytes: &[u8], half: &mut Option<SurrogateHalf>) -> String {
    let mut text = String::with_capacity(bytes.len());
    while let Some(chunk) = bytes.utf8_chunks().next() {
        text.push_str(chunk.valid());
        bytes = &bytes[chunk.valid().len()..];
        let Some((&first, rest)) = bytes.split_first_chunk::<3>() else {
            break;
        };
        bytes = rest;
        let pair = rest.first_chunk::<3>().and_then(|&second| pair(first, second));
        if let Some(character) = pair {
            text.push(character);
            bytes = &rest[3..];
        } else if rest.is_empty() && surrogate(first).is_some_and(|number| number < 0xdc00) {
            *half = Some(first);
        } else {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

fn pair(first: SurrogateHalf, second: SurrogateHalf) -> Option<char> {
    char::decode_utf16([surrogate(first)?, surrogate(second)?]).next()?.ok()
}

/// The number of a surrogate, if the bytes stand for one.
fn surrogate(bytes: SurrogateHalf) -> Option<u16> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third] => {
            Some(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f))
        }
        _ => None,
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for StringPiece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = StringPiece<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(StringPiece(Cow::Borrowed(bytes)))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(StringPiece(Cow::Owned(bytes.to_owned())))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}
