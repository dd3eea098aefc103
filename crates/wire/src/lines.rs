//! The messages on standard output, as they are written.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use windlass_protocol::Block;

use crate::usage::UsageJson;

/// A UUID, written as the usual text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Id(pub(crate) Uuid);

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = Uuid::encode_buffer();
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut buffer))
    }
}

/// `system` / `init`: what a run starts with.
#[derive(Serialize)]
pub(crate) struct InitLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) subtype: &'static str,
    pub(crate) cwd: &'a str,
    pub(crate) session_id: Id,
    pub(crate) model: &'a str,
    pub(crate) tools: &'a [String],
    pub(crate) mcp_servers: [&'a str; 0],
    #[serde(rename = "permissionMode")]
    pub(crate) permission_mode: &'a str,
    pub(crate) slash_commands: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) untrusted_settings: &'a [String],
    #[serde(rename = "apiKeySource")]
    pub(crate) api_key_source: &'a str,
    pub(crate) claude_code_version: &'a str,
    pub(crate) output_style: &'a str,
    pub(crate) agents: [&'a str; 0],
    pub(crate) skills: [&'a str; 0],
    pub(crate) plugins: [&'a str; 0],
    pub(crate) capabilities: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) betas: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) additional_directories: &'a [String],
    pub(crate) uuid: Id,
}

/// `assistant`: one completed block of an answer, or a failure dressed as one.
#[derive(Serialize)]
pub(crate) struct AssistantLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) message: AssistantMessage<'a>,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    pub(crate) session_id: Id,
    pub(crate) uuid: Id,
    pub(crate) timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) aborted: bool,
    #[serde(skip_serializing_if = "<[Id]>::is_empty")]
    pub(crate) supersedes: &'a [Id],
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
    pub(crate) content: &'a [BlockJson],
    pub(crate) stop_reason: Option<&'a str>,
    pub(crate) stop_sequence: Option<&'a str>,
    pub(crate) usage: UsageJson<'a>,
}

/// A block as hosts need it: thinking always has a signature.
pub(crate) enum BlockJson {
    AsWritten(Block),
    Mended(Box<RawValue>),
}

impl Serialize for BlockJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::AsWritten(block) => block.serialize(serializer),
            Self::Mended(json) => json.serialize(serializer),
        }
    }
}

/// `user`: the result of a call, or text that entered the conversation.
#[derive(Serialize)]
pub(crate) struct UserLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) message: UserMessage<'a>,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    pub(crate) session_id: Id,
    pub(crate) uuid: Id,
    pub(crate) timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_result: Option<&'a RawValue>,
    #[serde(rename = "isSynthetic", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_synthetic: bool,
}

/// `user`: a prompt that was taken, said back to its sender.
#[derive(Serialize)]
pub(crate) struct ReplayLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) message: UserMessage<'a>,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    pub(crate) session_id: Id,
    pub(crate) uuid: &'a str,
    pub(crate) timestamp: &'a str,
    #[serde(rename = "isReplay")]
    pub(crate) is_replay: bool,
}

#[derive(Serialize)]
pub(crate) struct UserMessage<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: &'a [Block],
}

/// Any other `system` message: its own fields between the common ones.
#[derive(Serialize)]
pub(crate) struct SystemLine<'a, T> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) subtype: &'static str,
    #[serde(flatten)]
    pub(crate) body: &'a T,
    pub(crate) session_id: Id,
    pub(crate) uuid: Id,
}

#[derive(Default, Serialize)]
pub(crate) struct StatusBody<'a> {
    pub(crate) status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compact_result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compact_error: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct StopHooksBody<'a> {
    pub(crate) hook_event: &'a str,
    pub(crate) hook_count: usize,
    pub(crate) hook_infos: Vec<StopHookInfo<'a>>,
    pub(crate) hook_errors: Vec<&'a str>,
    pub(crate) blocked: bool,
    pub(crate) prevented_continuation: bool,
    pub(crate) has_output: bool,
    pub(crate) level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop_reason: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct StopHookInfo<'a> {
    pub(crate) command: &'a str,
    pub(crate) duration_ms: u64,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) output: &'a str,
}

#[derive(Serialize)]
pub(crate) struct SnipBody {
    pub(crate) snip_metadata: SnipMetadata,
}

#[derive(Serialize)]
pub(crate) struct SnipMetadata {
    pub(crate) removed_uuids: Vec<Id>,
    pub(crate) tokens_freed: u64,
}

#[derive(Serialize)]
pub(crate) struct CompactBody<'a> {
    pub(crate) compact_metadata: CompactMetadata<'a>,
}

#[derive(Serialize)]
pub(crate) struct CompactMetadata<'a> {
    pub(crate) trigger: &'a str,
    pub(crate) pre_tokens: u64,
    pub(crate) post_tokens: u64,
    pub(crate) duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preserved_segment: Option<PreservedSegment>,
}

/// The messages that a compaction keeps, from the first to the last, and what they now stand behind.
#[derive(Serialize)]
pub(crate) struct PreservedSegment {
    #[serde(rename = "head_uuid")]
    pub(crate) head: Id,
    #[serde(rename = "anchor_uuid")]
    pub(crate) anchor: Id,
    #[serde(rename = "tail_uuid")]
    pub(crate) tail: Id,
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

/// `command_lifecycle`: what became of a prompt or command that came with an id.
#[derive(Serialize)]
pub(crate) struct LifecycleLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) command_uuid: &'a str,
    pub(crate) state: Lifecycle,
    pub(crate) session_id: Id,
    pub(crate) uuid: Id,
}

/// `system` / `max_turns_reached`.
#[derive(Serialize)]
pub(crate) struct MaxTurnsBody {
    pub(crate) turn_count: u32,
    pub(crate) max_turns: u32,
}

/// `tool_use_summary`: what the calls of a response did.
#[derive(Serialize)]
pub(crate) struct ToolUseSummaryLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) summary: &'a str,
    pub(crate) preceding_tool_use_ids: &'a [Arc<str>],
    pub(crate) session_id: Id,
    pub(crate) uuid: Id,
}

/// `prompt_suggestion`: what the user may want next.
#[derive(Serialize)]
pub(crate) struct PromptSuggestionLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) suggestion: &'a str,
    pub(crate) session_id: Id,
    pub(crate) uuid: Id,
}

#[derive(Serialize)]
pub(crate) struct RetryBody<'a> {
    pub(crate) attempt: u32,
    pub(crate) max_retries: u32,
    pub(crate) retry_delay_ms: u64,
    pub(crate) error_status: Option<u16>,
    pub(crate) error: &'a str,
}

#[derive(Serialize)]
pub(crate) struct DeniedBody<'a> {
    pub(crate) tool_name: &'a str,
    pub(crate) tool_use_id: &'a str,
    pub(crate) message: &'a str,
}

#[derive(Serialize)]
pub(crate) struct InformationalBody<'a> {
    pub(crate) content: &'a str,
    pub(crate) level: &'a str,
}

#[derive(Serialize)]
pub(crate) struct RefusalBody<'a> {
    pub(crate) original_model: &'a str,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) content: &'a str,
    #[serde(skip_serializing_if = "<[Id]>::is_empty")]
    pub(crate) retracted_message_uuids: &'a [Id],
}

/// `tool_progress`: a sign of life from a call that takes long.
#[derive(Serialize)]
pub(crate) struct ToolProgressLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) tool_use_id: &'a str,
    pub(crate) tool_name: &'a str,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    pub(crate) elapsed_time_seconds: u64,
    pub(crate) heartbeat: bool,
    pub(crate) session_id: Id,
    pub(crate) uuid: Id,
}
