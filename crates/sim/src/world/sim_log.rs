//! The log of the simulated world, filled as the driver fills it. Disks are full at times, and processes end in the middle of a
//! write.

use windlass_core::{Effect, Event, Input, Recall, State};
use windlass_protocol::{CallResult, Delta, ModelEvent, Record};

use crate::rng::Rng;

/// What is in the log, what is on its way into it, and what may go wrong.
#[derive(Debug)]
pub(super) struct SimLog {
    /// Everything that is in the log.
    pub(super) records: Vec<Record>,
    /// The same, recalled so far.
    recall: Recall,
    /// What waits for the next append.
    batch: Vec<Record>,
    /// What was said of a block that is not complete.
    partial: Option<Input>,
    /// An append failed in this run: nothing else is tried.
    has_failed: bool,
    /// The state says something that the log does not.
    is_stale: bool,
    luck: Luck,
}

/// What may happen to appends in this walk.
#[derive(Clone, Copy, Debug, Default)]
struct Luck {
    should_fail: bool,
    should_crash: bool,
    should_restate: bool,
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppendResult {
    Done,
    /// The disk did not take it, and nothing of it counts.
    Failed,
    /// The process ended in the middle: a beginning of it is in the log.
    Crashed,
}

/// How far the effects of a step were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepProgress {
    All,
    /// Those up to here; then the log failed.
    UpToFailure(usize),
    /// Those up to here; then the process ended.
    UpToCrash(usize),
}

impl SimLog {
    /// The log of a session that begins with this state.
    pub(super) fn new(state: &State, rng: &mut Rng, is_lucky: bool) -> Self {
        let luck = Luck {
            should_fail: !is_lucky && rng.one_in(8),
            should_crash: rng.one_in(3),
            should_restate: rng.one_in(3),
        };
        let mut journal = Self {
            records: Vec::new(),
            recall: Recall::new(state.cwd().clone()),
            batch: Vec::new(),
            partial: None,
            has_failed: false,
            is_stale: false,
            luck,
        };
        if !state.messages().is_empty()
            && let Some(facts) = state.snapshot()
        {
            journal.put(Record::Snapshot(Box::new(facts)));
        }
        journal
    }

    fn put(&mut self, record: Record) {
        self.recall.take(record.clone());
        self.records.push(record);
    }

    /// What the log says so far; a response that is open is not part of it.
    pub(super) fn recall(&self) -> &Recall {
        &self.recall
    }

    /// What the log says with everything that waits for the next append.
    pub(super) fn recall_all(&self) -> Recall {
        let mut recall = self.recall.clone();
        self.batch.iter().cloned().for_each(|record| recall.take(record));
        recall
    }

    /// Whether the log knows what the state knows.
    pub(super) fn is_complete(&self) -> bool {
        !self.has_failed && !self.is_stale
    }

    /// Whether an append of this run failed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    pub(super) fn fail(&mut self) {
        (self.has_failed, self.is_stale) = (true, true);
        self.batch.clear();
        self.partial = None;
    }

    /// A run begins: the log has another chance.
    pub(super) fn next_run(&mut self) {
        self.has_failed = false;
        self.partial = None;
    }

    /// The run was dropped.
    pub(super) fn abandon_run(&mut self) {
        self.batch.clear();
        self.partial = None;
        self.is_stale = true;
    }

    /// Another process goes on with this log, which lacks these results.
    pub(super) fn reopen(&mut self, missing: Vec<CallResult>) {
        self.has_failed = false;
        self.partial = None;
        self.is_stale = !missing.is_empty();
        self.batch = missing.into_iter().map(Record::Result).collect();
    }

    /// Notes what the core is told. Pieces of a block count only if the block never comes.
    pub(super) fn hear(&mut self, input: &Input) {
        if self.has_failed {
            return;
        }
        match &input.event {
            Event::Progress(..) => return,
            Event::Model(_, ModelEvent::Delta { delta, .. }) => {
                return self.hear_piece(input, delta);
            }
            Event::Model(_, ModelEvent::Block { .. }) => self.partial = None,
            Event::Model(_, ModelEvent::Ended { .. } | ModelEvent::Failed(_)) | Event::Interrupt(_) => {
                let partial = self.partial.take().map(|heard| Record::Heard(Box::new(heard)));
                self.batch.extend(partial);
            }
            _ => (),
        }
        self.batch.push(Record::Heard(Box::new(input.clone())));
    }

    fn hear_piece(&mut self, input: &Input, piece: &Delta) {
        let heard = self.partial.get_or_insert_with(|| input.clone());
        if let (Event::Model(_, ModelEvent::Delta { delta, .. }), Delta::Text(more)) =
            (&mut heard.event, piece)
        {
            match delta {
                Delta::Text(text) => text.push_str(more),
                other => *other = Delta::Text(more.clone()),
            }
        }
    }

    /// Appends records behind what was heard.
    fn append(&mut self, records: impl IntoIterator<Item = Record>, rng: &mut Rng) -> AppendResult {
        if self.has_failed {
            return AppendResult::Done;
        }
        let mut batch = std::mem::take(&mut self.batch);
        batch.extend(records);
        if self.luck.should_fail && rng.one_in(80) {
            return AppendResult::Failed;
        }
        let crashed = self.luck.should_crash && rng.one_in(60);
        if crashed {
            let left = usize::try_from(rng.below(batch.len() as u64 + 1)).unwrap_or(0);
            batch.truncate(left);
        }
        for record in batch {
            self.put(record);
        }
        if crashed { AppendResult::Crashed } else { AppendResult::Done }
    }

    /// Writes a snapshot where that is due, or happens to be done.
    pub(super) fn restate(&mut self, state: &State, rng: &mut Rng) -> AppendResult {
        let wanted = !self.has_failed && (self.is_stale || (self.luck.should_restate && rng.one_in(16)));
        let Some(facts) = wanted.then(|| state.snapshot()).flatten() else { return AppendResult::Done };
        self.is_stale = false;
        self.append([Record::Snapshot(Box::new(facts))], rng)
    }

    /// Appends the records of one step, those that follow each other at once, until something goes wrong. Once the run is over, a
    /// failure stops nothing any more.
    pub(super) fn log(&mut self, effects: &[Effect], is_over: bool, rng: &mut Rng) -> StepProgress {
        let mut at = 0;
        while let Some(first) = effects.iter().skip(at).position(|effect| record(effect).is_some()) {
            let first = at + first;
            let batch: Vec<Record> = effects.iter().skip(first).map_while(record).cloned().collect();
            at = first + batch.len();
            match self.append(batch, rng) {
                AppendResult::Done => (),
                AppendResult::Failed if is_over => self.fail(),
                AppendResult::Failed => return StepProgress::UpToFailure(first),
                AppendResult::Crashed => return StepProgress::UpToCrash(first),
            }
        }
        StepProgress::All
    }
}

fn record(effect: &Effect) -> Option<&Record> {
    match effect {
        Effect::Persist(record, _) => Some(record),
        _ => None,
    }
}
