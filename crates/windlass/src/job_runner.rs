//! Carries jobs and runs through to their end: updates to a view, requests to stop to the run, a host's lines to the session.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use uuid::Uuid;
use windlass_engine::{Outcome, Update};

use crate::display;
use crate::host_conversation::{HostConversation, HostInput, InputEnd};
use crate::jobs::Job;
use crate::output::{BATCH_BYTES, Output, OutputSink};
use crate::session::{Run, Session};
use crate::slash_commands::{self, CommandOutcome, SlashCommand, SlashCommandReport};

/// How long a run has to end after a request to end everything.
const TERMINATE_TIME: Duration = Duration::from_secs(2);

/// How many updates are taken in a row before requests to stop are looked at.
const UPDATES_IN_A_ROW: u32 = 256;

/// Shows runs. Whatever belongs into the output is appended to the caller's buffer.
pub trait JobView: Send {
    /// A run begins.
    fn begin(&mut self, _out: &mut Vec<u8>) {}
    /// Something happened.
    fn update(&mut self, update: &Update, out: &mut Vec<u8>);
    /// The outcome and everything before it is written out, so that more can stand behind it.
    fn note_written(&mut self, _done: &Update) {}
    /// How long from now until [`JobView::tick`] is due, if it is.
    fn next_tick(&self) -> Option<Duration> {
        None
    }
    /// Time has passed.
    fn tick(&mut self, _out: &mut Vec<u8>) {}
    /// Nothing is done about a prompt, and why.
    fn refuse(&mut self, error: &str, prompt: Option<&Arc<str>>, out: &mut Vec<u8>);
}

/// Acts on what was shown.
pub type UpdateWatcher = Box<dyn FnMut(&Update) + Send>;

/// The words for the outcome of a command, of a session in this directory with this id.
pub type ReportWords = fn(SlashCommandReport, &Path, Uuid) -> String;

/// Asks to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// The run; asked for again, everything at once.
    Interrupt,
    /// Everything, soon. With the exit code that tells of it.
    Terminate(i32),
}

/// Where requests to stop come from.
pub trait StopRequests: Send {
    /// The next one. Can be dropped at any point: none is missed.
    fn next(&mut self) -> impl Future<Output = StopRequest> + Send;
}

/// How a job came to its end.
#[derive(Debug)]
pub enum JobEnd {
    /// With its outcome, which has been shown.
    Done(Box<Outcome>),
    /// Nothing was asked for.
    Nothing,
    /// Nothing was done, and it was said why.
    Refused,
    /// The output is closed: its reader is gone.
    Unread,
    /// It could not be shown.
    Unshown(io::Error),
    /// By a request to stop. What was to be shown has been shown if it was read in time.
    Stopped(StopRequest),
}

/// Everything a job needs besides the session.
pub struct JobRunner<V, S, R> {
    /// What shows the runs.
    pub display: RunDisplay<V, S>,
    /// What stops runs.
    pub stops: R,
    /// What is said about commands.
    pub words: ReportWords,
}

/// What shows runs.
pub struct RunDisplay<V, S> {
    /// How they are shown.
    pub view: V,
    /// Where they are shown.
    pub output: Output<S>,
    /// They act on what was shown.
    pub watchers: Vec<UpdateWatcher>,
}

impl<V: JobView, S: OutputSink, R: StopRequests> JobRunner<V, S, R> {
    /// Does a job, and meanwhile what goes on beside it.
    pub async fn perform(
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
        match session.perform(command, id.clone()).await {
            Ok(CommandOutcome::Compaction(run)) => self.drive(run, beside).await,
            Ok(CommandOutcome::Report(report)) => {
                let text = (self.words)(report, &cwd, session_id);
                self.answer(slash_commands::outcome(text, id)).await
            }
            Err(error) => self.refuse(&display::sentence(&error.to_string()), id).await,
        }
    }

    /// Shows the answer to a command that no model was asked for.
    async fn answer(&mut self, outcome: Outcome) -> JobEnd {
        let outcome = Box::new(outcome);
        self.display.begin();
        if !outcome.prompts.is_empty() {
            self.display.update(&Update::PromptsStarted(outcome.prompts.clone()));
        }
        let done = Update::Done(outcome.clone());
        self.display.update(&done);
        let flushed = self.display.output.flush().await;
        self.display.view.note_written(&done);
        job_end(flushed.map(|()| outcome))
    }

    async fn refuse(&mut self, error: &str, id: Option<Arc<str>>) -> JobEnd {
        self.display.begin();
        self.display.view.refuse(error, id.as_ref(), &mut self.display.output.buffer);
        self.display.output.flush().await.map_or_else(|error| job_end(Err(error)), |()| JobEnd::Refused)
    }

    /// Runs to the end, and meanwhile does what goes on beside it. A second interrupt ends it at once.
    pub async fn drive(&mut self, mut run: Run<'_>, beside: impl Future<Output = Infallible>) -> JobEnd {
        let handle = run.handle();
        let mut showing = pin!(self.display.show(&mut run));
        let mut beside = pin!(beside);
        let mut is_interrupted = false;
        loop {
            let asked = tokio::select! {
                biased;
                asked = self.stops.next() => asked,
                end = &mut showing => return job_end(end),
                never = &mut beside => match never {},
            };
            match asked {
                StopRequest::Interrupt if is_interrupted => return JobEnd::Stopped(asked),
                StopRequest::Interrupt => is_interrupted = true,
                StopRequest::Terminate(_) => {
                    handle.leave();
                    let _ = tokio::time::timeout(TERMINATE_TIME, showing).await;
                    return JobEnd::Stopped(asked);
                }
            }
            handle.interrupt();
        }
    }

    /// Waits for what is next, and meanwhile shows what goes on since a run ended. Fails if it is asked to stop.
    pub async fn idle<T>(
        &mut self,
        session: &mut Session,
        next: impl Future<Output = T>,
    ) -> Result<T, StopRequest> {
        tokio::select! {
            biased;
            asked = self.stops.next() => Err(asked),
            next = next => Ok(next),
            never = self.display.show_background(session) => match never {},
        }
    }

    /// Does what a host asks for, until it is done. Gives the end of the last job.
    pub async fn serve(
        &mut self,
        session: &mut Session,
        mut conversation: HostConversation<impl HostInput>,
    ) -> JobEnd {
        let handed = conversation.handed.clone();
        self.display.watchers.push(Box::new(move |update| handed.heed(update)));
        let end = self.converse(session, &mut conversation).await;
        self.display.watchers.pop();
        end
    }

    async fn converse(
        &mut self,
        session: &mut Session,
        conversation: &mut HostConversation<impl HostInput>,
    ) -> JobEnd {
        let (mut last, aside) = (None, self.display.output.aside.clone());
        loop {
            if let Some(job) = conversation.next_job(session).await {
                let handle = session.handle();
                match self.perform(job, session, conversation.join(handle)).await {
                    end @ (JobEnd::Done(_) | JobEnd::Refused) => last = Some(end),
                    end => return end,
                }
                continue;
            }
            self.display.output.take_aside();
            if let Err(error) = self.display.output.flush().await {
                return job_end(Err(error));
            }
            match conversation.end {
                None => {}
                Some(InputEnd::Invalid) => return JobEnd::Refused,
                Some(InputEnd::Closed) => return last.unwrap_or(JobEnd::Nothing),
            }
            let news = async {
                tokio::select! {
                    biased;
                    _ = conversation.read() => {}
                    () = aside.wait_for_lines() => {}
                }
            };
            if let Err(asked) = self.idle(session, news).await {
                return JobEnd::Stopped(asked);
            }
        }
    }
}

impl<V: JobView, S: OutputSink> RunDisplay<V, S> {
    /// Something new is shown, behind what others left.
    fn begin(&mut self) {
        self.view.begin(&mut self.output.buffer);
        self.output.take_aside();
    }

    fn update(&mut self, update: &Update) {
        self.view.update(update, &mut self.output.buffer);
        for watch in &mut self.watchers {
            watch(update);
        }
    }

    /// Shows every update. What is ready is written together; before waiting, everything is written out.
    async fn show(&mut self, run: &mut Run<'_>) -> io::Result<Box<Outcome>> {
        self.view.begin(&mut self.output.buffer);
        let mut in_a_row = 0;
        loop {
            let update = if let Some(update) = next_ready(run).await {
                update
            } else {
                self.output.take_aside();
                self.output.flush().await?;
                in_a_row = 0;
                self.wait(run).await?
            };
            // A run ends with its outcome; one that ends without it has lost the machine behind it.
            let Some(update) = update else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            self.output.take_aside();
            if self.output.is_unbuffered {
                // Whoever watches may write beside it.
                self.output.flush().await?;
            }
            self.update(&update);
            if let Update::Done(_) = update {
                self.output.flush().await?;
                self.view.note_written(&update);
            }
            if let Update::Done(outcome) = update {
                return Ok(outcome);
            }
            if self.output.is_unbuffered || self.output.buffer.len() >= BATCH_BYTES {
                self.output.flush().await?;
            }
            in_a_row += 1;
            if in_a_row >= UPDATES_IN_A_ROW {
                in_a_row = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits for the next update; the view and others may have something to say meanwhile.
    async fn wait(&mut self, run: &mut Run<'_>) -> io::Result<Option<Update>> {
        let aside = self.output.aside.clone();
        loop {
            let pause = self.view.next_tick();
            tokio::select! {
                update = run.next() => return Ok(update),
                () = tick(pause) => {
                    self.output.take_aside();
                    self.view.tick(&mut self.output.buffer);
                }
                () = aside.wait_for_lines() => self.output.take_aside(),
            }
            self.output.flush().await?;
        }
    }

    /// Shows what goes on since a run ended. Can be dropped at any point.
    async fn show_background(&mut self, session: &mut Session) -> Infallible {
        let mut background = session.background();
        while let Some(update) = background.next().await {
            self.update(&update);
            // Who does not read any more is noticed with the next run.
            let _ = self.output.flush().await;
        }
        std::future::pending().await
    }
}

/// How showing a run came to its end.
fn job_end(end: io::Result<Box<Outcome>>) -> JobEnd {
    match end {
        Ok(outcome) => JobEnd::Done(outcome),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => JobEnd::Unread,
        Err(error) => JobEnd::Unshown(error),
    }
}

/// The next update, if it is there without waiting for the outside; the connection's task goes first once.
async fn next_ready(run: &mut Run<'_>) -> Option<Option<Update>> {
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

async fn tick(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}
