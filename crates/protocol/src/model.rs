//! What the engine says to a model client and what it hears back.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{Block, Transcript, Usage};

/// One request to a model. Cheap to clone: everything large is shared.
#[derive(Clone, Debug)]
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
    /// A block is complete. A tool use whose input is not a JSON object has it replaced by
    /// `{"unparsed": "<the text>"}`, so that replaying it is valid; the core never runs such a call.
    Block {
        /// Position in the response.
        index: u32,
        /// The block.
        block: Block,
    },
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
    #[must_use]
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
    #[must_use]
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
    /// What happened and, where somebody can act, what to do; one sentence or two, without secrets.
    pub message: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after_ms: Option<u64>,
    /// The provider's own verdict on retrying (`x-should-retry`), which beats the class.
    pub should_retry: Option<bool>,
    /// The provider's id of the request, for support.
    pub request_id: Option<String>,
}

impl Failure {
    /// A failure of which nothing more is known.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { class, message, status: None, retry_after_ms: None, should_retry: None, request_id: None }
    }
}

/// The kinds of failure. Who must act follows from the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    pub known: bool,
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
