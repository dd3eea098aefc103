//! The driver and the public Rust API.
//!
//! An [`Engine`] holds what does not change: model, tools, configuration. It makes [`Session`]s; a session takes one
//! prompt after the other and turns each into a [`Run`], a lazy stream of updates that ends with exactly one
//! [`Update::Done`]. A [`Handle`] interrupts, steers and answers from elsewhere.
//!
//! ```
//! use std::sync::Arc;
//! use futures_util::StreamExt;
//! use windlass_engine::{Engine, Terminal, Update};
//! use windlass_models::{Script, ScriptModel, model_card};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = Script::parse(r#"{"responses": [{"blocks": [{"text": "Hello."}]}]}"#)?;
//! let engine = Engine::builder(Arc::new(ScriptModel::new(script)), model_card("scripted")).build()?;
//! let mut session = engine.session();
//! let mut run = session.run("Say hello.");
//! let mut outcome = None;
//! while let Some(update) = run.next().await {
//!     match update {
//!         Update::Block { block, .. } => println!("{:?}", block.as_text()),
//!         Update::Done(done) => outcome = Some(done),
//!         _ => (),
//!     }
//! }
//! let outcome = outcome.ok_or("every run ends with an outcome")?;
//! assert_eq!(outcome.terminal, Terminal::Completed);
//! assert_eq!(outcome.text, "Hello.");
//! # Ok(())
//! # }
//! ```
//!
//! The driver makes no decision that a rule is about: it performs the effects of [`windlass_core::step`] and tells it
//! what happened. Nothing happens while nobody polls; dropping a [`Run`] at any point leaves no task, process or lock.

mod account;
mod builder;
mod check;
mod inbox;
mod inflight;
mod jobs;
mod machine;
mod marks;
mod options;
mod prompt;
mod results;
mod run;
mod schema;
mod session;
mod toolbox;

pub use builder::{Engine, EngineBuilder, EngineError};
pub use inbox::{Handle, SessionEnded};
pub use prompt::default_system_prompt;
pub use run::Run;
pub use schema::{SchemaError, answer_schema};
pub use session::Session;
pub use windlass_core::{
    AnswerSchema, Asking, ContextPolicy, ContinuationPolicy, EarlyStart, OutputPolicy, PermissionMode,
    Permissions, Priority, Prompt, RepeatPolicy, RetryPolicy, Source, Speaker, ThinkingMode, ThinkingWish,
    UnknownTools,
};
pub use windlass_protocol::{
    Answer, Block, CallId, ContextReport, Denial, Effort, MemoryNote, MessageId, ModelCard, ModelSpend,
    Outcome, Question, SessionSeed, Terminal, ThinkingDisplay, Transcript, Transition, Update, Usage,
};
