//! What a process adds to jobs: its signals, its exit code, and the words of the command line.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use uuid::Uuid;
use windlass::job_runner::{JobRunner, RunDisplay, StopRequest, StopRequests};
use windlass::output::Output;
use windlass::sandbox::wait_for_trees;
use windlass::slash_commands::{self, HELP, SlashCommandReport};

use crate::arguments::help;
use crate::standard_io::StandardOutput;
use crate::views::{RunView, rewind_report};

/// A little more than a command has between the request to end and the kill.
const END_OF_COMMANDS: Duration = Duration::from_millis(2_500);

/// The exit code of a second Ctrl-C.
pub(crate) const QUIT: i32 = 130;

/// What does the jobs of this process.
pub(crate) type ProcessRunner = JobRunner<RunView, StandardOutput, Signals>;

/// A runner that shows on standard output. Must be called inside a tokio runtime with I/O.
pub(crate) fn runner(view: RunView, stops: Signals) -> ProcessRunner {
    let output = Output::new(StandardOutput::new());
    JobRunner { display: RunDisplay { view, output, watchers: Vec::new() }, stops, words }
}

/// What is said about a command.
fn words(report: SlashCommandReport, cwd: &Path, session: Uuid) -> String {
    match report {
        SlashCommandReport::Context(report) => slash_commands::context_report(&report),
        SlashCommandReport::Cost { models, time } => slash_commands::cost_report(&models, time),
        SlashCommandReport::Help => help::page(HELP),
        SlashCommandReport::Prompts(prompts) => rewind_report::list_prompts(&prompts),
        SlashCommandReport::Rewind(outcome) => rewind_report::tell(&outcome, cwd, session),
    }
}

/// Runs a future to its end on this thread; work in the background ends with it.
///
/// It runs as a task among the others, because a task can let the connection's task go first without asking the system.
pub(crate) fn block_on<T: Send + 'static>(
    future: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let result = runtime.block_on(runtime.spawn(future));
    runtime.shutdown_background();
    result.map_err(io::Error::other)?
}

/// Waits for commands that were told to end, so that nothing outlives the process; gives the exit code.
///
/// Ctrl-C then, or a second one before, does not wait: the supervisors end the commands.
pub(crate) fn wait_for_commands(code: i32, mut signals: Signals) -> i32 {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let has_children = waitid(WaitId::All, options).err() != Some(Errno::CHILD);
    if code == QUIT || !has_children {
        return code;
    }
    let waited = block_on(async move {
        let gone = tokio::task::spawn_blocking(|| wait_for_trees(END_OF_COMMANDS));
        Ok(tokio::select! {
            biased;
            _ = gone => code,
            _ = signals.interrupt.recv() => QUIT,
        })
    });
    waited.unwrap_or(code)
}

/// The number that Linux gives to the signal about the size of files.
const SIGXFSZ: i32 = 25;

/// The exit code of a process that was asked to stop.
pub(crate) fn exit_code(asked: StopRequest) -> i32 {
    match asked {
        StopRequest::Interrupt => QUIT,
        StopRequest::Terminate(code) => code,
    }
}

/// The signals that end a run. Kept from the run to the end of the process, they miss none in between.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`, which asks to go on.
    hang_up: Option<Signal>,
    /// Listened to so that a file that may not grow any further is an error of its writer, and not the end of the process.
    _file_size: Signal,
    /// Interrupts from the keyboard, where Ctrl-C is a key like others.
    keyboard: (mpsc::Sender<()>, mpsc::Receiver<()>),
}

/// Interrupts as Ctrl-C does.
pub(crate) struct Interrupter(mpsc::Sender<()>);

impl Interrupter {
    pub(crate) fn interrupt(&self) {
        // More than a second one says nothing new, and nobody listens once the session is over.
        let _ = self.0.try_send(());
    }
}

impl Signals {
    /// Begins to listen. Must be called inside a tokio runtime with I/O.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) },
            _file_size: signal(SignalKind::from_raw(SIGXFSZ))?,
            keyboard: mpsc::channel(2),
        })
    }

    /// For the reader of the keyboard.
    pub(crate) fn interrupter(&self) -> Interrupter {
        Interrupter(self.keyboard.0.clone())
    }
}

impl StopRequests for Signals {
    async fn next(&mut self) -> StopRequest {
        tokio::select! {
            _ = self.interrupt.recv() => StopRequest::Interrupt,
            _ = self.keyboard.1.recv() => StopRequest::Interrupt,
            _ = self.terminate.recv() => StopRequest::Terminate(143),
            () = next_signal(&mut self.hang_up) => StopRequest::Terminate(129),
        }
    }
}

async fn next_signal(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process was started so that a hang-up does not end it.
fn ignores_hang_up() -> bool {
    // Room enough, so that it is read at once.
    let mut status = String::with_capacity(4096);
    let _ = File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
