//! A session: one conversation, one prompt after the other. Besides its runs, hooks hear of news of the host and of its end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_core::{Event, Prompt, RetryablePrompt, State};
use windlass_ports::{LogError, SessionLog};
use windlass_protocol::{
    ContextReport, EndReason, HookCall, HookEvent, HookScene, ModelSpend, Role, SessionSeed, StartSource,
    TimeSpent, Transcript, estimate_tokens,
};

use crate::builder::{Engine, EngineParts};
use crate::effects::ask_hooks;
use crate::inbox::{Handle, Inbox, inbox};
use crate::machine::{Machine, SessionParts};
use crate::prompt::{environment_note, introduction, token_budget};
use crate::results::ResultFiles;
use crate::run::{Background, Run};

/// A conversation with an id. It takes submissions one after the other.
pub struct Session {
    pub(crate) machine: Machine,
    pub(crate) inbox: Inbox,
    pub(crate) shared: Arc<EngineParts>,
    seed: SessionSeed,
    untold: PendingIntroduction,
    /// Why it begins, until hooks hear of it.
    start: Option<StartSource>,
    /// Whether there was a run, with which hooks hear that the session begins.
    has_run: bool,
    handle: Handle,
}

/// What the model was not told yet about its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingIntroduction {
    Everything,
    /// That it works elsewhere than before.
    Place,
    Nothing,
}

impl Session {
    pub(crate) fn new(shared: Arc<EngineParts>, seed: SessionSeed, state: State) -> Self {
        let results = Arc::new(ResultFiles::new(shared.ports.results_directory.clone()));
        let parts = SessionParts { shared: shared.clone(), results, started: Instant::now() };
        let (inbox, handle) = inbox(shared.ports.tasks.clone());
        let is_new = state.messages().is_empty();
        let untold = if is_new { PendingIntroduction::Everything } else { PendingIntroduction::Nothing };
        let start = Some(if is_new { StartSource::Startup } else { StartSource::Resume });
        let machine = Machine::new(parts, shared.config.clone(), state, seed);
        Self { machine, inbox, shared, seed, untold, start, has_run: false, handle }
    }

    /// Puts everything that happens from now on into a new log. What was said before goes in first.
    #[must_use]
    pub fn logged(mut self, log: Box<dyn SessionLog>) -> Self {
        self.machine.log_to(log);
        self
    }

    /// Starts a run. Nothing happens until it is polled.
    ///
    /// What was steered during the last run and never reached the model goes in first, in order. A word such as `+500k` at
    /// the beginning or the end of the prompt's first text is a budget of output tokens.
    pub fn run(&mut self, prompt: impl Into<Prompt>) -> Run<'_> {
        let mut prompt = prompt.into();
        prompt.token_budget = prompt.token_budget.or_else(|| token_budget(&prompt.blocks));
        match std::mem::replace(&mut self.untold, PendingIntroduction::Nothing) {
            PendingIntroduction::Everything => {
                prompt.context = introduction(&self.shared.cwd, &self.shared.config.memory);
            }
            PendingIntroduction::Place => prompt.context = vec![environment_note(self.cwd())],
            PendingIntroduction::Nothing => (),
        }
        prompt.start = self.take_start();
        self.start(Event::Submit(prompt))
    }

    /// Starts a run that only compacts. `focus` says what the summary is to keep, in the user's words; it may be empty.
    pub fn compact(&mut self, focus: impl Into<String>) -> Run<'_> {
        self.start(Event::Compact { focus: focus.into() })
    }

    /// Starts a run that goes on where another was left: the model is asked again without a new prompt.
    pub fn go_on(&mut self) -> Run<'_> {
        let start = self.take_start();
        self.start(Event::GoOn { start })
    }

    /// What is at work since the last run ended, such as a suggestion for the next prompt: a stream of its updates that ends
    /// when nothing is left. No poll, no progress. It can be dropped and asked for again; the next run cancels what is left.
    pub fn background(&mut self) -> Background<'_> {
        Background { session: self }
    }

    /// Says why the session begins, for the hooks of its first run; by default new without a past, else resumed.
    pub fn set_start_source(&mut self, source: StartSource) {
        self.start = Some(source);
    }

    /// Where no hook hears of it, nothing is said.
    fn take_start(&mut self) -> Option<StartSource> {
        let hooks = &self.shared.config.hooks;
        let is_heard = |event| hooks.contains(event);
        let told = [HookEvent::SessionStart, HookEvent::InstructionsLoaded].iter().any(is_heard);
        self.start.take().filter(|_| told)
    }

    /// Restates everything in the log now, without a run: for a session that was made to say something else, as by a rewind.
    pub async fn restate(&mut self) -> Result<(), LogError> {
        self.machine.stop();
        let mut begun = false;
        std::future::poll_fn(|cx| self.machine.poll_restate(&mut begun, cx)).await
    }

    fn start(&mut self, event: Event) -> Run<'_> {
        self.take_messages();
        self.has_run = true;
        self.machine.rest();
        Run { session: self, first: Some(event) }
    }

    /// The session goes on in another directory than before: the next prompt tells the model.
    pub fn announce_directory(&mut self) {
        if self.untold == PendingIntroduction::Nothing {
            self.untold = PendingIntroduction::Place;
        }
    }

    /// A handle for other tasks.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// What the session had cost when it was resumed, in USD: a cap counts what is spent beyond it.
    pub fn before_usd(&self) -> f64 {
        self.machine.state.before_usd()
    }

    /// The session's seed; its ids follow from it.
    pub fn seed(&self) -> SessionSeed {
        self.seed
    }

    /// The conversation so far. Between runs it can be sent to a model as it is.
    pub fn messages(&self) -> &Transcript {
        self.machine.state.messages()
    }

    /// Whether the last word is the user's: [`go_on`](Self::go_on) asks the model for the answer.
    pub fn awaits_answer(&self) -> bool {
        self.messages().last().is_some_and(|last| last.role == Role::User)
    }

    /// The working directory of the next call.
    pub fn cwd(&self) -> &Path {
        self.machine.state.cwd()
    }

    /// The messages that wait and that no request has carried yet, the next first, as far as the session knows of them.
    pub fn waiting_prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.machine.state.waiting_prompts()
    }

    /// Takes back what waits under this id, for good. Between runs; during one there may be nothing to take back any more.
    pub fn take_back(&mut self, id: Arc<str>) {
        self.take_messages();
        self.machine.advance(Event::TakeBack(id));
    }

    /// How many messages wait for the next run: those that were steered, and news of background tasks.
    pub fn waiting(&mut self) -> usize {
        self.take_messages();
        self.machine.state.waiting()
    }

    /// How full the context is. What the first prompt will bring with it counts already.
    pub fn context_report(&self) -> ContextReport {
        let mut report = self.machine.state.context_report(&self.shared.config);
        if self.untold == PendingIntroduction::Everything {
            let blocks = introduction(&self.shared.cwd, &self.shared.config.memory);
            for (part, block) in ["environment", "memory"].into_iter().zip(&blocks) {
                let tokens = u64::from(estimate_tokens(block));
                report.used += tokens;
                report.parts.push((part, tokens));
            }
        }
        report
    }

    /// What each model took in this session, over all runs.
    pub fn spending(&self) -> &BTreeMap<Arc<str>, ModelSpend> {
        self.machine.state.spent_in_session()
    }

    /// How long the runs of this session took, in earlier processes too. A run that was cut off does not count.
    pub fn time(&self) -> TimeSpent {
        self.machine.state.time_in_session()
    }

    /// What this session has cost; nothing if the price of a model it used is not known.
    pub fn cost_usd(&self) -> Option<f64> {
        ModelSpend::cost_usd(self.spending())
    }

    /// The prompts of runs that failed, were dropped or were cut off, in order, also those of another process: they may be run
    /// again. A run that ends well answers to everything before it, so none is left after it; nor after one that was interrupted,
    /// since the person who stopped it has seen what came of it.
    pub fn unfinished_prompts(&self) -> Vec<RetryablePrompt> {
        self.machine.state.unfinished_prompts().collect()
    }

    /// Lets hooks hear that the session is left, and waits for them as long as they may take. What they have to say to the user
    /// comes back. Without any run, no hook heard that it began, so none hears that it ends. Nothing else ends with it: a session
    /// can be dropped without.
    pub fn end(&mut self, reason: EndReason) -> impl Future<Output = Vec<String>> + Send + use<> {
        let ended = tell(&self.shared, self.cwd().to_owned(), HookCall::SessionEnd { reason });
        let has_run = self.has_run;
        async move { if has_run { ended.await } else { Vec::new() } }
    }

    /// Keeps what was said between runs.
    fn take_messages(&mut self) {
        for message in self.inbox.take_messages() {
            self.machine.advance(message);
        }
    }
}

impl Engine {
    /// Lets hooks hear of something that the host tells the user. `kind` is the host's name for this kind of news, such as
    /// `permission_prompt`. What the hooks have to say to the user comes back; nothing happens until the future is polled.
    pub fn notify(
        &self,
        kind: &str,
        message: &str,
        title: Option<&str>,
    ) -> impl Future<Output = Vec<String>> + Send + use<> {
        let title = title.map(Arc::from);
        let call = HookCall::Notification { kind: kind.into(), message: message.into(), title };
        tell(&self.shared, self.shared.cwd.clone(), call)
    }
}

/// Asks the hooks of an event that no run waits for.
fn tell(
    shared: &EngineParts,
    cwd: PathBuf,
    call: HookCall,
) -> impl Future<Output = Vec<String>> + Send + use<> {
    let config = &shared.config;
    let is_heard = config.hooks.contains(&call.event());
    let (cwd, mode) = (Arc::new(cwd), config.permissions.mode.name());
    let scene = HookScene { cwd, mode, effort: config.effort, ..HookScene::default() };
    let asked = ask_hooks(shared, call, scene, CancellationToken::new());
    async move { if is_heard { asked.await.into_user_texts() } else { Vec::new() } }
}
