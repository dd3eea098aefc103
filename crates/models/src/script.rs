//! Scripts: files of responses that stand in for a model.
//!
//! A [`Script`] is parsed and checked in one place, and every response is expanded in one place into the
//! stream events of the Messages API. [`ScriptModel`] plays them inside the process, the loopback server of the
//! test kit plays them over HTTP; since both go through [`ScriptPlayer`], a script means the same to both.
//! The format has a page of its own: `docs/script-format.md`.

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
