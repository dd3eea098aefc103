//! Child processes: how a shell command is started, what it inherits, and how its whole tree is ended.
//!
//! A command never runs as a child of the engine itself. Between the two stands the *supervisor*, a small
//! single-threaded process of the same binary: it adopts every process the command leaves behind, and it ends them
//! all when the engine asks for it or is gone, however it went. [`Launcher::direct`] does without it, with weaker
//! promises, for programs that cannot offer themselves as supervisor.
//!
//! Nothing here decides whether a command may run. Linux only.

mod environment;
mod job;
mod launch;
mod process;
mod report;
mod secrecy;
mod supervisor;
mod system;
mod tree;

pub use environment::child_environment;
pub use job::ShellJob;
pub use launch::{LaunchError, Launcher};
pub use process::{Exit, ExitReceiver, Process, Status, Tree};
pub use secrecy::close_to_others;
pub use supervisor::run_if_supervisor;
pub use tokio::net::unix::pipe::Receiver as OutputPipe;
