//! Expands a response of a script to events of the Messages API, waits and faults: it alone knows both forms.

use std::time::Duration;

use serde_json::{Value, json};

use windlass_protocol::Delivery;

use super::fault::{CutAfter, ScriptFault};
use super::format::{AfterLast, RefusalSpec, Script, ScriptBlock, ScriptContent, ScriptResponse, UsageSpec};
use super::player::ScriptTurn;

/// One response, ready to be played.
#[derive(Clone, Debug)]
pub struct Playback {
    /// Wait before anything is answered.
    pub delay: Duration,
    /// How the answer begins.
    pub opening: PlaybackStart,
    /// The events that come, in order; what a fault holds back is not among them.
    pub events: Vec<TimedEvent>,
    /// What comes after the last event.
    pub ending: PlaybackEnd,
}

/// How an answer begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaybackStart {
    /// With a stream of events.
    Stream,
    /// With a whole message as JSON, without events. Cut, only the last piece comes; stalled, nothing does.
    Whole(String),
    /// With an error status; there are no events.
    Status(StatusError),
    /// Not at all: the connection closes.
    Refuse,
}

/// An error status with its head and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusError {
    /// The HTTP status.
    pub code: u16,
    /// The headers the script asks for.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedEvent {
    /// Wait before it.
    pub delay: Duration,
    /// Its name.
    pub name: &'static str,
    /// Its data, JSON unless the script says otherwise.
    pub json: String,
}

/// What comes after the last event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaybackEnd {
    /// The stream ends in order.
    End,
    /// The connection closes, after a last incomplete piece, which may be empty.
    Cut(String),
    /// Nothing, or pings at this interval; the connection stays open.
    Stall(Option<Duration>),
}

impl TimedEvent {
    /// The event as it stands in a stream.
    pub fn wire(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.name, self.json)
    }

    fn new(delay_ms: u64, name: &'static str, mut fields: Value) -> Self {
        let mut data = json!({ "type": name });
        if let (Some(data), Some(fields)) = (data.as_object_mut(), fields.as_object_mut()) {
            data.append(fields);
        }
        Self { delay: Duration::from_millis(delay_ms), name, json: data.to_string() }
    }
}

impl StatusError {
    /// An error as the Messages API words it.
    pub fn new(code: u16, kind: &str, message: &str) -> Self {
        let body = json!({
            "type": "error",
            "error": { "type": kind, "message": message },
            "request_id": "req_script",
        });
        Self { code, headers: Vec::new(), body: body.to_string() }
    }
}

impl Script {
    /// The streamed answer to the request number `play` in order, counted from 0; `None` after the end of the script.
    pub fn playback(&self, play: usize) -> Option<Playback> {
        Some(self.turn(play)?.playback(Delivery::Streamed))
    }

    /// The turn of the request number `play` in order.
    pub(super) fn turn(&self, play: usize) -> Option<ScriptTurn<'_>> {
        let (response, label) = (self.response(play)?, (play + 1).to_string());
        Some(ScriptTurn { script: self, number: Some(play), response, label, before: play })
    }

    /// The response that answers the request number `play`, counted from 0.
    pub fn response(&self, play: usize) -> Option<&ScriptResponse> {
        let plays = self.plays();
        let mut left = match self.then {
            AfterLast::Fail => play,
            AfterLast::Repeat => play % plays.max(1),
        };
        self.in_order().find(|response| {
            let here = left < response.repeat as usize;
            left = left.saturating_sub(response.repeat as usize);
            here
        })
    }

    /// Tokens of the conversation before the request number `play`, by a rule of thumb.
    fn tokens_before(&self, play: usize) -> u64 {
        let plays = self.plays().max(1);
        let tokens_of = |count: usize| -> u64 {
            let mut left = count;
            let mut tokens = 0;
            for response in self.in_order() {
                let times = left.min(response.repeat as usize);
                tokens += growth(response) * times as u64;
                left -= times;
            }
            tokens
        };
        FIRST_REQUEST_TOKENS + tokens_of(plays) * (play / plays) as u64 + tokens_of(play % plays)
    }
}

/// System prompt, tools and a short prompt.
const FIRST_REQUEST_TOKENS: u64 = 1_800;
/// A tool result of ordinary length.
const RESULT_TOKENS: u64 = 120;
/// What the request has after its last cache breakpoint.
const FRESH_TOKENS: u64 = 4;

/// By how much a response and the results of its calls make the conversation longer.
fn growth(response: &ScriptResponse) -> u64 {
    if response.fault.is_some() {
        return 0;
    }
    let tools = response.blocks.iter().flatten().filter(|block| is_tool(block)).count() as u64;
    output_tokens(response) + tools * RESULT_TOKENS
}

fn output_tokens(response: &ScriptResponse) -> u64 {
    let tokens = |text: &str| text.len().div_ceil(4) as u64;
    let of_block = |block: &ScriptBlock| match &block.content {
        ScriptContent::Text(text) | ScriptContent::RedactedThinking(text) => tokens(text) + 4,
        ScriptContent::Tool { name, input, .. } => tokens(name) + tokens(input) + 20,
        ScriptContent::Thinking { thinking, .. } => tokens(thinking) + 8,
        ScriptContent::Raw(block) => tokens(&block.to_string()),
    };
    response.blocks.iter().flatten().map(of_block).sum::<u64>().max(1)
}

fn is_tool(block: &ScriptBlock) -> bool {
    match &block.content {
        ScriptContent::Tool { .. } => true,
        ScriptContent::Raw(block) => block["type"] == "tool_use",
        _ => false,
    }
}

impl ScriptTurn<'_> {
    /// What is to be played if the response were this one.
    pub fn playback_of(&self, response: &ScriptResponse, delivery: Delivery) -> Playback {
        ScriptTurn { response, ..self.clone() }.playback(delivery)
    }

    /// What is to be played.
    pub fn playback(&self, delivery: Delivery) -> Playback {
        let (mut delay, events) = (Duration::from_millis(self.response.delay_ms), self.events());
        if delivery == Delivery::Whole {
            delay += events.iter().map(|event| event.delay).sum::<Duration>();
        }
        let (opening, events, ending) = match (&self.response.fault, delivery) {
            (Some(ScriptFault::Refuse), _) => (PlaybackStart::Refuse, Vec::new(), PlaybackEnd::End),
            (Some(ScriptFault::Status { .. } | ScriptFault::Failure(_)), _) => {
                (PlaybackStart::Status(self.status()), Vec::new(), PlaybackEnd::End)
            }
            (_, Delivery::Streamed) => {
                let (events, ending) = self.apply_fault(events);
                (PlaybackStart::Stream, events, ending)
            }
            (_, Delivery::Whole) => {
                let (opening, ending) = self.whole();
                (opening, Vec::new(), ending)
            }
        };
        Playback { delay, opening, events, ending }
    }

    fn status(&self) -> StatusError {
        if let Some(ScriptFault::Failure(failure)) = &self.response.fault {
            return failure.status();
        }
        let Some(ScriptFault::Status { code, kind, message, headers, body }) = &self.response.fault else {
            return StatusError::new(500, "api_error", "");
        };
        let kind = kind.as_deref().unwrap_or_else(|| usual_kind(*code));
        let message = message.as_deref().unwrap_or("Scripted failure.");
        let mut error = StatusError::new(*code, kind, message);
        error.headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(body) = body {
            error.body.clone_from(body);
        }
        error
    }

    /// The events of the response as if nothing went wrong.
    fn events(&self) -> Vec<TimedEvent> {
        let usage = self.usage();
        let mut events =
            vec![TimedEvent::new(0, "message_start", json!({ "message": self.message(&usage) }))];
        for (index, block) in self.response.blocks.iter().flatten().enumerate() {
            self.block_events(index, block, &mut events);
        }
        let mut delta =
            json!({ "delta": { "stop_reason": self.stop_reason(), "stop_sequence": null }, "usage": usage });
        self.add_stop_details(&mut delta["delta"]);
        self.add_context_management(&mut delta);
        events.push(TimedEvent::new(self.response.end_delay_ms, "message_delta", delta));
        events.push(TimedEvent::new(0, "message_stop", json!({})));
        events
    }

    fn message(&self, usage: &Value) -> Value {
        let mut usage = usage.clone();
        usage["output_tokens"] = json!(1);
        let mut message = json!({
            "id": format!("msg_script_{}", self.label),
            "type": "message",
            "role": "assistant",
            "model": self.response.model.as_ref().unwrap_or(&self.script.model),
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage,
        });
        if let Some(dropped) = &self.response.notes.thinking_dropped {
            let entry =
                |path: &String| json!({ "type": "thinking_dropped", "path": path, "reason": dropped.reason });
            message["input_transformations"] = dropped.paths.iter().map(entry).collect();
        }
        message
    }

    fn add_stop_details(&self, to: &mut Value) {
        if let Some(RefusalSpec { category, explanation }) = &self.response.notes.refusal {
            to["stop_details"] =
                json!({ "type": "refusal", "category": category, "explanation": explanation });
        }
    }

    fn add_context_management(&self, to: &mut Value) {
        if let Some(cleared) = self.response.notes.cleared {
            let edit = json!({
                "type": "clear_tool_uses_20250919",
                "cleared_tool_uses": cleared.tool_results,
                "cleared_thinking_turns": cleared.thinking_turns,
                "cleared_input_tokens": cleared.tokens,
            });
            to["context_management"] = json!({ "applied_edits": [edit] });
        }
    }

    fn usage(&self) -> Value {
        let UsageSpec {
            input_tokens,
            output_tokens: output,
            cache_creation_input_tokens,
            cache_read_input_tokens,
        } = self.response.usage;
        let before = self.script.tokens_before(self.before);
        let read = match self.before {
            0 => 0,
            play => self.script.tokens_before(play - 1),
        };
        let written = cache_creation_input_tokens.unwrap_or(before - read);
        json!({
            "input_tokens": input_tokens.unwrap_or(FRESH_TOKENS),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": cache_read_input_tokens.unwrap_or(read),
            "cache_creation": { "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0 },
            "output_tokens": output.unwrap_or_else(|| output_tokens(self.response)),
            "service_tier": "standard",
        })
    }

    fn stop_reason(&self) -> &str {
        let usual = match &self.response.notes.refusal {
            Some(_) => "refusal",
            None if self.response.blocks.iter().flatten().any(is_tool) => "tool_use",
            None => "end_turn",
        };
        self.response.stop_reason.as_deref().unwrap_or(usual)
    }

    /// The block without what deltas bring.
    fn skeleton(&self, index: usize, block: &ScriptBlock) -> Value {
        match &block.content {
            ScriptContent::Text(_) => json!({ "type": "text", "text": "" }),
            ScriptContent::Tool { name, id, .. } => {
                let made = || format!("toolu_script_{}_{}", self.label, index + 1);
                let id = id.clone().unwrap_or_else(made);
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} })
            }
            ScriptContent::Thinking { .. } => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            ScriptContent::RedactedThinking(data) => json!({ "type": "redacted_thinking", "data": data }),
            ScriptContent::Raw(block) => block.clone(),
        }
    }

    fn block_events(&self, index: usize, block: &ScriptBlock, events: &mut Vec<TimedEvent>) {
        let skeleton = self.skeleton(index, block);
        let delay_ms = self.response.block_delay_ms + block.delay_ms;
        let start = json!({ "index": index, "content_block": skeleton });
        events.push(TimedEvent::new(delay_ms, "content_block_start", start));
        self.delta_events(index, &block.content, events);
        events.push(TimedEvent::new(0, "content_block_stop", json!({ "index": index })));
    }

    fn delta_events(&self, index: usize, content: &ScriptContent, events: &mut Vec<TimedEvent>) {
        let mut push = |delta: Value| {
            let fields = json!({ "index": index, "delta": delta });
            events.push(TimedEvent::new(self.response.delta_delay_ms, "content_block_delta", fields));
        };
        let (kind, field, text) = match content {
            ScriptContent::Text(text) => ("text_delta", "text", text),
            ScriptContent::Tool { input, .. } => ("input_json_delta", "partial_json", input),
            ScriptContent::Thinking { thinking, .. } => ("thinking_delta", "thinking", thinking),
            ScriptContent::RedactedThinking(_) | ScriptContent::Raw(_) => return,
        };
        for piece in pieces(text, self.response.delta_chars) {
            push(json!({ "type": kind, field: piece }));
        }
        if let ScriptContent::Thinking { signature, .. } = content {
            push(json!({ "type": "signature_delta", "signature": signature }));
        }
    }

    /// Lets the fault of the response happen to its events.
    fn apply_fault(&self, mut events: Vec<TimedEvent>) -> (Vec<TimedEvent>, PlaybackEnd) {
        match &self.response.fault {
            Some(ScriptFault::Error { kind, message, after_events }) => {
                events.truncate(*after_events);
                let error = json!({ "error": { "type": kind, "message": message } });
                events.push(TimedEvent::new(0, "error", error));
                (events, PlaybackEnd::End)
            }
            Some(ScriptFault::Cut(CutAfter::Events(count))) => {
                events.truncate(*count);
                (events, PlaybackEnd::Cut(String::new()))
            }
            Some(ScriptFault::Cut(CutAfter::Bytes(count))) => cut_at(events, *count),
            Some(ScriptFault::Stall { after_events, ping_ms }) => {
                events.truncate(*after_events);
                (events, PlaybackEnd::Stall(ping_ms.map(Duration::from_millis)))
            }
            Some(ScriptFault::Malformed { after_events, data }) => {
                let json = data.clone().unwrap_or_else(|| r#"{"type":"content_block_delta","index":"#.into());
                let event = TimedEvent { delay: Duration::ZERO, name: "content_block_delta", json };
                events.insert((*after_events).min(events.len()), event);
                (events, PlaybackEnd::End)
            }
            Some(ScriptFault::Status { .. } | ScriptFault::Failure(_) | ScriptFault::Refuse) | None => {
                (events, PlaybackEnd::End)
            }
        }
    }

    /// The response as one message, and what its fault makes of it.
    fn whole(&self) -> (PlaybackStart, PlaybackEnd) {
        let message = self.whole_message().to_string();
        match &self.response.fault {
            // There is no stream that an error could come in.
            Some(ScriptFault::Error { kind, message, .. }) => {
                let usual = USUAL_KINDS.iter().find(|(_, known)| known == kind);
                let code = usual.map_or(500, |(code, _)| *code);
                (PlaybackStart::Status(StatusError::new(code, kind, message)), PlaybackEnd::End)
            }
            Some(ScriptFault::Cut(_)) => {
                let piece = message[..message.floor_char_boundary(message.len() / 2)].to_owned();
                (PlaybackStart::Whole(message), PlaybackEnd::Cut(piece))
            }
            Some(ScriptFault::Stall { .. }) => (PlaybackStart::Whole(message), PlaybackEnd::Stall(None)),
            Some(ScriptFault::Malformed { data, .. }) => {
                let data = data.clone().unwrap_or_else(|| "{\"type\":}".to_owned());
                (PlaybackStart::Whole(data), PlaybackEnd::End)
            }
            _ => (PlaybackStart::Whole(message), PlaybackEnd::End),
        }
    }

    fn whole_message(&self) -> Value {
        let usage = self.usage();
        let mut message = self.message(&usage);
        let blocks = self.response.blocks.iter().flatten().enumerate();
        message["content"] = blocks.map(|(index, block)| self.whole_block(index, block)).collect();
        message["stop_reason"] = json!(self.stop_reason());
        message["usage"] = usage;
        self.add_stop_details(&mut message);
        self.add_context_management(&mut message);
        message
    }

    fn whole_block(&self, index: usize, block: &ScriptBlock) -> Value {
        let mut whole = self.skeleton(index, block);
        match &block.content {
            ScriptContent::Text(text) => whole["text"] = json!(text),
            ScriptContent::Tool { input, .. } => {
                whole["input"] = serde_json::from_str(input).unwrap_or_else(|_| json!(input));
            }
            ScriptContent::Thinking { thinking, signature } => {
                whole["thinking"] = json!(thinking);
                whole["signature"] = json!(signature);
            }
            ScriptContent::RedactedThinking(_) | ScriptContent::Raw(_) => {}
        }
        whole
    }
}

/// Keeps the events that fit into so many bytes, and what fits of the next.
fn cut_at(mut events: Vec<TimedEvent>, bytes: usize) -> (Vec<TimedEvent>, PlaybackEnd) {
    let mut left = bytes;
    for (index, event) in events.iter().enumerate() {
        let wire = event.wire();
        if wire.len() > left {
            let piece = wire[..wire.floor_char_boundary(left)].to_owned();
            events.truncate(index);
            return (events, PlaybackEnd::Cut(piece));
        }
        left -= wire.len();
    }
    (events, PlaybackEnd::Cut(String::new()))
}

/// The text in pieces of so many characters.
fn pieces(text: &str, chars: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(chars).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Statuses, and the types of the errors that usually come with them.
const USUAL_KINDS: [(u16, &str); 9] = [
    (400, "invalid_request_error"),
    (401, "authentication_error"),
    (403, "permission_error"),
    (404, "not_found_error"),
    (413, "request_too_large"),
    (429, "rate_limit_error"),
    (504, "timeout_error"),
    (529, "overloaded_error"),
    (500, "api_error"),
];

fn usual_kind(code: u16) -> &'static str {
    let other = match code {
        402 => "billing_error",
        409 => "conflict_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    USUAL_KINDS.iter().find(|(known, _)| *known == code).map_or(other, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests;
