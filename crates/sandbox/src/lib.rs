//! Child processes: how a command is started, what it inherits and can reach, and how its whole tree is ended.
//!
//! Between a command and the engine stands the *supervisor*, a small single-threaded process of the same binary: it
//! adopts every process the command leaves behind, and ends them all when the engine asks for it or is gone. Should a
//! command kill its supervisor, the engine adopts and ends what was below, and can wait for that at its own end
//! ([`wait_for_trees`]). [`Launcher::direct`] does without it, with weaker promises.
//!
//! A [`SandboxPolicy`] says what a confined command may reach, [`Sandbox::prepare`] finds out how to enforce it here,
//! and every command takes the result: no command runs under a policy that cannot be enforced.
//!
//! Nothing here decides whether a command may run. Linux only.

mod cgroup;
mod children;
mod commands;
mod confine;
mod enclosure;
mod environment;
mod filter;
mod git;
mod landlock_rules;
mod launch;
mod launch_plan;
mod limits;
mod messages;
mod mounts;
mod network;
mod policy;
mod process;
mod program_run;
mod proxy;
mod raw_text;
mod sandbox;
mod sockets;
mod stubs;
mod supervisor;
mod terminal;
mod tree;
mod unsafe_calls;

pub use children::wait_for_trees;
pub use commands::{ProgramCommand, ProgramInput, ShellCommand};
pub use environment::{VariableChanges, child_environment, distrust};
pub use git::{GitProtection, protect_repositories};
pub use launch::{LaunchError, Launcher};
pub use network::{Arbiter, Host, Network, NetworkDestination, NetworkVerdict, RefusedConnection};
pub use policy::{BackendChoice, ProtectedPath, ResourceLimits, SandboxPolicy, StandIn, credential_stores};
pub use process::{CommandStatus, Exit, ExitReceiver, ProcessTree, ProgramProcess, ShellProcess};
pub use program_run::{CapturedOutput, ProgramBounds, ProgramOutcome};
pub use sandbox::{ActiveBarrier, Barrier, Sandbox, SandboxUnavailable};
pub use supervisor::run_if_supervisor;
pub use terminal::{run_command, tried_sandbox};
pub use tokio::net::unix::pipe::{Receiver as OutputPipe, Sender as InputPipe};
pub use unsafe_calls::close_to_others;
