//! The agent-loop engine as a library: one crate for everything between "a person wants a run" and "the engine runs".
//!
//! [`Windlass::open`] reads the settings that hold in a directory. [`Windlass::session`] opens a session there: a new one, one
//! that goes on, or a copy. [`Session::run`] turns a prompt into a [`Run`], a lazy stream of [`Update`]s that ends with exactly one
//! [`Update::Done`]. What the command can do without a terminal can be done from here.
//!
#![doc = include_str!("../guide.md")]

mod app;
pub mod diagnosis;
pub mod display;
mod error;
pub mod explain;
pub mod hook_wiring;
pub mod host_conversation;
pub mod invalid_rules;
pub mod job_runner;
pub mod jobs;
pub mod model_choice;
mod options;
pub mod output;
mod permission_saver;
pub mod protocol_view;
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

pub use app::{StartNotices, Windlass};
pub use error::{Actor, Error, LogProblem, SessionError};
pub use options::{Approver, Options, OwnParts};
pub use session::{Run, Session};
pub use session_store::SessionStore;
pub use sessions::{SessionChoice, SessionSource};
pub use supervision::supervise_commands;
/// Settings files, variables and flags, and what they come to.
pub use windlass_config as config;
/// The loop itself, for programs that need no settings, files or sessions.
pub use windlass_engine as engine;
pub use windlass_engine::{Answer, Handle, Outcome, Prompt, Question, Terminal, Update};
/// Hooks: what a function of the caller's own hears, and what it may answer.
pub use windlass_hooks as hooks;
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
