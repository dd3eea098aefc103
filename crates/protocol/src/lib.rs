//! The vocabulary of Windlass as plain data.
//!
//! Messages and their blocks, the words a model client and a tool exchange with the core, and the
//! updates a caller sees. Nothing here decides: construction and (de)serialisation only.
//! Block types and fields this crate does not know survive a round trip byte for byte.

mod block;
mod command;
mod decision;
mod event;
mod failure_category;
mod hook;
mod ids;
mod json;
mod message;
mod model;
mod names;
mod reason;
mod record;
mod ruling;
mod secret;
mod shown_parts;
mod tokens;
mod tool;
mod tool_profile;
mod transcript;
mod update;
mod usage;

pub use block::{Block, BlockError, BlockKind, ToolInput, ToolUse};
pub use command::{
    CommandEffect, CommandFacts, CommandPath, CommandWord, FoundCommand, HostFact, NamedPath, PathNaming,
    PlainCommand, UrlFact,
};
pub use decision::{Collapse, CompactTrigger, Compaction, ContextReport, Decision, StoredResult};
pub use event::{AmbientChanges, Event, FileChange, Input, Interrupt, MemoryNote, Priority, Prompt, Speaker};
pub use hook::{
    BatchCall, EndReason, ExaminedCall, HookAnswer, HookCall, HookEnding, HookEvent, HookFailure,
    HookFailureKind, HookMoment, HookNews, HookPermission, HookPrinted, HookRun, HookScene, LoadReason,
    PromptId, StartSource, StopHookSummary, StopHookVerdict, blocks_on_failure, is_failure_policy,
};
pub use ids::{
    CallId, ForkId, HookId, LookId, MessageId, RequestId, SessionKey, SessionSeed, StoreId, TimerId,
};
pub use json::{RawObject, replace_lone_surrogates};
pub use message::{Message, Origin, Role};
pub use model::{
    ContextEdits, Culprit, Delivery, Delta, Effort, Failure, FailureClass, ModelCard, ModelEvent, ModelNote,
    ModelRequest, Overflow, Price, RequestThinking, StopReason, TaskBudget, ThinkingDisplay, ThinkingSupport,
    ToolSpec,
};
pub use reason::{Terminal, Transition};
pub use record::{
    AnswerBlock, CallIntent, CallResult, CallRuling, CompactionMemory, Durability, Fate, FinishedCall,
    Record, RequestEntry, RunEnding, SentRequest, SessionMemory, SessionSnapshot, SpendEntry, SyncPolicy,
    TimeSpent, UnfinishedPrompt, UserEntry,
};
pub use ruling::{
    Behaviour, Offers, PermissionChange, PermissionUpdate, Ruling, RulingRule, SettingsDestination, Verdict,
};
pub use secret::Secret;
pub use shown_parts::ShownParts;
pub use tokens::{estimate_text_tokens, estimate_tokens};
pub use tool::{
    Admission, CallFacts, CallKind, CommandRunFacts, FileSeen, FileStamp, PathFact, RawValueEq, ShownPart,
    ToolOutput, ToolProgress, WrittenPath,
};
pub use tool_profile::{KNOWN_TOOLS, ToolProfile, ToolSubject};
pub use transcript::{Segment, Transcript};
pub use update::{Answer, Denial, ModelSpend, Outcome, PrefixPart, Question, Repair, Update};
pub use usage::{CacheCreation, HostUsage, ServerToolUse, Usage};

/// Raw JSON text of one value, kept exactly as it was written.
pub use serde_json::value::RawValue;
