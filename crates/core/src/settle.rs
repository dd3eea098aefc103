//! Stages 5 to 7: once every call is answered, decide how to go on, and build the next state.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_protocol::{Block, Message, ModelRequest, Origin, Terminal, TimerId, Transition, Update};

use crate::calls::CallQueue;
use crate::event::{Effect, Interrupt};
use crate::prepare::join;
use crate::retry::Attempts;
use crate::state::{Carry, Phase, PhaseName, Settling, State, Waiting};
use crate::step::Cx;
use crate::stream::answer;

/// What happens once the last call is answered.
#[derive(Clone, Debug)]
pub(crate) enum After {
    /// Go round with the results.
    NextTurn { broken: Option<Broken> },
    /// Send the same request again, not before this time.
    Retry { body: Arc<ModelRequest>, attempts: Attempts, not_before_ms: u64 },
    /// End the run.
    End(Terminal),
}

/// The response broke off after something of it had acted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    /// How often that happened in a row, this time included.
    pub(crate) attempts: Attempts,
    /// No request goes out before this time.
    pub(crate) not_before_ms: u64,
}

impl Cx<'_> {
    /// Applies news about calls, in whichever phase calls are open.
    pub(crate) fn with_calls(&mut self, phase: Phase, news: impl FnOnce(&mut CallQueue, &mut Self)) -> Phase {
        match phase {
            Phase::Streaming(mut streaming) => {
                news(&mut streaming.calls, self);
                streaming.calls.advance_early(self);
                streaming.calls.release(self);
                Phase::Streaming(streaming)
            }
            Phase::Settling(mut settling) => {
                news(&mut settling.calls, self);
                settling.calls.advance(self);
                self.settle(settling)
            }
            other => other,
        }
    }

    pub(crate) fn on_interrupt(&mut self, phase: Phase, kind: Interrupt) -> Phase {
        match phase {
            Phase::Streaming(streaming) => self.interrupt_streaming(*streaming, kind),
            Phase::Settling(settling) => self.interrupt_settling(settling, kind),
            Phase::Waiting(_) => self.end(Terminal::AbortedStreaming, Some(kind)),
            other => other,
        }
    }

    /// An interrupt outranks going on, but an end that was already decided stands.
    fn interrupt_settling(&mut self, mut settling: Box<Settling>, kind: Interrupt) -> Phase {
        settling.then = match settling.then {
            After::End(terminal) => After::End(terminal),
            After::NextTurn { .. } => After::End(Terminal::AbortedTools),
            After::Retry { .. } => After::End(Terminal::AbortedStreaming),
        };
        settling.interrupt = settling.interrupt.or(Some(kind));
        settling.calls.cancel_for(kind, self);
        if settling.deadline.is_none() {
            settling.deadline = settling.calls.start_deadline(self);
        }
        self.settle(settling)
    }

    pub(crate) fn on_timer(&mut self, phase: Phase, timer: TimerId) -> Phase {
        match phase {
            Phase::Waiting(waiting) if waiting.timer == timer => self.send(waiting.body, waiting.attempts),
            Phase::Settling(mut settling) if settling.deadline == Some(timer) => {
                settling.calls.abandon(self);
                self.settle(settling)
            }
            other => other,
        }
    }

    /// The only road from a live phase to anything else: first every call is answered.
    pub(crate) fn settle(&mut self, mut settling: Box<Settling>) -> Phase {
        settling.calls.release(self);
        if !settling.calls.is_settled() {
            return Phase::Settling(settling);
        }
        let Settling { calls, then, interrupt, .. } = *settling;
        match then {
            After::NextTurn { broken } => self.decide(&calls, broken),
            After::Retry { body, attempts, not_before_ms } => self.wait(body, attempts, not_before_ms),
            After::End(terminal) => {
                self.record_results(&calls, Vec::new());
                self.end(terminal, interrupt)
            }
        }
    }

    /// Stage 6, as far as its rules exist: the limit of turns.
    fn decide(&mut self, calls: &CallQueue, broken: Option<Broken>) -> Phase {
        let next = self.state.carry.turn_count + 1;
        if self.config.turns_max.is_some_and(|limit| next > limit) {
            self.record_results(calls, Vec::new());
            return self.end(Terminal::MaxTurns, None);
        }
        let steered = self.take_waiting();
        self.record_results(calls, steered);
        self.next_turn(broken)
    }

    /// Transition: tool results exist.
    fn next_turn(&mut self, broken: Option<Broken>) -> Phase {
        let carry = std::mem::take(&mut self.state.carry);
        self.state.carry = Carry {
            messages: carry.messages,
            tools: carry.tools,
            turn_count: carry.turn_count + 1,
            transition: Some(Transition::NextTurn),
            waiting: carry.waiting,
            cached_to: carry.cached_to,
            broken: broken.map_or_else(Attempts::default, |broken| broken.attempts),
            checked: carry.checked,
        };
        self.prepare(broken.map_or(self.at_ms, |broken| broken.not_before_ms))
    }

    /// A request is sent when its time has come.
    pub(crate) fn wait(&mut self, body: Arc<ModelRequest>, attempts: Attempts, not_before_ms: u64) -> Phase {
        self.enter(PhaseName::Waiting);
        let timer = self.state.ids.timer();
        let after_ms = not_before_ms.saturating_sub(self.at_ms);
        self.effects.push(Effect::StartTimer { timer, after_ms });
        Phase::Waiting(Waiting { timer, body, attempts })
    }

    pub(crate) fn end(&mut self, terminal: Terminal, interrupt: Option<Interrupt>) -> Phase {
        self.enter(PhaseName::Done);
        self.say_interrupted(terminal, interrupt);
        let turns = self.state.carry.turn_count;
        let outcome = self.state.ledger.report(terminal, turns, self.at_ms);
        self.emit(Update::Done(Box::new(outcome)));
        Phase::Done(terminal)
    }

    /// The transcript says that the user interrupted, unless something else the user typed says enough.
    fn say_interrupted(&mut self, terminal: Terminal, interrupt: Option<Interrupt>) {
        let text = match (interrupt, terminal) {
            (Some(Interrupt::Stop), Terminal::AbortedTools) => {
                "The user interrupted while tools were running."
            }
            (Some(Interrupt::Stop), Terminal::AbortedStreaming) => "The user interrupted this answer.",
            _ => return,
        };
        let (id, blocks) = (self.message_id(), vec![Block::text(text)]);
        self.emit(Update::UserText { id, blocks: blocks.clone(), synthetic: true });
        let message = Message::user(id, Origin::Interruption, blocks);
        self.state.carry.messages.push(Arc::new(message));
    }

    /// Stage 5: the results, and after them what was typed meanwhile, in one message.
    fn record_results(&mut self, calls: &CallQueue, steered: Vec<Block>) {
        let mut blocks = calls.results();
        let mut id = calls.last_shown();
        if !steered.is_empty() {
            let steered_id = self.message_id();
            self.emit(Update::UserText { id: steered_id, blocks: steered.clone(), synthetic: false });
            blocks.extend(steered);
            id = Some(steered_id);
        }
        if let (false, Some(id)) = (blocks.is_empty(), id) {
            self.state.carry.messages.push(Arc::new(Message::user(id, Origin::Results, blocks)));
        }
    }

    fn take_waiting(&mut self) -> Vec<Block> {
        let waiting: VecDeque<_> = std::mem::take(&mut self.state.carry.waiting);
        if waiting.is_empty() { Vec::new() } else { join(waiting.into_iter()) }
    }
}

impl State {
    /// The session at rest, ready for the next submission. A run that was dropped in the middle is closed as
    /// after a crash: complete blocks stay, every open call is answered with what is known of it.
    #[must_use]
    pub fn at_rest(mut self) -> Self {
        let (model, blocks, mut calls) = match std::mem::take(&mut self.phase) {
            Phase::Streaming(streaming) => (streaming.model, streaming.blocks, streaming.calls),
            Phase::Settling(settling) => ("".into(), Vec::new(), settling.calls),
            Phase::Idle | Phase::Preparing { .. } | Phase::Waiting(_) | Phase::Done(_) => return self,
        };
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
