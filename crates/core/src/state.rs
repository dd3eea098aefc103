//! The state of a run: what is carried from one iteration to the next, and where the machine is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use windlass_permission::Grants;
use windlass_protocol::{
    Block, CallId, CompactionMemory, Failure, ForkId, HookId, Interrupt, LookId, MessageId, ModelRequest,
    ModelSpend, Prompt, RequestId, StoreId, Terminal, TimeSpent, TimerId, Transcript, Transition,
    UnfinishedPrompt,
};

use crate::context::prefix::SentPrefix;
use crate::context::{StagedCollapses, TokenCount};
use crate::memory::files::KnownFiles;
use crate::memory::ledger::Ledger;
use crate::turn::attach::AttachmentNotes;
use crate::turn::budget::TokenBudget;
use crate::turn::calls::CallQueue;
use crate::turn::calls::ClassifierBlocks;
use crate::turn::gate::Watermark;
use crate::turn::guards::Guards;
use crate::turn::hooks::{RoundHooks, StopCheck};
use crate::turn::prepare::Preparation;
use crate::turn::queue::Queue;
use crate::turn::repeats::Repeats;
use crate::turn::retry::Attempts;
use crate::turn::settle::AfterCalls;
use crate::turn::stream::OpenResponse;
use crate::turn::summary::PendingSummary;

/// The whole state of a session between two events.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) carry: Carry,
    pub(crate) phase: Phase,
    pub(crate) ids: Ids,
    pub(crate) ledger: Ledger,
    /// Forks that are at work since the last run ended, to suggest the next prompt. They are in no log.
    pub(crate) background: Vec<ForkId>,
    /// What each fork that is at work has taken so far.
    pub(crate) fork_spends: BTreeMap<ForkId, BTreeMap<Arc<str>, ModelSpend>>,
}

/// What survives from one iteration to the next. It is built as a complete literal wherever the loop goes round, so that
/// a new field forces a decision there.
///
/// The specification's ten fields are the first seven: four of them (the count of output recoveries, the reactive guard,
/// the output override, the stop-hook flag) are among the guards. The others are what further rules have to remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carry {
    /// The conversation since the last boundary, as the model sees it.
    pub(crate) messages: Transcript,
    /// What tools have changed for later tools.
    pub(crate) tools: ToolState,
    /// Compactions so far, and how they went.
    pub(crate) compactions: CompactionMemory,
    /// What was already tried.
    pub(crate) guards: Guards,
    /// The summary of the last calls that a small model is writing.
    pub(crate) summary: Option<PendingSummary>,
    /// Which iteration this is; the first is 1.
    pub(crate) turn_count: u32,
    /// Why the previous iteration went on; none in the first.
    pub(crate) transition: Option<Transition>,

    /// Prompts that the model has not seen yet.
    pub(crate) waiting: Queue,
    /// Prompts that the model has seen and whose run has not ended well, since the last that did.
    pub(crate) unfinished: Vec<UnfinishedPrompt>,
    /// The failure that a cure is being tried for. It is shown only if every cure fails.
    pub(crate) withheld: Option<Box<Failure>>,
    /// Spans whose summaries are ready, and the one that is being summarised.
    pub(crate) staged: StagedCollapses,
    /// The output tokens this submission is to spend.
    pub(crate) budget: TokenBudget,
    /// Calls that came with the same result before.
    pub(crate) repeats: Repeats,
    /// What attachments have told the model, and what they are to tell it.
    pub(crate) notes: AttachmentNotes,
    /// How many tokens the transcript is.
    pub(crate) tokens: TokenCount,
    /// The previous request: the provider's cache ends with it.
    pub(crate) sent: Option<SentPrefix>,
    /// The responses just before this one that broke off after something of them had acted.
    pub(crate) broken: Attempts,
    /// How far the last gate has checked `messages`.
    pub(crate) checked: Watermark,
    /// Calls whose outcome is unknown and that nobody has decided about, by the hash of tool and input.
    pub(crate) doubtful: Vec<u64>,
    /// What the session has changed of who may do what.
    pub(crate) grants: Grants,
    /// Calls that the judge did not let run.
    pub(crate) blocked: ClassifierBlocks,
}

impl Carry {
    /// Nobody knows what came of a call with this hash of tool and input.
    pub(crate) fn doubt(&mut self, input_hash: u64) {
        if !self.doubtful.contains(&input_hash) {
            self.doubtful.push(input_hash);
        }
    }
}

/// What tools have changed for later tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolState {
    pub(crate) cwd: Arc<PathBuf>,
    /// What the conversation knows of files.
    pub(crate) files: KnownFiles,
    /// Files outside the working directories that tools made for reading.
    pub(crate) readable: BTreeSet<PathBuf>,
}

/// Where the machine is: its program counter as data.
///
/// ```text
///  Idle ──► Preparing ──► Streaming ──► Settling ──► Stopping
///            ▲   │  │          ▲         │  │  │      │    │
///            │   │  └─────► Waiting ◄────┘  │  │      │    │
///            ├───┼─────────────┼────────────┘  │      │    │
///            └───┼─────────────┼───────────────┼──────┘    │
///                └─────────────┴──► Done ◄─────┴───────────┘
///
///  Idle      -> Preparing   a prompt is submitted, or a compaction asked for
///  Preparing -> Streaming   the request goes out
///  Preparing -> Waiting     the last response broke off after it had acted; the next request waits for its pause
///  Preparing -> Done        a limit stops the request, it was interrupted, or only a compaction was asked for
///  Streaming -> Settling    every way out: ended, refused, failed, interrupted
///  Settling  -> Preparing   the loop goes round
///  Settling  -> Waiting     the request failed and is sent again after a pause
///  Settling  -> Stopping    the model says it is done, and hooks are asked
///  Settling  -> Done        every other end
///  Stopping  -> Preparing   a hook objects, or the budget of output tokens asks to go on
///  Stopping  -> Done        the end, or interrupted
///  Waiting   -> Streaming   the pause is over
///  Waiting   -> Done        interrupted during the pause
/// ```
#[derive(Clone, Debug, Default)]
pub(crate) enum Phase {
    /// Nothing was submitted yet.
    #[default]
    Idle,
    /// The next request is being made; a layer waits for an answer.
    Preparing(Box<Preparation>),
    /// A request is out.
    Streaming(Box<OpenResponse>),
    /// The response has ended, one way or another; calls are still open.
    Settling(Box<Settlement>),
    /// Hooks are asked whether the run may end.
    Stopping(Box<StopCheck>),
    /// A failed request waits to be sent again.
    Waiting(RetryWait),
    /// The run is over.
    Done(Terminal),
}

impl Phase {
    /// The calls that are on their way.
    pub(crate) fn calls(&self) -> Option<&CallQueue> {
        match self {
            Self::Streaming(streaming) => Some(&streaming.calls),
            Self::Settling(settling) => Some(&settling.calls),
            _ => None,
        }
    }
}

/// The only way out of streaming: first every call is answered.
#[derive(Clone, Debug)]
pub(crate) struct Settlement {
    pub(crate) calls: CallQueue,
    pub(crate) then: AfterCalls,
    pub(crate) left: EarlyExit,
    /// When cancelled calls are given up.
    pub(crate) deadline: Option<TimerId>,
    /// What hooks are asked once every call is answered.
    pub(crate) hooked: RoundHooks,
    /// The look around that is waited for after that.
    pub(crate) looking: Option<LookId>,
}

/// How the response was left, if it did not end by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlyExit {
    /// How the run was interrupted, if it was.
    pub(crate) interrupt: Option<Interrupt>,
    /// The request whose answer is not read any more.
    pub(crate) request: Option<RequestId>,
}

/// A request that failed and is sent again, byte for byte, when the timer runs out.
#[derive(Clone, Debug)]
pub(crate) struct RetryWait {
    pub(crate) timer: TimerId,
    pub(crate) body: Arc<ModelRequest>,
    pub(crate) attempts: Attempts,
}

/// A prompt whose run did not end well.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryablePrompt {
    /// The ids its senders gave it; several prompts may have been said as one.
    pub ids: Vec<Arc<str>>,
    /// What it said; empty once a compaction has taken it out of the conversation.
    pub blocks: Vec<Block>,
}

/// The names of the phases, for tests and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseName {
    /// Nothing was submitted yet.
    Idle,
    /// The next request is being made.
    Preparing,
    /// A request is out.
    Streaming,
    /// Calls are being answered.
    Settling,
    /// Hooks are asked whether the run may end.
    Stopping,
    /// A failed request waits to be sent again.
    Waiting,
    /// The run is over.
    Done,
}

/// Counters; ids inside the machine are nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ids {
    request: u32,
    call: u32,
    timer: u32,
    fork: u32,
    hook: u32,
    store: u32,
    look: u32,
    message: u64,
}

macro_rules! next_ids {
    ($($counter:ident: $id:ident),+) => {
        impl Ids {$(
            pub(crate) fn $counter(&mut self) -> $id {
                self.$counter += 1;
                $id(self.$counter)
            }
        )+}
    };
}

next_ids!(request: RequestId, call: CallId, timer: TimerId, fork: ForkId, hook: HookId, store: StoreId, look: LookId);

impl Ids {
    /// A log may hold any id, the highest too.
    pub(crate) fn message(&mut self) -> MessageId {
        self.message = self.message.saturating_add(1);
        MessageId(self.message)
    }

    /// Counters of a session whose last message has this id. Each call had a message of its own, so a late answer to a question
    /// about a former call never meets a new one.
    pub(crate) fn from_last(message: MessageId) -> Self {
        Self { message: message.0, call: u32::try_from(message.0).unwrap_or(0), ..Self::default() }
    }

    /// The highest message id so far.
    pub(crate) fn last_message(&self) -> MessageId {
        MessageId(self.message)
    }

    /// The id that the next message gets.
    pub(crate) fn next_message(&self) -> MessageId {
        MessageId(self.message.saturating_add(1))
    }

    /// This id was given before.
    pub(crate) fn saw_message(&mut self, message: MessageId) {
        self.message = self.message.max(message.0);
    }
}

impl State {
    /// A session that begins in `cwd` with this conversation (empty for a new one).
    pub fn new(cwd: PathBuf, messages: Transcript) -> Self {
        let message = messages.iter().map(|message| message.id.0).max().unwrap_or(0);
        let tools = ToolState { cwd: Arc::new(cwd), ..ToolState::default() };
        let carry = Carry { messages, tools, ..Carry::default() };
        Self { carry, ids: Ids { message, ..Ids::default() }, ..Self::default() }
    }

    /// The same with what another state has changed of the permissions: it counts until the session is left, and is in no log.
    #[must_use]
    pub fn keeping_grants(mut self, other: Self) -> Self {
        self.carry.grants = other.carry.grants;
        self.carry.blocked = other.carry.blocked;
        self
    }

    /// The end of the run, once it is over.
    pub fn terminal(&self) -> Option<Terminal> {
        match self.phase {
            Phase::Done(terminal) => Some(terminal),
            _ => None,
        }
    }

    /// Why the last iteration went on.
    pub fn transition(&self) -> Option<Transition> {
        self.carry.transition
    }

    /// Where the machine is.
    pub fn phase(&self) -> PhaseName {
        match self.phase {
            Phase::Idle => PhaseName::Idle,
            Phase::Preparing(_) => PhaseName::Preparing,
            Phase::Streaming(_) => PhaseName::Streaming,
            Phase::Settling(_) => PhaseName::Settling,
            Phase::Stopping(_) => PhaseName::Stopping,
            Phase::Waiting(_) => PhaseName::Waiting,
            Phase::Done(_) => PhaseName::Done,
        }
    }

    /// Which iteration of the run this is; the first is 1.
    pub fn turn(&self) -> u32 {
        self.carry.turn_count
    }

    /// The conversation so far. Between runs it can be sent to a model as it is.
    pub fn messages(&self) -> &Transcript {
        &self.carry.messages
    }

    /// The working directory of the next call.
    pub fn cwd(&self) -> &PathBuf {
        &self.carry.tools.cwd
    }

    /// The session in another process, with the ids of a state made from its facts: whoever knows only those goes on alike.
    #[must_use]
    pub fn reopen(mut self) -> Self {
        self.ids = Ids::from_last(self.ids.last_message());
        self
    }

    /// What the session had cost when this process opened it.
    pub fn before_usd(&self) -> f64 {
        self.ledger.before_usd
    }

    /// A cap in USD counts what is spent beyond this. For a session that goes back to an earlier point in the same process.
    pub fn set_before_usd(&mut self, before_usd: f64) {
        self.ledger.before_usd = before_usd;
    }

    /// The next call works here. For a session at rest that goes on elsewhere.
    pub fn set_cwd(&mut self, cwd: PathBuf) {
        self.carry.tools.cwd = Arc::new(cwd);
    }

    /// What each model took in this session, forks included, over all runs.
    pub fn spent_in_session(&self) -> &BTreeMap<Arc<str>, ModelSpend> {
        &self.ledger.session
    }

    /// How long the runs of this session took that are over.
    pub fn time_in_session(&self) -> TimeSpent {
        self.ledger.session_time
    }

    /// The prompts of runs that did not end well, since the last that did: they may be said again.
    pub fn unfinished_prompts(&self) -> impl Iterator<Item = RetryablePrompt> + '_ {
        self.carry.unfinished.iter().map(|prompt| {
            let said = self.carry.messages.iter().find(|message| message.id == prompt.message);
            let blocks = said.map(|message| message.blocks.get(prompt.context..).unwrap_or_default());
            RetryablePrompt { ids: prompt.prompts.clone(), blocks: blocks.unwrap_or_default().to_vec() }
        })
    }

    /// What waits, the next first.
    pub fn waiting_prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.carry.waiting.prompts()
    }

    /// Messages that were typed during a run and that no request has carried yet.
    pub fn waiting(&self) -> usize {
        self.carry.waiting.len()
    }
}
