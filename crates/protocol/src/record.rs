//! Facts for the log. What was said, what was decided, which calls were started and what came of them: everything
//! that a session needs to go on elsewhere. Facts are stored, never the state of the machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{
    Block, CallId, CallKind, Collapse, Decision, FileSeen, Input, MemoryNote, Message, MessageId, ModelSpend,
    Origin, Prompt, RawValueEq, Repair, RequestId, Ruling, Terminal, Usage,
};

/// One fact.
#[derive(Clone, Debug)]
pub enum Record {
    /// The core was told something. Facts that follow from it come behind it.
    Heard(Box<Input>),
    /// Something from the user's side entered the conversation: a prompt, an attachment, a note of the engine.
    Said(UserEntry),
    /// A block of an answer is complete.
    Answered(AnswerBlock),
    /// A call is answered in the conversation.
    Result(CallResult),
    /// What was said under these ids does not stand any more.
    Retracted(Vec<MessageId>),
    /// A prompt waits to become part of the conversation.
    Queued(Prompt),
    /// No prompt waits any more.
    Dequeued,
    /// A request goes out.
    Requested(RequestEntry),
    /// It was decided what becomes of a call.
    Ruled(CallRuling),
    /// A call is about to start.
    Intended(CallIntent),
    /// A call came to an end by itself; what it returned was heard just before.
    Finished(FinishedCall),
    /// A context layer changed the transcript, or prepared to.
    Decided(Decision),
    /// A model took this.
    Spent(SpendEntry),
    /// The conversation was mended: by the last gate, or when it was opened.
    Repaired(Vec<Repair>),
    /// The run is over.
    Ended(RunEnding),
    /// Everything that counts at this point, restated: opening the session need not read what stands before.
    Snapshot(Box<SessionSnapshot>),
}

/// How sure a fact must be before anything is built on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// With the operating system: it survives the end of the process, and soon a loss of power.
    Written,
    /// On the disk: it survives a loss of power.
    Synced,
}

/// How eagerly the log is made safe against a loss of power. The end of the process alone never loses anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Each append waits for the disk.
    Always,
    /// Waits for calls with side effects, their outcomes and the end of a turn; the rest follows within 100 ms.
    #[default]
    Turn,
    /// The system writes when it likes.
    Never,
}

/// Something from the user's side.
#[derive(Clone, Debug, PartialEq)]
pub struct UserEntry {
    /// The message, as it is in the transcript.
    pub message: Arc<Message>,
    /// How many of its blocks at the front the engine put there.
    pub context: usize,
    /// The ids their senders gave to the prompts in it.
    pub prompts: Vec<Arc<str>>,
    /// How many of the prompts that waited longest it holds; they wait no more.
    pub taken: usize,
}

/// A block of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerBlock {
    /// The id under which it was shown.
    pub id: MessageId,
    /// The request it answers.
    pub request: RequestId,
    /// The provider's id of the response.
    pub message_id: Arc<str>,
    /// The model that was asked; the transcript keeps it.
    pub model: Arc<str>,
    /// The model that says it answers.
    pub answered_by: Arc<str>,
    /// Position in the response.
    pub index: u32,
    /// The block.
    pub block: Block,
    /// Usage as far as it was known.
    pub usage: Option<Box<Usage>>,
    /// Whether an interrupt cut it short.
    pub is_aborted: bool,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// The id under which it was shown.
    pub id: MessageId,
    /// The call.
    pub call: CallId,
    /// The block of the answer that made the call.
    pub asked_by: MessageId,
    /// The tool's name.
    pub name: Arc<str>,
    /// The `tool_result` block.
    pub result: Block,
    /// Structured form.
    pub structured: Option<Arc<RawValueEq>>,
}

/// A request that goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestEntry {
    /// The request.
    pub request: RequestId,
    /// Its model.
    pub model: Arc<str>,
    /// Which try it is.
    pub attempt: u32,
    /// What it is made of, in tokens, in the order of the request.
    pub parts: Vec<(Arc<str>, u64)>,
}

/// What was decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRuling {
    /// The call.
    pub call: CallId,
    /// The provider's id of the call.
    pub tool_use_id: Arc<str>,
    /// The tool's own name.
    pub tool: Arc<str>,
    /// What was decided, by which rule, and why.
    pub ruling: Ruling,
}

/// A call that is about to start.
#[derive(Clone, Debug, PartialEq)]
pub struct CallIntent {
    /// The call.
    pub call: CallId,
    /// The provider's id of the call.
    pub tool_use_id: Arc<str>,
    /// The tool's own name.
    pub tool: Arc<str>,
    /// What kind of thing it does.
    pub kind: CallKind,
    /// A hash of tool and input.
    pub input_hash: u64,
    /// Files it may change, as far as that is known: their content is kept before it starts.
    pub changes: Vec<PathBuf>,
}

/// A call that came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCall {
    /// The call.
    pub call: CallId,
    /// The provider's id of the call.
    pub tool_use_id: Arc<str>,
    /// Whether it failed.
    pub is_error: bool,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnding {
    /// The typed reason.
    pub terminal: Terminal,
    /// What the session remembers besides the conversation.
    pub rest: Box<SessionMemory>,
}

/// What a model took.
#[derive(Clone, Debug, PartialEq)]
pub struct SpendEntry {
    /// The model.
    pub model: Arc<str>,
    /// Tokens and money.
    pub spend: ModelSpend,
    /// Whether a fork took it.
    pub is_by_fork: bool,
    /// What the session has cost with it, as far as prices are known.
    pub total_usd: f64,
}

/// What a session remembers besides the conversation, small and always whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionMemory {
    /// Compactions so far, and how they went.
    pub compactions: CompactionMemory,
    /// What the provider counted: tokens, and for how many messages.
    pub counted: (u64, usize),
    /// Failures of the summariser of spans.
    pub collapse_failures: u32,
    /// Files the conversation knows, the latest last.
    pub recent: Vec<PathBuf>,
    /// Changes of files the model was told of, by the hash of the content.
    pub told_changes: Vec<(PathBuf, u64)>,
    /// Memory that was found and not told yet.
    pub found_memory: Vec<MemoryNote>,
    /// Memory the model was told of.
    pub told_memory: Vec<PathBuf>,
    /// The task list as it was seen last, and turns since it changed or was told.
    pub tasks: Option<(Arc<str>, u32)>,
    /// The last request.
    pub sent: Option<SentRequest>,
    /// Prompts whose run did not end well, since the last that did.
    pub unfinished: Vec<UnfinishedPrompt>,
    /// Whether a provider ever answered.
    pub has_been_reached: bool,
    /// How long the runs took; none before the first has ended.
    pub time: Option<TimeSpent>,
}

/// How long the runs of a session took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSpent {
    /// From submission to end.
    pub duration_ms: u64,
    /// The part of it spent waiting for models.
    pub duration_api_ms: u64,
}

/// What the layers remember of compactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionMemory {
    /// Whether the transcript was compacted since the user last said something.
    pub is_compacted: bool,
    /// Turns since the last compaction.
    pub turns_since: u32,
    /// Summariser failures in a row.
    pub failures: u32,
    /// Compactions in a row that made no progress.
    pub no_progress: u32,
    /// Whether the last one left more than half of what triggers the next.
    pub is_above_half: bool,
    /// How many tokens the run had spent when the transcript was last rewritten.
    pub rewritten_at_tokens: Option<u64>,
    /// The last message whose results were decided on.
    pub decided_to: Option<MessageId>,
}

/// A prompt that the model has seen and whose run has not ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedPrompt {
    /// The message that holds it.
    pub message: MessageId,
    /// The ids their senders gave to the prompts in it.
    pub prompts: Vec<Arc<str>>,
    /// How many blocks of the message at the front the engine put there.
    pub context: usize,
}

/// The last request of a session: the provider's cache ends with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// How many messages it had.
    pub messages: usize,
    /// Its model.
    pub model: Arc<str>,
    /// Whether thinking was on.
    pub has_thinking: bool,
}

/// Everything that counts between two rounds of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSnapshot {
    /// The conversation as the model sees it.
    pub messages: Vec<Arc<Message>>,
    /// The highest message id so far.
    pub last_message: MessageId,
    /// The working directory of the next call.
    pub cwd: PathBuf,
    /// What the conversation knows of files, the latest last.
    pub files: Vec<FileSeen>,
    /// Files outside the working directories that tools made for reading.
    pub readable: Vec<PathBuf>,
    /// Prompts that wait.
    pub waiting: Vec<Prompt>,
    /// Spans whose summaries are ready.
    pub staged: Vec<Collapse>,
    /// What each model took in this session.
    pub spent: BTreeMap<Arc<str>, ModelSpend>,
    /// What the session has cost, as far as prices are known.
    pub total_usd: f64,
    /// Calls whose outcome is unknown and that are not decided about yet, by the hash of tool and input.
    pub doubtful: Vec<u64>,
    /// The rest.
    pub rest: SessionMemory,
}

/// What became of a call that was open when the session was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ended; its result is known.
    Finished,
    /// It never started.
    NeverStarted,
    /// It had started; how far it came is unknown.
    Unknown,
    /// It had started, but only reads: making it again does no harm.
    ReadOnly,
}

impl Record {
    /// The word for its kind, as logs have it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Heard(_) => "heard",
            Self::Said(_) => "said",
            Self::Answered(_) => "answered",
            Self::Result(_) => "result",
            Self::Retracted(_) => "retracted",
            Self::Queued(_) => "queued",
            Self::Dequeued => "dequeued",
            Self::Requested(_) => "requested",
            Self::Ruled(_) => "ruled",
            Self::Intended(_) => "intended",
            Self::Finished(_) => "finished",
            Self::Decided(_) => "decided",
            Self::Spent(_) => "spent",
            Self::Repaired(_) => "repaired",
            Self::Ended(_) => "ended",
            Self::Snapshot(_) => "facts",
        }
    }
}

impl UserEntry {
    /// A message of the engine's own, or of the user's without anything in front.
    pub fn plain(message: Arc<Message>) -> Self {
        Self { message, context: 0, prompts: Vec::new(), taken: 0 }
    }

    /// The same as a prompt whose run has not ended well.
    pub fn unfinished_prompt(&self) -> UnfinishedPrompt {
        UnfinishedPrompt { message: self.message.id, prompts: self.prompts.clone(), context: self.context }
    }

    /// Whether a person, or the program that speaks for one, said it.
    pub fn is_prompt(&self) -> bool {
        self.message.origin == Origin::Prompt
    }
}
