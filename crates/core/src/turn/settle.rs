//! The way out of a response: first every call is answered, then the loop goes on or ends.

use std::sync::Arc;

use windlass_protocol::{
    AmbientChanges, CallId, HookAnswer, Interrupt, LookId, Message, ModelRequest, Origin, Record, RunEnding,
    Terminal, TimerId, Update,
};

use crate::effect::Effect;
use crate::state::{EarlyExit, Phase, PhaseName, RetryWait, Settlement, State};
use crate::step::Cx;
use crate::turn::attach::AttachmentContext;
use crate::turn::budget;
use crate::turn::calls::{Call, CallQueue};
use crate::turn::hooks::StopSubject;
use crate::turn::ladder::Situation;
use crate::turn::prepare::{LayerQuestion, LayerReply};
use crate::turn::retry::Attempts;
use crate::turn::stream::answer;
use crate::turn::transition::NextIteration;

/// What happens once the last call is answered.
#[derive(Clone, Debug)]
pub(crate) enum AfterCalls {
    /// Go round with the results.
    NextTurn(BrokenResponse),
    /// Send the same request again, not before this time.
    Retry { body: Arc<ModelRequest>, attempts: Attempts, not_before_ms: u64 },
    /// Go round without results.
    Go(Box<NextIteration>),
    /// Ask the stop hooks about this.
    AskStopHooks(Box<Situation>),
    /// End the run.
    End(Terminal),
}

/// What follows from a response that broke off after something of it had acted; nothing by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BrokenResponse {
    /// How often that happened in a row, this time included.
    pub(crate) attempts: Attempts,
    /// No request goes out before this time.
    pub(crate) not_before_ms: u64,
    /// The next model answers from now on.
    pub(crate) should_fall_back: bool,
}

impl Cx<'_> {
    /// Applies news about calls, in whichever phase calls are open.
    pub(crate) fn with_calls(&mut self, phase: Phase, news: impl FnOnce(&mut CallQueue, &mut Self)) -> Phase {
        match phase {
            Phase::Streaming(mut streaming) => {
                news(&mut streaming.calls, self);
                if streaming.calls.must_stop() {
                    return self.stop_streaming(*streaming, None);
                }
                streaming.calls.advance_early(self);
                streaming.calls.release(self);
                Phase::Streaming(streaming)
            }
            Phase::Settling(mut settling) => {
                news(&mut settling.calls, self);
                if settling.calls.must_stop() && matches!(settling.then, AfterCalls::NextTurn(_)) {
                    settling.calls.stop_for_hook(self);
                    settling.then = AfterCalls::End(Terminal::HookStopped);
                    settling.deadline = settling.calls.start_deadline(self);
                }
                settling.calls.advance(self);
                self.settle(settling)
            }
            other => other,
        }
    }

    /// The same about one call; late news is dropped.
    pub(crate) fn with_call(
        &mut self,
        phase: Phase,
        id: CallId,
        news: impl FnOnce(&mut Call, &mut Self),
    ) -> Phase {
        self.with_calls(phase, |calls, cx| {
            if let Some(call) = calls.find(id) {
                news(call, cx);
            }
        })
    }

    pub(crate) fn on_interrupt(&mut self, phase: Phase, kind: Interrupt) -> Phase {
        let interrupted = match &phase {
            _ if kind == Interrupt::Replace => Some("Interrupted by a new message."),
            Phase::Preparing(preparing) if preparing.only_compacts() => {
                Some("The compaction was stopped; the conversation is as it was.")
            }
            Phase::Preparing(_) => Some("Interrupted before the next request."),
            Phase::Waiting(_) => Some("Interrupted while waiting to try again."),
            Phase::Stopping(_) => Some("Interrupted while stop hooks were running."),
            Phase::Settling(settling) if settling.calls.only_asks() => Some(AT_QUESTION),
            _ => None,
        };
        self.state.ledger.interrupted = self.state.ledger.interrupted.or(interrupted);
        match phase {
            Phase::Streaming(streaming) => self.stop_streaming(*streaming, Some(kind)),
            Phase::Settling(settling) => self.interrupt_settling(settling, kind),
            Phase::Preparing(preparing) => {
                self.interrupt_preparing(&preparing);
                if preparing.opening.is_some() && kind != Interrupt::Leave {
                    self.drop_own_prompt();
                }
                // Where nothing was said yet, there is nothing to say about it.
                let kind = Some(kind).filter(|_| preparing.answers());
                self.end(Terminal::AbortedStreaming, kind)
            }
            Phase::Stopping(stopping) => {
                self.interrupt_stopping(&stopping);
                match stopping.about {
                    StopSubject::Failure(terminal) => self.end(terminal, None),
                    StopSubject::Ending(_) => self.end(Terminal::AbortedStreaming, Some(kind)),
                }
            }
            Phase::Waiting(_) => self.end(Terminal::AbortedStreaming, Some(kind)),
            other => other,
        }
    }

    /// The user stops a run before anything of it was said: the prompt that began it is gone, and ends with it.
    fn drop_own_prompt(&mut self) {
        if let Some(prompt) = self.state.carry.waiting.take_own() {
            self.requeue();
            self.start_prompts(prompt.id.into_iter().collect());
        }
    }

    /// The log cannot be written: nothing may happen that it would not know of.
    pub(crate) fn on_store_failed(&mut self, phase: Phase, why: &str, unstarted: &[CallId]) -> Phase {
        if matches!(phase, Phase::Idle | Phase::Done(_)) {
            self.cancel_background();
            return phase;
        }
        self.state.ledger.store_failure = Some(why.to_owned());
        let end = AfterCalls::End(Terminal::StoreFailed);
        match phase {
            Phase::Streaming(mut streaming) => {
                self.effects.push(Effect::CancelModel(streaming.request));
                self.close_account(&streaming);
                streaming.calls.leave_unstarted(unstarted, self);
                streaming.calls.stop_again(self);
                self.record_answer(&mut streaming);
                return self.leave(streaming.calls, end, EarlyExit::default());
            }
            Phase::Settling(mut settling) => {
                // The word to stop reading may be among what was not done.
                self.effects.list.extend(settling.left.request.map(Effect::CancelModel));
                settling.calls.leave_unstarted(unstarted, self);
                settling.calls.stop_again(self);
                settling.then = end;
                settling.looking = None;
                self.cancel_round_hooks(&mut settling);
                // A deadline from before may be among what was not done.
                settling.deadline = settling.calls.start_deadline(self);
                return self.settle(settling);
            }
            Phase::Preparing(preparing) => self.interrupt_preparing(&preparing),
            Phase::Stopping(stopping) => self.interrupt_stopping(&stopping),
            Phase::Idle | Phase::Waiting(_) | Phase::Done(_) => (),
        }
        self.end(Terminal::StoreFailed, None)
    }

    /// An interrupt outranks going on, but an end that was already decided stands.
    fn interrupt_settling(&mut self, mut settling: Box<Settlement>, kind: Interrupt) -> Phase {
        settling.then = match settling.then {
            AfterCalls::End(terminal) => AfterCalls::End(terminal),
            AfterCalls::NextTurn(_) => AfterCalls::End(Terminal::AbortedTools),
            AfterCalls::Retry { .. } | AfterCalls::Go(_) | AfterCalls::AskStopHooks(_) => {
                AfterCalls::End(Terminal::AbortedStreaming)
            }
        };
        settling.looking = None;
        self.cancel_round_hooks(&mut settling);
        settling.left.interrupt = settling.left.interrupt.or(Some(kind));
        settling.calls.cancel(kind, self);
        if settling.deadline.is_none() {
            settling.deadline = settling.calls.start_deadline(self);
        }
        self.settle(settling)
    }

    pub(crate) fn on_timer(&mut self, phase: Phase, timer: TimerId) -> Phase {
        match phase {
            // What runs beside the run may have spent the rest of the budget meanwhile.
            Phase::Waiting(waiting)
                if waiting.timer == timer && !budget::usd_left(&self.state.ledger, self.config) =>
            {
                self.end(Terminal::MaxBudgetUsd, None)
            }
            Phase::Waiting(waiting) if waiting.timer == timer => self.send(waiting.body, waiting.attempts),
            Phase::Settling(mut settling) if settling.deadline == Some(timer) => {
                settling.calls.abandon(self);
                self.settle(settling)
            }
            other => other,
        }
    }

    /// The only road from a live phase to anything else: first every call is answered.
    pub(crate) fn settle(&mut self, mut settling: Box<Settlement>) -> Phase {
        settling.calls.release(self);
        let is_waiting = settling.looking.is_some() || settling.hooked.asked.is_some();
        if !settling.calls.is_settled() || is_waiting {
            return Phase::Settling(settling);
        }
        match settling.then {
            AfterCalls::NextTurn(broken) => self.finish_round(settling, broken),
            AfterCalls::Retry { body, attempts, not_before_ms } => self.wait(body, attempts, not_before_ms),
            AfterCalls::Go(onward) => self.go(*onward),
            AfterCalls::AskStopHooks(situation) => self.ask_stop_hooks(*situation),
            AfterCalls::End(terminal) => {
                self.note_end(&settling.calls, terminal);
                self.record_results(&settling.calls);
                if terminal.shows_failure() || terminal == Terminal::MaxOutputTokens {
                    return self.end_by_failure(terminal);
                }
                self.end(terminal, settling.left.interrupt)
            }
        }
    }

    /// The calls of the response are answered: ends, or looks around for what else the model should know.
    fn finish_round(&mut self, mut settling: Box<Settlement>, broken: BrokenResponse) -> Phase {
        if self.ask_round_hooks(&mut settling) {
            return Phase::Settling(settling);
        }
        let decided = self.decide_round(&settling, broken);
        if decided.is_ok() {
            settling.looking = self.look_around();
        }
        if settling.looking.is_some() {
            return Phase::Settling(settling);
        }
        self.go_round(&settling.calls, decided, &AmbientChanges::default())
    }

    /// Hooks have spoken about a round. A text of theirs ends the run with its results.
    pub(crate) fn on_round_hooked(&mut self, mut settling: Box<Settlement>, answer: &HookAnswer) -> Phase {
        let Some(text) = self.hear_round_hooks(&mut settling, answer) else { return self.settle(settling) };
        self.note_end_by_hook(text);
        self.record_results(&settling.calls);
        self.end(Terminal::HookStopped, None)
    }

    pub(crate) fn on_looked(&mut self, phase: Phase, look: LookId, found: AmbientChanges) -> Phase {
        match phase {
            Phase::Settling(settling) if settling.looking == Some(look) => {
                let AfterCalls::NextTurn(broken) = settling.then else { return Phase::Settling(settling) };
                let decided = self.decide_round(&settling, broken);
                self.go_round(&settling.calls, decided, &found)
            }
            other => self.on_reply(other, LayerQuestion::Look(look), LayerReply::Looked(Box::new(found))),
        }
    }

    /// Transition: tool results exist. The run may also end with them.
    fn go_round(
        &mut self,
        calls: &CallQueue,
        decided: Result<NextIteration, Terminal>,
        found: &AmbientChanges,
    ) -> Phase {
        let onward = match decided {
            Ok(onward) => onward,
            Err(terminal) => {
                self.note_end(calls, terminal);
                self.record_results(calls);
                return self.end(terminal, None);
            }
        };
        let attached = self.attachments(&AttachmentContext { found, due: calls.due() });
        self.record_results(calls);
        self.state.carry.messages.extend(attached);
        let phase = self.go(onward);
        if !matches!(phase, Phase::Done(_)) {
            self.start_summary(calls);
        }
        phase
    }

    fn note_end(&mut self, calls: &CallQueue, terminal: Terminal) {
        match terminal {
            Terminal::MaxTurns => {
                let limit = self.config.turns_max.unwrap_or_default();
                self.emit(Update::TurnsUsedUp { turns: self.state.carry.turn_count, limit });
            }
            Terminal::ToolDeferred => {
                let deferred = calls.deferred_call().cloned();
                let name = deferred.as_ref().map_or("a tool", |call| &*call.name);
                self.state.ledger.ended_by_hook =
                    Some(format!("A hook deferred the call of {name}, so the run ends here."));
                self.state.ledger.outcome.deferred = deferred;
            }
            Terminal::HookStopped => {
                self.state.ledger.ended_by_hook = calls.stopped_by_hook().map(str::to_owned);
            }
            _ => (),
        }
    }

    /// A request is sent when its time has come.
    pub(crate) fn wait(&mut self, body: Arc<ModelRequest>, attempts: Attempts, not_before_ms: u64) -> Phase {
        self.enter(PhaseName::Waiting);
        let timer = self.state.ids.timer();
        let after_ms = not_before_ms.saturating_sub(self.at_ms);
        self.effects.push(Effect::StartTimer { timer, after_ms });
        Phase::Waiting(RetryWait { timer, body, attempts })
    }

    pub(crate) fn end(&mut self, terminal: Terminal, interrupt: Option<Interrupt>) -> Phase {
        self.enter(PhaseName::Done);
        self.state.carry.waiting.rest();
        self.state.carry.notes.from_hooks.clear();
        self.say_interrupted(terminal, interrupt);
        self.drop_forks();
        if terminal.shows_failure() {
            self.release(Attempts::default());
        }
        self.state.carry.withheld = None;
        // Whoever stops a run has seen what came of its prompts.
        let stopped = terminal.is_interrupt() && interrupt != Some(Interrupt::Leave);
        if self.state.ledger.has_requested && (terminal.is_success() || stopped) {
            self.state.carry.unfinished.clear();
        }
        self.state.ledger.outcome.structured = self.read_structured().ok().filter(|_| terminal.is_success());
        let has_answer = self.state.ledger.stop.is_some();
        let turns = self.state.carry.turn_count;
        let outcome = self.state.ledger.report(terminal, turns, self.at_ms, self.config);
        // Whoever speaks next has heard how this run went.
        self.state.carry.doubtful.clear();
        let rest = Box::new(self.state.session_memory());
        self.persist_synced(Record::Ended(RunEnding { terminal, rest }));
        if terminal.is_failure() {
            let failure = outcome.failure.clone().map(Box::new);
            self.emit(Update::Failed { terminal, text: outcome.error_text(), failure });
        }
        self.emit(Update::Done(Box::new(outcome)));
        self.start_background(terminal, has_answer);
        Phase::Done(terminal)
    }

    /// The transcript says that the user interrupted, unless something else the user typed says enough.
    fn say_interrupted(&mut self, terminal: Terminal, interrupt: Option<Interrupt>) {
        if self.state.carry.waiting.has_spoken() {
            return;
        }
        let text = match (interrupt, terminal) {
            (Some(Interrupt::Stop), Terminal::AbortedTools)
                if self.state.ledger.interrupted == Some(AT_QUESTION) =>
            {
                "The user interrupted at a permission prompt; the call was not run."
            }
            (Some(Interrupt::Stop), Terminal::AbortedTools) => {
                "The user interrupted while tools were running."
            }
            (Some(Interrupt::Stop), Terminal::AbortedStreaming) => "The user interrupted this answer.",
            _ => return,
        };
        self.say(text, Origin::Interruption);
    }

    /// The results become a message.
    fn record_results(&mut self, calls: &CallQueue) {
        let blocks = calls.results();
        if let (false, Some(id)) = (blocks.is_empty(), calls.last_shown()) {
            self.state.carry.messages.push(Arc::new(Message::user(id, Origin::Results, blocks)));
        }
    }

    /// Forks beside the run end with it.
    fn drop_forks(&mut self) {
        self.drop_summary();
        if let Some(fork) = self.state.carry.staged.drop_fork() {
            self.cancel_fork(fork);
        }
    }
}

const AT_QUESTION: &str = "Interrupted at a permission prompt; the call was not run.";

impl State {
    /// The session at rest, ready for the next submission. A run that was dropped in the middle is closed as
    /// after a crash: complete blocks stay, every open call is answered with what is known of it.
    #[must_use]
    pub fn close_run(mut self) -> Self {
        // Whoever dropped the run has dropped what ran beside it.
        self.carry.summary = None;
        self.carry.staged.drop_fork();
        self.fork_spends.retain(|fork, _| self.background.contains(fork));
        self.carry.waiting.rest();
        self.carry.notes.from_hooks.clear();
        let (model, blocks, mut calls) = match std::mem::take(&mut self.phase) {
            Phase::Streaming(streaming) => (streaming.body.model.clone(), streaming.blocks, streaming.calls),
            Phase::Settling(settling) => ("".into(), Vec::new(), settling.calls),
            Phase::Idle | Phase::Preparing(_) | Phase::Stopping(_) | Phase::Waiting(_) | Phase::Done(_) => {
                return self;
            }
        };
        for input_hash in calls.unknown() {
            self.carry.doubt(input_hash);
        }
        calls.close();
        if let Some(answer) = answer(model, blocks) {
            self.carry.messages.push(Arc::new(answer));
        }
        let results = calls.results();
        if !results.is_empty() {
            let id = calls.last_shown().unwrap_or_else(|| self.ids.message());
            self.carry.messages.push(Arc::new(Message::user(id, Origin::Results, results)));
        }
        self
    }
}
