//! Starting commands, under a supervisor or without one.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, waitid};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::children::{self, Kind};
use crate::job::{self, ShellJob};
use crate::process::{Exit, ExitReceiver, Process, Status, TERMINATE_TIME, Tree};
use crate::report;
use crate::request::{self, PART_BYTES_MAX};
use crate::supervisor::ARGUMENT;
use crate::system::{self, Leader};
use crate::tree::{self, Left};

/// How often a supervisor is set going again, should it have been stopped.
const AWAKE_EVERY: Duration = Duration::from_secs(1);
/// A supervisor that is asked to end everything has this long beyond the time it gives the command. It is killed then.
const REACT_TIME: Duration = Duration::from_secs(1);
const COLLECT_AGAIN: Duration = Duration::from_millis(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What cannot be killed now is tried again, less and less often.
const KILL_AGAIN_MAX: Duration = Duration::from_secs(10);

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
    ///
    /// From the first command on, this process adopts what a supervisor leaves when it is killed, and ends it. Children
    /// that somebody else started in this process, later than that supervisor and as leaders of a session, cannot be told
    /// from such processes.
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
        if job.script.len() > PART_BYTES_MAX {
            return Err(LaunchError::TooLong);
        }
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

fn spawn(command: &mut Command, kind: Kind, writer: io::PipeWriter) -> Result<Pid, LaunchError> {
    command.stdout(writer.try_clone()?).stderr(writer);
    children::spawn(command, kind).map_err(|source| match source.raw_os_error() {
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
    command.arg(ARGUMENT).stdin(Stdio::from(OwnedFd::from(theirs)));
    place(&mut command, job);
    let supervisor = spawn(&mut command, Kind::Supervisor, writer)?;
    tokio::spawn(watch_supervisor(supervisor, control, request::encode(job), watch));
    Ok(())
}

/// Passes on the request, the supervisor's report and the wish to stop, until the supervisor is gone and nothing of
/// what was below it is left.
async fn watch_supervisor(supervisor: Pid, control: UnixStream, request: Vec<u8>, mut watch: Watch) {
    let (mut reader, mut writer) = control.into_split();
    tokio::select! {
        // If it cannot be written, the supervisor is gone.
        _ = writer.write_all(&request) => {}
        () = watch.stop.cancelled() => {}
    }
    let mut bytes = Vec::new();
    let mut killed_at = None;
    let mut awake = interval(AWAKE_EVERY);
    loop {
        tokio::select! {
            read = reader.read_buf(&mut bytes) => match read {
                Ok(0) | Err(_) => break,
                Ok(_) => if let Some(exit) = report::decode(&bytes) {
                    watch.report(exit);
                },
            },
            () = watch.stop.cancelled(), if killed_at.is_none() => {
                killed_at = Some(Instant::now() + TERMINATE_TIME + REACT_TIME);
                // Closing our half is the request; if it is closed already, the supervisor is gone.
                let _ = writer.shutdown().await;
                awake.reset_immediately();
            }
            now = awake.tick() => {
                // A command may have stopped its supervisor, and may do so again and again.
                let late = killed_at.is_some_and(|at| now >= at);
                children::signal(supervisor, if late { Signal::KILL } else { Signal::CONT });
            }
        }
    }
    // Its end of the socket was the last thing it held; the process itself follows at once.
    while let Ok(None) = children::collect(supervisor) {
        sleep(COLLECT_AGAIN).await;
    }
    let mut again = COLLECT_AGAIN;
    while children::end_adopted() == Left::Something {
        sleep(again).await;
        again = (again * 2).min(KILL_AGAIN_MAX);
    }
}

fn start_direct(job: &ShellJob, writer: io::PipeWriter, watch: Watch) -> Result<(), LaunchError> {
    let mut command = job::bash(job.script.as_ref());
    place(&mut command, job);
    let cwd = job::attach(&mut command, job.track_cwd, job.source.as_deref(), Leader::Session)?;
    let leader = spawn(&mut command, Kind::Session, writer)?;
    let handle = rustix::process::pidfd_open(leader, PidfdFlags::NONBLOCK)
        .map_err(io::Error::from)
        .and_then(system::watch)?;
    tokio::spawn(watch_direct(leader, handle, cwd, watch));
    Ok(())
}

/// Waits for the shell and for the wish to stop. The shell is collected only at the very end, so that its number,
/// which is also its session's, belongs to nobody else meanwhile.
async fn watch_direct(leader: Pid, handle: AsyncFd<OwnedFd>, cwd: Option<OwnedFd>, mut watch: Watch) {
    let ended = tokio::select! {
        _ = handle.readable() => true,
        () = watch.stop.cancelled() => false,
    };
    if ended {
        watch.report(Exit { status: peek(leader), cwd: job::read_cwd(cwd) });
        if tree::in_session(leader).is_empty() {
            let _ = children::collect(leader);
            return;
        }
        watch.stop.cancelled().await;
    }
    tree::signal(&tree::in_session(leader), Signal::TERM);
    let deadline = Instant::now() + TERMINATE_TIME;
    while !tree::in_session(leader).is_empty() {
        if Instant::now() >= deadline {
            tree::kill(|| tree::in_session(leader));
        }
        sleep(LOOK_AGAIN).await;
    }
    if let Ok(Some(status)) = children::collect(leader) {
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
