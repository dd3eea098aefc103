//! Puts a response together from the events of a Messages API stream.
//!
//! Sans-IO: it is fed the JSON text of each event, in order, and answers with at most one [`ModelEvent`] each.
//! After [`ModelEvent::Ended`] or [`ModelEvent::Failed`] it answers nothing more.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{
    Delta, Failure, FailureClass, ModelEvent, StopReason, Usage, replace_lone_surrogates,
};

use crate::block::OpenBlock;
use crate::classify::{ErrorBody, stream_failure};
use crate::usage::UsageFields;

/// More than any model's output; only a broken or hostile server sends more in one response.
const RESPONSE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How much of a bad event an error message shows.
const EXCERPT_CHARS_MAX: usize = 160;

/// A response on its way in.
///
/// ```
/// use windlass_models::Assembler;
/// use windlass_protocol::ModelEvent;
/// let mut response = Assembler::default();
/// let start = r#"{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":3}}}"#;
/// assert!(matches!(response.on_event(start), Some(ModelEvent::Started { .. })));
/// assert!(response.on_event(r#"{"type":"ping"}"#).is_none());
/// assert!(matches!(response.on_eof(), Some(ModelEvent::Failed(_))));
/// assert!(response.is_ended());
/// ```
#[derive(Debug, Default)]
pub struct Assembler {
    started: bool,
    ended: bool,
    open: Vec<OpenBlock>,
    /// The lowest index that no block has had yet.
    next_index: u32,
    usage: Usage,
    stop: Option<StopReason>,
    bytes: usize,
    news: bool,
}

/// Any event of the stream: the union of the fields the engine reads.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

/// Any delta of a block: the union of the fields the engine reads.
#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
}

impl Assembler {
    /// Takes the JSON text of the next event.
    pub fn on_event(&mut self, data: &str) -> Option<ModelEvent> {
        self.news = false;
        if self.ended {
            return None;
        }
        let text = replace_lone_surrogates(data);
        match self.advance(&text) {
            Ok(event) => {
                self.ended = matches!(event, Some(ModelEvent::Ended { .. } | ModelEvent::Failed(_)));
                event
            }
            Err(problem) => {
                let message = format!(
                    "The model's stream does not follow the protocol: {problem}. The event was: {}",
                    excerpt(data)
                );
                Some(self.fail(FailureClass::Malformed, message))
            }
        }
    }

    /// Says that the stream has no more events. A response that is not complete by then broke off.
    pub fn on_eof(&mut self) -> Option<ModelEvent> {
        if self.ended {
            return None;
        }
        let seen = if self.started { "in the middle of the response" } else { "before the response began" };
        Some(self.fail(FailureClass::Cut, format!("The model's stream broke off {seen}.")))
    }

    /// Whether the last item has been given.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether the event just taken says something about the response, unlike a `ping`. What the watchdog on
    /// events asks.
    #[must_use]
    pub(crate) fn had_news(&self) -> bool {
        self.news
    }

    fn fail(&mut self, class: FailureClass, message: String) -> ModelEvent {
        self.ended = true;
        ModelEvent::Failed(Box::new(Failure {
            class,
            message,
            status: None,
            retry_after_ms: None,
            should_retry: None,
            request_id: None,
        }))
    }

    fn advance(&mut self, text: &str) -> Result<Option<ModelEvent>, String> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > RESPONSE_BYTES_MAX {
            return Err(format!("the response is larger than {RESPONSE_BYTES_MAX} bytes"));
        }
        let event: Event<'_> = serde_json::from_str(text).map_err(|error| format!("not JSON ({error})"))?;
        let kind = match (&event.kind, event.error) {
            (Some(kind), _) => &**kind,
            (None, Some(_)) => "error",
            (None, None) => return Err("an event without a type".to_owned()),
        };
        self.news = kind != "ping";
        match kind {
            "error" => Ok(Some(ModelEvent::Failed(Box::new(stream_failure(&ErrorBody::parse(text)))))),
            "message_start" => self.on_message_start(&event).map(Some),
            "content_block_start" => self.on_block_start(&event).map(Some),
            "content_block_delta" => self.on_block_delta(&event).map(Some),
            "content_block_stop" => self.on_block_stop(&event).map(Some),
            "message_delta" => self.on_message_delta(&event).map(|()| None),
            "message_stop" => self.on_message_stop().map(Some),
            _ => Ok(None),
        }
    }

    fn on_message_start(&mut self, event: &Event<'_>) -> Result<ModelEvent, String> {
        if self.started {
            return Err("a second `message_start`".to_owned());
        }
        let message: MessageStart<'_> = parse(event.message, "message")?;
        self.merge_usage(message.usage)?;
        self.started = true;
        Ok(ModelEvent::Started {
            message_id: message.id.unwrap_or_default().into(),
            model: message.model.unwrap_or_default().into(),
            usage: Box::new(self.usage.clone()),
        })
    }

    fn on_block_start(&mut self, event: &Event<'_>) -> Result<ModelEvent, String> {
        self.expect_started("content_block_start")?;
        let index = event.index.ok_or("a `content_block_start` without `index`")?;
        if index < self.next_index {
            return Err(format!("block {index} starts twice"));
        }
        let skeleton: Arc<RawValue> = required(event.content_block, "content_block")?.to_owned().into();
        self.open.push(OpenBlock::new(index, Arc::clone(&skeleton))?);
        self.next_index = index.saturating_add(1);
        Ok(ModelEvent::Delta { index, delta: Delta::Start(skeleton) })
    }

    fn on_block_delta(&mut self, event: &Event<'_>) -> Result<ModelEvent, String> {
        let position = self.open_position(event)?;
        let block = &mut self.open[position];
        let raw = required(event.delta, "delta")?;
        let fields: BlockDelta<'_> = parse(Some(raw), "delta")?;
        let field = |value: Option<Cow<'_, str>>, name: &str| {
            value.map(Cow::into_owned).ok_or_else(|| format!("a `{}` without `{name}`", fields.kind))
        };
        let delta = match &*fields.kind {
            "text_delta" => Delta::Text(block.push_text(field(fields.text, "text")?)?),
            "thinking_delta" => Delta::Thinking(block.push_thinking(field(fields.thinking, "thinking")?)?),
            "input_json_delta" => {
                Delta::InputJson(block.push_input(field(fields.partial_json, "partial_json")?)?)
            }
            "signature_delta" => Delta::Signature(block.set_signature(field(fields.signature, "signature")?)),
            kind => {
                match (kind, fields.citation) {
                    ("citations_delta", Some(citation)) => block.push_citation(citation),
                    ("compaction_delta", _) => block.set_fields_of(raw)?,
                    _ => {}
                }
                Delta::Other(raw.get().into())
            }
        };
        Ok(ModelEvent::Delta { index: block.index(), delta })
    }

    fn on_block_stop(&mut self, event: &Event<'_>) -> Result<ModelEvent, String> {
        let position = self.open_position(event)?;
        let open = self.open.remove(position);
        let index = open.index();
        let block = open.complete().map_err(|problem| format!("block {index}: {problem}"))?;
        Ok(ModelEvent::Block { index, block })
    }

    fn on_message_delta(&mut self, event: &Event<'_>) -> Result<(), String> {
        self.expect_started("message_delta")?;
        if event.delta.is_some() {
            let delta: MessageDelta<'_> = parse(event.delta, "delta")?;
            if let Some(name) = delta.stop_reason {
                self.stop = Some(StopReason::from_name(&name));
            }
        }
        self.merge_usage(event.usage)
    }

    fn on_message_stop(&mut self) -> Result<ModelEvent, String> {
        self.expect_started("message_stop")?;
        if let Some(block) = self.open.first() {
            return Err(format!("`message_stop` while block {} is open", block.index()));
        }
        Ok(match self.stop.take() {
            Some(stop) => ModelEvent::Ended { stop, usage: Box::new(std::mem::take(&mut self.usage)) },
            None => self.fail(
                FailureClass::Cut,
                "The model's stream ended without saying why the model stopped.".to_owned(),
            ),
        })
    }

    fn expect_started(&self, kind: &str) -> Result<(), String> {
        if self.started { Ok(()) } else { Err(format!("`{kind}` before `message_start`")) }
    }

    fn open_position(&self, event: &Event<'_>) -> Result<usize, String> {
        let index = event.index.ok_or("a block event without `index`")?;
        self.open
            .iter()
            .position(|block| block.index() == index)
            .ok_or_else(|| format!("block {index} is not open"))
    }

    fn merge_usage(&mut self, usage: Option<&RawValue>) -> Result<(), String> {
        if let Some(raw) = usage {
            let fields: Option<UsageFields<'_>> = parse(Some(raw), "usage")?;
            if let Some(fields) = fields {
                fields.overwrite(&mut self.usage);
            }
        }
        Ok(())
    }
}

fn required<'a>(field: Option<&'a RawValue>, name: &str) -> Result<&'a RawValue, String> {
    field.ok_or_else(|| format!("`{name}` is missing"))
}

fn parse<'a, T: Deserialize<'a>>(field: Option<&'a RawValue>, name: &str) -> Result<T, String> {
    serde_json::from_str(required(field, name)?.get()).map_err(|error| format!("`{name}`: {error}"))
}

fn excerpt(data: &str) -> Cow<'_, str> {
    match data.char_indices().nth(EXCERPT_CHARS_MAX) {
        None => Cow::Borrowed(data),
        Some((end, _)) => Cow::Owned(format!("{}…", &data[..end])),
    }
}

#[cfg(test)]
mod tests;
