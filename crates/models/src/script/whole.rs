//! A response of a script that is asked for whole: one message instead of events, after the same time.

use std::time::Duration;

use serde_json::{Value, json};

use super::expand::{Ending, Expansion, Opening, Playback, StatusError, TimedEvent};
use super::fault::Fault;
use super::format::{ScriptBlock, ScriptContent};

impl Expansion<'_> {
    pub(super) fn whole_playback(&self) -> Playback {
        let waits: Duration = self.events().iter().map(|event: &TimedEvent| event.delay).sum();
        let delay = Duration::from_millis(self.response.delay_ms) + waits;
        let message = self.whole_message().to_string();
        let (opening, ending) = match &self.response.fault {
            None => (Opening::Whole(message), Ending::End),
            Some(Fault::Refuse) => (Opening::Refuse, Ending::End),
            Some(Fault::Status { .. } | Fault::Failure(_)) => (Opening::Status(self.status()), Ending::End),
            // There is no stream that an error could come in.
            Some(Fault::Error { kind, message, .. }) => {
                (Opening::Status(StatusError::new(usual_status(kind), kind, message)), Ending::End)
            }
            Some(Fault::Cut(_)) => {
                let piece = message[..message.floor_char_boundary(message.len() / 2)].to_owned();
                (Opening::Whole(message), Ending::Cut { piece })
            }
            Some(Fault::Stall { .. }) => (Opening::Whole(message), Ending::Stall { ping: None }),
            Some(Fault::Malformed { data, .. }) => {
                (Opening::Whole(data.clone().unwrap_or_else(|| "{\"type\":}".to_owned())), Ending::End)
            }
        };
        Playback { delay, opening, events: Vec::new(), ending }
    }

    fn whole_message(&self) -> Value {
        let usage = self.usage();
        let mut message = self.message(&usage);
        let blocks = self.response.blocks.iter().enumerate();
        message["content"] = blocks.map(|(index, block)| self.whole_block(index, block)).collect();
        message["stop_reason"] = json!(self.stop_reason());
        message["usage"] = usage;
        if let Some(details) = self.stop_details() {
            message["stop_details"] = details;
        }
        if let Some(edits) = self.context_management() {
            message["context_management"] = edits;
        }
        message
    }

    fn whole_block(&self, index: usize, block: &ScriptBlock) -> Value {
        let mut whole = self.skeleton(index, block);
        match &block.content {
            ScriptContent::Text(text) => whole["text"] = json!(text),
            ScriptContent::Tool { input, .. } => {
                whole["input"] = serde_json::from_str(input).unwrap_or_else(|_| json!({ "unparsed": input }));
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

fn usual_status(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}
