//! Carries jobs and runs through to their end: updates to the view, signals to the run.

use std::convert::Infallible;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read as _};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use windlass::engine::{Outcome, Update};
use windlass::jobs::Job;
use windlass::sandbox::wait_for_trees;
use windlass::slash_commands::{self, CommandOutcome, HELP, SlashCommand};
use windlass::{Run, Session};

use crate::arguments::help;
use crate::display;
use crate::standard_io::{BATCH_BYTES, Output};
use crate::views::{RunView, rewind_report};

/// How long the politeness of SIGTERM lasts.
const TERMINATE_TIME: Duration = Duration::from_secs(2);

/// A little more than a command has between the request to end and the kill.
const END_OF_COMMANDS: Duration = Duration::from_millis(2_500);

/// The exit code of a second Ctrl-C.
pub(crate) const QUIT: i32 = 130;

/// How many updates are taken in a row before signals are looked at.
const UPDATES_IN_A_ROW: u32 = 256;

/// How a run came to its end for the process.
pub(crate) enum JobEnd {
    /// With its outcome, which has been shown.
    Done(Box<Outcome>),
    /// Nothing was asked for.
    Nothing,
    /// Nothing was done, and it was said why.
    Refused,
    /// Nobody reads standard output any more.
    Unread,
    /// It could not be shown.
    Unshown(io::Error),
    /// By a signal, with this exit code. What was to be shown has been shown if somebody read it in time.
    Signal(i32),
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

/// Everything a job needs besides the session.
pub(crate) struct JobRunner {
    pub(crate) view: RunView,
    pub(crate) output: Output,
    pub(crate) signals: Signals,
}

impl JobRunner {
    /// Does a job, and meanwhile what goes on beside it.
    pub(crate) async fn perform(
        &mut self,
        job: Job,
        session: &mut Session,
        beside: impl Future<Output = Infallible>,
    ) -> JobEnd {
        match job {
            Job::Run(prompt) => self.drive(session.run(prompt), beside).await,
            Job::GoOn => self.drive(session.go_on(), beside).await,
            Job::Refuse(why, id) => self.refuse(&why, id).await,
            // A future of its own size: commands are rare, and every other job would carry it along.
            Job::Command(command, id) => Box::pin(self.obey(command, id, session, beside)).await,
        }
    }

    /// Does what a command asks for, and shows what came of it.
    async fn obey(
        &mut self,
        command: SlashCommand,
        id: Option<Arc<str>>,
        session: &mut Session,
        beside: impl Future<Output = Infallible>,
    ) -> JobEnd {
        let (cwd, session_id) = (session.wired.engine.working_directory().to_owned(), session.key.id);
        let text = match session.perform(command, id.clone()).await {
            Ok(CommandOutcome::Compaction(run)) => return self.drive(run, beside).await,
            Ok(CommandOutcome::Context(report)) => slash_commands::context_report(&report),
            Ok(CommandOutcome::Cost { models, time }) => slash_commands::cost_report(&models, time),
            Ok(CommandOutcome::Help) => help::page(HELP),
            Ok(CommandOutcome::Prompts(prompts)) => rewind_report::listed(&prompts),
            Ok(CommandOutcome::Rewind(outcome)) => rewind_report::outcome(&outcome, &cwd, session_id),
            Err(error) => return self.refuse(&display::sentence(&error.to_string()), id).await,
        };
        self.answer(slash_commands::outcome(text, id)).await
    }

    /// Shows the answer to a command that no model was asked for.
    async fn answer(&mut self, outcome: Outcome) -> JobEnd {
        let outcome = Box::new(outcome);
        self.view.form.begin(&mut self.output.buffer);
        self.output.take_aside();
        if !outcome.prompts.is_empty() {
            let started = Update::PromptsStarted(outcome.prompts.clone());
            self.view.update(&started, &mut self.output.buffer);
        }
        let done = Update::Done(outcome.clone());
        self.view.update(&done, &mut self.output.buffer);
        let flushed = self.output.flush().await;
        self.view.written(&done);
        shown(flushed.map(|()| outcome))
    }

    async fn refuse(&mut self, error: &str, id: Option<Arc<str>>) -> JobEnd {
        self.view.form.begin(&mut self.output.buffer);
        self.output.take_aside();
        self.view.form.refuse(error, id.as_ref(), &mut self.output.buffer);
        self.output.flush().await.map_or_else(|error| shown(Err(error)), |()| JobEnd::Refused)
    }

    /// Runs to the end, and meanwhile does what goes on beside it. A second Ctrl-C ends the process at once.
    pub(crate) async fn drive(
        &mut self,
        mut run: Run<'_>,
        beside: impl Future<Output = Infallible>,
    ) -> JobEnd {
        let handle = run.handle();
        let Self { view, output, signals } = self;
        let mut showing = pin!(show(&mut run, view, output));
        let mut beside = pin!(beside);
        let mut interrupted = false;
        loop {
            let received = tokio::select! {
                biased;
                received = signals.next() => received,
                end = &mut showing => return shown(end),
                never = &mut beside => match never {},
            };
            match received {
                ProcessSignal::Interrupt if interrupted => return JobEnd::Signal(QUIT),
                ProcessSignal::Interrupt => interrupted = true,
                ProcessSignal::Terminate(code) => {
                    handle.leave();
                    let _ = tokio::time::timeout(TERMINATE_TIME, showing).await;
                    return JobEnd::Signal(code);
                }
            }
            handle.interrupt();
        }
    }
}

/// Shows what goes on since a run ended, for as long as nothing else is asked for. Can be dropped at any point.
pub(crate) async fn show_background(
    session: &mut Session,
    view: &mut RunView,
    output: &mut Output,
) -> Infallible {
    let mut background = session.background();
    while let Some(update) = background.next().await {
        view.update(&update, &mut output.buffer);
        // Who does not read any more is noticed with the next run.
        let _ = output.flush().await;
    }
    std::future::pending().await
}

/// How showing a run came to its end.
pub(crate) fn shown(end: io::Result<Box<Outcome>>) -> JobEnd {
    match end {
        Ok(outcome) => JobEnd::Done(outcome),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => JobEnd::Unread,
        Err(error) => JobEnd::Unshown(error),
    }
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

/// Shows every update. What is ready is written together; before waiting, everything is written out.
async fn show(run: &mut Run<'_>, view: &mut RunView, output: &mut Output) -> io::Result<Box<Outcome>> {
    view.form.begin(&mut output.buffer);
    let mut in_a_row = 0;
    loop {
        let update = if let Some(update) = ready(run).await {
            update
        } else {
            output.take_aside();
            output.flush().await?;
            in_a_row = 0;
            wait(run, view, output).await?
        };
        // A run ends with its outcome; one that ends without it has lost the machine behind it.
        let Some(update) = update else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        output.take_aside();
        if output.is_unbuffered {
            // Whoever watches may write beside it.
            output.flush().await?;
        }
        view.update(&update, &mut output.buffer);
        if let Update::Done(_) = update {
            output.flush().await?;
            view.written(&update);
        }
        if let Update::Done(outcome) = update {
            return Ok(outcome);
        }
        if output.is_unbuffered || output.buffer.len() >= BATCH_BYTES {
            output.flush().await?;
        }
        in_a_row += 1;
        if in_a_row >= UPDATES_IN_A_ROW {
            in_a_row = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// The next update, if it is there without waiting for the outside; the connection's task goes first once.
async fn ready(run: &mut Run<'_>) -> Option<Option<Update>> {
    if let Some(update) = run.next().now_or_never() {
        return Some(update);
    }
    let mut went_first = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut went_first, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    run.next().now_or_never()
}

/// Waits for the next update; the view and others may have something to say meanwhile.
async fn wait(run: &mut Run<'_>, view: &mut RunView, output: &mut Output) -> io::Result<Option<Update>> {
    let aside = output.aside.clone();
    loop {
        let pause = view.next_tick();
        tokio::select! {
            update = run.next() => return Ok(update),
            () = tick(pause) => {
                output.take_aside();
                view.tick(&mut output.buffer);
            }
            () = aside.left() => output.take_aside(),
        }
        output.flush().await?;
    }
}

async fn tick(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// The number that Linux gives to the signal about the size of files.
const SIGXFSZ: i32 = 25;

pub(crate) enum ProcessSignal {
    Interrupt,
    /// With the exit code that tells of it.
    Terminate(i32),
}

impl ProcessSignal {
    /// The exit code of a process that has nothing to finish.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Self::Interrupt => QUIT,
            Self::Terminate(code) => *code,
        }
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

    /// For whoever reads the keyboard.
    pub(crate) fn interrupter(&self) -> Interrupter {
        Interrupter(self.keyboard.0.clone())
    }

    pub(crate) async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ProcessSignal::Interrupt,
            _ = self.keyboard.1.recv() => ProcessSignal::Interrupt,
            _ = self.terminate.recv() => ProcessSignal::Terminate(143),
            () = received(&mut self.hang_up) => ProcessSignal::Terminate(129),
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether whoever started this process arranged that a hang-up does not end it.
fn ignores_hang_up() -> bool {
    // Room enough, so that it is read at once.
    let mut status = String::with_capacity(4096);
    let _ = File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
