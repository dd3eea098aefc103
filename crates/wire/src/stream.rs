//! `stream_event`: the model's stream events, written straight into the caller's buffer (the hot path).

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use windlass_protocol::{Delta, HostUsage, Usage};

use crate::fit::{self, DetailLevel};
use crate::lines::{AssistantMessage, LineUuid, Prompts};
use crate::translate::LineIds;

/// The most bytes of one piece of text; a larger delta is written as several.
const PIECE_BYTES_MAX: usize = 128 * 1024;

/// The envelope of one event.
#[derive(Serialize)]
#[serde(tag = "type", rename = "stream_event")]
struct StreamLine<'a> {
    event: &'a StreamEventJson<'a>,
    session_id: LineUuid,
    parent_tool_use_id: Option<&'a str>,
    uuid: LineUuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft_ms: Option<u64>,
    #[serde(flatten)]
    prompts: Option<Prompts<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamEventJson<'a> {
    MessageStart { message: AssistantMessage<'a> },
    ContentBlockStart { index: u32, content_block: &'a RawValue },
    ContentBlockDelta { index: u32, delta: DeltaJson<'a> },
    ContentBlockStop { index: u32 },
    MessageDelta { delta: StopJson<'a>, usage: HostUsage<'a> },
    MessageStop,
}

#[derive(Serialize)]
struct StopJson<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum DeltaJson<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
    #[serde(untagged)]
    Other(&'a RawValue),
}

/// Writes stream events of one response.
pub(crate) struct Events<'a> {
    pub(crate) ids: &'a mut LineIds,
    /// The prompts that nothing has answered yet.
    pub(crate) prompts: &'a [Arc<str>],
    pub(crate) out: &'a mut Vec<u8>,
}

impl Events<'_> {
    pub(crate) fn start_message(&mut self, message_id: &str, model: &str, usage: &Usage, ttft_ms: u64) {
        let message = AssistantMessage {
            id: message_id,
            kind: "message",
            role: "assistant",
            model,
            content: &[],
            stop_reason: None,
            stop_sequence: None,
            usage: HostUsage::from(usage),
        };
        self.write(&StreamEventJson::MessageStart { message }, Some(ttft_ms));
    }

    fn block_started(&mut self, index: u32, block: &RawValue) {
        if block.get().len() > PIECE_BYTES_MAX {
            // The complete block follows as a message of its own, where it is shortened with a note.
            let stand_in = RawValue::from_string(r#"{"type":"text","text":""}"#.into()).unwrap_or_default();
            return self.block_started(index, &stand_in);
        }
        self.write(&StreamEventJson::ContentBlockStart { index, content_block: block }, None);
    }

    pub(crate) fn delta(&mut self, index: u32, delta: &Delta) {
        match delta {
            Delta::Start(block) => self.block_started(index, block),
            Delta::Stop => self.block_stopped(index),
            Delta::Text(text) => self.pieces(index, text, |text| DeltaJson::Text { text }),
            Delta::Thinking(text) => self.pieces(index, text, |thinking| DeltaJson::Thinking { thinking }),
            Delta::Signature(text) => {
                self.pieces(index, text, |signature| DeltaJson::Signature { signature });
            }
            Delta::InputJson(text) => {
                self.pieces(index, text, |partial_json| DeltaJson::InputJson { partial_json });
            }
            Delta::Other(json) => {
                if let Ok(raw) = serde_json::from_str(json) {
                    let delta = DeltaJson::Other(raw);
                    self.write(&StreamEventJson::ContentBlockDelta { index, delta }, None);
                }
            }
        }
    }

    pub(crate) fn block_stopped(&mut self, index: u32) {
        self.write(&StreamEventJson::ContentBlockStop { index }, None);
    }

    pub(crate) fn end_message(&mut self, stop_reason: &str, usage: &Usage) {
        let delta = StopJson { stop_reason, stop_sequence: None };
        let usage = HostUsage::from(usage);
        self.write(&StreamEventJson::MessageDelta { delta, usage }, None);
        self.write(&StreamEventJson::MessageStop, None);
    }

    /// Writes a delta whose text may be cut anywhere, in pieces that fit a line.
    fn pieces<'t>(&mut self, index: u32, text: &'t str, make: impl Fn(&'t str) -> DeltaJson<'t>) {
        let mut rest = text;
        loop {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
            let delta = make(piece);
            self.write(&StreamEventJson::ContentBlockDelta { index, delta }, None);
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
    }

    fn write(&mut self, event: &StreamEventJson<'_>, ttft_ms: Option<u64>) {
        let line = StreamLine {
            event,
            session_id: self.ids.session(),
            parent_tool_use_id: None,
            uuid: self.ids.next(),
            ttft_ms,
            // The first event of a response is the first that answers.
            prompts: if ttft_ms.is_some() { Prompts::new(self.prompts) } else { None },
        };
        fit::append(self.out, |detail, out| {
            // An event of unknown kind that is too large has nothing that could be left out: it is skipped.
            if detail != DetailLevel::Bare {
                fit::write_json(&line, out);
            }
        });
    }
}
