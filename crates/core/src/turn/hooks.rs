//! Hooks at the end of a round and of a run: they may object, or say not to go on.

use windlass_protocol::{
    HookAnswer, HookCall, HookEvent, HookId, HookScene, StopHookSummary, StopHookVerdict, Terminal, Update,
};

use crate::config::RunSource;
use crate::effect::Effect;
use crate::state::{Phase, PhaseName, Settlement};
use crate::step::Cx;
use crate::turn::ladder::{Situation, StopHooks};

/// Hooks are asked about the end of the run.
#[derive(Clone, Debug)]
pub(crate) struct StopCheck {
    pub(crate) hook: HookId,
    pub(crate) about: StopSubject,
}

/// What hooks are asked about.
#[derive(Clone, Debug)]
pub(crate) enum StopSubject {
    /// Whether the run may end: this is decided on, and their answer completes it.
    Ending(Box<Situation>),
    /// They only hear that the run ends because of a failure.
    Failure(Terminal),
}

/// What hooks are asked once every call of a response is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundHooks {
    /// Who is asked now, and about what.
    pub(crate) asked: Option<(HookId, HookEvent)>,
    /// They have heard of the calls.
    has_told_batch: bool,
}

impl RoundHooks {
    pub(crate) fn waits_for(&self, hook: HookId) -> bool {
        self.asked.is_some_and(|(asked, _)| asked == hook)
    }
}

impl Cx<'_> {
    /// Asks hooks about the calls of a response, and each prompt that goes in with the results. False if none is left to ask.
    pub(crate) fn ask_round_hooks(&mut self, settling: &mut Settlement) -> bool {
        let hooked = &mut settling.hooked;
        let heard = std::mem::replace(&mut hooked.has_told_batch, true);
        hooked.asked = if !heard && self.config.hooks.contains(&HookEvent::PostToolBatch) {
            let hook = self.ask_hooks(HookCall::PostToolBatch { calls: settling.calls.batch() });
            Some((hook, HookEvent::PostToolBatch))
        } else {
            self.ask_about_prompt(settling.calls.due()).map(|hook| (hook, HookEvent::UserPromptSubmit))
        };
        hooked.asked.is_some()
    }

    /// Hears what hooks say about a round; a text says why the run ends.
    pub(crate) fn hear_round_hooks(
        &mut self,
        settling: &mut Settlement,
        answer: &HookAnswer,
    ) -> Option<String> {
        let (hook, event) = settling.hooked.asked.take()?;
        if event == HookEvent::UserPromptSubmit {
            return self.hear_prompt_hooks(hook, answer);
        }
        self.show_notices(answer);
        let reasons: Vec<&str> = answer.stop.iter().chain(&answer.blocks).map(String::as_str).collect();
        if reasons.is_empty() {
            self.state.carry.notes.from_hooks.extend(answer.context.iter().cloned());
            return None;
        }
        Some(ended_by_hook("A hook", &reasons.join("\n")))
    }

    /// Nobody waits for the hooks of a round any more.
    pub(crate) fn cancel_round_hooks(&mut self, settling: &mut Settlement) {
        if let Some((hook, _)) = settling.hooked.asked.take() {
            self.effects.push(Effect::CancelHooks(hook));
            self.state.carry.waiting.unask();
        }
    }
    pub(crate) fn ask_hooks(&mut self, call: HookCall) -> HookId {
        let hook = self.state.ids.hook();
        let scene = HookScene {
            cwd: self.state.carry.tools.cwd.clone(),
            mode: self.config.permissions.mode.name(),
            effort: self.config.effort,
            prompt: self.state.ledger.prompt.clone(),
            agent: match &self.config.source {
                RunSource::Agent(kind) => Some(kind.clone()),
                _ => None,
            },
        };
        self.effects.push(Effect::RunHooks(hook, call, scene));
        hook
    }

    /// Shows what hooks want the user to know.
    pub(crate) fn show_notices(&mut self, answer: &HookAnswer) {
        for notice in &answer.notices {
            self.emit(Update::Notice(notice.clone()));
        }
        for failure in &answer.failures {
            self.emit(Update::HookFailed(failure.clone()));
        }
    }

    /// What is known of stop hooks before they are asked.
    pub(crate) fn stop_hooks(&self) -> StopHooks {
        if self.config.hooks.contains(&HookEvent::Stop) { StopHooks::Unasked } else { StopHooks::Pass }
    }

    /// Asks the stop hooks. They are told truthfully whether an objection caused this try.
    pub(crate) fn ask_stop_hooks(&mut self, situation: Situation) -> Phase {
        self.enter(PhaseName::Stopping);
        let is_active = self.state.carry.guards.is_stop_hook_active;
        let hook = self
            .ask_hooks(HookCall::Stop { is_active, text: self.state.ledger.outcome.text.as_str().into() });
        Phase::Stopping(Box::new(StopCheck { hook, about: StopSubject::Ending(Box::new(situation)) }))
    }

    /// Reads what stop hooks said: an objection first, then a wish not to go on. Something the model is to know is an
    /// objection too, since only going on lets it know. Returns what is decided on now, and what the model is told if the
    /// objection counts.
    pub(crate) fn hear_stop_hooks(&mut self, asked: &Situation, answer: &HookAnswer) -> (Situation, String) {
        self.show_notices(answer);
        let blocks = [&answer.blocks[..], &answer.context[..]].concat();
        let Situation { guards, limits, .. } = asked;
        let overruled = guards.stop_blocks >= limits.stop_blocks;
        if overruled && !blocks.is_empty() {
            let most = limits.stop_blocks;
            self.emit(Update::Notice(format!(
                "Stop hooks blocked the end of the run {most} times in a row, the limit; it ends anyway: {}",
                blocks.join(" ")
            )));
        }
        let stop_hooks = match &answer.stop {
            _ if !overruled && !blocks.is_empty() => StopHooks::Block,
            Some(reason) => {
                self.note_end_by_hook(ended_by_hook("A stop hook", reason));
                StopHooks::Prevent
            }
            None => StopHooks::Pass,
        };
        self.report_stop_hooks(answer, stop_hooks, &blocks);
        let objection = format!("A stop hook wants you to continue:\n{}", blocks.join("\n"));
        (Situation { stop_hooks, ..*asked }, objection)
    }

    /// Reports what ran and what followed from it, as one update.
    fn report_stop_hooks(&mut self, answer: &HookAnswer, stop_hooks: StopHooks, blocks: &[String]) {
        if answer.runs.is_empty() {
            return;
        }
        let (verdict, reasons) = match stop_hooks {
            StopHooks::Block => (StopHookVerdict::Blocked, blocks.to_vec()),
            StopHooks::Prevent => (StopHookVerdict::Prevented, answer.stop.iter().cloned().collect()),
            _ if blocks.is_empty() => (StopHookVerdict::Passed, Vec::new()),
            _ => (StopHookVerdict::Overruled, blocks.to_vec()),
        };
        let (event, hooks) = (HookEvent::Stop, answer.runs.clone());
        self.emit(Update::StopHooks(StopHookSummary { event, hooks, verdict, reasons }));
    }

    /// Nobody waits for the stop hooks any more.
    pub(crate) fn interrupt_stopping(&mut self, stopping: &StopCheck) {
        self.effects.push(Effect::CancelHooks(stopping.hook));
    }

    /// Tells hooks that the run ends because of a failure, and waits until they have heard; their answer changes nothing.
    pub(crate) fn end_by_failure(&mut self, terminal: Terminal) -> Phase {
        if !self.config.hooks.contains(&HookEvent::StopFailure) {
            return self.end(terminal, None);
        }
        self.enter(PhaseName::Stopping);
        let failure = self.state.ledger.outcome.failure.clone().map(Box::new);
        let hook = self.ask_hooks(HookCall::StopFailure { terminal, failure });
        Phase::Stopping(Box::new(StopCheck { hook, about: StopSubject::Failure(terminal) }))
    }
}

/// Tells the user why the run ends; a hook need not give a reason.
pub(crate) fn ended_by_hook(who: &str, reason: &str) -> String {
    if reason.is_empty() { format!("{who} ended the run.") } else { format!("{who} ended the run: {reason}") }
}
