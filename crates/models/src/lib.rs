//! Model clients: the Anthropic Messages API and scripts that stand in for a model.
//!
//! Invariant: a client sends a request once and never retries; whatever goes wrong is the last item of its stream.

mod anthropic;
mod assemble;
mod block;
mod classify;
#[cfg(test)]
#[path = "tests/random.rs"]
mod random;
mod script;
mod sse;
mod table;
mod usage;

pub use anthropic::{AnthropicClient, AnthropicSettings, ClientError, ClientIdentity, WatchdogLimits};
pub use assemble::ResponseAssembler;
pub use script::{
    AfterLast, ClearedSpec, CutAfter, DroppedSpec, FailureSpec, NotesSpec, Playback, PlaybackEnd,
    PlaybackStart, RefusalSpec, RequestCondition, RequestView, Script, ScriptBlock, ScriptClass,
    ScriptContent, ScriptError, ScriptFault, ScriptMismatch, ScriptModel, ScriptPlayer, ScriptResponse,
    ScriptTurn, StatusError, TimedEvent, UsageSpec, newest_user_text,
};
pub use sse::{EventTooLarge, SseDecoder, SseEvent};
pub use table::{FAMILIES, model_card, resolve_family};
