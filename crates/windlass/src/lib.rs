//! The agent-loop engine as a library: one crate for everything between "a person wants a run" and "the engine runs".
//!
//! [`Windlass::open`] reads the settings that hold in a directory. [`Windlass::session`] opens a session there: a new one, one
//! that goes on, or a copy. [`Session::run`] turns a prompt into a [`Run`], a lazy stream of [`Update`]s that ends with exactly one
//! [`Update::Done`]. What the command can do without a terminal can be done from here.
//!
//! # One run
//!
//! ```
//! use windlass::{Options, SessionChoice, Terminal, Update, Windlass};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let script = home.path().join("script.json");
//! # std::fs::write(&script, r#"{"responses": [{"blocks": [{"text": "Hello."}]}]}"#)?;
//! let options = Options::new().model("opus");
//! # let options = options.cwd(home.path()).variable("WINDLASS_SCRIPT", script).variable("WINDLASS_HOME", home.path());
//! let app = Windlass::open(options)?;
//! let mut session = app.session(SessionChoice::default())?;
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
//! assert_eq!((outcome.terminal, outcome.text.as_str()), (Terminal::Completed, "Hello."));
//! # Ok(())
//! # }
//! ```
//!
//! # A session that goes on
//!
//! Everything is in the log before it is shown or done, so whichever way the program ends, another goes on from there.
//! [`SessionChoice::latest`] takes the latest session of the directory, and [`SessionChoice::forked`] a copy.
//!
//! ```
//! use windlass::{EndReason, Options, SessionChoice, Update, Windlass};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let script = home.path().join("script.json");
//! # std::fs::write(&script, r#"{"responses": [{"blocks": [{"text": "Noted."}]}, {"blocks": [{"text": "42."}]}]}"#)?;
//! let options = Options::new().model("opus");
//! # let options = options.cwd(home.path()).variable("WINDLASS_SCRIPT", script).variable("WINDLASS_HOME", home.path());
//! let app = Windlass::open(options)?;
//! let mut session = app.session(SessionChoice::default())?;
//! let id = session.key.id;
//! session.run("Remember the number 42.").updates().await;
//! session.close(EndReason::Other).await;
//!
//! let mut session = app.session(SessionChoice::resume(id.to_string()))?;
//! assert_eq!(session.messages().len(), 2);
//! let updates = session.run("Which number?").updates().await;
//! let Some(Update::Done(outcome)) = updates.last() else { return Err("no outcome".into()) };
//! # assert_eq!(outcome.terminal.name(), "completed");
//! # Ok(())
//! # }
//! ```
//!
//! # A tool of your own
//!
//! A tool is written against the type of its input; the doc comments are what the model reads.
//!
//! ```
//! use windlass::ports::{ExamineContext, JsonSchema, Tool, ToolContext};
//! use windlass::protocol::{CallFacts, CallKind, ToolOutput};
//! use windlass::{Options, SessionChoice, Update, Windlass};
//!
//! /// Counts the characters of a text.
//! #[derive(serde::Deserialize, JsonSchema)]
//! #[schemars(crate = "windlass::ports::schemars")]
//! struct CountInput {
//!     /// The text to count.
//!     text: String,
//! }
//!
//! struct Count;
//!
//! impl Tool for Count {
//!     type Input = CountInput;
//!     const NAME: &'static str = "Count";
//!
//!     fn facts(&self, input: &CountInput, _: &ExamineContext) -> Result<CallFacts, String> {
//!         Ok(CallFacts { shared: true, target: input.text.clone(), ..CallFacts::new(CallKind::Read) })
//!     }
//!
//!     async fn run(&self, input: CountInput, _: ToolContext) -> ToolOutput {
//!         ToolOutput::text(&format!("{} characters", input.text.chars().count()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let script = home.path().join("script.json");
//! # std::fs::write(&script, r#"{"responses": [{"blocks": [{"tool": "Count", "input": {"text": "four"}}]}, {"blocks": [{"text": "Done."}]}]}"#)?;
//! let options = Options::new().model("opus").tool(Count).allow("Count");
//! # let options = options.cwd(home.path()).variable("WINDLASS_SCRIPT", script).variable("WINDLASS_HOME", home.path());
//! let mut session = Windlass::open(options)?.session(SessionChoice::default().unsaved())?;
//! let updates = session.run("How long is the word four?").updates().await;
//! let result = updates.iter().find_map(|update| match update {
//!     Update::ToolResult { result, .. } => Some(result.json().to_string()),
//!     _ => None,
//! });
//! assert!(result.ok_or("the tool ran")?.contains("4 characters"));
//! # Ok(())
//! # }
//! ```
//!
//! # Somebody who approves
//!
//! Calls that no rule allows are denied, unless somebody is there to ask.
//!
//! ```
//! use windlass::ports::BoxFuture;
//! use windlass::{Answer, Approver, Options, Question, SessionChoice, Update, Windlass};
//!
//! struct OnlyTouch;
//!
//! impl Approver for OnlyTouch {
//!     fn approve(&self, question: Question) -> BoxFuture<'static, Answer> {
//!         let is_harmless = question.facts.target.starts_with("touch ");
//!         Box::pin(async move {
//!             if is_harmless { Answer::Allow } else { Answer::Deny("Only touch is allowed.".into()) }
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let script = home.path().join("script.json");
//! # std::fs::write(&script, r#"{"responses": [{"blocks": [{"tool": "Bash", "input": {"command": "touch made"}}, {"tool": "Bash", "input": {"command": "rm -r other"}}]}, {"blocks": [{"text": "Done."}]}]}"#)?;
//! let options = Options::new().model("opus").approver(OnlyTouch);
//! # let options = options.cwd(home.path()).variable("WINDLASS_SCRIPT", script).variable("WINDLASS_HOME", home.path());
//! let mut session = Windlass::open(options)?.session(SessionChoice::default().unsaved())?;
//! let updates = session.run("Make a file and remove a directory.").updates().await;
//! let Some(Update::Done(outcome)) = updates.last() else { return Err("no outcome".into()) };
//! assert_eq!(outcome.denials.len(), 1);
//! # assert!(home.path().join("made").exists());
//! # Ok(())
//! # }
//! ```
//!
//! # A budget
//!
//! A limit that is reached is a [`Terminal`] of its own, never an error beside it.
//!
//! ```
//! use windlass::{Options, SessionChoice, Terminal, Update, Windlass};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let script = home.path().join("script.json");
//! # std::fs::write(&script, r#"{"model": "claude-opus-5-5", "then": "repeat", "responses": [{"blocks": [{"tool": "Glob", "input": {"pattern": "*"}}], "usage": {"input_tokens": 10000}}]}"#)?;
//! let options = Options::new().model("opus").turns_max(50).budget_usd(0.25);
//! # let options = options.cwd(home.path()).variable("WINDLASS_SCRIPT", script).variable("WINDLASS_HOME", home.path());
//! let mut session = Windlass::open(options)?.session(SessionChoice::default().unsaved())?;
//! let updates = session.run("Look around.").updates().await;
//! let Some(Update::Done(outcome)) = updates.last() else { return Err("no outcome".into()) };
//! assert_eq!(outcome.terminal, Terminal::MaxBudgetUsd);
//! assert!(session.cost_usd() >= Some(0.25));
//! # Ok(())
//! # }
//! ```

mod app;
pub mod diagnosis;
pub mod display;
mod error;
pub mod escape;
pub mod explain;
pub mod hook_wiring;
pub mod host_conversation;
pub mod jobs;
pub mod model_choice;
mod options;
mod permission_saver;
pub mod replay;
pub mod rewind;
pub mod sandbox;
mod session;
pub mod session_store;
pub mod sessions;
pub mod settings;
pub mod slash_commands;
mod supervision;
pub mod wiring;

pub use app::Windlass;
pub use error::{Actor, Error, SessionError};
pub use options::{Approver, Options};
pub use session::{Run, Session};
pub use session_store::SessionStore;
pub use sessions::{SessionChoice, SessionSource};
pub use supervision::supervise_commands;
/// Settings files, variables and flags, and what they come to.
pub use windlass_config as config;
/// The loop itself, for whoever needs no settings, files or sessions.
pub use windlass_engine as engine;
pub use windlass_engine::{Answer, Handle, Outcome, Prompt, Question, Terminal, Update};
/// Model clients: the provider's, and the scripted one.
pub use windlass_models as models;
/// The traits of the outside world: what a tool, a model client or a runner of hooks implements.
pub use windlass_ports as ports;
/// Every word that updates, outcomes and hooks use; the most common ones are here as well.
pub use windlass_protocol as protocol;
pub use windlass_protocol::EndReason;
pub use windlass_secrets::Redactor;
pub use windlass_tools::file_facts;
/// The lines that hosts read and send.
pub use windlass_wire as wire;
