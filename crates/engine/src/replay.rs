//! A session played again from its log: everything the core was told is told to it once more, and what it wants recorded is
//! compared with what was.
//!
//! Nothing is done: no model is asked, no tool runs, no file is touched. The rules of the driver that a log shows hold here
//! too: a run begins at rest, one that was dropped is closed before anything else is heard, and a log that could not be written
//! goes on with everything restated.

mod difference;
mod sums;

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_core::{Config, Effect, Event, Input, PhaseName, RecalledSession, State, step};
use windlass_protocol::{ContextReport, Record, SessionSnapshot, Transcript, Update};

pub use difference::Mismatch;

use crate::builder::Engine;
use difference::{event_name, is_same};

/// A session that is played again; see [`Engine::replay`].
#[derive(Debug)]
pub struct Replay {
    config: Arc<Config>,
    state: State,
    /// What the core wants recorded and the log has not shown yet.
    due: VecDeque<Record>,
    events: u64,
    /// The last few events, the latest last.
    trail: VecDeque<PlayedEvent>,
    /// Nothing was heard yet, and no former state of the session is known.
    is_new: bool,
    /// The log could not be written for a while: only what is restated next is known.
    has_lost_records: bool,
    /// What differed when a run seemed to be dropped, in case it goes on after all.
    doubt: Option<Mismatch>,
}

/// An event that was played, in the words in which a [`Mismatch`] speaks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedEvent {
    /// Its number; the first is 1.
    pub event: u64,
    /// What was heard.
    pub heard: &'static str,
    /// The kinds of the records behind it.
    pub records: Vec<&'static str>,
}

/// As many events are remembered.
const TRAIL: usize = 6;

impl Engine {
    /// Plays a session of this engine again, from its beginning: hand it the records of the log in their order. The first one
    /// that this engine would not have written is an error.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use futures_util::StreamExt;
    /// # use windlass_engine::ports::{AppendProgress, SessionLog};
    /// # use windlass_engine::protocol::{Durability, Record};
    /// # use windlass_engine::Engine;
    /// # use windlass_models::{Script, ScriptModel, model_card};
    /// #[derive(Clone, Default)]
    /// struct Memory(Arc<Mutex<Vec<Record>>>);
    ///
    /// impl SessionLog for Memory {
    ///     fn append(&mut self, records: &[Record], _: Durability) -> AppendProgress {
    ///         self.0.lock().unwrap().extend_from_slice(records);
    ///         AppendProgress::Now(Ok(()))
    ///     }
    ///
    ///     fn wants_snapshot(&self) -> bool {
    ///         false
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let script = Script::parse(r#"{"responses": [{"blocks": [{"text": "Hello."}]}]}"#)?;
    /// # let engine = Engine::builder(Arc::new(ScriptModel::new(script)), model_card("scripted")).build()?;
    /// let log = Memory::default();
    /// engine.session().logged(Box::new(log.clone())).run("Say hello.").count().await;
    ///
    /// let mut replay = engine.replay();
    /// for record in &*log.0.lock().unwrap() {
    ///     replay.take(record)?;
    /// }
    /// assert!(replay.is_complete());
    /// assert_eq!(replay.state().messages().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replay(&self) -> Replay {
        Replay {
            config: self.shared.config.clone(),
            state: State::new(self.shared.cwd.clone(), Transcript::default()),
            due: VecDeque::new(),
            events: 0,
            trail: VecDeque::new(),
            is_new: true,
            has_lost_records: false,
            doubt: None,
        }
    }
}

impl Replay {
    /// Another process opened the session with this engine, as [`Engine::resume`] does. What the log lacks of the last run is
    /// what that process could not know either.
    pub fn open(&mut self, engine: &Engine, recalled: RecalledSession) {
        self.config = engine.shared.config.clone();
        self.state = recalled.state.reopen();
        self.due = recalled.results.into_iter().map(Record::Result).collect();
        self.is_new = false;
        self.has_lost_records = false;
        self.doubt = None;
    }

    /// The process went back to an earlier point of the session. What it restates next is all that counts.
    pub fn rewind(&mut self) {
        self.due.clear();
        self.doubt = None;
        self.has_lost_records = true;
    }

    /// Takes the next record of the log. What was shown to the caller at that moment comes back, but for pieces of blocks and
    /// the progress of tools, which no log keeps.
    pub fn take(&mut self, record: &Record) -> Result<Vec<Update>, Mismatch> {
        match record {
            Record::Heard(input) => return self.hear(input),
            Record::Snapshot(snapshot) => self.compare_snapshot(snapshot)?,
            record => self.compare(record)?,
        }
        if let Some(last) = self.trail.back_mut() {
            last.records.push(record.kind());
        }
        Ok(Vec::new())
    }

    /// The session as it is now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How many events were played.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The last few events that were played, the latest last.
    pub fn trail(&self) -> impl Iterator<Item = &PlayedEvent> {
        self.trail.iter()
    }

    /// How full the context is now.
    pub fn context_report(&self) -> ContextReport {
        self.state.context_report(&self.config)
    }

    /// Whether the log has shown everything that follows from what was heard so far. If it has not at its end, it was cut off.
    pub fn is_complete(&self) -> bool {
        self.due.is_empty() && !self.has_lost_records
    }

    fn hear(&mut self, input: &Input) -> Result<Vec<Update>, Mismatch> {
        if let Event::StoreFailed { .. } = input.event {
            self.count(&input.event);
            self.rewind();
            return Ok(Vec::new());
        }
        self.check_due(&input.event)?;
        self.check_order(&input.event)?;
        self.count(&input.event);
        if self.state.terminal().is_some() {
            self.state = std::mem::take(&mut self.state).close_run();
        }
        let (state, effects) = step(std::mem::take(&mut self.state), input.clone(), &self.config);
        self.state = state;
        let mut updates = Vec::new();
        for effect in effects.list {
            match effect {
                Effect::Persist(record, _) => self.due.push_back(record),
                Effect::Emit(update) => updates.push(update),
                _ => (),
            }
        }
        Ok(updates)
    }

    fn count(&mut self, event: &Event) {
        self.events += 1;
        self.is_new = false;
        self.trail.push_back(PlayedEvent {
            event: self.events,
            heard: event_name(event),
            records: Vec::new(),
        });
        if self.trail.len() > TRAIL {
            self.trail.pop_front();
        }
    }

    /// Everything that followed from the last event must be there before the next one.
    fn check_due(&self, next: &Event) -> Result<(), Mismatch> {
        if self.has_lost_records {
            return Err(self.mismatch("facts", Mismatch::missing(&"a snapshot", event_name(next))));
        }
        match self.due.front() {
            Some(due) => Err(self.mismatch(due.kind(), Mismatch::missing(due, event_name(next)))),
            None => Ok(()),
        }
    }

    /// A run begins at rest, and at rest nothing else is heard but what came of work in the background.
    fn check_order(&mut self, event: &Event) -> Result<(), Mismatch> {
        let begins = matches!(event, Event::Submit(_) | Event::Compact { .. } | Event::GoOn { .. });
        if begins || matches!(event, Event::Steer(_) | Event::TakeBack(_)) {
            self.doubt = None;
        } else if let Some(doubt) = self.doubt.take() {
            return Err(doubt);
        }
        let is_over = matches!(self.state.phase(), PhaseName::Idle | PhaseName::Done);
        let fork = match event {
            Event::Forked(fork, _) | Event::ForkSpent(fork, _) => Some(*fork),
            _ => None,
        };
        let is_background = fork.is_some_and(|fork| self.state.is_background(fork));
        let may_rest = begins || is_background || matches!(event, Event::Steer(_) | Event::TakeBack(_));
        let fits = if is_over { may_rest } else { !begins };
        if fits {
            return Ok(());
        }
        let played = if is_over { "the run ended" } else { "the run continues" };
        Err(self.mismatch("heard", Mismatch::of_words(event_name(event), played)))
    }

    fn compare(&mut self, record: &Record) -> Result<(), Mismatch> {
        if self.has_lost_records && matches!(record, Record::Result(_)) {
            // The snapshot that follows says it too.
            return Ok(());
        }
        let Some(due) = self.due.pop_front() else {
            return Err(self.mismatch(record.kind(), Mismatch::unasked(record)));
        };
        if is_same(record, &due) {
            return Ok(());
        }
        let difference = if record.kind() == due.kind() {
            Mismatch::between(record, &due)
        } else {
            Mismatch::of_kinds(record, &due)
        };
        Err(self.mismatch(record.kind(), difference))
    }

    /// A snapshot is written where the run goes on, or where it was dropped, or where the log was of no use before.
    fn compare_snapshot(&mut self, snapshot: &SessionSnapshot) -> Result<(), Mismatch> {
        let is_new = std::mem::take(&mut self.is_new);
        if std::mem::take(&mut self.has_lost_records) || is_new {
            let before_usd = self.state.before_usd();
            self.state = State::from_snapshot(snapshot.clone());
            self.state.set_before_usd(before_usd);
            return Ok(());
        }
        let here = self.state.snapshot();
        if self.due.is_empty() && here.as_ref() == Some(snapshot) {
            return Ok(());
        }
        let missing = self.due.front().map(|due| self.mismatch(due.kind(), Mismatch::missing(due, "facts")));
        let is_over = matches!(self.state.phase(), PhaseName::Idle | PhaseName::Done);
        let rested = self.state.clone().close_run();
        let then = rested.snapshot();
        if !is_over && then.as_ref() == Some(snapshot) {
            self.state = rested;
            self.due.clear();
            self.doubt = missing;
            return Ok(());
        }
        let played = here.or(then).unwrap_or_default();
        Err(missing.unwrap_or_else(|| self.mismatch("facts", Mismatch::between(snapshot, &played))))
    }

    fn mismatch(&self, kind: &'static str, difference: Mismatch) -> Mismatch {
        let heard = self.trail.back().map_or("nothing yet", |last| last.heard);
        Mismatch { event: self.events, heard, kind, ..difference }
    }
}
