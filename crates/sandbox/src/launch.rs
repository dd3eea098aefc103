//! Starting commands, under a supervisor or without one.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, waitid};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::job::{self, ShellJob};
use crate::process::{Exit, ExitReceiver, Process, Status, TERMINATE_TIME, Tree};
use crate::supervisor::{ARGUMENT, TRACK_CWD};
use crate::system::{self, Leader};
use crate::{report, tree};

/// Starts commands.
#[derive(Clone, Debug)]
pub struct Launcher(Mode);

#[derive(Clone, Debug)]
enum Mode {
    Supervised(PathBuf),
    Direct,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command does not fit into what the system passes to a program.
    #[error(
        "the command and its environment are too long for the system; put the text into a file and use that"
    )]
    TooLong,
    /// The program could not be started.
    #[error("{program} could not be started: {source}")]
    Program {
        /// What was to be started.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A pipe could not be made.
    #[error("the pipes to a command could not be made: {0}")]
    Pipe(#[from] io::Error),
}

impl Launcher {
    /// Every command runs below a supervisor, for which `program` is started: a binary that calls
    /// [`run_if_supervisor`](crate::run_if_supervisor) first thing in `main`. `/proc/self/exe` is this very program,
    /// even when its file has been replaced since.
    #[must_use]
    pub fn supervised(program: PathBuf) -> Self {
        Self(Mode::Supervised(program))
    }

    /// Commands run without a supervisor, in a session of their own. The shell dies with the thread that started
    /// it; what it left behind, or what moved to another session, is not found when this process is killed.
    #[must_use]
    pub fn direct() -> Self {
        Self(Mode::Direct)
    }

    /// Starts the command. Must be called inside a tokio runtime with I/O and time enabled.
    pub fn start(&self, job: &ShellJob) -> Result<Process, LaunchError> {
        let (reader, writer) = io::pipe()?;
        let output = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let stop = CancellationToken::new();
        let gone = CancellationToken::new();
        let (sender, receiver) = oneshot::channel();
        let watch = Watch { exit: Some(sender), stop: stop.clone(), _gone: gone.clone().drop_guard() };
        match &self.0 {
            Mode::Supervised(program) => start_supervised(program.as_os_str(), job, writer, watch)?,
            Mode::Direct => start_direct(job, writer, watch)?,
        }
        Ok(Process { output, exit: ExitReceiver(receiver), tree: Tree::new(stop, gone) })
    }
}

/// The ends of the channels that whoever watches a command holds.
struct Watch {
    exit: Option<oneshot::Sender<Exit>>,
    stop: CancellationToken,
    _gone: DropGuard,
}

impl Watch {
    fn report(&mut self, exit: Exit) {
        if let Some(sender) = self.exit.take() {
            // Nobody may be interested any more.
            let _ = sender.send(exit);
        }
    }
}

fn place(command: &mut Command, job: &ShellJob) {
    let environment = job.environment.iter().map(|(name, value)| (name, value));
    command.env_clear().envs(environment).current_dir(&job.cwd);
}

fn spawn(command: &mut Command, writer: io::PipeWriter) -> Result<Child, LaunchError> {
    command.stdout(writer.try_clone()?).stderr(writer);
    command.spawn().map_err(|source| match source.raw_os_error() {
        Some(libc::E2BIG) => LaunchError::TooLong,
        _ => LaunchError::Program { program: command.get_program().to_string_lossy().into_owned(), source },
    })
}

fn start_supervised(
    program: &OsStr,
    job: &ShellJob,
    writer: io::PipeWriter,
    watch: Watch,
) -> Result<(), LaunchError> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let control = UnixStream::from_std(ours)?;
    let mut command = Command::new(program);
    command.arg(ARGUMENT).arg(if job.track_cwd { TRACK_CWD } else { "" });
    command.arg(job.source.as_deref().unwrap_or("".as_ref())).arg(&job.script);
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    place(&mut command, job);
    let child = spawn(&mut command, writer)?;
    tokio::spawn(watch_supervisor(child, control, watch));
    Ok(())
}

/// Passes on the supervisor's report and the wish to stop, until the supervisor is gone.
async fn watch_supervisor(mut child: Child, control: UnixStream, mut watch: Watch) {
    let (mut reader, mut writer) = control.into_split();
    let mut bytes = Vec::new();
    let mut stopping = false;
    loop {
        tokio::select! {
            read = reader.read_buf(&mut bytes) => match read {
                Ok(0) | Err(_) => break,
                Ok(_) => if let Some(exit) = report::decode(&bytes) {
                    watch.report(exit);
                },
            },
            () = watch.stop.cancelled(), if !stopping => {
                stopping = true;
                // Closing our half is the request; if it is closed already, the supervisor is gone.
                let _ = writer.shutdown().await;
            }
        }
    }
    // Its end of the socket was the last thing it held; the process itself follows at once.
    let _ = child.wait();
}

fn start_direct(job: &ShellJob, writer: io::PipeWriter, watch: Watch) -> Result<(), LaunchError> {
    let mut command = job::bash(job.script.as_ref());
    place(&mut command, job);
    let cwd = job::attach(&mut command, job.track_cwd, job.source.as_deref(), Leader::Session)?;
    let child = spawn(&mut command, writer)?;
    let handle = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::NONBLOCK)
        .map_err(io::Error::from)
        .and_then(system::watch)?;
    tokio::spawn(watch_direct(child, handle, cwd, watch));
    Ok(())
}

/// Waits for the shell and for the wish to stop. The shell is collected only at the very end, so that its number,
/// which is also its session's, belongs to nobody else meanwhile.
async fn watch_direct(mut child: Child, handle: AsyncFd<OwnedFd>, cwd: Option<OwnedFd>, mut watch: Watch) {
    let leader = Pid::from_child(&child);
    let ended = tokio::select! {
        _ = handle.readable() => true,
        () = watch.stop.cancelled() => false,
    };
    if ended {
        watch.report(Exit { status: peek(leader), cwd: job::read_cwd(cwd) });
        if tree::in_session(leader).is_empty() {
            let _ = child.wait();
            return;
        }
        watch.stop.cancelled().await;
    }
    tree::signal(&tree::in_session(leader), Signal::TERM);
    let deadline = tokio::time::Instant::now() + TERMINATE_TIME;
    while !tree::in_session(leader).is_empty() {
        if tokio::time::Instant::now() >= deadline {
            tree::kill(|| tree::in_session(leader));
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    if let Ok(status) = child.wait() {
        watch.report(Exit { status: crate::supervisor::status_of(status), cwd: None });
    }
}

/// The status of a child that has ended and is left uncollected.
fn peek(pid: Pid) -> Status {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Ok(Some(status)) = waitid(WaitId::Pid(pid), options) else { return Status::Lost };
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Lost,
    }
}
