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
//! # Limits, answers of a given form, hooks
//!
//! Every rule of the loop has its field in [`Config`]; what is not set has the value of a mature agent. Nonsense is
//! refused by [`EngineBuilder::build`], and a limit that is reached is a [`Terminal`] of its own, never an error beside it.
//!
//! ```
//! use std::collections::BTreeSet;
//! use std::sync::Arc;
//! use futures_util::StreamExt;
//! use windlass_engine::ports::{BoxFuture, CancellationToken, HookRunner};
//! use windlass_engine::protocol::{HookAnswer, HookCall, HookEvent, HookScene};
//! use windlass_engine::{Config, ContextPolicy, Engine, Transition, Update, answer_schema};
//! use windlass_models::{Script, ScriptModel, model_card};
//!
//! /// Lets no run end before the model has looked again.
//! struct LookAgain;
//!
//! impl HookRunner for LookAgain {
//!     fn events(&self) -> BTreeSet<HookEvent> {
//!         [HookEvent::Stop].into()
//!     }
//!
//!     fn run(&self, call: HookCall, _: HookScene, _: CancellationToken) -> BoxFuture<'static, HookAnswer> {
//!         let is_first = matches!(call, HookCall::Stop { active: false, .. });
//!         let blocks = is_first.then(|| "Count again.".to_owned()).into_iter().collect();
//!         Box::pin(async move { HookAnswer { blocks, ..HookAnswer::default() } })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let answers = r#"{"responses": [
//! #     {"blocks": [{"text": "There are two."}]},
//! #     {"blocks": [{"text": "{\"tests\": 2}"}]},
//! #     {"blocks": [{"text": "{\"tests\": 3}"}]}
//! # ]}"#;
//! # let model = Arc::new(ScriptModel::new(Script::parse(answers)?));
//! let form = answer_schema(r#"{"type": "object", "required": ["tests"]}"#, /* tries more */ 5)?;
//! let engine = Engine::builder(model, model_card("claude-opus-5-5"))
//!     .config(Config {
//!         turns_max: Some(50),
//!         budget_usd: Some(2.50),
//!         answer: Some(form),
//!         context: ContextPolicy { window_tokens: Some(100_000), ..ContextPolicy::default() },
//!         ..Config::default()
//!     })
//!     .hooks(Arc::new(LookAgain))
//!     .build()?;
//! let mut session = engine.session();
//! let updates: Vec<Update> = session.run("Count the tests.").collect().await;
//! let rounds: Vec<Transition> = updates
//!     .iter()
//!     .filter_map(|update| if let Update::Continued(why) = update { Some(*why) } else { None })
//!     .collect();
//! assert_eq!(rounds, [Transition::StructuredOutputRetry, Transition::StopHookBlocking]);
//! let Some(Update::Done(outcome)) = updates.last() else { return Err("no outcome".into()) };
//! assert_eq!(outcome.structured.as_ref().map(|value| value.0.get()), Some(r#"{"tests": 3}"#));
//! assert!(session.cost_usd() < Some(2.50));
//! assert!(session.context_report().used < 100_000);
//! # Ok(())
//! # }
//! ```
//!
//! A conversation that fills its window is compacted by itself, and on request by [`Session::compact`]. The summary is written
//! by a *fork*: the same machine at work on a conversation of its own. Nobody sees its updates; what it took is part of the
//! run's [`Outcome`], of [`Session::spent`] and of the budget.
//!
//! # A session that is kept
//!
//! A session that is given a log puts everything into it before it is shown or done. Whichever way the program ends, another goes
//! on from there. The crate `windlass-session` keeps a log in a file; any other [`SessionLog`](ports::SessionLog) will do.
//!
//! ```
//! use std::sync::Arc;
//! use futures_util::StreamExt;
//! use windlass_engine::{Engine, Recall, Update};
//! use windlass_models::{Script, ScriptModel, model_card};
//! use windlass_session::{Header, LogOptions, LogWriter, SessionLayout, LogEnd, load};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let script = Script::parse(r#"{"then": "repeat", "responses": [{"blocks": [{"text": "Hello."}]}]}"#)?;
//! # let engine = Engine::builder(Arc::new(ScriptModel::new(script)), model_card("scripted")).build()?;
//! let session = engine.session();
//! let seed = session.seed();
//! let paths = SessionLayout::new(home.path()).session(engine.working_directory(), seed.session_uuid());
//! let header = Arc::new(Header::new(seed, engine.working_directory(), /* when it began */ 0));
//! let log = LogWriter::create(&paths, header.clone(), LogOptions::default());
//! let mut session = session.logged(Box::new(log));
//! // The program is cut off as soon as anything happens.
//! session.run("Say hello.").next().await;
//! drop(session);
//!
//! let loaded = load(paths.file(), LogEnd::End)?;
//! let log = LogWriter::resume(&paths, header, &loaded, LogOptions::default())?;
//! let mut recall = Recall::new(engine.working_directory().to_owned());
//! loaded.records.into_iter().for_each(|record| recall.take(record));
//! let recalled = recall.finish();
//! assert!(recalled.cut_off);
//! let mut session = engine.resume(seed, recalled, Some(Box::new(log)));
//! assert!(session.awaits_answer(), "the prompt is known");
//! let updates: Vec<Update> = session.go_on().collect().await;
//! let Some(Update::Done(outcome)) = updates.last() else { return Err("no outcome".into()) };
//! assert_eq!(outcome.text, "Hello.");
//! # Ok(())
//! # }
//! ```
//!
//! A log that cannot be written ends the run with [`Terminal::StoreFailed`], and nothing happens that it would not know of. The next
//! run tries again, and puts everything into it that it lacks.
//!
//! The driver makes no decision that a rule is about: it performs the effects of [`windlass_core::step`] and tells it
//! what happened. Nothing happens while nobody polls; dropping a [`Run`] at any point leaves no task, process or lock.

mod builder;
mod check;
mod inbox;
mod inflight;
mod jobs;
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
    UnknownTool, judge, missing_rules, offers,
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
