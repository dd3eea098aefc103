//! Stage 7: the next state, and round again.

use std::sync::Arc;

use windlass_protocol::{Block, Message, Origin, Transition, Update, UserEntry};

use crate::context;
use crate::state::{Carry, Phase};
use crate::step::Cx;
use crate::turn::guards::Guards;
use crate::turn::prepare::{ForcedCompaction, Preparation};
use crate::turn::settle::BrokenResponse;

/// How the loop goes on, and what goes with it.
#[derive(Clone, Debug)]
pub(crate) struct NextIteration {
    pub(crate) transition: Transition,
    /// What the user's side says to make the model go on.
    pub(crate) note: Option<String>,
    /// The last continuation brought little.
    pub(crate) is_small_gain: bool,
    /// What follows from a response that broke off.
    pub(crate) broken: BrokenResponse,
}

impl NextIteration {
    pub(crate) fn new(transition: Transition) -> Self {
        Self { transition, note: None, is_small_gain: false, broken: BrokenResponse::default() }
    }
    pub(crate) fn guards(&self, guards: Guards) -> Guards {
        let after = guards.advance(self.transition, self.is_small_gain);
        if self.broken.should_fall_back { after.advance(Transition::ModelFallback, false) } else { after }
    }

    /// The whole next state; what the transcript says is already in it.
    fn next_state(self, carry: Carry) -> Carry {
        let is_next_turn = self.transition == Transition::NextTurn;
        let guards = self.guards(carry.guards);
        Carry {
            messages: carry.messages,
            tools: carry.tools,
            grants: carry.grants,
            blocked: carry.blocked,
            compactions: context::after_transition(&carry.compactions, self.transition),
            guards,
            summary: carry.summary,
            turn_count: carry.turn_count + u32::from(is_next_turn),
            transition: Some(self.transition),
            waiting: carry.waiting,
            unfinished: carry.unfinished,
            withheld: carry.withheld,
            staged: carry.staged,
            budget: match self.transition {
                Transition::TokenBudgetContinuation => carry.budget.continued(),
                _ => carry.budget,
            },
            repeats: carry.repeats,
            notes: carry.notes,
            tokens: carry.tokens,
            // Another model has a cache of its own.
            sent: carry.sent.filter(|_| guards.fallbacks == carry.guards.fallbacks),
            broken: self.broken.attempts,
            checked: carry.checked,
            doubtful: carry.doubtful,
        }
    }
}

impl Cx<'_> {
    /// Replaces the state and goes round.
    pub(crate) fn go(&mut self, onward: NextIteration) -> Phase {
        if let Some(note) = &onward.note {
            self.say(note, Origin::Continuation);
        }
        let NextIteration { transition, broken, .. } = onward;
        let carry = std::mem::take(&mut self.state.carry);
        self.state.carry = onward.next_state(carry);
        self.emit(Update::Continued(transition));
        let forced = (transition == Transition::ReactiveCompactRetry).then_some(ForcedCompaction::Reactive);
        let not_before_ms = broken.not_before_ms;
        self.prepare(Preparation { not_before_ms, forced, ..Preparation::default() })
    }

    /// Adds a note of the engine to the conversation, shown as one.
    pub(crate) fn say(&mut self, text: &str, origin: Origin) {
        let message = Arc::new(Message::user(self.message_id(), origin, vec![Block::text(text)]));
        self.show_said(UserEntry::plain(message.clone()));
        self.state.carry.messages.push(message);
    }
}
