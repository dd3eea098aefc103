//! What a host may hear of each handler while it runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::HookEvent;

/// News of one handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookNews {
    /// The number of this run of it, the same in all its news.
    pub run: u64,
    /// The event that asked.
    pub event: HookEvent,
    /// The event and the word that its matchers were compared with: `PreToolUse:Bash`.
    pub name: Arc<str>,
    /// What happened.
    pub moment: HookMoment,
}

/// What happened to a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookMoment {
    /// It was asked.
    Began,
    /// It goes on, and printed this so far.
    Printed(HookPrinted),
    /// It is over.
    Ended {
        /// All that it printed, or that was heard of it.
        printed: HookPrinted,
        /// The exit code, if it was a program that ended by itself.
        code: Option<i32>,
        /// How.
        ending: HookEnding,
    },
}

/// What a handler printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookPrinted {
    /// On standard output; the answer, of a handler that is no program.
    pub output: String,
    /// On standard error; why it failed, where it had no chance to say so itself.
    pub errors: String,
}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEnding {
    /// It had its say.
    Worked,
    /// It objected by its exit code, or failed.
    Failed,
    /// Nobody waited for it any more.
    Cancelled,
}
