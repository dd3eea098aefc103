//! The machine of the core with everything it has set going. The main run of a session and its forks are the same thing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::time::Instant;
use windlass_core::{Config, Effect, Event, Input, State, step};
use windlass_ports::{LogError, SessionLog};
use windlass_protocol::{Durability, ModelSpend, Outcome, Record, SessionSeed, Update};
use windlass_text::time::now_ms;

use crate::builder::EngineParts;
use crate::inbox::Inbox;
use crate::inflight::Inflight;
use crate::journal::Journal;
use crate::results::ResultFiles;

/// How many events a poll may take in a row: a model that never pauses must not keep the thread from interrupts.
const EVENTS_IN_A_ROW: usize = 128;

/// What all machines of a session have in common.
#[derive(Clone)]
pub(crate) struct SessionParts {
    pub(crate) shared: Arc<EngineParts>,
    /// Where results go that are too large for the transcript.
    pub(crate) results: Arc<ResultFiles>,
    /// When time began.
    pub(crate) started: Instant,
}

/// A state and what goes on in it.
pub(crate) struct Machine {
    pub(crate) state: State,
    config: Arc<Config>,
    session: SessionParts,
    seed: SessionSeed,
    /// How many inputs there were: the position in the seed's randomness.
    inputs: u64,
    /// Whether a run has begun and not ended.
    is_running: bool,
    journal: Journal,
    /// Effects that wait until the records in front of them are in the log.
    todo: VecDeque<Effect>,
    outbox: VecDeque<Update>,
    inflight: Inflight,
}

impl Machine {
    pub(crate) fn new(session: SessionParts, config: Arc<Config>, state: State, seed: SessionSeed) -> Self {
        let inflight = Inflight::new(session.clone(), config.clone(), seed);
        Self {
            state,
            config,
            session,
            seed,
            inputs: 0,
            is_running: false,
            journal: Journal::default(),
            todo: VecDeque::new(),
            outbox: VecDeque::new(),
            inflight,
        }
    }

    /// Everything that happens from now on goes into this new log, behind what was said so far.
    pub(crate) fn log_to(&mut self, log: Box<dyn SessionLog>) {
        let has_begun = !self.state.messages().is_empty() || self.state.waiting() > 0;
        self.state = std::mem::take(&mut self.state).reopen();
        self.journal = Journal::new(log, Vec::new(), has_begun);
    }

    /// Everything that happens from now on goes into the log that the state comes from, behind the records that it lacks.
    pub(crate) fn log_on(&mut self, log: Box<dyn SessionLog>, missing: Vec<Record>) {
        self.journal = Journal::new(log, missing, false);
    }

    /// The next update; nothing after the end. Whoever speaks to the machine from outside does so through the inbox.
    pub(crate) fn poll_update(
        &mut self,
        mut inbox: Option<&mut Inbox>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Update>> {
        for _ in 0..EVENTS_IN_A_ROW {
            if let Some(update) = ready!(self.poll_outbox(cx)) {
                return Poll::Ready(Some(update));
            }
            if self.state.terminal().is_some() {
                self.inflight.end_run();
                return Poll::Ready(None);
            }
            let event = ready!(self.inflight.poll_event(inbox.as_deref_mut(), cx));
            self.advance(event);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The next update of what is at work after the end of a run; nothing once all of it is over.
    pub(crate) fn poll_background(&mut self, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        loop {
            if let Some(update) = ready!(self.poll_outbox(cx)) {
                return Poll::Ready(Some(update));
            }
            let Some(event) = ready!(self.inflight.poll_forks(cx)) else { return Poll::Ready(None) };
            self.advance(event);
        }
    }

    /// The next update that needs no further event, once the log has what stands before it.
    fn poll_outbox(&mut self, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        while self.outbox.is_empty() && self.journal.is_pending() {
            let done = ready!(self.journal.poll(cx));
            self.go_on(done);
        }
        Poll::Ready(self.outbox.pop_front())
    }

    /// The end of a run that nobody watches. Whenever a response begins, `spent` hears what the run has taken.
    pub(crate) fn poll_outcome(
        &mut self,
        spent: impl Fn(BTreeMap<Arc<str>, ModelSpend>),
        cx: &mut Context<'_>,
    ) -> Poll<Option<Box<Outcome>>> {
        for _ in 0..EVENTS_IN_A_ROW {
            match ready!(self.poll_update(None, cx)) {
                Some(Update::Done(outcome)) => return Poll::Ready(Some(outcome)),
                Some(Update::Responding { .. }) => spent(self.state.spent_so_far(&self.config)),
                Some(_) => (),
                None => return Poll::Ready(None),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Tells the machine what happened, and does what it asks for.
    pub(crate) fn advance(&mut self, event: Event) {
        if matches!(event, Event::Submit(_) | Event::Compact { .. } | Event::GoOn { .. }) {
            self.is_running = true;
            self.journal.next_run();
        }
        // What the log was never told goes in before anything new does.
        let restated = self.restate();
        self.hear(event);
        self.go_on(restated);
    }

    /// One step of the core. What is said at rest while earlier records still wait for the log waits behind them.
    fn hear(&mut self, event: Event) {
        let input = self.input(event);
        if self.todo.is_empty() {
            self.journal.hear(&input);
        } else {
            let record = Record::Heard(Box::new(input.clone()));
            self.todo.push_back(Effect::Persist(record, Durability::Written));
        }
        let (state, effects) = step(std::mem::take(&mut self.state), input, &self.config);
        self.state = state;
        self.todo.extend(effects.list);
    }

    /// An event with the time and the chance of this moment.
    fn input(&mut self, event: Event) -> Input {
        self.inputs += 1;
        let at_ms = u64::try_from(self.session.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Input { at_ms, wall_ms: now_ms(), entropy: self.seed.entropy(self.inputs), event }
    }

    /// Does what is to be done. A call goes through three steps, each behind the one before: checkpoints of the files it may change,
    /// its record, its start. If the log failed, nothing that waits for it happens: the core decides what does.
    fn go_on(&mut self, mut logged: Result<(), LogError>) {
        loop {
            if let Err(error) = logged {
                self.on_log_failed(&error);
            }
            if self.journal.is_pending() {
                return;
            }
            if let Some(appended) = self.journal.append_checkpointed() {
                logged = appended;
                continue;
            }
            logged = match self.todo.pop_front() {
                None => match self.restate() {
                    Ok(()) => return,
                    failed => failed,
                },
                Some(Effect::Persist(record, durability)) => self.take_checkpoints(record, durability),
                Some(Effect::Emit(update)) => {
                    self.emit(update);
                    Ok(())
                }
                Some(other) => {
                    self.inflight.perform(other);
                    Ok(())
                }
            };
        }
    }

    /// Takes the checkpoints of the next append: records that follow each other are one.
    fn take_checkpoints(&mut self, record: Record, mut durability: Durability) -> Result<(), LogError> {
        let mut records = vec![record];
        let is_record = |effect: &mut Effect| matches!(effect, Effect::Persist(..));
        while let Some(Effect::Persist(record, wanted)) = self.todo.pop_front_if(is_record) {
            durability = durability.max(wanted);
            records.push(record);
        }
        self.journal.take_checkpoints(records, durability)
    }

    /// Writes a snapshot where that is due and possible.
    fn restate(&mut self) -> Result<(), LogError> {
        if self.journal.is_pending() || !self.journal.wants_snapshot() {
            return Ok(());
        }
        let Some(snapshot) = self.state.snapshot() else { return Ok(()) };
        if self.journal.finish_snapshot() {
            // Whoever reads the log has nothing but this snapshot, so nothing but this snapshot counts from here on.
            let state = State::from_snapshot(snapshot.clone());
            self.state = state.keeping_grants(std::mem::take(&mut self.state));
        }
        self.journal.append([Record::Snapshot(Box::new(snapshot))], Durability::Written)
    }

    /// Writes a snapshot now, behind everything that was said, and waits until it is in the log. For a machine at rest.
    pub(crate) fn poll_restate(
        &mut self,
        begun: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), LogError>> {
        while !*begun {
            if self.journal.is_pending() {
                let done = ready!(self.journal.poll(cx));
                self.go_on(done);
                continue;
            }
            *begun = true;
            self.journal.next_run();
            self.journal.require_snapshot();
            if let Err(error) = self.restate() {
                self.on_log_failed(&error);
                return Poll::Ready(Err(error));
            }
        }
        let done = ready!(self.journal.poll(cx));
        if let Err(error) = &done {
            self.on_log_failed(error);
        }
        Poll::Ready(done)
    }

    /// Nothing that stands behind the records happens but what stops something, and the core is told so. A run that is over is
    /// the exception: how it ended is still told, with a word of warning in front.
    fn on_log_failed(&mut self, error: &LogError) {
        self.journal.fail();
        let behind = std::mem::take(&mut self.todo);
        let unstarted = behind.iter().filter_map(|effect| match effect {
            Effect::RunTool { call, .. } => Some(*call),
            _ => None,
        });
        let unstarted = unstarted.collect();
        let is_over = self.state.terminal().is_some();
        self.hear(Event::StoreFailed { why: error.to_string(), unstarted });
        if is_over {
            if self.is_running {
                self.emit(Update::Notice(format!("The session log is incomplete: {error}.")));
            }
            let after = std::mem::replace(&mut self.todo, behind);
            self.todo.extend(after);
        } else {
            behind.into_iter().filter(Effect::stops).for_each(|effect| self.inflight.perform(effect));
        }
    }

    fn emit(&mut self, update: Update) {
        self.is_running &= !matches!(update, Update::Done(_));
        self.outbox.push_back(update);
    }

    /// Ends whatever was going on, as after a crash; what is at work since the end of a run goes on.
    pub(crate) fn rest(&mut self) {
        self.inflight.end_run();
        self.outbox.clear();
        if std::mem::take(&mut self.is_running) {
            self.inflight.clear();
            self.todo.clear();
            if self.journal.abandon_run() {
                let why = "the run was dropped during the write".to_owned();
                let input = self.input(Event::StoreFailed { why, unstarted: Vec::new() });
                self.journal.hear(&input);
            }
        }
        self.state = std::mem::take(&mut self.state).close_run();
    }

    /// The same, and nothing goes on in the background either.
    pub(crate) fn stop(&mut self) {
        self.rest();
        self.inflight.clear();
    }
}
