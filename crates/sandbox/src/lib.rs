//! Child processes: how a shell command is started, what it inherits, and how its whole tree is ended.
//!
//! A command never runs as a child of the engine itself. Between the two stands the *supervisor*, a small
//! single-threaded process of the same binary: it adopts every process the command leaves behind, and it ends them
//! all when the engine asks for it or is gone, however it went. Should a command kill its supervisor, the engine adopts
//! and ends what was below; at its own end it can wait until all is gone ([`wait_for_trees`]). [`Launcher::direct`] does without it, with weaker
//! promises, for programs that cannot offer themselves as supervisor.
//!
//! Nothing here decides whether a command may run. Linux only.

mod children;
mod environment;
mod job;
mod launch;
mod process;
mod report;
mod request;
mod secrecy;
mod supervisor;
mod system;
mod tree;

pub use children::wait_for_trees;
pub use environment::{child_environment, distrust};
pub use job::ShellJob;
pub use launch::{LaunchError, Launcher};
pub use process::{Exit, ExitReceiver, Process, Status, Tree};
pub use secrecy::close_to_others;
pub use supervisor::run_if_supervisor;
pub use tokio::net::unix::pipe::Receiver as OutputPipe;
