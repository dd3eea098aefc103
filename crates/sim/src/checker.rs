//! What must hold after every step of every run.

mod account;
mod calls;
mod crash;
mod doubt;
mod log;
mod order;
mod requests;
mod side_work;
mod turns;

use windlass_core::{Config, Effect, Event, PhaseName, RecalledSession, RunSource, State};
use windlass_protocol::{
    CallId, CallKind, Decision, HookEvent, ModelEvent, Record, Repair, RequestId, SessionSnapshot, Terminal,
    Transcript, Update,
};

use crate::thinking::Bindings;
use account::Account;
use calls::Calls;
use crash::{Witness, finished_call};
use doubt::Doubt;
use order::Order;
use requests::Requests;
use side_work::SideWork;
use turns::Turns;

/// Watches one session from outside and knows only what the driver would know.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// The request that is out.
    pub(crate) request: Option<RequestId>,
    pub(crate) calls: Calls,
    /// The text of the block that is not complete yet.
    pub(crate) spoken: String,
    account: Account,
    requests: Requests,
    turns: Turns,
    side_work: SideWork,
    order: Order,
    witness: Witness,
    doubt: Doubt,
    dones: u32,
    /// Prompts that were suggested since the end.
    suggestions: u32,
    /// A prompt was submitted and is not part of the conversation yet.
    is_submitting: bool,
    /// The log failed in this run: the core asked for things that were not done.
    has_log_failed: bool,
    /// The call that the event of this step says has come to its end.
    finished: Option<CallId>,
    /// The run goes on where another was left, and may have to ask the model to.
    is_continuation: bool,
    /// How often somebody was asked about a call in doubt.
    pub(crate) doubts_asked: u64,
    /// How often a fork was cancelled that had cost something.
    pub(crate) forks_cut_short: u64,
}

/// One step as the driver sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedStep<'a> {
    /// Where the machine was before.
    pub(crate) from: PhaseName,
    /// Whether a prompt was submitted.
    pub(crate) is_submitted: bool,
    /// The state it led to.
    pub(crate) state: &'a State,
    pub(crate) effects: &'a [Effect],
    pub(crate) config: &'a Config,
    pub(crate) now_ms: u64,
    /// Whether effects behind these were not done.
    pub(crate) is_cut: bool,
}

type Verdict = Result<(), String>;

impl Checker {
    /// For a session that begins in this directory with these messages.
    pub(crate) fn new(cwd: std::path::PathBuf, messages: &Transcript) -> Self {
        let calls = Calls::new(cwd);
        Self { calls, requests: Requests::of(messages), ..Self::default() }
    }

    /// A new run of the same session begins.
    pub(crate) fn begin_run(&mut self) {
        *self = Self {
            calls: self.calls.next_run(),
            account: self.account.next_run(),
            requests: std::mem::take(&mut self.requests).next_run(),
            doubt: self.doubt.clone(),
            witness: self.witness.next_run(),
            side_work: self.side_work.next_run(),
            ..Self::default()
        };
    }

    /// Nobody drives the run any more.
    pub(crate) fn on_drop(&mut self, state: &State) -> Verdict {
        self.requests.on_drop(state)
    }

    /// The log cannot be written, so what stands behind does not happen.
    pub(crate) fn on_log_failed(&mut self) {
        self.has_log_failed = true;
        self.account.is_blind = true;
        self.requests.is_blind = true;
        self.side_work.is_blind = true;
        self.calls.is_blind = true;
        self.witness.is_blind = true;
    }

    /// The process ended, and this is what another recalls. The last append got as far as `tail`.
    pub(crate) fn check_recalled(&mut self, recalled: &RecalledSession, tail: &[Record]) -> Verdict {
        self.witness.check(recalled, tail)
    }

    /// What was shown is not all there is: the session is what these facts say.
    pub(crate) fn rebase(&mut self, facts: &SessionSnapshot) {
        self.account.rebase(facts.total_usd);
        self.calls.rebase(facts);
        self.requests.rebase(&facts.messages.iter().cloned().collect());
        self.doubt = Doubt::of(&facts.doubtful);
    }

    /// Another process has opened the session.
    pub(crate) fn on_opened(&mut self) {
        self.account.on_opened();
        self.side_work.forget_background();
    }

    /// Everything that counts is in the log again.
    pub(crate) fn on_restated(&mut self) {
        self.witness.on_restated();
    }

    /// Whether the log failed in this run.
    pub(crate) fn has_log_failed(&self) -> bool {
        self.has_log_failed
    }

    /// Steered prompts that became part of the conversation.
    pub(crate) fn steered_prompts(&self) -> usize {
        self.requests.steered_prompts()
    }

    /// What the provider knows of the thinking it has given out.
    pub(crate) fn bindings(&self) -> &Bindings {
        self.requests.bindings()
    }

    /// Something is about to happen.
    pub(crate) fn on_event(&mut self, event: &Event, config: &Config) {
        match event {
            Event::Model(request, event) if self.request == Some(*request) => {
                self.turns.on_response(event);
                if matches!(event, ModelEvent::Failed(_)) {
                    self.account.close_response(config);
                }
                if matches!(event, ModelEvent::Ended { .. } | ModelEvent::Failed(_)) {
                    self.request = None;
                }
            }
            Event::Hooked(hook, answer) if answer.stop.is_some() => {
                self.calls.is_ending |= self.side_work.asks_before_call(*hook);
            }
            Event::Forked(fork, outcome) if self.side_work.waits_for(*fork) => {
                self.account.book_fork(&outcome.models);
            }
            Event::Forked(fork, outcome) if self.side_work.is_background(*fork) => {
                self.account.book_background(&outcome.models);
            }
            Event::GoOn { .. } => self.is_continuation = true,
            _ => (),
        }
        self.finished = finished_call(event);
        self.doubt.on_event(event);
        self.turns.on_event(event);
        self.side_work.on_event(event);
    }

    /// Checks one step.
    pub(crate) fn check(&mut self, step: &CheckedStep<'_>) -> Verdict {
        self.is_submitting |= step.is_submitted && step.from == PhaseName::Idle;
        if self.is_submitting {
            self.is_submitting = !self.requests.on_submit(step.state, step.effects);
            // Hooks hear of a prompt before it is part of the conversation, and may refuse it.
            let before =
                [HookEvent::SessionStart, HookEvent::InstructionsLoaded, HookEvent::UserPromptSubmit];
            let is_heard = before.iter().any(|event| step.config.hooks.contains(event));
            if self.is_submitting && !is_heard {
                return Err("the prompt is not in the conversation".into());
            }
        }
        for effect in step.effects {
            self.check_after_end(effect)?;
            self.check_effect(effect, step)?;
        }
        if step.from == PhaseName::Idle && step.state.phase() != PhaseName::Idle {
            self.side_work.check_begun()?;
        }
        self.calls.check_overlap(step.config)?;
        self.witness.on_step(self.finished.take().filter(|_| !step.is_cut), step.effects, |call| {
            self.calls.facts.get(&call).map_or(CallKind::Read, |facts| facts.kind)
        });
        if step.is_cut {
            return Ok(());
        }
        match step.state.terminal() {
            Some(terminal) => self.check_end(step, terminal),
            None if self.dones > 0 && step.state.phase() != PhaseName::Idle => {
                Err("the end was reported, but the run goes on".into())
            }
            None => Ok(()),
        }
    }

    /// Behind the end there is only what is at work in the background: its start, its cost, and one suggestion. None of it
    /// begins before.
    fn check_after_end(&mut self, effect: &Effect) -> Verdict {
        let is_over = self.dones > 0;
        let fits = match effect {
            Effect::Fork { config, .. } => is_over == (config.source == RunSource::PromptSuggestion),
            Effect::Persist(Record::Spent(spent), _) => !is_over || spent.is_by_fork,
            Effect::CancelFork(fork) => !is_over || self.side_work.is_background(*fork),
            Effect::Emit(Update::PromptSuggestion { .. }) => {
                self.suggestions += 1;
                is_over && self.suggestions == 1
            }
            _ => !is_over,
        };
        let side = if is_over { "after" } else { "before" };
        if fits { Ok(()) } else { Err(format!("an effect {side} the end: {effect:?}")) }
    }

    fn check_effect(&mut self, effect: &Effect, step: &CheckedStep<'_>) -> Verdict {
        let config = step.config;
        self.doubts_asked += u64::from(self.doubt.check(effect)?);
        if !self.has_log_failed {
            self.order.check(effect)?;
        }
        self.calls.check_effect(effect, config)?;
        self.side_work.check(effect, config)?;
        match effect {
            Effect::Emit(update) => self.check_update(update, step),
            Effect::CallModel(request, body) => {
                if self.request.replace(*request).is_some() {
                    return Err("two requests are out at once".into());
                }
                if !self.calls.running.is_empty() {
                    return Err("a request goes out while calls run".into());
                }
                self.account.check_budget(config, "a request")?;
                self.turns.on_request(body, config)?;
                self.requests.check(body, config)
            }
            Effect::CancelModel(request) => {
                self.account.close_response(config);
                let is_out = self.request.take() == Some(*request) || self.has_log_failed;
                if is_out { Ok(()) } else { Err("a request was cancelled that is not out".into()) }
            }
            Effect::RunTool { call, .. } => {
                if self.calls.acted.last().is_some_and(|(last, _)| last == call) {
                    self.turns.on_acted();
                }
                Ok(())
            }
            Effect::Fork { config: own, .. } => {
                self.account.check_budget(config, "a fork")?;
                self.account.check_share(own, config)
            }
            Effect::CancelFork(fork) => {
                let spent = self.side_work.take_spent(*fork);
                self.forks_cut_short += u64::from(!spent.is_empty());
                match self.dones {
                    0 => self.account.book_fork(&spent),
                    _ => self.account.book_background(&spent),
                }
                Ok(())
            }
            Effect::RunHooks(_, call, _) => self.turns.on_hooks(call, config),
            _ => Ok(()),
        }
    }

    fn check_update(&mut self, update: &Update, step: &CheckedStep<'_>) -> Verdict {
        if let Update::Decided(decision) = update {
            self.check_between_answers(decision)?;
        }
        self.account.book(update, step.now_ms, step.config)?;
        self.turns.check(update, step.config)?;
        self.calls.check_update(update, step.config)?;
        self.requests.on_update(update)?;
        match update {
            Update::Block { block, is_aborted: true, .. } if block.as_text() != Some(&self.spoken) => {
                Err(format!("{:?} was said, {block:?} was kept", self.spoken))
            }
            Update::Repaired(repairs) if self.is_continuation && repairs[..] == [Repair::AddedUser] => Ok(()),
            Update::Repaired(repairs) => {
                Err(format!("a conversation that nobody damaged was repaired: {repairs:?}"))
            }
            Update::Done(_) => {
                self.dones += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// While the model answers, the conversation only grows.
    fn check_between_answers(&self, decision: &Decision) -> Verdict {
        if self.request.is_some() && !matches!(decision, Decision::Staged(_)) {
            return Err(format!("the conversation changed while the model answers: {decision:?}"));
        }
        Ok(())
    }

    fn check_end(&self, step: &CheckedStep<'_>, terminal: Terminal) -> Verdict {
        if self.dones != 1 {
            return Err(format!("{} was reported {} times", terminal.name(), self.dones));
        }
        if self.request.is_some() || !self.calls.running.is_empty() {
            return Err("something still runs at the end".into());
        }
        if step.from == PhaseName::Done {
            return Ok(());
        }
        self.side_work.check_end()?;
        self.requests.check_end(step.state, &self.calls.acted)
    }
}
