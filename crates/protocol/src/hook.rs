//! Hooks: what outside programs are asked at fixed points of the loop, and what they may answer.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{CompactTrigger, Failure, Terminal, ToolOutcome, ToolUse};

/// The points at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookEvent {
    /// Before a call, once its input is valid.
    PreToolUse,
    /// After a call that worked.
    PostToolUse,
    /// After a call that failed.
    PostToolUseFailure,
    /// The model says it is done.
    Stop,
    /// The run ends because of a failure; the answer is ignored.
    StopFailure,
    /// The transcript is about to be compacted.
    PreCompact,
}

impl HookEvent {
    /// Every point, in the order of a run.
    pub const ALL: [Self; 6] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::Stop,
        Self::StopFailure,
        Self::PreCompact,
    ];

    /// The name users and hosts know.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
            Self::PreCompact => "PreCompact",
        }
    }
}

/// One question to all hooks of an event.
#[derive(Clone, Debug)]
pub enum HookCall {
    /// A call is about to be decided on.
    PreToolUse {
        /// The tool's own name.
        tool: Arc<str>,
        /// What the model asked for.
        tool_use: ToolUse,
    },
    /// A call finished; [`ToolOutcome::is_error`] tells which of the two events it is.
    PostToolUse {
        /// The tool's own name.
        tool: Arc<str>,
        /// What ran.
        tool_use: ToolUse,
        /// What came of it.
        outcome: ToolOutcome,
    },
    /// The model says it is done.
    Stop {
        /// Whether an earlier objection caused this try.
        active: bool,
        /// The model's last text.
        text: Arc<str>,
    },
    /// The run ends because of a failure.
    StopFailure {
        /// How the run ends.
        terminal: Terminal,
        /// What failed, unless the answer itself was the problem.
        failure: Option<Box<Failure>>,
    },
    /// The transcript is about to be compacted.
    PreCompact {
        /// What asked for it.
        trigger: CompactTrigger,
        /// What the user wants the summary to keep.
        instructions: Arc<str>,
    },
}

impl HookCall {
    /// The point at which it is asked.
    #[must_use]
    pub fn event(&self) -> HookEvent {
        match self {
            Self::PreToolUse { .. } => HookEvent::PreToolUse,
            Self::PostToolUse { outcome, .. } if outcome.is_error => HookEvent::PostToolUseFailure,
            Self::PostToolUse { .. } => HookEvent::PostToolUse,
            Self::Stop { .. } => HookEvent::Stop,
            Self::StopFailure { .. } => HookEvent::StopFailure,
            Self::PreCompact { .. } => HookEvent::PreCompact,
        }
    }
}

/// What all hooks of an event said together. Nothing said means: go on.
#[derive(Clone, Debug, Default)]
pub struct HookAnswer {
    /// Do not go on after this, and why.
    pub stop: Option<String>,
    /// Objections, for the model: a call is not run, an end is no end.
    pub blocks: Vec<String>,
    /// What is to become of the call; only before it.
    pub permission: Option<HookPermission>,
    /// The input the call is to have instead; only before it.
    pub input: Option<Arc<RawValue>>,
    /// What the model is to know besides.
    pub context: Vec<String>,
    /// What the user is to know: a hook that could not start, crashed, timed out or says so.
    pub notices: Vec<String>,
}

/// What a hook wants to become of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookPermission {
    /// Run it, unless a rule denies it.
    Allow,
    /// Do not run it; the text is for the model.
    Deny(String),
    /// Ask; the text is for the person.
    Ask(String),
    /// Put it off: the run ends, and whoever resumes it decides.
    Defer,
}
