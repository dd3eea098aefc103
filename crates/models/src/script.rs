//! Scripts: files of responses that stand in for a model.
//!
//! A [`Script`] is parsed and checked in one place, and every response is expanded in one place into the
//! stream events of the Messages API. [`ScriptModel`] plays them inside the process, the loopback server of the
//! test kit plays them over HTTP; since both go through [`Player`], a script means the same to both.
//! The format has a page of its own: `docs/script-format.md`.

mod expand;
mod failure;
mod fault;
mod format;
mod model;
mod player;
mod whole;

pub use expand::{Ending, Opening, Playback, StatusError, TimedEvent};
pub use failure::{FailureSpec, ResetsAt, ScriptClass};
pub use fault::{CutAfter, Fault};
pub use format::{
    ClearedSpec, DroppedSpec, Expect, Notes, RefusalSpec, Response, Script, ScriptBlock, ScriptContent,
    ScriptError, Then, UsageSpec,
};
pub use model::ScriptModel;
pub use player::{Asked, Mismatch, Play, Player, newest_user_text};
