//! Puts a response together from the events of a Messages API stream. Sans-IO: the JSON of each gives at most one
//! [`ModelEvent`], and what had to wait follows by [`ResponseAssembler::take_held`]; nothing comes after
//! [`ModelEvent::Ended`] or [`ModelEvent::Failed`].

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{
    Block, Delta, Failure, FailureClass, ModelEvent, ModelNote, StopReason, Usage, replace_lone_surrogates,
};
use windlass_text::shorten::shorten;

use crate::block::{OpenBlock, StringPiece, TypedJson};
use crate::classify::{ErrorBody, stream_failure};
use crate::usage;

/// More than any model's output; only a broken or hostile server sends more in one response.
const RESPONSE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How much of a bad event an error message shows.
const EXCERPT_CHARS_MAX: usize = 160;

/// A response on its way in.
///
/// ```
/// use windlass_models::ResponseAssembler;
/// use windlass_protocol::ModelEvent;
/// let mut response = ResponseAssembler::for_model("x".into());
/// let start = r#"{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":3}}}"#;
/// assert!(matches!(response.on_event(start), Some(ModelEvent::Started { .. })));
/// assert!(response.on_event(r#"{"type":"ping"}"#).is_none());
/// assert!(matches!(response.on_eof(), Some(ModelEvent::Failed(_))));
/// ```
#[derive(Debug, Default)]
pub struct ResponseAssembler {
    /// The model that was asked, for a server that does not say which one answers.
    model: Arc<str>,
    has_started: bool,
    has_ended: bool,
    open: Vec<OpenBlock>,
    /// Complete blocks behind one that is not: blocks are given out in the order of the response.
    held: Vec<(u32, Block)>,
    /// What the last event said about the request.
    notes: VecDeque<ModelNote>,
    /// The lowest index that no block has had yet.
    next_index: u32,
    usage: Usage,
    stop: Option<StopReason>,
    bytes: usize,
    has_news: bool,
}

/// Any event of the stream: the union of the fields the engine reads.
#[derive(Deserialize)]
struct StreamEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    index: Option<&'a RawValue>,
    delta: Option<&'a RawValue>,
    content_block: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    context_management: Option<&'a RawValue>,
    input_transformations: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: Option<&'a RawValue>,
    input_transformations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    stop_details: Option<&'a RawValue>,
}

/// The deltas whose fields the engine reads. Others may use the same names for something else.
const DELTAS: [&str; 6] = [
    "text_delta",
    "thinking_delta",
    "input_json_delta",
    "signature_delta",
    "citations_delta",
    "compaction_delta",
];

/// Any delta of a block: the union of the fields the engine reads.
#[derive(Default, Deserialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    text: Option<StringPiece<'a>>,
    thinking: Option<StringPiece<'a>>,
    partial_json: Option<StringPiece<'a>>,
    signature: Option<StringPiece<'a>>,
    citation: Option<&'a RawValue>,
}

impl ResponseAssembler {
    /// Waits for the response to a request to this model.
    pub fn for_model(model: Arc<str>) -> Self {
        Self { model, ..Self::default() }
    }

    /// Takes the JSON text of the next event.
    pub fn on_event(&mut self, data: &str) -> Option<ModelEvent> {
        self.has_news = false;
        if self.has_ended {
            return None;
        }
        match self.advance(data) {
            Ok(event) => {
                self.has_ended = matches!(event, Some(ModelEvent::Ended { .. } | ModelEvent::Failed(_)));
                event
            }
            Err(problem) => {
                let event = shorten(data, EXCERPT_CHARS_MAX, "…");
                let message = format!("Invalid response stream: {problem}. The event was: {event}");
                Some(self.fail(FailureClass::Malformed, message))
            }
        }
    }

    /// Takes an event that the stream itself names an error, whatever its data is.
    pub(crate) fn on_error(&mut self, data: &str) -> ModelEvent {
        self.has_ended = true;
        ModelEvent::Failed(Box::new(stream_failure(&ErrorBody::parse(data))))
    }

    /// A note of the last event, or the next block that had to wait. Ask after each event until `None`.
    pub fn take_held(&mut self) -> Option<ModelEvent> {
        if let Some(note) = self.notes.pop_front() {
            return Some(ModelEvent::Note(note));
        }
        let place = (0..self.held.len()).min_by_key(|place| self.held[*place].0)?;
        if self.is_behind_open(self.held[place].0) {
            return None;
        }
        let (index, block) = self.held.swap_remove(place);
        Some(ModelEvent::Block { index, block })
    }

    /// Says that the stream has no more events. A response that is not complete by then broke off.
    pub fn on_eof(&mut self) -> Option<ModelEvent> {
        if self.has_ended {
            return None;
        }
        let seen = if self.has_started { "during the response" } else { "before the response" };
        Some(self.fail(FailureClass::Cut, format!("The response stream broke off {seen}.")))
    }

    /// Whether the last event says something about the response, unlike a `ping`; for the watchdog on events.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    fn fail(&mut self, class: FailureClass, message: String) -> ModelEvent {
        self.has_ended = true;
        ModelEvent::Failed(Box::new(Failure::new(class, message)))
    }

    fn advance(&mut self, data: &str) -> Result<Option<ModelEvent>, String> {
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > RESPONSE_BYTES_MAX {
            return Err(format!("the response is larger than {RESPONSE_BYTES_MAX} bytes"));
        }
        let event = StreamEvent::parse(data)?;
        self.has_news = event.name() != "ping";
        if event.name() == "content_block_delta" {
            // Half a character at the end of it may find its other half in the next one.
            return self.on_block_delta(&event).map(Some);
        }
        match replace_lone_surrogates(data) {
            Cow::Borrowed(_) => self.on_whole(&event, data),
            Cow::Owned(fixed) => self.on_whole(&StreamEvent::parse(&fixed)?, &fixed),
        }
    }

    /// Takes an event that has no part of a string in it.
    fn on_whole(&mut self, event: &StreamEvent<'_>, text: &str) -> Result<Option<ModelEvent>, String> {
        match event.name() {
            "error" => Ok(Some(ModelEvent::Failed(Box::new(stream_failure(&ErrorBody::parse(text)))))),
            "message_start" => self.on_message_start(event).map(Some),
            "content_block_start" => self.on_block_start(event).map(Some),
            "content_block_stop" => self.on_block_stop(event),
            "message_delta" => self.on_message_delta(event).map(|()| None),
            "message_stop" => self.on_message_stop().map(Some),
            _ => Ok(None),
        }
    }

    fn on_message_start(&mut self, event: &StreamEvent<'_>) -> Result<ModelEvent, String> {
        if self.has_started {
            return Err("a second `message_start`".to_owned());
        }
        let message: MessageStart<'_> = parse(event.message, "message")?;
        usage::overwrite(&mut self.usage, message.usage);
        self.notes.extend(usage::dropped_thinking(message.input_transformations));
        self.has_started = true;
        let named = message.model.filter(|name| !name.trim().is_empty());
        Ok(ModelEvent::Started {
            message_id: message.id.unwrap_or_default().into(),
            model: named.map_or_else(|| Arc::clone(&self.model), Arc::from),
            usage: Box::new(self.usage.clone()),
        })
    }

    fn on_block_start(&mut self, event: &StreamEvent<'_>) -> Result<ModelEvent, String> {
        self.expect_started("content_block_start")?;
        let index = event.index()?;
        if index < self.next_index {
            return Err(format!("block {index} starts twice or out of order"));
        }
        let skeleton: Arc<RawValue> = require(event.content_block, "content_block")?.to_owned().into();
        self.open.push(OpenBlock::new(index, Arc::clone(&skeleton))?);
        self.next_index = index.saturating_add(1);
        Ok(ModelEvent::Delta { index, delta: Delta::Start(skeleton) })
    }

    fn on_block_delta(&mut self, event: &StreamEvent<'_>) -> Result<ModelEvent, String> {
        let position = self.open_position(event)?;
        let block = &mut self.open[position];
        let raw = require(event.delta, "delta")?;
        let fields: BlockDelta<'_> = match parse(Some(raw), "delta") {
            Ok(fields) => fields,
            Err(problem) => {
                let TypedJson { kind } = parse(Some(raw), "delta")?;
                if DELTAS.contains(&&*kind) {
                    return Err(problem);
                }
                BlockDelta { kind, ..BlockDelta::default() }
            }
        };
        let kind = &*fields.kind;
        let given = |piece: Option<_>, name| piece.ok_or_else(|| format!("`{kind}` without `{name}`"));
        let delta = match kind {
            "text_delta" => Delta::Text(block.push_text(given(fields.text, "text")?)?),
            "thinking_delta" => Delta::Thinking(block.push_thinking(given(fields.thinking, "thinking")?)?),
            "input_json_delta" => {
                Delta::InputJson(block.push_input(given(fields.partial_json, "partial_json")?)?)
            }
            "signature_delta" => Delta::Signature(block.set_signature(given(fields.signature, "signature")?)),
            kind => {
                let json = replace_lone_surrogates(raw.get());
                match (kind, fields.citation) {
                    ("citations_delta", Some(citation)) => block.push_citation(citation),
                    ("compaction_delta", _) => block.set_fields_of(&json)?,
                    _ => {}
                }
                Delta::Other((&*json).into())
            }
        };
        Ok(ModelEvent::Delta { index: block.index, delta })
    }

    fn on_block_stop(&mut self, event: &StreamEvent<'_>) -> Result<Option<ModelEvent>, String> {
        let position = self.open_position(event)?;
        let open = self.open.remove(position);
        let index = open.index;
        let block = open.complete().map_err(|problem| format!("block {index}: {problem}"))?;
        if self.is_behind_open(index) {
            self.held.push((index, block));
            return Ok(None);
        }
        Ok(Some(ModelEvent::Block { index, block }))
    }

    fn is_behind_open(&self, index: u32) -> bool {
        self.open.iter().any(|open| open.index < index)
    }

    fn on_message_delta(&mut self, event: &StreamEvent<'_>) -> Result<(), String> {
        self.expect_started("message_delta")?;
        if event.delta.is_some() {
            let delta: MessageDelta<'_> = parse(event.delta, "delta")?;
            if let Some(name) = delta.stop_reason {
                let stop = StopReason::from_name(&name);
                if stop == StopReason::Refusal {
                    self.notes.extend(usage::refusal(delta.stop_details));
                }
                self.stop = Some(stop);
            }
        }
        self.notes.extend(usage::dropped_thinking(event.input_transformations));
        self.notes.extend(usage::clearing_note(event.context_management));
        usage::overwrite(&mut self.usage, event.usage);
        Ok(())
    }

    fn on_message_stop(&mut self) -> Result<ModelEvent, String> {
        self.expect_started("message_stop")?;
        if let Some(block) = self.open.first() {
            return Err(format!("`message_stop` before the end of block {}", block.index));
        }
        Ok(match self.stop.take() {
            Some(stop) => ModelEvent::Ended { stop, usage: Box::new(std::mem::take(&mut self.usage)) },
            None => self.fail(FailureClass::Cut, "The response stream ended without a stop reason.".into()),
        })
    }

    fn expect_started(&self, kind: &str) -> Result<(), String> {
        if self.has_started { Ok(()) } else { Err(format!("`{kind}` before `message_start`")) }
    }

    fn open_position(&self, event: &StreamEvent<'_>) -> Result<usize, String> {
        let index = event.index()?;
        self.open
            .iter()
            .position(|block| block.index == index)
            .ok_or_else(|| format!("block {index} is not open"))
    }
}

impl<'a> StreamEvent<'a> {
    fn parse(data: &'a str) -> Result<Self, String> {
        let event: Self = serde_json::from_str(data).map_err(|error| format!("not JSON ({error})"))?;
        if event.kind.is_none() && event.error.is_none() {
            return Err("event without `type`".to_owned());
        }
        Ok(event)
    }

    fn index(&self) -> Result<u32, String> {
        let index = self.index.and_then(|raw| raw.get().parse().ok());
        index.ok_or_else(|| format!("`{}` without `index`", self.name()))
    }

    /// The type; some servers leave out that of an error.
    fn name(&self) -> &str {
        self.kind.as_deref().unwrap_or("error")
    }
}

fn require<'a>(field: Option<&'a RawValue>, name: &str) -> Result<&'a RawValue, String> {
    field.ok_or_else(|| format!("`{name}` is missing"))
}

fn parse<'a, T: Deserialize<'a>>(field: Option<&'a RawValue>, name: &str) -> Result<T, String> {
    serde_json::from_str(require(field, name)?.get()).map_err(|error| format!("`{name}`: {error}"))
}

#[cfg(test)]
mod tests;
