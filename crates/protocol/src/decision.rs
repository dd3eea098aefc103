//! What context layers decide about the transcript. A decision is made once, recorded, and never changed, so that the
//! next request can be derived again from what was said and what was decided.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Block, Message, MessageId};

/// One change of the transcript by a context layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Results that were too large stand in files; previews take their place.
    Stored(Vec<StoredResult>),
    /// Whole rounds and attachments without further use were taken out. A consumer that shows the conversation may remove
    /// them too: [`ShownParts`](crate::ShownParts) knows which updates showed them.
    Snipped {
        /// The messages, each by the id of its last part.
        messages: Vec<MessageId>,
        /// About how many tokens that frees.
        tokens: u64,
        /// Thinking from this message on was bound to what is gone, and went with it.
        unbound_from: Option<MessageId>,
    },
    /// Old results were replaced by a short placeholder each.
    Cleared {
        /// The calls whose results they were, and the placeholder that stands for each.
        results: Vec<(Arc<str>, Block)>,
        /// About how many tokens that frees.
        tokens: u64,
        /// Thinking from this message on was bound to what is gone, and went with it.
        unbound_from: Option<MessageId>,
    },
    /// A summary of a span of rounds is ready; nothing has changed yet.
    Staged(Collapse),
    /// Staged spans were replaced by their summaries.
    Collapsed {
        /// The spans, oldest first.
        spans: Vec<Collapse>,
        /// About how many tokens that frees.
        tokens: u64,
        /// Thinking from this message on was bound to what is gone, and went with it.
        unbound_from: Option<MessageId>,
    },
    /// Everything before a tail was replaced by a boundary.
    Compacted(Box<Compaction>),
    /// Pictures, documents or another block that the provider refused were replaced by a short text each: the messages as they
    /// are now.
    MediaStripped(Vec<Arc<Message>>),
    /// Thinking was taken out of these messages: another model answers, or the provider refused it.
    ThinkingStripped(Vec<MessageId>),
}

/// A result that stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredResult {
    /// The call.
    pub tool_use_id: Arc<str>,
    /// The file.
    pub path: PathBuf,
    /// What the model sees instead: the `tool_result` block with the preview.
    pub preview: Block,
}

/// A span of rounds and its summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Collapse {
    /// The first message of the span.
    pub first: MessageId,
    /// The last message of the span.
    pub last: MessageId,
    /// What takes its place.
    pub summary: Arc<Message>,
}

/// A compaction of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// What asked for it.
    pub trigger: CompactTrigger,
    /// What stands for everything that is gone: the summary, and what was attached again.
    pub boundary: Arc<Message>,
    /// The first message of the tail that stays; none if nothing stays.
    pub tail: Option<MessageId>,
    /// Whether the tail went on without its thinking.
    pub is_unbound: bool,
    /// Whether no model wrote the summary.
    pub is_mechanical: bool,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after, estimated.
    pub tokens_after: u64,
    /// How long it took.
    pub duration_ms: u64,
}

/// What asked for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactTrigger {
    /// The context passed its threshold.
    Auto,
    /// The user.
    Manual,
    /// The provider refused the request as too long.
    Reactive,
}

/// How full the context is, by what fills it. All numbers are tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextReport {
    /// The model.
    pub model: Arc<str>,
    /// What the model can take in all.
    pub window: u64,
    /// What is in use.
    pub used: u64,
    /// From here on the transcript is compacted, unless that is off.
    pub compact_at: Option<u64>,
    /// Where automatic compaction is off: from here on a run ends instead of sending a request.
    pub blocked_at: Option<u64>,
    /// The parts, in the order of the request.
    pub parts: Vec<(&'static str, u64)>,
}

impl ContextReport {
    /// The names of the parts, in the order of a request.
    pub const PARTS: [&str; 8] =
        ["system prompt", "tools", "summaries", "prompts", "answers", "tool calls", "tool results", "notes"];
}
