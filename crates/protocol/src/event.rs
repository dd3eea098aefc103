//! What the core is told: prompts, and everything else that happens to a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Admission, Answer, Block, CallId, ForkId, HookAnswer, HookId, LookId, ModelEvent, ModelSpend, Outcome,
    PermissionUpdate, RequestId, StartSource, StoreId, TimerId, ToolOutput, ToolProgress,
};

/// One thing that happened, with the time and the chance that come with it.
#[derive(Clone, Debug)]
pub struct Input {
    /// Monotonic time in milliseconds, from any start.
    pub at_ms: u64,
    /// Wall time in milliseconds since 1970.
    pub wall_ms: u64,
    /// 64 random bits, for jitter.
    pub entropy: u64,
    /// What happened.
    pub event: Event,
}

impl Input {
    /// An input without randomness, for examples and tests.
    pub fn at(at_ms: u64, event: Event) -> Self {
        Self { at_ms, wall_ms: 0, entropy: 0, event }
    }
}

/// What can happen to a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// The prompt that starts the run.
    Submit(Prompt),
    /// The user wants the transcript compacted: a run that does only that.
    Compact {
        /// What the summary is to keep, in the user's words; may be empty.
        focus: String,
    },
    /// The run goes on where another was left: nothing new is said.
    GoOn {
        /// Why the session begins, if this is the first of it in this process.
        start: Option<StartSource>,
    },
    /// A message typed while the run goes on; its priority says when it goes in.
    Steer(Prompt),
    /// What waits under this id is taken back: the model is not to read it, or it was a command that is done now.
    TakeBack(Arc<str>),
    /// Stop: answer everything and end.
    Interrupt(Interrupt),
    /// News from the model, about this request.
    Model(RequestId, ModelEvent),
    /// What the driver found out about a call's input.
    Examined(CallId, Admission),
    /// A tool says how it is getting on.
    Progress(CallId, ToolProgress),
    /// A tool finished, and returned this.
    Finished(CallId, ToolOutput),
    /// The user or the host answered the question about a call.
    Answered(CallId, Answer),
    /// The user or the host changes the permissions.
    Permissions(Vec<PermissionUpdate>),
    /// A timer ran out.
    Timer(TimerId),
    /// A fork that is at work has taken this so far, by model: what counts if it is cancelled.
    ForkSpent(ForkId, BTreeMap<Arc<str>, ModelSpend>),
    /// A fork came to its end. Its cost is in the outcome.
    Forked(ForkId, Box<Outcome>),
    /// Hooks answered a question: what all of them said together.
    Hooked(HookId, Box<HookAnswer>),
    /// Results were put into files: the file of each, in the order of the wish; none where it could not be written.
    Stored(StoreId, Vec<Option<PathBuf>>),
    /// The driver looked around, and found this.
    Looked(LookId, Box<AmbientChanges>),
    /// Memory that may help with the prompt was found. The run does not wait for it.
    Prefetched(Vec<MemoryNote>),
    /// The log cannot be written; what stood behind the record was not done.
    StoreFailed {
        /// Why.
        why: String,
        /// The calls that were therefore not started.
        unstarted: Vec<CallId>,
    },
}

/// How a run is interrupted, the stronger wish later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// The user wants it to stop. The transcript says so.
    Stop,
    /// The user typed something else, which waits as a steered message and says enough.
    Replace,
    /// The process is about to end and shows no result of the run: its prompts stay unfinished.
    Leave,
}

/// What a user says, or what the engine has to tell the model: one or more blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// What the engine puts in front of it, such as the surroundings of a first prompt.
    pub context: Vec<Block>,
    /// The blocks; blank text is dropped when the prompt is taken.
    pub blocks: Vec<Block>,
    /// The id its sender gave it.
    pub id: Option<Arc<str>>,
    /// Who speaks.
    pub speaker: Speaker,
    /// When it goes in, if it has to wait.
    pub priority: Priority,
    /// How many output tokens the user wants spent on it.
    pub token_budget: Option<u64>,
    /// Why the session begins, if this is the first of it in this process.
    pub start: Option<StartSource>,
}

/// Who speaks in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person, or the program that speaks for one.
    #[default]
    User,
    /// The engine, about a background task that has ended.
    Task,
    /// A person, to the program and not to the model: a command that waits for the end of the run.
    Command,
}

/// When a prompt goes in that comes during a run: those of a higher priority first, in order within one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// At once: what a person says so interrupts the run and replaces what it was doing.
    Now,
    /// With the next results.
    #[default]
    Next,
    /// Once the run has ended, or after a call that only sleeps.
    Later,
}

impl<T: AsRef<str>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self { blocks: vec![Block::text(text.as_ref())], ..Self::default() }
    }
}

/// What was found when the engine looked around between two requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmbientChanges {
    /// Files that are not any more what the conversation knows.
    pub changed: Vec<FileChange>,
    /// The task list as it is now, if there is one: lines for the model.
    pub tasks: Option<Arc<str>>,
    /// The background tasks that are running, if there are any: lines for the model.
    pub background: Option<Arc<str>>,
    /// The present text of files that were asked for, as far as they can be read, cut to what was asked for.
    pub shown: Vec<(PathBuf, Arc<str>)>,
}

/// A file that changed on disk after the session read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file, resolved.
    pub path: PathBuf,
    /// The hash of the content it has now, 0 if it is gone: a change is told once.
    pub hash: u64,
    /// What changed, for the model: which lines, or that it is gone.
    pub note: String,
}

/// Something remembered that may help with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNote {
    /// Where it is kept, resolved.
    pub path: PathBuf,
    /// What it says.
    pub text: Arc<str>,
}
