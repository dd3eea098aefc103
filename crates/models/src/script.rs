//! Scripts: files of responses that stand in for a model, in the format of `docs/script-format.md`.
//!
//! [`ScriptModel`] plays them inside the process, the loopback server of the test kit over HTTP; both go through
//! [`ScriptPlayer`], so that a script means the same to both.

mod expand;
mod fault;
mod format;
mod model;
mod player;

pub use expand::{Playback, PlaybackEnd, PlaybackStart, StatusError, TimedEvent};
pub use fault::{CutAfter, FailureSpec, ScriptClass, ScriptFault};
pub use format::{
    AfterLast, ClearedSpec, DroppedSpec, NotesSpec, RefusalSpec, RequestCondition, Script, ScriptBlock,
    ScriptContent, ScriptError, ScriptResponse, UsageSpec,
};
pub use model::ScriptModel;
pub use player::{RequestView, ScriptMismatch, ScriptPlayer, ScriptTurn, newest_user_text};
