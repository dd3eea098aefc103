//! A response of a script that is asked for whole: one message instead of events, after the same time.

use std::time::Duration;

use serde_json::{Value, json};

use super::expand::{Expansion, Playback, PlaybackEnd, PlaybackStart, StatusError, TimedEvent};
use super::fault::ScriptFault;
use super::format::{ScriptBlock, ScriptContent};

impl Expansion<'_> {
    pub(super) fn whole_playback(&self) -> Playback {
        let waits: Duration = self.events().iter().map(|event: &TimedEvent| event.delay).sum();
        let delay = Duration::from_millis(self.response.delay_ms) + waits;
        let message = self.whole_message().to_string();
        let (opening, ending) = match &self.response.fault {
            None => (PlaybackStart::Whole(message), PlaybackEnd::End),
            Some(ScriptFault::Refuse) => (PlaybackStart::Refuse, PlaybackEnd::End),
            Some(ScriptFault::Status { .. } | ScriptFault::Failure(_)) => {
                (PlaybackStart::Status(self.status()), PlaybackEnd::End)
            }
            // There is no stream that an error could come in.
            Some(ScriptFault::Error { kind, message, .. }) => {
                (PlaybackStart::Status(StatusError::new(usual_status(kind), kind, message)), PlaybackEnd::End)
            }
            Some(ScriptFault::Cut(_)) => {
                let piece = message[..message.floor_char_boundary(message.len() / 2)].to_owned();
                (PlaybackStart::Whole(message), PlaybackEnd::Cut { piece })
            }
            Some(ScriptFault::Stall { .. }) => {
                (PlaybackStart::Whole(message), PlaybackEnd::Stall { ping: None })
            }
            Some(ScriptFault::Malformed { data, .. }) => (
                PlaybackStart::Whole(data.clone().unwrap_or_else(|| "{\"type\":}".to_owned())),
                PlaybackEnd::End,
            ),
        };
        Playback { delay, opening, events: Vec::new(), ending }
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
