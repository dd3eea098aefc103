//! What a caller sees of a run, and how a run ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{
    Block, CallFacts, CallId, Delta, Failure, MessageId, RawValueEq, RequestId, ToolProgress, ToolUse, Usage,
};

/// One thing a caller sees. The last update of a run is [`Update::Done`], exactly once.
#[derive(Clone, Debug)]
pub enum Update {
    /// A request goes out. `attempt` is 1 for the first try.
    Requesting {
        /// The request.
        request: RequestId,
        /// Its model.
        model: Arc<str>,
        /// Which try it is.
        attempt: u32,
    },
    /// The model began to answer.
    Responding {
        /// The request.
        request: RequestId,
        /// The provider's id of the response.
        message_id: Arc<str>,
        /// The model that answers.
        model: Arc<str>,
        /// Usage known so far.
        usage: Box<Usage>,
    },
    /// A piece of a block; only when partial messages are asked for.
    Delta {
        /// Position in the response.
        index: u32,
        /// The piece.
        delta: Delta,
    },
    /// A block of the answer is complete.
    Block {
        /// The id of this message.
        id: MessageId,
        /// Position in the response.
        index: u32,
        /// The block.
        block: Block,
        /// Whether an interrupt cut it short.
        aborted: bool,
    },
    /// The answer is complete.
    Responded {
        /// The request.
        request: RequestId,
        /// Why the model stopped, in the provider's word.
        stop_reason: Arc<str>,
        /// Usage of the response.
        usage: Box<Usage>,
    },
    /// Blocks shown before do not stand any more: the request is sent again, or was refused.
    Retracted {
        /// The messages to remove.
        messages: Vec<MessageId>,
        /// The calls that will not be answered, questions about them included.
        calls: Vec<CallId>,
    },
    /// A tool starts.
    ToolStarted {
        /// The call.
        call: CallId,
        /// What was asked for.
        tool_use: ToolUse,
        /// What it is about.
        facts: CallFacts,
    },
    /// A tool says how it is getting on.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The news.
        progress: ToolProgress,
    },
    /// A call is answered. Answers come in the order of the calls.
    ToolResult {
        /// The id of this message.
        id: MessageId,
        /// The call.
        call: CallId,
        /// The tool's name.
        name: Arc<str>,
        /// The `tool_result` block.
        result: Block,
        /// Structured form.
        structured: Option<Arc<RawValueEq>>,
    },
    /// Text from the user's side entered the conversation while the run went on.
    UserText {
        /// The id of this message.
        id: MessageId,
        /// The blocks.
        blocks: Vec<Block>,
        /// Whether the engine wrote it, not a person.
        synthetic: bool,
    },
    /// Somebody must decide about a call.
    Question(Question),
    /// A call was denied.
    Denied(Denial),
    /// The request failed and is sent again after a pause.
    Retrying {
        /// Which try failed.
        attempt: u32,
        /// How many retries there are at most.
        retries_max: u32,
        /// The pause.
        delay_ms: u64,
        /// What failed.
        failure: Box<Failure>,
    },
    /// The last gate repaired the request.
    Repaired(Vec<Repair>),
    /// The end of the run.
    Done(Box<Outcome>),
}

/// A decision somebody has to make about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// What the model asked for.
    pub tool_use: ToolUse,
    /// Its facts.
    pub facts: CallFacts,
    /// Why it is asked.
    pub reason: String,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// Run it.
    Allow,
    /// Run it with this input instead.
    AllowChanged(Arc<RawValue>),
    /// Do not run it; the text tells the model why.
    Deny(String),
}

/// A call that was not allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    /// The call.
    pub call: CallId,
    /// What the model asked for.
    pub tool_use: ToolUse,
    /// Why not, and what would allow it.
    pub reason: String,
    /// Whether a person said no, rather than a rule.
    pub by_person: bool,
}

/// One thing the last gate mended in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A tool use had no result; an error result was added.
    AddedResult {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// A result answered no tool use, or answered one twice, or stood in the wrong place.
    DroppedResult {
        /// The tool use it named.
        tool_use_id: Arc<str>,
    },
    /// A result stood in the wrong place and was moved.
    MovedResult {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// The id of a tool use has characters that the API refuses; it and its result got another.
    RenamedToolUse {
        /// The former id.
        tool_use_id: Arc<str>,
    },
    /// A tool use had the id of an earlier one.
    DroppedToolUse {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// The input of a tool use was not a JSON object and was wrapped in one.
    WrappedInput {
        /// The tool use.
        tool_use_id: Arc<str>,
    },
    /// A text block was empty or only blanks.
    DroppedText,
    /// An assistant message ended in thinking, or a user message held some.
    DroppedThinking,
    /// A message had nothing left to say.
    DroppedMessage,
    /// A user message had to be put at the start or the end.
    AddedUser,
}

/// Why a run ended. Every run ends with exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Terminal {
    /// The model answered and asked for nothing more.
    Completed,
    /// The next turn would exceed the limit.
    MaxTurns,
    /// Interrupted while the model was answering.
    AbortedStreaming,
    /// Interrupted while tools ran.
    AbortedTools,
    /// The model could not be reached or refused the request, after the retries.
    ApiError,
    /// A broken answer, or an error of ours.
    ModelError,
    /// The model declined to answer.
    Refused,
}

impl Terminal {
    /// Every terminal.
    pub const ALL: [Self; 7] = [
        Self::Completed,
        Self::MaxTurns,
        Self::AbortedStreaming,
        Self::AbortedTools,
        Self::ApiError,
        Self::ModelError,
        Self::Refused,
    ];

    /// Our name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::MaxTurns => "max_turns",
            Self::AbortedStreaming => "aborted_streaming",
            Self::AbortedTools => "aborted_tools",
            Self::ApiError => "api_error",
            Self::ModelError => "model_error",
            Self::Refused => "refused",
        }
    }

    /// Whether the run ended well. A model that declines has answered too.
    #[must_use]
    pub fn is_success(self) -> bool {
        match self {
            Self::Completed | Self::Refused => true,
            Self::MaxTurns
            | Self::AbortedStreaming
            | Self::AbortedTools
            | Self::ApiError
            | Self::ModelError => false,
        }
    }
}

/// Why the loop went round again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transition {
    /// Tool results exist.
    NextTurn,
}

/// How a run ended and what it took.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The typed reason.
    pub terminal: Terminal,
    /// The model's final text: the text blocks of its last answer.
    pub text: String,
    /// The model's last stop reason.
    pub stop_reason: Option<Arc<str>>,
    /// Iterations of the loop: requests that were made, retries not counted.
    pub iterations: u32,
    /// Usage of this run.
    pub usage: Usage,
    /// Usage and cost of this run by model.
    pub models: BTreeMap<Arc<str>, ModelSpend>,
    /// Calls that were denied.
    pub denials: Vec<Denial>,
    /// What went wrong, for people; a failure that ended the run is among it.
    pub errors: Vec<String>,
    /// What the caller should know although the run succeeded, such as an answer that was cut off.
    pub warnings: Vec<String>,
    /// The failure that ended the run, if one did.
    pub failure: Option<Failure>,
    /// From submission to end.
    pub duration_ms: u64,
    /// Time spent waiting for models.
    pub duration_api_ms: u64,
}

/// What one model took.
#[derive(Clone, Debug, Default)]
pub struct ModelSpend {
    /// Tokens.
    pub usage: Usage,
    /// USD; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    /// The model's context window.
    pub window_tokens: u64,
    /// The model's largest output cap.
    pub output_tokens_max: u32,
}

impl Outcome {
    /// Total cost; `None` if any part is unknown.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.models.values().try_fold(0.0, |sum, spend| Some(sum + spend.cost_usd?))
    }

    /// What went wrong, as one text; empty if nothing did.
    #[must_use]
    pub fn error_text(&self) -> String {
        self.errors.join("; ")
    }
}
