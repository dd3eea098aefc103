//! The reducer: one event in, the next state and its effects out.

use windlass_protocol::{MessageId, Update};

use crate::config::Config;
use crate::event::{Effect, Effects, Event, Input, Prompt};
use crate::state::{Phase, PhaseName, State};

/// Advances a session by one event.
pub fn step(mut state: State, input: Input, config: &Config) -> (State, Effects) {
    let mut effects = Effects::default();
    let here = state.phase();
    let phase = std::mem::take(&mut state.phase);
    let Input { at_ms, wall_s, entropy, event } = input;
    let mut cx = Cx { state: &mut state, effects: &mut effects, config, here, at_ms, wall_s, entropy };
    let next = match event {
        Event::Submit(prompt) => cx.on_submit(phase, prompt),
        Event::Steer(prompt) => cx.on_steer(phase, prompt),
        Event::Interrupt(kind) => cx.on_interrupt(phase, kind),
        Event::Model { request, event } => cx.on_model(phase, request, event),
        Event::Examined { call, admission } => {
            cx.with_calls(phase, |calls, cx| calls.on_examined(call, admission, cx))
        }
        Event::Progress { call, progress } => {
            cx.with_calls(phase, |calls, cx| calls.on_progress(call, progress, cx))
        }
        Event::Finished { call, outcome } => {
            cx.with_calls(phase, |calls, cx| calls.on_finished(call, outcome, cx))
        }
        Event::Answered { call, answer } => {
            cx.with_calls(phase, |calls, cx| calls.on_answered(call, answer, cx))
        }
        Event::Timer(timer) => cx.on_timer(phase, timer),
        Event::Compact { .. }
        | Event::Forked { .. }
        | Event::Hooked { .. }
        | Event::Stored { .. }
        | Event::Looked { .. }
        | Event::Prefetched(_)
        | Event::StoreFailed(_) => phase,
    };
    let here = cx.here;
    state.phase = next;
    debug_assert_eq!(here, state.phase(), "every change of phase is noted");
    (state, effects)
}

/// The working view of one step: what there is, what is asked for, what was told.
pub(crate) struct Cx<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) effects: &'a mut Effects,
    pub(crate) config: &'a Config,
    pub(crate) at_ms: u64,
    pub(crate) wall_s: u64,
    pub(crate) entropy: u64,
    here: PhaseName,
}

impl Cx<'_> {
    pub(crate) fn emit(&mut self, update: Update) {
        self.effects.push(Effect::Emit(update));
    }

    /// Notes that the machine goes to another phase, also where it does not rest there.
    pub(crate) fn enter(&mut self, to: PhaseName) {
        self.effects.edge(self.here, to);
        self.here = to;
    }

    pub(crate) fn message_id(&mut self) -> MessageId {
        self.state.ids.message()
    }

    /// A message typed while something else goes on waits for the next results. After the end it waits for the next run.
    pub(crate) fn on_steer(&mut self, phase: Phase, prompt: Prompt) -> Phase {
        self.state.carry.waiting.push_back(prompt);
        phase
    }
}
