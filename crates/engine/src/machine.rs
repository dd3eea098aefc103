//! The machine of the core with everything it has set going. The main run of a session and its forks are the same thing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use windlass_core::{Config, Effect, Event, Input, State, step};
use windlass_protocol::{Outcome, SessionSeed, Update};

use crate::account::Account;
use crate::builder::Shared;
use crate::inbox::Inbox;
use crate::inflight::Inflight;
use crate::marks::Marks;
use crate::results::ResultFiles;

/// How many events a poll may take that nothing is shown for. A model that never pauses must not keep the thread from
/// whoever wants to interrupt it.
const EVENTS_IN_A_ROW: usize = 128;

/// What all machines of a session have in common.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) shared: Arc<Shared>,
    /// Where results go that are too large for the transcript.
    pub(crate) results: Arc<ResultFiles>,
    /// When time began.
    pub(crate) started: Instant,
}

/// A state and what goes on in it.
pub(crate) struct Machine {
    pub(crate) state: State,
    pub(crate) marks: Marks,
    pub(crate) account: Account,
    config: Arc<Config>,
    world: World,
    seed: SessionSeed,
    /// How many inputs there were: the position in the seed's randomness.
    inputs: u64,
    /// Whether a run has begun and not ended: what it took is not in the account yet.
    running: bool,
    outbox: VecDeque<Update>,
    inflight: Inflight,
}

impl Machine {
    pub(crate) fn new(world: World, config: Arc<Config>, state: State, seed: SessionSeed) -> Self {
        let inflight = Inflight::new(world.clone(), config.clone(), seed);
        Self {
            state,
            marks: Marks::default(),
            account: Account::default(),
            config,
            world,
            seed,
            inputs: 0,
            running: false,
            outbox: VecDeque::new(),
            inflight,
        }
    }

    /// The next update; nothing after the end. Whoever speaks to the machine from outside does so through the inbox.
    pub(crate) fn poll_update(
        &mut self,
        mut inbox: Option<&mut Inbox>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Update>> {
        for _ in 0..EVENTS_IN_A_ROW {
            if let Some(update) = self.outbox.pop_front() {
                return Poll::Ready(Some(update));
            }
            if self.state.terminal().is_some() {
                self.inflight.clear();
                return Poll::Ready(None);
            }
            let event = ready!(self.inflight.poll_event(inbox.as_deref_mut(), cx));
            self.advance(event);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The end of a run that nobody watches.
    pub(crate) fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<Outcome>>> {
        for _ in 0..EVENTS_IN_A_ROW {
            match ready!(self.poll_update(None, cx)) {
                Some(Update::Done(outcome)) => return Poll::Ready(Some(outcome)),
                Some(_) => (),
                None => return Poll::Ready(None),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Tells the machine what happened, and does what it asks for.
    pub(crate) fn advance(&mut self, event: Event) {
        self.inputs += 1;
        self.running |= matches!(event, Event::Submit(_) | Event::Compact { .. });
        let at_ms = u64::try_from(self.world.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let input = Input { at_ms, wall_s: wall.as_secs(), entropy: self.seed.entropy(self.inputs), event };
        let (state, effects) = step(std::mem::take(&mut self.state), input, &self.config);
        self.state = state;
        for effect in effects {
            match effect {
                Effect::Emit(update) => self.emit(update),
                other => self.inflight.perform(other),
            }
        }
    }

    fn emit(&mut self, update: Update) {
        self.marks.note(&update);
        if let Update::Done(outcome) = &update {
            self.account.book(&outcome.models);
            self.running = false;
        }
        self.outbox.push_back(update);
    }

    /// Ends whatever was going on, as after a crash.
    pub(crate) fn rest(&mut self) {
        self.inflight.clear();
        self.outbox.clear();
        self.marks.close();
        if std::mem::take(&mut self.running) {
            self.account.book(self.state.spent());
        }
        self.state = std::mem::take(&mut self.state).at_rest();
    }
}
