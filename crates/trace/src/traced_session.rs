//! The story of a page: runs, with requests, calls and marks. Times are milliseconds since the run began.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use windlass_protocol::{CallKind, FailureClass, MessageId, Terminal, Usage};

/// As many messages at the beginning are shown.
const MESSAGES_FIRST_MAX: usize = 60;
/// As many messages at the end are shown.
const MESSAGES_LAST_MAX: usize = 140;

/// Everything that is shown of a session.
#[derive(Debug, Default)]
pub(crate) struct TracedSession {
    pub(crate) processes: Vec<SessionProcess>,
    pub(crate) runs: Vec<TracedRun>,
    pub(crate) requests: Vec<TracedRequest>,
    pub(crate) calls: Vec<TracedCall>,
    pub(crate) marks: Vec<TraceMark>,
    pub(crate) messages: Messages,
    /// The context window of each model that answered.
    pub(crate) windows: BTreeMap<Arc<str>, u64>,
    /// What the session has cost as far as prices are known; none if nothing was spent.
    pub(crate) total_usd: Option<f64>,
    /// Models that were paid for and whose price is not known.
    pub(crate) unpriced: Vec<Arc<str>>,
}

/// A process that opened the session.
#[derive(Clone, Debug, Default)]
pub struct SessionProcess {
    /// Wall time in milliseconds since 1970.
    pub wall_ms: u64,
    /// The engine's version.
    pub version: String,
    /// What started it.
    pub entrypoint: String,
    /// Where it works.
    pub cwd: String,
}

/// The processing of one submission.
#[derive(Debug, Default)]
pub(crate) struct TracedRun {
    pub(crate) process: usize,
    /// When it began, in milliseconds since 1970.
    pub(crate) wall_ms: u64,
    pub(crate) prompt: String,
    pub(crate) length_ms: u64,
    /// What models took in it, as far as prices are known.
    pub(crate) cost_usd: f64,
    pub(crate) end: RunEnd,
}

/// How a run came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// It goes on, or nobody wrote down how it ended.
    #[default]
    Open,
    /// The process went away in the middle.
    Left,
    /// With a reason.
    Terminal(Terminal),
}

/// A request on its way to a model, one for each try.
#[derive(Debug, Default)]
pub(crate) struct TracedRequest {
    pub(crate) run: usize,
    /// The turn, counted over the session; a retry or a cure belongs to the turn before it.
    pub(crate) turn: u32,
    pub(crate) model: Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) parts: Vec<(Arc<str>, u64)>,
    pub(crate) sent: u64,
    pub(crate) first: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) outcome: RequestOutcome,
    pub(crate) usage: Usage,
    /// What it cost, and what forks cost between it and the next.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) forks_usd: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum RequestOutcome {
    #[default]
    Open,
    /// The model stopped, in the provider's word.
    Stopped(String),
    Failed(FailureClass, String),
    Interrupted,
    /// The process went away.
    Left,
}

#[derive(Debug, Default)]
pub(crate) struct TracedCall {
    pub(crate) run: usize,
    pub(crate) name: Arc<str>,
    pub(crate) target: String,
    pub(crate) kind: Option<CallKind>,
    /// When the model had asked for it.
    pub(crate) asked: u64,
    /// When somebody was asked about it, and when the answer came.
    pub(crate) question: Option<(u64, u64)>,
    pub(crate) started: Option<u64>,
    pub(crate) ended: Option<u64>,
    pub(crate) outcome: CallOutcome,
    /// What it said, if it did not work.
    pub(crate) complaint: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    #[default]
    Open,
    Worked,
    Failed,
    /// Somebody said no.
    Denied,
    /// It was answered without having run: a rule, bad input, an interrupt.
    NotRun,
    /// It had started and was stopped before its end.
    Stopped,
    /// The process went away while it ran: nobody knows how far it came.
    Unknown,
    /// Its response does not stand.
    Retracted,
}

/// Something else that happened, at a moment or over a while.
#[derive(Debug)]
pub(crate) struct TraceMark {
    pub(crate) run: usize,
    pub(crate) kind: MarkKind,
    /// When it began, if it took a while.
    pub(crate) from: Option<u64>,
    pub(crate) at: u64,
    pub(crate) name: String,
    pub(crate) about: String,
    /// How many requests had gone out before it.
    pub(crate) requests_before: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MarkKind {
    Prompt,
    Steer,
    Interrupt,
    /// A pause before a request is sent again.
    Backoff,
    Fork,
    Compaction,
    /// Any other decision of a layer.
    Decision,
    Hook,
    /// What was found around the run: changed files, memory, what the provider cleared.
    Note,
    Repair,
    /// The log could not be written.
    StoreFailed,
}

/// A message in short.
#[derive(Debug)]
pub(crate) struct MessageExcerpt {
    pub(crate) id: MessageId,
    pub(crate) run: Option<usize>,
    pub(crate) at: u64,
    pub(crate) who: &'static str,
    pub(crate) text: String,
    pub(crate) has_failed: bool,
    pub(crate) is_retracted: bool,
}

/// The first and the last messages of a session; those between are only counted.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) first: Vec<MessageExcerpt>,
    pub(crate) last: VecDeque<MessageExcerpt>,
    pub(crate) dropped: usize,
}

impl Messages {
    pub(crate) fn push(&mut self, message: MessageExcerpt) {
        if self.first.len() < MESSAGES_FIRST_MAX {
            self.first.push(message);
            return;
        }
        if self.last.len() == MESSAGES_LAST_MAX {
            self.last.pop_front();
            self.dropped += 1;
        }
        self.last.push_back(message);
    }

    pub(crate) fn retract(&mut self, ids: &[MessageId]) {
        let shown = self.first.iter_mut().chain(&mut self.last);
        for message in shown.filter(|message| ids.contains(&message.id)) {
            message.is_retracted = true;
        }
    }
}

impl TracedRequest {
    /// How long it took, the wait for the first byte included; none while it is out.
    pub(crate) fn took(&self) -> Option<u64> {
        self.end.map(|end| end.saturating_sub(self.sent))
    }

    /// How long the first byte took to come.
    pub(crate) fn wait_ms(&self) -> Option<u64> {
        self.first.map(|first| first.saturating_sub(self.sent))
    }

    /// How many tokens its parts have.
    pub(crate) fn context(&self) -> u64 {
        self.parts.iter().map(|(_, tokens)| tokens).sum()
    }

    pub(crate) fn has_failed(&self) -> bool {
        !matches!(self.outcome, RequestOutcome::Stopped(_) | RequestOutcome::Open)
    }
}

impl TracedCall {
    /// How long it ran; none if it never did.
    pub(crate) fn took(&self) -> Option<u64> {
        Some(self.ended?.saturating_sub(self.started?))
    }

    /// How long it had to wait before it ran, for other calls, hooks or a person.
    pub(crate) fn wait_ms(&self) -> Option<u64> {
        self.started.map(|started| started.saturating_sub(self.asked))
    }

    /// When it was over, whether or not it ran.
    pub(crate) fn end_ms(&self) -> u64 {
        self.ended.or(self.started).unwrap_or(self.asked)
    }

    pub(crate) fn has_failed(&self) -> bool {
        !matches!(self.outcome, CallOutcome::Worked | CallOutcome::Open)
    }
}

impl TraceMark {
    /// When it began; a mark of a moment, when it happened.
    pub(crate) fn began(&self) -> u64 {
        self.from.unwrap_or(self.at)
    }

    /// How long it took, if it took a while.
    pub(crate) fn took(&self) -> Option<u64> {
        self.from.map(|from| self.at.saturating_sub(from))
    }
}

impl CallOutcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Worked => "succeeded",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::NotRun => "not run",
            Self::Stopped => "stopped",
            Self::Unknown => "outcome unknown",
            Self::Retracted => "retracted",
        }
    }
}

impl RunEnd {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "no end recorded",
            Self::Left => "cut off",
            Self::Terminal(terminal) => terminal.name(),
        }
    }

    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::Terminal(terminal) if terminal.is_success())
    }
}

impl MarkKind {
    /// The letter on the timeline, and what the legend calls it.
    pub(crate) fn label(self) -> (char, &'static str) {
        match self {
            Self::Prompt => ('P', "prompt"),
            Self::Steer => ('S', "message during the run"),
            Self::Interrupt => ('I', "interrupt"),
            Self::Backoff => ('W', "pause"),
            Self::Fork => ('F', "fork"),
            Self::Compaction => ('C', "compaction"),
            Self::Decision => ('D', "decision"),
            Self::Hook => ('H', "hooks"),
            Self::Note => ('N', "note"),
            Self::Repair => ('R', "repair"),
            Self::StoreFailed => ('L', "log not written"),
        }
    }
}
