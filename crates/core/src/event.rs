//! What the core is told, and what it asks for.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_protocol::{
    Admission, Answer, Block, CallId, FileSeen, ForkId, HookAnswer, HookCall, HookId, LookId, MemoryNote,
    ModelEvent, ModelRequest, Outcome, PathFact, RequestId, StoreId, Surroundings, TimerId, ToolOutcome,
    ToolProgress, ToolUse, Update,
};

use crate::config::Config;
use crate::state::{PhaseName, State};

/// One thing that happened, with the time and the chance that come with it.
#[derive(Clone, Debug)]
pub struct Input {
    /// Monotonic time in milliseconds, from any start.
    pub at_ms: u64,
    /// Wall time in seconds since 1970.
    pub wall_s: u64,
    /// 64 random bits, for jitter.
    pub entropy: u64,
    /// What happened.
    pub event: Event,
}

impl Input {
    /// An input without randomness, for examples and tests.
    #[must_use]
    pub fn at(at_ms: u64, event: Event) -> Self {
        Self { at_ms, wall_s: 0, entropy: 0, event }
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
    /// A message typed while the run goes on; it goes in with the next results.
    Steer(Prompt),
    /// Stop: answer everything and end.
    Interrupt(Interrupt),
    /// News from the model, about this request.
    Model {
        /// The request.
        request: RequestId,
        /// The news.
        event: ModelEvent,
    },
    /// What the driver found out about a call's input.
    Examined {
        /// The call.
        call: CallId,
        /// The answer.
        admission: Admission,
    },
    /// A tool says how it is getting on.
    Progress {
        /// The call.
        call: CallId,
        /// The news.
        progress: ToolProgress,
    },
    /// A tool finished.
    Finished {
        /// The call.
        call: CallId,
        /// What it returned.
        outcome: ToolOutcome,
    },
    /// Somebody answered a question.
    Answered {
        /// The call it was about.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// A timer ran out.
    Timer(TimerId),
    /// A fork came to its end. Its cost is in the outcome.
    Forked {
        /// The fork.
        fork: ForkId,
        /// What it came to.
        outcome: Box<Outcome>,
    },
    /// Hooks answered.
    Hooked {
        /// The question.
        hook: HookId,
        /// What all of them said together.
        answer: Box<HookAnswer>,
    },
    /// Results were put into files.
    Stored {
        /// The wish.
        store: StoreId,
        /// The file of each, in the order of the wish; none where it could not be written.
        files: Vec<Option<PathBuf>>,
    },
    /// The driver looked around.
    Looked {
        /// The look.
        look: LookId,
        /// What it found.
        found: Box<Surroundings>,
    },
    /// Memory that may help with the prompt was found. Nobody waits for it.
    Prefetched(Vec<MemoryNote>),
    /// The log cannot be written; what stood behind the record was not done.
    StoreFailed(String),
}

/// How a run is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The user wants it to stop. The transcript says so.
    Stop,
    /// The user typed something else, which waits as a steered message and says enough.
    Replace,
}

/// What a user says, or what the engine has to tell the model: one or more blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
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
}

/// Who speaks in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speaker {
    /// A person, or the program that speaks for one.
    #[default]
    User,
    /// The engine, about a background task that has ended.
    Task,
}

/// When a waiting prompt goes in: those of a higher priority first, in order within one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Before everything else.
    Now,
    /// With the next results.
    #[default]
    Next,
    /// With the next results, after everything else.
    Later,
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self { blocks: vec![Block::text(text)], ..Self::default() }
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// What the driver must do, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Show the caller.
    Emit(Update),
    /// Send a request.
    CallModel {
        /// Its id; events about it carry it.
        request: RequestId,
        /// What to send.
        body: Arc<ModelRequest>,
    },
    /// Stop reading the answer of a request.
    CancelModel(RequestId),
    /// Find out about a call's input; answered by [`Event::Examined`].
    Examine {
        /// The call.
        call: CallId,
        /// The tool and its input.
        tool_use: ToolUse,
        /// The working directory the call would have.
        cwd: Arc<PathBuf>,
    },
    /// Start a call; answered by [`Event::Finished`].
    RunTool {
        /// The call.
        call: CallId,
        /// The tool and its input.
        tool_use: ToolUse,
        /// Its working directory.
        cwd: Arc<PathBuf>,
        /// The paths permission was decided on.
        decided: Vec<PathFact>,
        /// What the conversation knows of the files it names.
        seen: Vec<FileSeen>,
    },
    /// Ask a running call to stop; it still finishes.
    CancelTool(CallId),
    /// Give a call up that did not stop in time; it does not finish any more.
    AbandonTool(CallId),
    /// Start a timer; answered by [`Event::Timer`].
    StartTimer {
        /// Its id.
        timer: TimerId,
        /// When it runs out, from now.
        after_ms: u64,
    },
    /// Run the same machine on a conversation of its own, beside this run; answered by [`Event::Forked`]. Nobody sees
    /// its updates.
    Fork {
        /// The fork.
        fork: ForkId,
        /// Where it begins.
        state: Box<State>,
        /// Its configuration.
        config: Arc<Config>,
        /// Its prompt.
        prompt: Prompt,
    },
    /// Drop a fork; it is not answered any more.
    CancelFork(ForkId),
    /// Ask the hooks of an event; answered by [`Event::Hooked`].
    RunHooks {
        /// The question's id.
        hook: HookId,
        /// The question.
        call: HookCall,
    },
    /// Stop hooks that were asked; they are not answered any more.
    CancelHooks(HookId),
    /// Put results into files; answered by [`Event::Stored`].
    Store {
        /// The wish.
        store: StoreId,
        /// The calls and their results as they are in full.
        results: Vec<(Arc<str>, Block)>,
    },
    /// Look around; answered by [`Event::Looked`].
    LookAround {
        /// The look.
        look: LookId,
        /// What the conversation knows of files, the latest first: say which are different now.
        known: Vec<FileSeen>,
        /// Files whose present text is wanted, each cut to so many characters.
        show: Vec<(PathBuf, usize)>,
    },
    /// Look for memory that may help with this prompt, beside the run; answered by [`Event::Prefetched`] if there is any.
    Prefetch(Arc<str>),
}

/// The effects of one step, in order.
#[derive(Debug, Default)]
#[must_use]
pub struct Effects {
    list: Vec<Effect>,
    edges: Vec<(PhaseName, PhaseName)>,
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    pub(crate) fn edge(&mut self, from: PhaseName, to: PhaseName) {
        self.edges.push((from, to));
    }

    /// The effects.
    pub fn iter(&self) -> std::slice::Iter<'_, Effect> {
        self.list.iter()
    }

    /// The edges between phases this step took, in order: for tests and traces.
    #[must_use]
    pub fn edges(&self) -> &[(PhaseName, PhaseName)] {
        &self.edges
    }
}

impl IntoIterator for Effects {
    type Item = Effect;
    type IntoIter = std::vec::IntoIter<Effect>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Effects {
    type Item = &'a Effect;
    type IntoIter = std::slice::Iter<'a, Effect>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}
