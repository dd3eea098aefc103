//! A run: the processing of one submission, as a lazy stream of updates.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use windlass_core::{Effect, Effects, Event, Input, Prompt, step};
use windlass_protocol::Update;

use crate::inflight::Inflight;
use crate::session::{Handle, Session};

/// How many events a poll may take that nothing is shown for. A model that never pauses must not keep the thread from
/// whoever wants to interrupt it.
const EVENTS_IN_A_ROW: usize = 128;

/// One submission at work: a stream of updates that ends after exactly one [`Update::Done`].
///
/// No poll, no progress: a reader that pauses pauses the model's stream and, once their pipes are full, the tools.
/// Dropping a run stops everything it started and leaves the session ready for the next prompt.
#[must_use = "a run does nothing until it is polled"]
pub struct Run<'session> {
    session: &'session mut Session,
    prompt: Option<Prompt>,
    outbox: VecDeque<Update>,
    inflight: Inflight,
}

impl<'session> Run<'session> {
    pub(crate) fn new(session: &'session mut Session, prompt: Prompt) -> Self {
        let inflight = Inflight::new(session.shared.clone());
        session.rest();
        Self { session, prompt: Some(prompt), outbox: VecDeque::new(), inflight }
    }

    /// A handle for other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.session.handle()
    }

    fn advance(&mut self, event: Event) {
        for effect in self.session.advance(event) {
            match effect {
                Effect::Emit(update) => self.outbox.push_back(update),
                other => self.inflight.perform(other),
            }
        }
    }
}

impl Stream for Run<'_> {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        let run = self.get_mut();
        if let Some(prompt) = run.prompt.take() {
            run.advance(Event::Submit(prompt));
        }
        for _ in 0..EVENTS_IN_A_ROW {
            if let Some(update) = run.outbox.pop_front() {
                return Poll::Ready(Some(update));
            }
            if run.session.state.terminal().is_some() {
                return Poll::Ready(None);
            }
            let event = ready!(run.inflight.poll_event(&mut run.session.inbox, cx));
            run.advance(event);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Run<'_> {
    /// A prompt that was never polled was still said: it waits for the next run.
    fn drop(&mut self) {
        if let Some(prompt) = self.prompt.take() {
            self.session.advance_at_rest(Event::Steer(prompt));
        }
        self.session.rest();
    }
}

impl Session {
    /// Tells the machine what happened.
    pub(crate) fn advance(&mut self, event: Event) -> Effects {
        self.inputs += 1;
        let at_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let (wall_s, entropy) = (wall.as_secs(), self.seed.entropy(self.inputs));
        let input = Input { at_ms, wall_s, entropy, event };
        let (state, effects) = step(std::mem::take(&mut self.state), input, &self.shared.config);
        self.state = state;
        effects
    }

    /// Tells the machine something that has no effects: a message that waits.
    pub(crate) fn advance_at_rest(&mut self, event: Event) {
        let effects = self.advance(event);
        debug_assert_eq!(effects.iter().count(), 0, "a message between runs only waits");
    }

    /// Ends whatever was going on, as after a crash.
    pub(crate) fn rest(&mut self) {
        self.state = std::mem::take(&mut self.state).at_rest();
    }
}
