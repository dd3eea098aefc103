//! Starting commands, under a supervisor or without one.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::net::RecvFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, waitid};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::children::{self, ChildRole};
use crate::commands::{self, ProgramCommand, ProgramInput, ShellCommand};
use crate::environment::without_loader;
use crate::launch_plan::{self, CommandToRun, ConfinedRun, ShellScript, SupervisorRequest};
use crate::messages::{self, CommandReport, MessageBuffer};
use crate::network::RefusedConnections;
use crate::process::{
    CommandStatus, Exit, ExitReceiver, ProcessTree, ProgramProcess, ShellProcess, TERMINATE_TIME,
};
use crate::proxy;
use crate::sandbox::Sandbox;
use crate::supervisor::ARGUMENT;
use crate::tree::{self, TreeState};
use crate::unsafe_calls::{self, Leader};

/// How often a supervisor is set going again, should it have been stopped.
const AWAKE_EVERY: Duration = Duration::from_secs(1);
/// A supervisor that is asked to end everything has this long beyond the time it gives the command. It is killed then.
const REACT_TIME: Duration = Duration::from_secs(1);
const COLLECT_AGAIN: Duration = Duration::from_millis(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What cannot be killed now is tried again, less and less often.
const KILL_AGAIN_MAX: Duration = Duration::from_secs(10);

/// Starts commands.
#[derive(Clone, Debug, Default)]
pub struct Launcher {
    /// What is started as the supervisor of each command, if they have one.
    supervisor: Option<PathBuf>,
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
    /// The command is to be confined, which needs the supervisor's program.
    #[error("a command can be confined only where every command has a supervisor")]
    NeedsSupervisor,
    /// A pipe could not be made.
    #[error("the pipes to a command could not be made: {0}")]
    Pipe(#[from] io::Error),
}

impl Launcher {
    /// Runs every command below a supervisor, for which `program` is started: a binary that calls
    /// [`run_if_supervisor`](crate::run_if_supervisor) first thing in `main`. `/proc/self/exe` is this program,
    /// even when its file has been replaced since.
    ///
    /// From the first command on, this process adopts and ends what a killed supervisor leaves. Children that others
    /// start here, later than it and as leaders of a session, cannot be told from that.
    pub fn supervised(program: PathBuf) -> Self {
        Self { supervisor: Some(program) }
    }

    /// Commands run without a supervisor, in a session of their own. The shell dies with the thread that started
    /// it; what it left behind, or what moved to another session, is not found when this process is killed.
    pub fn direct() -> Self {
        Self { supervisor: None }
    }

    /// Starts the command. Must be called inside a tokio runtime with I/O and time enabled.
    pub fn start(&self, command: &ShellCommand) -> Result<ShellProcess, LaunchError> {
        let (reader, writer) = io::pipe()?;
        let output = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let streams =
            StandardStreams { input: None, output: writer.try_clone()?.into(), errors: writer.into() };
        let script = ShellScript {
            text: command.script.clone(),
            should_track_cwd: command.should_track_cwd,
            source: command.source.clone(),
        };
        let (exit, tree) = self.launch(Task {
            command: CommandToRun::Shell(script),
            cwd: &command.cwd,
            environment: &command.environment,
            sandbox: command.sandbox.as_ref(),
            streams,
        })?;
        Ok(ShellProcess { output, exit, tree })
    }

    /// Starts the program. Must be called inside a tokio runtime with I/O and time enabled.
    pub fn start_program(&self, command: &ProgramCommand) -> Result<ProgramProcess, LaunchError> {
        let (output, output_writer) = io::pipe()?;
        let (errors, errors_writer) = io::pipe()?;
        let (reader, input) = match command.input {
            ProgramInput::Nothing => (None, None),
            ProgramInput::Pipe => {
                let (reader, writer) = io::pipe()?;
                (Some(reader.into()), Some(Sender::from_owned_fd(writer.into())?))
            }
        };
        let streams =
            StandardStreams { input: reader, output: output_writer.into(), errors: errors_writer.into() };
        let (output, errors) =
            (Receiver::from_owned_fd(output.into())?, Receiver::from_owned_fd(errors.into())?);
        let (exit, tree) = self.launch_program(command, streams)?;
        Ok(ProgramProcess { input, output, errors, exit, tree })
    }

    pub(crate) fn launch_program(
        &self,
        command: &ProgramCommand,
        streams: StandardStreams,
    ) -> Result<(ExitReceiver, ProcessTree), LaunchError> {
        self.launch(Task {
            command: CommandToRun::Program(command.argv.clone()),
            cwd: &command.cwd,
            environment: &command.environment,
            sandbox: command.sandbox.as_ref(),
            streams,
        })
    }

    fn launch(&self, task: Task<'_>) -> Result<(ExitReceiver, ProcessTree), LaunchError> {
        if !task.command.fits() {
            return Err(LaunchError::TooLong);
        }
        let stop = CancellationToken::new();
        let gone = CancellationToken::new();
        let (sender, receiver) = oneshot::channel();
        let watch = CommandWatch {
            exit: Some(sender),
            stop: stop.clone(),
            refusals: RefusedConnections::default(),
            sandbox: task.sandbox.cloned(),
            _gone: gone.clone().drop_guard(),
        };
        match &self.supervisor {
            Some(program) => start_supervised(program, task, watch)?,
            None if task.sandbox.is_some() => return Err(LaunchError::NeedsSupervisor),
            None => start_direct(task, watch)?,
        }
        Ok((ExitReceiver(receiver), ProcessTree { stop: stop.drop_guard(), gone }))
    }
}

pub(crate) struct StandardStreams {
    /// Without one it is at its end at once.
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: OwnedFd,
    pub(crate) errors: OwnedFd,
}

struct Task<'a> {
    command: CommandToRun,
    cwd: &'a Path,
    environment: &'a [(OsString, OsString)],
    sandbox: Option<&'a Sandbox>,
    streams: StandardStreams,
}

struct CommandWatch {
    exit: Option<oneshot::Sender<Exit>>,
    stop: CancellationToken,
    refusals: RefusedConnections,
    /// Its directory for temporary files must last as long as the command.
    sandbox: Option<Sandbox>,
    _gone: DropGuard,
}

impl CommandWatch {
    fn report(&mut self, mut exit: Exit) {
        if let Some(sender) = self.exit.take() {
            exit.refused = self.refusals.list();
            // Nobody may be interested any more.
            let _ = sender.send(exit);
        }
    }
}

fn spawn(
    command: &mut Command,
    role: ChildRole,
    cwd: &Path,
    streams: (OwnedFd, OwnedFd),
) -> Result<Pid, LaunchError> {
    command.current_dir(cwd).stdout(streams.0).stderr(streams.1);
    children::spawn(command, role).map_err(|source| match source.raw_os_error() {
        Some(libc::E2BIG) => LaunchError::TooLong,
        _ => LaunchError::Program { program: command.get_program().to_string_lossy().into_owned(), source },
    })
}

fn start_supervised(program: &Path, task: Task<'_>, watch: CommandWatch) -> Result<(), LaunchError> {
    let (ours, theirs) = StdUnixStream::pair()?;
    let Task { command, cwd, environment, sandbox, streams } = task;
    if let Some(input) = &streams.input {
        launch_plan::send_input(&ours, input.as_fd())?;
    }
    ours.set_nonblocking(true)?;
    let control = UnixStream::from_std(ours)?;
    let confined = sandbox.map(|sandbox| ConfinedRun {
        plan: sandbox.0.plan.clone(),
        cwd: cwd.to_owned(),
        environment: sandbox.environment(environment),
    });
    let mut supervisor = Command::new(program);
    supervisor.arg(ARGUMENT).stdin(Stdio::from(OwnedFd::from(theirs))).env_clear();
    if confined.is_some() {
        // What is outside of the sandbox loads nothing that only the inside is told to.
        supervisor.envs(without_loader(environment));
    } else {
        supervisor.envs(environment.iter().map(|(name, value)| (name, value)));
    }
    let request =
        messages::encode(&SupervisorRequest { command, confined, has_input: streams.input.is_some() })?;
    if request.len() > messages::MESSAGE_BYTES_MAX {
        return Err(LaunchError::TooLong);
    }
    let supervisor = spawn(&mut supervisor, ChildRole::Supervisor, cwd, (streams.output, streams.errors))?;
    tokio::spawn(watch_supervisor(supervisor, control, request, watch));
    Ok(())
}

/// What the supervisor says, and the proxy that it may ask for.
struct ReportListener {
    socket: OwnedReadHalf,
    buffer: MessageBuffer,
    proxy: Option<AbortOnDropHandle<()>>,
}

impl ReportListener {
    /// Waits for something to be said and acts on it; false at the end. Nothing is lost if it is dropped meanwhile.
    async fn listen(&mut self, watch: &mut CommandWatch) -> bool {
        let socket: &UnixStream = self.socket.as_ref();
        let receive = || self.buffer.receive(socket, RecvFlags::DONTWAIT);
        if !socket.async_io(Interest::READABLE, receive).await.unwrap_or(false) {
            return false;
        }
        while let Ok(Some(message)) = self.buffer.take() {
            match message {
                CommandReport::Listening => self.open_proxy(watch),
                CommandReport::Ended(exit) => watch.report(exit),
                CommandReport::Confined | CommandReport::Failed(_) => {}
            }
        }
        true
    }

    /// A socket that cannot be served is closed, so the command finds nobody there.
    fn open_proxy(&mut self, watch: &CommandWatch) {
        let arbiter = watch.sandbox.as_ref().and_then(|sandbox| sandbox.0.arbiter.as_ref());
        if let (Some(socket), Some(arbiter)) = (self.buffer.descriptor.take(), arbiter) {
            self.proxy = proxy::open(socket, arbiter.clone(), watch.refusals.clone()).ok();
        }
    }
}

/// Passes on the request, the reports and the wish to stop, until the supervisor and all below it are gone.
async fn watch_supervisor(supervisor: Pid, control: UnixStream, request: Vec<u8>, mut watch: CommandWatch) {
    let (socket, mut writer) = control.into_split();
    let stop = watch.stop.clone();
    tokio::select! {
        // If it cannot be written, the supervisor is gone.
        _ = writer.write_all(&request) => {}
        () = stop.cancelled() => {}
    }
    let mut listener = ReportListener { socket, buffer: MessageBuffer::default(), proxy: None };
    let mut killed_at = None;
    let mut awake = interval(AWAKE_EVERY);
    loop {
        tokio::select! {
            more = listener.listen(&mut watch) => if !more { break },
            () = stop.cancelled(), if killed_at.is_none() => {
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
    drop(listener);
    // Its end of the socket was the last thing it held; the process itself follows at once.
    while let Ok(None) = children::collect(supervisor) {
        sleep(COLLECT_AGAIN).await;
    }
    let mut again = COLLECT_AGAIN;
    while children::end_adopted() == TreeState::Alive {
        sleep(again).await;
        again = (again * 2).min(KILL_AGAIN_MAX);
    }
}

fn start_direct(task: Task<'_>, watch: CommandWatch) -> Result<(), LaunchError> {
    let Task { command, cwd, environment, streams, .. } = task;
    let (mut command, last_cwd) =
        commands::prepare(&command, Some(environment), streams.input, Leader::Session)?;
    let leader = spawn(&mut command, ChildRole::Session, cwd, (streams.output, streams.errors))?;
    let handle = rustix::process::pidfd_open(leader, PidfdFlags::NONBLOCK)
        .map_err(io::Error::from)
        .and_then(unsafe_calls::watch)?;
    tokio::spawn(watch_direct(leader, handle, last_cwd, watch));
    Ok(())
}

/// Waits for the shell or the wish to stop. The shell is collected last: its number is also its session's.
async fn watch_direct(leader: Pid, handle: AsyncFd<OwnedFd>, cwd: Option<OwnedFd>, mut watch: CommandWatch) {
    let ended = tokio::select! {
        _ = handle.readable() => true,
        () = watch.stop.cancelled() => false,
    };
    if ended {
        watch.report(Exit { cwd: commands::read_cwd(cwd), ..Exit::new(peek(leader)) });
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
        watch.report(Exit::new(status.into()));
    }
}

/// The status of a child that has ended and is left uncollected.
fn peek(pid: Pid) -> CommandStatus {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Ok(Some(status)) = waitid(WaitId::Pid(pid), options) else { return CommandStatus::Lost };
    CommandStatus::new(status.exit_status(), status.terminating_signal())
}
