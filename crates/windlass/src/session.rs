//! An open session and its runs.

use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, Stream, StreamExt};
use windlass_engine::{Handle, Prompt, Update};
use windlass_ports::BoxFuture;
use windlass_protocol::{Decision, EndReason, PermissionUpdate, Question, SessionKey};
use windlass_session::{PromptLine, SessionInfo};

use crate::error::SessionError;
use crate::options::Approver;
use crate::permission_saver::PermissionSaver;
use crate::rewind::{self, RewindOutcome, RewindRequest};
use crate::sessions::KeptSession;
use crate::slash_commands::{self, CommandOutcome, SlashCommand, SlashCommandReport};
use crate::wiring::WiredEngine;

/// Hears what the application has to say beside the updates of a run.
pub(crate) type Notify = dyn Fn(&str) + Send + Sync;

/// A session that is open, with everything of the engine's [`Session`](windlass_engine::Session).
///
/// Runs that begin here save changes of the permissions, and ask the [`Approver`] if there is one.
pub struct Session {
    pub(crate) inner: Box<windlass_engine::Session>,
    /// How it can go back; not if nothing of it is kept.
    pub(crate) kept: Option<KeptSession>,
    pub(crate) saver: PermissionSaver,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) notify: Arc<Notify>,
    /// Its id and its seeds.
    pub key: SessionKey,
    /// The engine behind it, and what is to be said about that.
    pub wired: WiredEngine,
    /// Which session goes on.
    pub resumed: Option<SessionInfo>,
    /// What the user should know about the session itself: what was damaged, cut off or is different now.
    pub notices: Vec<String>,
}

impl Deref for Session {
    type Target = windlass_engine::Session;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl Session {
    /// The prompts it can go back to, in their order; an error if nothing of it is kept.
    pub fn prompts(&self) -> Result<Vec<PromptLine>, SessionError> {
        self.kept.as_ref().ok_or(SessionError::NotSaved)?.prompts()
    }

    /// Goes back to before a prompt; an error if nothing of it is kept.
    pub async fn rewind(&mut self, request: &RewindRequest) -> Result<RewindOutcome, SessionError> {
        let kept = self.kept.as_ref().ok_or(SessionError::NotSaved)?;
        rewind::rewind(kept, &mut self.inner, request).await
    }

    /// Whether there is something to go on with without a prompt.
    pub fn can_go_on(&self) -> bool {
        self.awaits_answer() || !self.unfinished_prompts().is_empty()
    }

    /// Whether there is something on disk to go on with.
    pub fn is_begun(&self) -> bool {
        self.kept.as_ref().is_some_and(KeptSession::is_begun)
    }

    /// From now on, calls `notify` with what is to be said beside the updates, such as where a rule was saved.
    pub fn on_notice(&mut self, notify: impl Fn(&str) + Send + Sync + 'static) {
        self.notify = Arc::new(notify);
    }

    /// Runs a prompt.
    pub fn run(&mut self, prompt: impl Into<Prompt>) -> Run<'_> {
        let (beside, inner) = self.parts();
        Run::new(inner.run(prompt), beside)
    }

    /// Goes on where the session was cut off.
    pub fn go_on(&mut self) -> Run<'_> {
        let (beside, inner) = self.parts();
        Run::new(inner.go_on(), beside)
    }

    /// Compacts the conversation; the summary keeps what `focus` names. The text of the outcome says what came of it.
    pub fn compact(&mut self, focus: impl Into<String>) -> Run<'_> {
        let (beside, inner) = self.parts();
        Run { compaction: Some(RequestedCompaction::default()), ..Run::new(inner.compact(focus), beside) }
    }

    /// Does what a command asks for; `prompt` is the id of the prompt that it came as.
    pub async fn perform(
        &mut self,
        command: SlashCommand,
        prompt: Option<Arc<str>>,
    ) -> Result<CommandOutcome<'_>, SessionError> {
        let report = match command {
            SlashCommand::Compact(_) if !self.wired.can_compact => return Err(SessionError::CompactOff),
            SlashCommand::Compact(focus) => {
                let run = self.compact(focus);
                let compaction = RequestedCompaction { prompt, ..RequestedCompaction::default() };
                return Ok(CommandOutcome::Compaction(Run { compaction: Some(compaction), ..run }));
            }
            SlashCommand::Context => SlashCommandReport::Context(self.context_report()),
            SlashCommand::Cost => {
                SlashCommandReport::Cost { models: self.spending().clone(), time: self.time() }
            }
            SlashCommand::Help => SlashCommandReport::Help,
            SlashCommand::Rewind(_) if self.kept.is_none() => return Err(SessionError::NotSaved),
            SlashCommand::Rewind(words) => match RewindRequest::parse(&words)? {
                None => SlashCommandReport::Prompts(self.prompts()?),
                Some(request) => SlashCommandReport::Rewind(self.rewind(&request).await?),
            },
        };
        Ok(CommandOutcome::Report(report))
    }

    fn parts(&mut self) -> (RunSideWork<'_>, &mut windlass_engine::Session) {
        let Self { inner, saver, approver, notify, .. } = self;
        let answers = FuturesUnordered::new();
        (RunSideWork { saver, approver: approver.as_ref(), notify: &**notify, answers }, inner)
    }

    /// Ends the session: hooks hear of it, the log is complete, the session gets its name. Gives what could not be done.
    pub async fn close(self, reason: EndReason) -> Vec<String> {
        let Self { mut inner, wired, kept, .. } = self;
        let mut notices = inner.end(reason).await;
        if let Some(hooks) = wired.hooks {
            hooks.end_background().await;
        }
        drop(inner);
        notices.extend(kept.map(KeptSession::close).unwrap_or_default());
        notices
    }
}

/// One prompt at work: a lazy stream of updates that ends after exactly one [`Update::Done`].
#[must_use = "a run does nothing until it is polled"]
pub struct Run<'session> {
    inner: windlass_engine::Run<'session>,
    beside: RunSideWork<'session>,
    compaction: Option<RequestedCompaction>,
}

/// A compaction on request: the outcome of its run says what came of it.
#[derive(Default)]
struct RequestedCompaction {
    /// The id of the prompt that asks for it.
    prompt: Option<Arc<str>>,
    has_started: bool,
    report: Option<String>,
}

/// What the application does beside a run.
struct RunSideWork<'session> {
    saver: &'session PermissionSaver,
    approver: Option<&'session Arc<dyn Approver>>,
    notify: &'session Notify,
    answers: FuturesUnordered<BoxFuture<'static, ()>>,
}

impl<'session> Run<'session> {
    fn new(inner: windlass_engine::Run<'session>, beside: RunSideWork<'session>) -> Self {
        Self { inner, beside, compaction: None }
    }

    /// The next update; none behind the outcome.
    pub async fn next(&mut self) -> Option<Update> {
        StreamExt::next(self).await
    }

    /// Runs to the end, and gives all updates.
    pub async fn updates(self) -> Vec<Update> {
        self.collect().await
    }

    /// A handle for other tasks.
    pub fn handle(&self) -> Handle {
        self.inner.handle()
    }
}

impl RequestedCompaction {
    /// What comes before any other update: the prompt that asks for it is being worked on.
    fn start(&mut self) -> Option<Update> {
        let is_first = !std::mem::replace(&mut self.has_started, true);
        let prompt = self.prompt.clone().filter(|_| is_first)?;
        Some(Update::PromptsStarted(vec![prompt]))
    }

    fn report(&mut self, update: &mut Update) {
        match update {
            Update::Decided(Decision::Compacted(compaction)) => {
                self.report = Some(slash_commands::compaction_report(compaction));
            }
            Update::CompactionFailed(error) => self.report = Some(format!("Not compacted: {error}")),
            Update::Done(outcome) => {
                if outcome.terminal.is_success() {
                    outcome.text = self.report.take().unwrap_or_else(|| "Nothing to compact.".into());
                    // The summariser is no iteration of a loop of its own.
                    outcome.iterations = 0;
                }
                outcome.prompts.extend(self.prompt.take());
            }
            _ => (),
        }
    }
}

impl RunSideWork<'_> {
    fn heed(&mut self, update: &Update, handle: impl FnOnce() -> Handle) {
        match update {
            Update::Permissions(changes) => self.save(changes),
            Update::Question(question) => self.ask(question, handle),
            _ => (),
        }
    }

    fn save(&self, changes: &[PermissionUpdate]) {
        for notice in changes.iter().filter_map(|change| self.saver.save_or_explain(change)) {
            (self.notify)(&notice);
        }
    }

    fn ask(&self, question: &Question, handle: impl FnOnce() -> Handle) {
        let Some(approver) = self.approver else { return };
        let (call, answer, handle) = (question.call, approver.approve(question.clone()), handle());
        self.answers.push(Box::pin(async move {
            // A run that is over waits for no answer.
            let _ = handle.answer(call, answer.await).await;
        }));
    }
}

impl Stream for Run<'_> {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        let Self { inner, beside, compaction } = self.get_mut();
        if let Some(started) = compaction.as_mut().and_then(RequestedCompaction::start) {
            return Poll::Ready(Some(started));
        }
        while let Poll::Ready(Some(())) = Pin::new(&mut beside.answers).poll_next(cx) {}
        let mut polled = Pin::new(&mut *inner).poll_next(cx);
        if let Poll::Ready(Some(update)) = &mut polled {
            beside.heed(update, || inner.handle());
            if let Some(compaction) = compaction {
                compaction.report(update);
            }
        }
        polled
    }
}
