//! A started command as the engine holds it.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::network::Refused;
use crate::{InputPipe, OutputPipe};

/// Between the request to terminate and the kill.
pub(crate) const TERMINATE_TIME: Duration = Duration::from_secs(2);

/// A command that has been started.
#[derive(Debug)]
pub struct Process {
    /// Standard output and standard error, merged in order.
    pub output: OutputPipe,
    /// How the command itself will have ended.
    pub exit: ExitReceiver,
    /// The command and everything it started.
    pub tree: Tree,
}

/// A program that has been started.
#[derive(Debug)]
pub struct Program {
    /// Its standard input, if that was asked for. Dropping it is the end of the input.
    pub input: Option<InputPipe>,
    /// Its standard output.
    pub output: OutputPipe,
    /// Its standard error.
    pub errors: OutputPipe,
    /// How the program itself will have ended.
    pub exit: ExitReceiver,
    /// The program and everything it started.
    pub tree: Tree,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its status.
    pub status: Status,
    /// The working directory it ended in, if that was asked for and could be learnt.
    pub cwd: Option<PathBuf>,
    /// Why it was not started, where there is more to say than the status does: the sandbox could not be set up.
    pub reason: Option<String>,
    /// Where it was not let through to while it ran.
    pub refused: Vec<Refused>,
}

impl Exit {
    pub(crate) fn new(status: Status) -> Self {
        Self { status, cwd: None, reason: None, refused: Vec::new() }
    }
}

/// The status of a command that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// Bash, or the program, could not be started; the system's error number.
    NotStarted(i32),
    /// Whoever watched it is gone, and nothing is known.
    Lost,
}

/// Tells once how the command itself ended, while processes it left behind may go on.
#[derive(Debug)]
pub struct ExitReceiver(pub(crate) oneshot::Receiver<Exit>);

impl ExitReceiver {
    /// How the command ended. Can be dropped and called again until it has answered.
    pub async fn recv(&mut self) -> Exit {
        (&mut self.0).await.unwrap_or(Exit::new(Status::Lost))
    }
}

/// A command and everything it started. Dropping it ends them all.
///
/// Ending means: a request to terminate, two seconds, then the kill. Nobody waits for it; [`Tree::gone`] tells.
#[derive(Debug)]
pub struct Tree {
    stop: DropGuard,
    gone: CancellationToken,
}

impl Tree {
    pub(crate) fn new(stop: CancellationToken, gone: CancellationToken) -> Self {
        Self { stop: stop.drop_guard(), gone }
    }

    /// Resolves when no process of the tree is left.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        self.gone.clone().cancelled_owned()
    }

    /// Whether no process of the tree is left.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Ends the tree; the future resolves when no process of it is left.
    pub fn stop(self) -> impl Future<Output = ()> + Send + use<> {
        drop(self.stop);
        self.gone.cancelled_owned()
    }
}
