//! What the engine says to a model client and what it hears back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::names::named_enum;
use crate::{Block, ToolProfile, Transcript, Usage};

/// One request to a model. Cheap to clone: everything large is shared.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The model's id as the provider knows it.
    pub model: Arc<str>,
    /// The system prompt; empty means none.
    pub system: Arc<str>,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// The conversation.
    pub transcript: Transcript,
    /// Indexes of the messages of [`ModelRequest::transcript`] whose last block ends a cacheable prefix,
    /// ascending. The end of system prompt and tools is always one and is not listed.
    pub breakpoints: Vec<usize>,
    /// The cap on output tokens.
    pub output_tokens_max: u32,
    /// How the model thinks.
    pub thinking: RequestThinking,
    /// How hard the model tries; the model's own default if nothing is said.
    pub effort: Option<Effort>,
    /// What the model is told about the tokens left for the whole run.
    pub task_budget: Option<TaskBudget>,
    /// What the provider may clear from its own copy of the transcript.
    pub edits: Option<ContextEdits>,
    /// Whether the answer comes in pieces.
    pub delivery: Delivery,
}

/// How a model thinks, as the request says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestThinking {
    /// The request says nothing; the model does what it does by default.
    #[default]
    Unsaid,
    /// Not at all.
    Disabled,
    /// As much as the model sees fit.
    Adaptive {
        /// What is shown of it; the model's default if nothing is said.
        display: Option<ThinkingDisplay>,
    },
    /// Up to a fixed number of tokens.
    Budgeted {
        /// The number: at least 1 024 and below the output cap.
        tokens: u32,
        /// What is shown of it.
        display: Option<ThinkingDisplay>,
    },
}

named_enum! {
    /// What is shown of a model's thinking.
    pub enum ThinkingDisplay {
        /// A summary.
        Summarized => "summarized",
        /// Nothing but the signature.
        Omitted => "omitted",
    }
}

named_enum! {
    /// How hard a model tries.
    pub enum Effort {
        /// Quick.
        Low => "low",
        /// In between.
        Medium => "medium",
        /// Thorough.
        High => "high",
        /// More than thorough.
        XHigh => "xhigh",
        /// Without regard to cost.
        Max => "max",
    }
}

/// What the model is told about the tokens left for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskBudget {
    /// All tokens of the run.
    pub total: u64,
    /// What is left of them; said only once the transcript was rewritten, since the model counts by itself.
    pub remaining: Option<u64>,
}

/// What the provider may clear from its own copy of the transcript, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextEdits {
    /// Clearing begins when the input has this many tokens.
    pub trigger_tokens: u64,
    /// As many of the newest results stay.
    pub keep_results: u32,
    /// Clearing happens only if it frees this many tokens.
    pub clear_at_least_tokens: u64,
}

/// Whether an answer comes in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// As a stream.
    #[default]
    Streamed,
    /// At once, for providers or proxies whose streams break. The client still reports it as events.
    Whole,
}

/// A tool as the model sees it.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: Arc<str>,
    /// What it does, for the model.
    pub description: Arc<str>,
    /// JSON Schema of the input, an object.
    pub input_schema: Arc<RawValue>,
    /// A longer result goes to a file, in characters; `None` if the tool limits its results itself. Not for the model.
    pub result_chars_max: Option<usize>,
    /// What it declares about itself. Not for the model.
    pub profile: ToolProfile,
}

/// What a model client reports, in order. The last item is [`ModelEvent::Ended`] or [`ModelEvent::Failed`]:
/// a failure is an item of the stream, never an error beside it.
#[derive(Clone, Debug)]
pub enum ModelEvent {
    /// The response begins.
    Started {
        /// The provider's id of the response.
        message_id: Arc<str>,
        /// The model that answers.
        model: Arc<str>,
        /// Usage known so far: the input side.
        usage: Box<Usage>,
    },
    /// A piece of a block.
    Delta {
        /// Position in the response.
        index: u32,
        /// The piece.
        delta: Delta,
    },
    /// A block is complete. A tool use whose input is not a JSON object is [`ToolInput::Unparsed`](crate::ToolInput::Unparsed).
    Block {
        /// Position in the response.
        index: u32,
        /// The block.
        block: Block,
    },
    /// Something the provider says about the request rather than the answer.
    Note(ModelNote),
    /// The response is complete.
    Ended {
        /// Why the model stopped.
        stop: StopReason,
        /// The usage of the whole response.
        usage: Box<Usage>,
    },
    /// The response failed or broke off. Nothing follows.
    Failed(Box<Failure>),
}

/// What a provider says about a request it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelNote {
    /// It cleared old content from its copy of the transcript.
    Cleared {
        /// Results that were cleared.
        tool_results: u32,
        /// Answers whose thinking was cleared.
        thinking_turns: u32,
        /// Input tokens that were freed.
        tokens: u64,
    },
    /// It left out thinking that does not fit the rest of the request.
    ThinkingDropped {
        /// How many blocks.
        blocks: u32,
        /// Why, in the provider's words.
        reason: Arc<str>,
    },
    /// Why it declined, where it says more than that.
    Refusal {
        /// The provider's category.
        category: Option<Arc<str>>,
        /// For people.
        explanation: Option<Arc<str>>,
    },
}

/// A piece of a block.
#[derive(Clone, Debug)]
pub enum Delta {
    /// The block begins; its skeleton as the provider sent it, a JSON object.
    Start(Arc<RawValue>),
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The signature of a thinking block.
    Signature(String),
    /// More JSON text of a tool's input.
    InputJson(String),
    /// A kind of delta without a meaning for the engine, as JSON.
    Other(Arc<str>),
    /// The block ends and nothing of it is kept, since it said nothing. Made by the core, never by a client.
    Stop,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It is done.
    EndTurn,
    /// It asks for tools.
    ToolUse,
    /// The output cap.
    MaxTokens,
    /// A stop sequence.
    StopSequence,
    /// A classifier declined.
    Refusal,
    /// A long server-side turn was paused.
    PauseTurn,
    /// The context window filled up.
    ContextWindowExceeded,
    /// A reason this crate does not know, by name.
    Other(Arc<str>),
}

impl StopReason {
    /// From the provider's name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "end_turn" => Self::EndTurn,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            "stop_sequence" => Self::StopSequence,
            "refusal" => Self::Refusal,
            "pause_turn" => Self::PauseTurn,
            "model_context_window_exceeded" => Self::ContextWindowExceeded,
            other => Self::Other(other.into()),
        }
    }

    /// The provider's name.
    pub fn name(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::Refusal => "refusal",
            Self::PauseTurn => "pause_turn",
            Self::ContextWindowExceeded => "model_context_window_exceeded",
            Self::Other(name) => name,
        }
    }
}

/// A failed model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind of failure.
    pub class: FailureClass,
    /// What happened and, where the user can act, what to do; one sentence or two, without secrets.
    pub message: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after_ms: Option<u64>,
    /// The provider's own verdict on retrying (`x-should-retry`), which beats the class.
    pub should_retry: Option<bool>,
    /// The provider's id of the request, for support.
    pub request_id: Option<String>,
    /// How far the prompt is over the window, where the provider says it.
    pub overflow: Option<Overflow>,
    /// When a used-up quota is there again: seconds since 1970, where the provider says it.
    pub resets_at: Option<u64>,
    /// The block of the request that the provider rejects, where it names one.
    pub culprit: Option<Culprit>,
}

/// How far a prompt is over the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The tokens of the request, the output cap included where the provider counts it.
    pub needed: u64,
    /// What fits.
    pub limit: u64,
}

/// A place in a request as the provider counts: neighbouring messages of one role are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The message, from 0.
    pub message: usize,
    /// The block in it, from 0.
    pub block: Option<usize>,
}

impl Failure {
    /// A failure of which nothing more is known.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            class,
            message,
            status: None,
            retry_after_ms: None,
            should_retry: None,
            request_id: None,
            overflow: None,
            resets_at: None,
            culprit: None,
        }
    }
}

/// The kinds of failure. Who must act follows from the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The prompt does not fit the window.
    Overflow,
    /// A picture or document is too large or unreadable.
    Media,
    /// Too many requests; passes by itself.
    RateLimited,
    /// A quota or spend limit is used up; does not pass soon.
    Quota,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed (5xx, 408, 409).
    Server,
    /// The key or token is missing or wrong.
    Auth,
    /// Not allowed (403), or billing.
    Forbidden,
    /// No such model or address (404).
    NotFound,
    /// The request is invalid.
    BadRequest,
    /// Thinking in the request is bound to another prefix or model.
    Binding,
    /// No connection: refused, unreachable, name not found.
    Connect,
    /// The certificate or TLS handshake failed.
    Tls,
    /// The connection broke off in mid-stream.
    Cut,
    /// Nothing came for longer than a watchdog allows.
    Stalled,
    /// The answer does not follow the protocol.
    Malformed,
}

/// What is known about a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCard {
    /// The id sent to the provider.
    pub id: Arc<str>,
    /// Context window in tokens.
    pub window_tokens: u64,
    /// The most output tokens the model accepts as a cap.
    pub output_tokens_max: u32,
    /// Prices; `None` means unknown, never zero.
    pub price: Option<Price>,
    /// Whether the model is in the table; otherwise window and cap are assumptions.
    pub is_known: bool,
    /// Which ways of thinking it takes.
    pub thinking: ThinkingSupport,
    /// The levels of effort it takes, ascending; none if the request must not say one.
    pub efforts: &'static [Effort],
    /// Whether its thinking is only valid behind the exact prefix it was made for.
    pub is_thinking_bound: bool,
    /// Whether the provider clears old content itself on request.
    pub can_edit_context: bool,
    /// Whether the model can be told of a budget of tokens.
    pub can_take_task_budget: bool,
}

impl ModelCard {
    /// A model of which nothing is known but its id: 200 000 tokens are assumed, and none of what only some models take.
    pub fn unknown(id: &str) -> Self {
        Self {
            id: id.into(),
            window_tokens: 200_000,
            output_tokens_max: 32_000,
            price: None,
            is_known: false,
            thinking: ThinkingSupport::default(),
            efforts: &[],
            is_thinking_bound: false,
            can_edit_context: false,
            can_take_task_budget: false,
        }
    }
}

/// Which ways of thinking a model takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingSupport {
    /// [`RequestThinking::Adaptive`].
    pub is_adaptive: bool,
    /// [`RequestThinking::Budgeted`].
    pub is_budgeted: bool,
    /// [`RequestThinking::Disabled`], up to this level of effort.
    pub disabled_up_to: Option<Effort>,
    /// Whether it thinks when the request says nothing.
    pub is_on_by_default: bool,
}

/// USD per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache writes for five minutes.
    pub write_5m: f64,
    /// Cache writes for an hour.
    pub write_1h: f64,
    /// Cache reads.
    pub read: f64,
    /// A dearer tier from this many input tokens on, with its factor on every price.
    pub tier: Option<(u64, f64)>,
}
