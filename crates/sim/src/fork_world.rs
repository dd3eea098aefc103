//! A fork, run for real: the same machine in a small world of its own, whose model answers at random.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_core::{Config, Effect, Event, Input, Prompt, State, step};
use windlass_protocol::{ModelEvent, ModelRequest, Outcome, StopReason, Update, Usage};

use crate::rng::Rng;
use crate::server::ModelServer;
use crate::thinking::Bindings;
use crate::validity::{check_sent, resumes};

/// A fork may take this many events.
const STEPS_MAX: u32 = 400;

/// A fork that was asked for.
#[derive(Debug)]
pub(crate) struct Fork {
    pub(crate) state: Box<State>,
    pub(crate) config: Arc<Config>,
    pub(crate) prompt: Prompt,
}

/// The world of one fork.
struct ForkWorld<'a> {
    fork: Fork,
    rng: &'a mut Rng,
    bindings: Bindings,
    server: ModelServer,
    waiting: VecDeque<Event>,
    usage: Usage,
    begun: Option<Usage>,
    now_ms: u64,
    outcome: Option<Box<Outcome>>,
    is_paused: bool,
}

impl Fork {
    /// Runs it to its end. The provider knows the thinking of the conversation it forks.
    pub(crate) fn run(
        self,
        rng: &mut Rng,
        bindings: &Bindings,
        inflation: u64,
    ) -> Result<Box<Outcome>, String> {
        let server = ModelServer::of_fork(inflation);
        let mut nested = ForkWorld {
            fork: self,
            rng,
            bindings: bindings.clone(),
            server,
            waiting: VecDeque::new(),
            usage: Usage::default(),
            begun: None,
            now_ms: 0,
            outcome: None,
            is_paused: false,
        };
        nested.waiting.push_back(Event::Submit(nested.fork.prompt.clone()));
        for _ in 0..STEPS_MAX {
            if let Some(outcome) = nested.outcome.take() {
                return nested.compare(outcome);
            }
            let event = nested.waiting.pop_front().ok_or("a fork waits for nothing")?;
            nested.apply(event)?;
        }
        Err(format!("a fork does not end: {:?}", nested.fork.state.phase()))
    }
}

impl ForkWorld<'_> {
    fn apply(&mut self, event: Event) -> Result<(), String> {
        let state = std::mem::take(&mut *self.fork.state);
        let input = Input { at_ms: self.now_ms, wall_ms: 0, entropy: self.rng.bits(), event };
        let (state, effects) = step(state, input, &self.fork.config);
        *self.fork.state = state;
        effects.list.into_iter().try_for_each(|effect| self.perform(effect))
    }

    fn perform(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::CallModel(request, body) => {
                check_sent(&body.transcript, self.is_paused).map_err(|why| format!("in a fork: {why}"))?;
                self.bindings.check(&body, &self.fork.config).map_err(|why| format!("in a fork: {why}"))?;
                self.bindings.on_request(&body);
                let answer = self.answer(&body);
                self.waiting.extend(answer.into_iter().map(|event| Event::Model(request, event)));
            }
            Effect::StartTimer { timer, after_ms } => {
                self.now_ms += after_ms;
                self.waiting.push_back(Event::Timer(timer));
            }
            Effect::Emit(update) => self.on_update(update),
            // Nobody keeps what a fork says.
            Effect::Persist(..) => (),
            other => return Err(format!("a fork asks for {other:?}")),
        }
        Ok(())
    }

    fn on_update(&mut self, update: Update) {
        match update {
            Update::Responding { usage, .. } => self.begun = Some(*usage),
            Update::Responded { usage, .. } => {
                self.begun = None;
                self.usage.add(&usage);
            }
            Update::Retrying { .. } => self.close_response(),
            Update::Continued(transition) => {
                self.is_paused = resumes(transition, self.is_paused);
                self.close_response();
            }
            Update::Block { block, .. } => self.bindings.on_block(&block),
            Update::Done(outcome) => self.outcome = Some(outcome),
            _ => (),
        }
    }

    fn close_response(&mut self) {
        if let Some(usage) = self.begun.take() {
            self.usage.add(&usage);
        }
    }

    /// A whole response at once.
    fn answer(&mut self, body: &Arc<ModelRequest>) -> Vec<ModelEvent> {
        self.server.on_request(body, self.rng);
        if let Some(refusal) = self.server.refusal(&self.fork.config) {
            return vec![ModelEvent::Failed(Box::new(refusal))];
        }
        let mut events = Vec::new();
        let mut spoken = String::new();
        if self.rng.one_in(6) {
            for _ in 0..self.rng.below(3) {
                events.push(self.server.next(self.rng, &self.fork.config, &mut spoken));
            }
            events.retain(|event| !matches!(event, ModelEvent::Ended { .. }));
            events.push(ModelEvent::Failed(Box::new(self.server.random_failure(self.rng))));
            return events;
        }
        let is_wild = self.rng.one_in(4);
        while !matches!(events.last(), Some(ModelEvent::Ended { .. })) {
            events.push(if is_wild {
                self.server.next(self.rng, &self.fork.config, &mut spoken)
            } else {
                self.server.next_honest(self.rng, &mut spoken)
            });
        }
        if self.rng.one_in(12)
            && let Some(ModelEvent::Ended { stop, .. }) = events.last_mut()
        {
            *stop = StopReason::MaxTokens;
        }
        events
    }

    fn compare(mut self, outcome: Box<Outcome>) -> Result<Box<Outcome>, String> {
        self.close_response();
        let tokens = |usage: &Usage| (usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens);
        if tokens(&self.usage) != tokens(&outcome.usage) {
            return Err(format!(
                "a fork took {:?}, reported {:?}",
                tokens(&self.usage),
                tokens(&outcome.usage)
            ));
        }
        Ok(outcome)
    }
}
