//! Stage 7: the next state, and round again.

use std::sync::Arc;

use windlass_protocol::{Block, Message, Origin, Transition, Update, UserEntry};

use crate::context;
use crate::state::{Carry, Phase};
use crate::step::Cx;
use crate::turn::guards::Guards;
use crate::turn::prepare::ForcedCompaction;
use crate::turn::retry::Attempts;

/// How the loop goes on, and what goes with it.
#[derive(Clone, Debug)]
pub(crate) struct Onward {
    pub(crate) transition: Transition,
    /// What the user's side says to make the model go on.
    pub(crate) note: Option<String>,
    /// The last continuation brought little.
    pub(crate) small_gain: bool,
    /// The next model answers from now on.
    pub(crate) fall_back: bool,
    /// The responses just before that broke off after something of them had acted.
    pub(crate) broken: Attempts,
    /// No request goes out before this time.
    pub(crate) not_before_ms: u64,
}

impl Onward {
    pub(crate) fn new(transition: Transition) -> Self {
        Self {
            transition,
            note: None,
            small_gain: false,
            fall_back: transition == Transition::ModelFallback,
            broken: Attempts::default(),
            not_before_ms: 0,
        }
    }
    pub(crate) fn guards(&self, guards: Guards) -> Guards {
        match self.transition {
            Transition::NextTurn if self.fall_back => guards.next_turn().model_fallback(),
            Transition::NextTurn => guards.next_turn(),
            Transition::CollapseDrainRetry => guards.collapse_drain_retry(),
            Transition::ReactiveCompactRetry => guards.reactive_compact_retry(),
            Transition::MediaStripRetry => guards.media_strip_retry(),
            Transition::ThinkingStripRetry => guards.thinking_strip_retry(),
            Transition::MaxOutputTokensEscalate => guards.max_output_tokens_escalate(),
            Transition::MaxOutputTokensRecovery => guards.max_output_tokens_recovery(),
            Transition::StopHookBlocking => guards.stop_hook_blocking(),
            Transition::TokenBudgetContinuation => guards.token_budget_continuation(self.small_gain),
            Transition::StructuredOutputRetry => guards.structured_output_retry(),
            Transition::PauseTurnResume => guards.pause_turn_resume(),
            Transition::EmptyAnswerNudge => guards.empty_answer_nudge(),
            Transition::ModelFallback => guards.model_fallback(),
        }
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
            sent: carry.sent.filter(|_| !self.fall_back),
            broken: self.broken,
            checked: carry.checked,
            doubtful: carry.doubtful,
        }
    }
}

impl Cx<'_> {
    /// Replaces the state and goes round.
    pub(crate) fn go(&mut self, onward: Onward) -> Phase {
        if let Some(note) = &onward.note {
            self.say(note, Origin::Continuation);
        }
        let Onward { transition, not_before_ms, .. } = onward;
        let carry = std::mem::take(&mut self.state.carry);
        self.state.carry = onward.next_state(carry);
        self.emit(Update::Continued(transition));
        match transition {
            Transition::ReactiveCompactRetry => self.prepare_forced(ForcedCompaction::Reactive),
            _ => self.prepare(not_before_ms),
        }
    }

    /// Adds a note of the engine to the conversation, shown as one.
    pub(crate) fn say(&mut self, text: &str, origin: Origin) {
        let message = Arc::new(Message::user(self.message_id(), origin, vec![Block::text(text)]));
        self.show_said(UserEntry::plain(message.clone()), /* synthetic */ true);
        self.state.carry.messages.push(message);
    }
}
