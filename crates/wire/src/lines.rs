//! The messages on standard output, as they are written.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use windlass_protocol::{Block, HostUsage};

/// A UUID, written as the usual text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineUuid(pub(crate) Uuid);

impl Serialize for LineUuid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = Uuid::encode_buffer();
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut buffer))
    }
}

/// `assistant`: one completed block of an answer, or a failure dressed as one.
#[derive(Serialize)]
#[serde(tag = "type", rename = "assistant")]
pub(crate) struct AssistantLine<'a> {
    pub(crate) message: AssistantMessage<'a>,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    pub(crate) session_id: LineUuid,
    pub(crate) uuid: LineUuid,
    pub(crate) timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) aborted: bool,
    #[serde(skip_serializing_if = "<[LineUuid]>::is_empty")]
    pub(crate) supersedes: &'a [LineUuid],
    #[serde(flatten)]
    pub(crate) prompts: Option<Prompts<'a>>,
}

/// The prompts that a line answers, by the ids their senders gave them.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Prompts<'a> {
    user_message_uuid: &'a str,
    user_message_uuids: &'a [Arc<str>],
}

impl<'a> Prompts<'a> {
    /// None if no prompt has an id.
    pub(crate) fn new(ids: &'a [Arc<str>]) -> Option<Self> {
        Some(Self { user_message_uuid: ids.first()?, user_message_uuids: ids })
    }
}

/// A message of the Messages API from the model's side.
#[derive(Serialize)]
pub(crate) struct AssistantMessage<'a> {
    pub(crate) id: &'a str,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) role: &'static str,
    pub(crate) model: &'a str,
    pub(crate) content: &'a [Block],
    pub(crate) stop_reason: Option<&'a str>,
    pub(crate) stop_sequence: Option<&'a str>,
    pub(crate) usage: HostUsage<'a>,
}

/// `user`: the result of a call, text that entered the conversation, or a prompt said back to its sender.
#[derive(Serialize)]
#[serde(tag = "type", rename = "user")]
pub(crate) struct UserLine<'a, U> {
    pub(crate) message: UserMessage<'a>,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    pub(crate) session_id: LineUuid,
    pub(crate) uuid: U,
    pub(crate) timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_result: Option<&'a RawValue>,
    #[serde(rename = "isSynthetic", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_synthetic: bool,
    #[serde(rename = "isReplay", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_replay: bool,
}

#[derive(Serialize)]
pub(crate) struct UserMessage<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: &'a [Block],
}

/// A line of its own fields, `type` in front, and the ids behind them.
#[derive(Serialize)]
pub(crate) struct LineEnvelope<T> {
    #[serde(flatten)]
    pub(crate) body: T,
    pub(crate) session_id: LineUuid,
    pub(crate) uuid: LineUuid,
}

/// The fields of a `system` line.
#[derive(Serialize)]
#[serde(tag = "type", rename = "system")]
pub(crate) struct SystemBody<'a, T> {
    pub(crate) subtype: &'a str,
    #[serde(flatten)]
    pub(crate) body: &'a T,
}

/// What became of a prompt or command. After `Started` comes exactly one of the others, except where the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// It waits for a run.
    Queued,
    /// It is part of a run.
    Started,
    /// Its run ended well.
    Completed,
    /// Its run was interrupted, failed, or was cut off: it may be sent again.
    Cancelled,
    /// Nothing was done about it.
    Refused,
}
