//! Hooks: what outside programs are asked at fixed points of a session, what they may answer, and what a host hears of them.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::names::named_enum;
use crate::{
    Block, CallFacts, CompactTrigger, Effort, Failure, MessageId, Terminal, ToolOutput, ToolProfile, ToolUse,
};

named_enum! {
    /// The points at which hooks run.
    pub enum HookEvent {
        /// A session begins, or begins anew after its past was compacted.
        SessionStart => "SessionStart",
        /// Memory files become part of the conversation.
        InstructionsLoaded => "InstructionsLoaded",
        /// A prompt was said, and the run has not acted on it.
        UserPromptSubmit => "UserPromptSubmit",
        /// Before a call, once its input is valid.
        PreToolUse => "PreToolUse",
        /// A call is about to be asked about, or denied because the run has no one to ask.
        PermissionRequest => "PermissionRequest",
        /// A model denied a call in the user's place.
        PermissionDenied => "PermissionDenied",
        /// After a call that worked.
        PostToolUse => "PostToolUse",
        /// After a call that failed.
        PostToolUseFailure => "PostToolUseFailure",
        /// A call changed the working directory.
        CwdChanged => "CwdChanged",
        /// Every call of a response is answered.
        PostToolBatch => "PostToolBatch",
        /// The model says it is done.
        Stop => "Stop",
        /// The run ends because of a failure; the answer is ignored.
        StopFailure => "StopFailure",
        /// The transcript is about to be compacted.
        PreCompact => "PreCompact",
        /// The transcript was compacted.
        PostCompact => "PostCompact",
        /// The host tells the user something.
        Notification => "Notification",
        /// A sub-agent begins.
        SubagentStart => "SubagentStart",
        /// A sub-agent says it is done.
        SubagentStop => "SubagentStop",
        /// The session is left.
        SessionEnd => "SessionEnd",
    }
}

impl HookEvent {
    /// The points that are never reached yet: there are no sub-agents.
    pub const NOT_REACHED: [Self; 2] = [Self::SubagentStart, Self::SubagentStop];

    /// Whether it is asked where a run ends, so that its handlers are reported one by one.
    pub fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop)
    }
}

/// One question to all hooks of an event.
#[derive(Clone, Debug)]
pub enum HookCall {
    /// A session begins.
    SessionStart {
        /// Why.
        source: StartSource,
        /// The model that will be asked.
        model: Arc<str>,
    },
    /// Memory files become part of the conversation. Hooks hear of one file at a time.
    InstructionsLoaded {
        /// The files.
        files: Vec<PathBuf>,
        /// Why now.
        reason: LoadReason,
    },
    /// A prompt was said.
    UserPromptSubmit {
        /// Its text.
        prompt: Arc<str>,
    },
    /// A call is about to be decided on.
    PreToolUse(ExaminedCall),
    /// A call is about to be asked about, or denied because the run has no one to ask.
    PermissionRequest {
        /// What would run.
        call: ExaminedCall,
        /// What would spare the question next time, as permission updates.
        suggestions: Vec<Arc<RawValue>>,
    },
    /// A model denied a call in the user's place.
    PermissionDenied {
        /// What was denied.
        call: ExaminedCall,
        /// Why.
        reason: String,
    },
    /// A call finished; [`ToolOutput::is_error`] tells which of the two events it is.
    PostToolUse {
        /// What ran.
        call: ExaminedCall,
        /// What it returned.
        output: ToolOutput,
        /// How long it ran.
        duration_ms: u64,
    },
    /// A call changed the working directory.
    CwdChanged {
        /// Where calls worked before.
        from: PathBuf,
        /// Where they work now.
        to: PathBuf,
    },
    /// Every call of a response is answered.
    PostToolBatch {
        /// The calls, in order.
        calls: Vec<BatchCall>,
    },
    /// The model says it is done.
    Stop {
        /// Whether an earlier objection caused this try.
        is_active: bool,
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
    /// The transcript was compacted.
    PostCompact {
        /// What asked for it.
        trigger: CompactTrigger,
        /// What stands for the past now.
        summary: Arc<str>,
    },
    /// The host tells the user something.
    Notification {
        /// The host's name for this kind of news, such as `permission_prompt`.
        kind: Arc<str>,
        /// The news.
        message: Arc<str>,
        /// Its title.
        title: Option<Arc<str>>,
    },
    /// A sub-agent begins.
    SubagentStart {
        /// Its id.
        id: Arc<str>,
        /// Its type.
        kind: Arc<str>,
    },
    /// A sub-agent says it is done.
    SubagentStop {
        /// Its id.
        id: Arc<str>,
        /// Its type.
        kind: Arc<str>,
        /// Whether an earlier objection caused this try.
        is_active: bool,
        /// Its last text.
        text: Arc<str>,
        /// Where its conversation is kept.
        transcript: Option<PathBuf>,
    },
    /// The session is left.
    SessionEnd {
        /// Why.
        reason: EndReason,
    },
}

/// A call with what its tool says of it: hooks are told of it, and choose by the facts that permission is decided on.
#[derive(Clone, Debug)]
pub struct ExaminedCall {
    /// The tool's own name.
    pub tool: Arc<str>,
    /// What the tool declares about itself.
    pub profile: ToolProfile,
    /// What the model asked for.
    pub tool_use: ToolUse,
    /// What it would do.
    pub facts: Arc<CallFacts>,
}

/// A call of a response, as hooks hear of it when all are answered.
#[derive(Clone, Debug)]
pub struct BatchCall {
    /// The tool's own name.
    pub tool: Arc<str>,
    /// What ran, or was to run.
    pub tool_use: ToolUse,
    /// What the model reads of it.
    pub content: Vec<Block>,
}

impl HookCall {
    /// The call of a tool that it is about.
    pub fn tool_call(&self) -> Option<&ExaminedCall> {
        match self {
            Self::PreToolUse(call)
            | Self::PermissionRequest { call, .. }
            | Self::PermissionDenied { call, .. }
            | Self::PostToolUse { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The point at which it is asked.
    pub fn event(&self) -> HookEvent {
        match self {
            Self::SessionStart { .. } => HookEvent::SessionStart,
            Self::InstructionsLoaded { .. } => HookEvent::InstructionsLoaded,
            Self::UserPromptSubmit { .. } => HookEvent::UserPromptSubmit,
            Self::PreToolUse { .. } => HookEvent::PreToolUse,
            Self::PermissionRequest { .. } => HookEvent::PermissionRequest,
            Self::PermissionDenied { .. } => HookEvent::PermissionDenied,
            Self::PostToolUse { output, .. } if output.is_error => HookEvent::PostToolUseFailure,
            Self::PostToolUse { .. } => HookEvent::PostToolUse,
            Self::CwdChanged { .. } => HookEvent::CwdChanged,
            Self::PostToolBatch { .. } => HookEvent::PostToolBatch,
            Self::Stop { .. } => HookEvent::Stop,
            Self::StopFailure { .. } => HookEvent::StopFailure,
            Self::PreCompact { .. } => HookEvent::PreCompact,
            Self::PostCompact { .. } => HookEvent::PostCompact,
            Self::Notification { .. } => HookEvent::Notification,
            Self::SubagentStart { .. } => HookEvent::SubagentStart,
            Self::SubagentStop { .. } => HookEvent::SubagentStop,
            Self::SessionEnd { .. } => HookEvent::SessionEnd,
        }
    }
}

named_enum! {
    /// Why a session begins.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StartSource {
        /// It is new.
        Startup => "startup",
        /// It goes on in another process.
        Resume => "resume",
        /// Its past was compacted.
        Compact => "compact",
        /// It is a copy of another.
        Fork => "fork",
    }
}

named_enum! {
    /// Why memory files become part of the conversation.
    pub enum LoadReason {
        /// The session begins.
        SessionStart => "session_start",
        /// They are told again after a compaction.
        Compact => "compact",
    }
}

named_enum! {
    /// Why a session is left.
    pub enum EndReason {
        /// The user begins another conversation.
        Clear => "clear",
        /// The user goes on with another session.
        Resume => "resume",
        /// The user gives up the credentials.
        Logout => "logout",
        /// The user leaves at the prompt.
        PromptInputExit => "prompt_input_exit",
        /// Anything else.
        Other => "other",
    }
}

/// Where in a session hooks are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookScene {
    /// The working directory of the next call.
    pub cwd: Arc<PathBuf>,
    /// The permission mode, by the name users know.
    pub mode: &'static str,
    /// How hard the model is to try.
    pub effort: Option<Effort>,
    /// The last prompt that became part of the conversation.
    pub prompt: Option<PromptId>,
    /// The type of the sub-agent that asks.
    pub agent: Option<Arc<str>>,
}

/// A message that is a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptId {
    /// The message.
    pub message: MessageId,
    /// The ids their senders gave to the prompts in it.
    pub prompts: Vec<Arc<str>>,
}

/// What all hooks of an event said together. Nothing said means: go on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HookAnswer {
    /// Do not go on after this, and why.
    pub stop: Option<String>,
    /// Objections: a prompt is not heard, a call is not run, a response is the last, an end is no end.
    pub blocks: Vec<String>,
    /// What is to become of the call, before it or where it is asked about; where a model denied it, an approval allows a retry.
    pub permission: Option<HookPermission>,
    /// The input the call is to have instead; before it, and where it is asked about.
    pub input: Option<Arc<RawValue>>,
    /// Changes of the permissions that come with an approval; only where a call is asked about.
    #[serde(skip)]
    pub updates: Vec<Arc<RawValue>>,
    /// What the tool is to have said instead; only after a call that worked.
    pub output: Option<Arc<RawValue>>,
    /// What is said in front of the first prompt; only when a session begins.
    pub first_prompt: Option<String>,
    /// What the model is to know besides.
    pub context: Vec<String>,
    /// What the user is to know.
    pub notices: Vec<String>,
    /// The hooks that had no say. The user is to know of them too.
    #[serde(skip)]
    pub failures: Vec<HookFailure>,
    /// What became of each handler that was waited for, in the order of the configuration; only where a run ends.
    #[serde(skip)]
    pub runs: Vec<HookRun>,
}

impl HookAnswer {
    /// Everything that the user is to know, in words.
    pub fn into_user_texts(self) -> Vec<String> {
        self.notices.into_iter().chain(self.failures.into_iter().map(|failure| failure.text)).collect()
    }
}

/// One handler that was asked where a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRun {
    /// The command line, address, question or name it is configured by.
    pub hook: String,
    /// How long it took.
    pub duration_ms: u64,
    /// How it ended.
    pub ending: HookEnding,
    /// Its objection, why it failed, or what it printed; nothing if it was silent.
    pub said: String,
}

/// What the hooks at the end of a run did, once all of them have answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopHookSummary {
    /// The event that asked.
    pub event: HookEvent,
    /// Each handler, in the order of the configuration.
    pub hooks: Vec<HookRun>,
    /// What followed.
    pub verdict: StopHookVerdict,
    /// The objections, or why the run ends.
    pub reasons: Vec<String>,
}

/// What followed from the answers of the hooks at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopHookVerdict {
    /// Nothing: the run may end.
    Passed,
    /// An objection: the model goes on.
    Blocked,
    /// An objection that came too often to count any more.
    Overruled,
    /// The run ends because a hook wants it to.
    Prevented,
}

/// A hook that had no say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFailure {
    /// Which one, for people.
    pub hook: String,
    /// In which way it failed.
    pub kind: HookFailureKind,
    /// What happened and what follows from it, for people.
    pub text: String,
}

/// In which way a hook failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFailureKind {
    /// It could not be started, or not be reached.
    NotStarted,
    /// It ended in a way that says nothing.
    Crashed,
    /// It took too long.
    TimedOut,
    /// What it said is no answer.
    Misspoke,
}

/// What a hook wants to become of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPermission {
    /// Run it, unless a rule denies it.
    Allow,
    /// Do not run it; the text is for the model.
    Deny(String),
    /// Ask; the text is for the person.
    Ask(String),
    /// Put it off: the run ends, and the process that resumes it decides.
    Defer,
}

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
    /// Its answer was not needed any more.
    Cancelled,
}

/// Whether anything in what was configured has an `onFailure` that blocks. Whatever is not understood there blocks too: a policy
/// that cannot be read is the stricter one.
pub fn blocks_on_failure(configured: &Value) -> bool {
    match configured {
        Value::Object(fields) => {
            fields.iter().any(|(name, policy)| is_failure_policy(name) && policy != "continue")
                || fields.values().any(blocks_on_failure)
        }
        Value::Array(items) => items.iter().any(blocks_on_failure),
        _ => false,
    }
}

/// Whether a field says what follows when a hook fails, however that is spelt: a hook must not stop blocking by a letter.
pub fn is_failure_policy(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect();
    ["onfailure", "onfail", "onerror"].contains(&letters.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(configured: &Value, expected: bool) {
        assert_eq!(blocks_on_failure(configured), expected, "{configured}");
    }

    #[test]
    fn only_a_clear_word_lets_things_pass() {
        check(&json!({"type": "command", "onFailure": "block"}), true);
        check(&json!({"type": "command", "onFailure": "deny"}), true);
        check(&json!({"onFailure": 5}), true);
        check(&json!({"onFailure": "continue"}), false);
        check(&json!({"type": "command"}), false);
        check(&json!("onFailure"), false);
        check(&json!({"on_failure": "block"}), true);
        check(&json!({"OnFail": "block"}), true);
        check(&json!({"on-failure": "continue"}), false);
        check(&json!([{"hooks": [{"onFailure": "continue"}, {"onFailure": "block"}]}]), true);
        check(&json!({"PreToolUse": {"hooks": [{"onFailure": "continue"}]}}), false);
    }
}
