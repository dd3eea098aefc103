//! A started command as the engine holds it.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::network::RefusedConnection;
use crate::raw_text;
use crate::{InputPipe, OutputPipe};

/// Between the request to terminate and the kill.
pub(crate) const TERMINATE_TIME: Duration = Duration::from_secs(2);

/// A command that has been started.
#[derive(Debug)]
pub struct ShellProcess {
    /// Standard output and standard error, merged in order.
    pub output: OutputPipe,
    /// How the command itself will have ended.
    pub exit: ExitReceiver,
    /// The command and everything it started.
    pub tree: ProcessTree,
}

/// A program that has been started.
#[derive(Debug)]
pub struct ProgramProcess {
    /// Its standard input, if that was asked for. Dropping it is the end of the input.
    pub input: Option<InputPipe>,
    /// Its standard output.
    pub output: OutputPipe,
    /// Its standard error.
    pub errors: OutputPipe,
    /// How the program itself will have ended.
    pub exit: ExitReceiver,
    /// The program and everything it started.
    pub tree: ProcessTree,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its status.
    pub status: CommandStatus,
    /// The working directory it ended in, if that was asked for and could be learnt.
    #[serde(with = "raw_text")]
    pub cwd: Option<PathBuf>,
    /// Why it was not started, where there is more to say than the status does: the sandbox could not be set up.
    pub reason: Option<String>,
    /// Where it was not let through to while it ran. Only the engine, whose proxy it is, knows these.
    #[serde(skip)]
    pub refused: Vec<RefusedConnection>,
}

impl Exit {
    pub(crate) fn new(status: CommandStatus) -> Self {
        Self { status, cwd: None, reason: None, refused: Vec::new() }
    }
}

/// The status of a command that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStatus {
    /// It exited with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// Bash, or the program, could not be started; the system's error number.
    NotStarted(i32),
    /// Unknown: the process that watched it is gone.
    Lost,
}

impl CommandStatus {
    pub(crate) fn new(code: Option<i32>, signal: Option<i32>) -> Self {
        code.map(Self::Code).or(signal.map(Self::Signal)).unwrap_or(Self::Lost)
    }
}

impl From<ExitStatus> for CommandStatus {
    fn from(status: ExitStatus) -> Self {
        Self::new(status.code(), status.signal())
    }
}

/// Tells once how the command itself ended, while processes it left behind may go on.
#[derive(Debug)]
pub struct ExitReceiver(pub(crate) oneshot::Receiver<Exit>);

impl ExitReceiver {
    /// How the command ended. Can be dropped and called again until it has answered.
    pub async fn recv(&mut self) -> Exit {
        (&mut self.0).await.unwrap_or(Exit::new(CommandStatus::Lost))
    }
}

/// A command and all it started. Dropping it asks all to end and kills in two seconds; [`Self::gone`] tells.
#[derive(Debug)]
pub struct ProcessTree {
    pub(crate) stop: DropGuard,
    pub(crate) gone: CancellationToken,
}

impl ProcessTree {
    /// Resolves when no process of the tree is left.
    pub fn wait_until_gone(&self) -> impl Future<Output = ()> + Send + use<> {
        self.gone.clone().cancelled_owned()
    }

    /// Whether no process of the tree is left.
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Ends the tree; the future resolves when no process of it is left.
    pub fn stop(self) -> impl Future<Output = ()> + Send + use<> {
        drop(self.stop);
        self.gone.cancelled_owned()
    }
}
