//! The driver and the public Rust API.
//!
//! An [`Engine`] holds what does not change: model, tools, configuration. It makes [`Session`]s; a session takes one
//! prompt after the other and turns each into a [`Run`], a lazy stream of updates that ends with exactly one
//! [`Update::Done`]. A [`Handle`] interrupts, steers and answers from elsewhere.
#![doc = include_str!("../guide.md")]

mod builder;
mod check;
mod effects;
mod inbox;
mod inflight;
mod journal;
mod machine;
mod prompt;
mod replay;
mod results;
mod run;
mod schema;
mod session;
mod toolbox;

pub use builder::{Engine, EngineBuilder, EngineError};
pub use inbox::{Handle, SessionEnded};
pub use prompt::default_system_prompt;
pub use replay::{Mismatch, PlayedEvent, Replay};
pub use run::{Background, Run};
pub use schema::{SchemaError, answer_schema};
pub use session::Session;
pub use toolbox::hidden_paths;
pub use windlass_core::{
    AnswerSchema, CheckAnswer, CompactionPolicy, Config, ContextPolicy, ContinuationPolicy, EarlyStart,
    OutputPolicy, Priority, Prompt, Recall, RecalledSession, RepeatPolicy, RetryPolicy, RetryablePrompt,
    RunSource, Speaker, ThinkingMode, ThinkingWish,
};
pub use windlass_permission::{
    Anchors, Answerer, Classifier, CommandPattern, HostReach, Hosts, PROTECTED_DIRECTORIES, PROTECTED_FILES,
    PermissionCase, PermissionMode, Permissions, Rule, RuleError, RuleSource, Rules, SandboxPermissions,
    UnknownTool, decide_call, missing_rules, offers,
};
/// The traits of the outside world: what a tool, a model client or a runner of hooks implements.
pub use windlass_ports as ports;
/// Every word that updates, outcomes and hooks use; the most common ones are here as well.
pub use windlass_protocol as protocol;
pub use windlass_protocol::{
    Answer, Behaviour, Block, CallId, ContextReport, Denial, Effort, MemoryNote, MessageId, ModelCard,
    ModelSpend, Outcome, Question, SessionSeed, Terminal, ThinkingDisplay, Transcript, Transition, Update,
    Usage,
};
pub use windlass_secrets::Redactor;
