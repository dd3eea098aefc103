//! What goes into the log, and when the driver may go on.
//!
//! Records that follow each other are one append. What was heard without consequences waits for the next: it is no loss if
//! nobody ever asks for it. A call goes through three steps, each behind the one before: checkpoints of the files it may change,
//! its record, its start.

use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt};
use windlass_core::{Event, Input};
use windlass_ports::{AppendProgress, LogError, SessionLog};
use windlass_protocol::{Delta, Durability, ModelEvent, Record, RequestId};

/// The log of a session and what is on its way into it. Without a log everything counts as written.
#[derive(Default)]
pub(crate) struct Journal {
    log: Option<Box<dyn SessionLog>>,
    /// Records that wait for the next append.
    batch: Vec<Record>,
    /// Records whose checkpoints are taken, or are being taken. They are appended next.
    checkpointed: Option<(Vec<Record>, Durability)>,
    /// Checkpoints or an append that takes a while.
    pending: Option<BoxFuture<'static, Result<(), LogError>>>,
    /// What was said of a block that is not complete yet.
    partial: Option<Partial>,
    /// The log could not be written: nothing goes in before the run is over.
    has_failed: bool,
    /// The state says something that the log does not.
    is_stale: bool,
    /// The log does not even say what happened since it could not be written.
    has_lost_records: bool,
}

/// The pieces of a block, put together.
struct Partial {
    heard: Input,
    request: RequestId,
    index: u32,
    text: String,
}

impl Journal {
    /// A journal whose log lacks these records, or anything else that the state says.
    pub(crate) fn new(log: Box<dyn SessionLog>, missing: Vec<Record>, is_stale: bool) -> Self {
        Self { log: Some(log), is_stale: is_stale || !missing.is_empty(), batch: missing, ..Self::default() }
    }

    fn is_on(&self) -> bool {
        self.log.is_some() && !self.has_failed
    }

    /// Notes what the core is told. Progress changes nothing; the pieces of a block only count if the block never comes. That the
    /// log could not be written is the first thing it is told when it can be: whoever reads it knows that something is missing.
    pub(crate) fn hear(&mut self, input: &Input) {
        let is_failure = self.has_lost_records && matches!(input.event, Event::StoreFailed { .. });
        if !(self.is_on() || is_failure) {
            return;
        }
        match &input.event {
            Event::Progress(..) => return,
            Event::Model(request, ModelEvent::Delta { index, delta }) => {
                return self.hear_piece(input, *request, *index, delta);
            }
            Event::Model(_, ModelEvent::Block { .. }) => self.partial = None,
            Event::Model(_, ModelEvent::Ended { .. } | ModelEvent::Failed(_)) | Event::Interrupt(_) => {
                self.flush_partial();
            }
            _ => (),
        }
        self.batch.push(Record::Heard(Box::new(input.clone())));
    }

    fn hear_piece(&mut self, input: &Input, request: RequestId, index: u32, delta: &Delta) {
        // As in the core: only text is kept. Of anything else it counts that it came.
        let piece = if let Delta::Text(piece) = delta { Some(piece.as_str()) } else { None };
        match (&mut self.partial, piece) {
            (Some(partial), None) if partial.request == request => (),
            (Some(partial), Some(piece)) if (partial.request, partial.index) == (request, index) => {
                partial.text.push_str(piece);
            }
            (partial, piece) => {
                let (heard, text) = (input.clone(), piece.unwrap_or_default().to_owned());
                *partial = Some(Partial { heard, request, index, text });
            }
        }
    }

    fn flush_partial(&mut self) {
        let Some(Partial { heard, request, index, text }) = self.partial.take() else { return };
        let event = Event::Model(request, ModelEvent::Delta { index, delta: Delta::Text(text) });
        self.batch.push(Record::Heard(Box::new(Input { event, ..heard })));
    }

    /// Takes the checkpoints that records call for, which are to be appended next. What stands behind them has to wait while this is
    /// pending.
    pub(crate) fn take_checkpoints(
        &mut self,
        records: Vec<Record>,
        durability: Durability,
    ) -> Result<(), LogError> {
        let Some(log) = self.log.as_mut().filter(|_| !self.has_failed) else { return Ok(()) };
        self.batch.extend(records);
        let taken = log.take_checkpoints(&self.batch, durability);
        self.checkpointed = Some((std::mem::take(&mut self.batch), durability));
        self.settle(taken)
    }

    /// Appends the records whose checkpoints are taken, if there are some. What was heard meanwhile stands behind them.
    pub(crate) fn append_checkpointed(&mut self) -> Option<Result<(), LogError>> {
        let (records, durability) = self.checkpointed.take()?;
        let meanwhile = std::mem::replace(&mut self.batch, records);
        Some(self.append(meanwhile, durability))
    }

    /// Appends records, behind what was heard. What stands behind them has to wait while this is pending.
    pub(crate) fn append(
        &mut self,
        records: impl IntoIterator<Item = Record>,
        durability: Durability,
    ) -> Result<(), LogError> {
        let Some(log) = self.log.as_mut().filter(|_| !self.has_failed) else { return Ok(()) };
        self.batch.extend(records);
        let appended = log.append(&self.batch, durability);
        self.batch.clear();
        self.settle(appended)
    }

    fn settle(&mut self, progress: AppendProgress) -> Result<(), LogError> {
        match progress {
            AppendProgress::Now(done) => done,
            AppendProgress::Later(done) => {
                self.pending = Some(done);
                Ok(())
            }
        }
    }

    /// Whether a step is pending.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Ready once nothing is pending.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LogError>> {
        let Some(pending) = &mut self.pending else { return Poll::Ready(Ok(())) };
        let done = pending.poll_unpin(cx);
        if done.is_ready() {
            self.pending = None;
        }
        done
    }

    /// The log cannot be written. Until the run is over nothing else is tried.
    pub(crate) fn fail(&mut self) {
        self.has_failed = true;
        self.is_stale = true;
        self.has_lost_records = true;
        self.batch.clear();
        self.checkpointed = None;
        self.partial = None;
    }

    /// A run is over; the log has another chance with the next.
    pub(crate) fn next_run(&mut self) {
        self.has_failed = false;
        self.partial = None;
    }

    /// The run was dropped in the middle: what the state says now, the log was never told. What was heard still goes in before
    /// a snapshot is written. Whether a step was pending: nobody waits to learn what becomes of it.
    pub(crate) fn abandon_run(&mut self) -> bool {
        self.partial = None;
        self.is_stale = true;
        self.checkpointed = None;
        let is_unknown = self.pending.take().is_some();
        self.has_lost_records |= is_unknown;
        is_unknown
    }

    /// The log is to be told everything that counts, whatever it knows.
    pub(crate) fn require_snapshot(&mut self) {
        self.is_stale = true;
    }

    /// Whether a snapshot is to be written.
    pub(crate) fn wants_snapshot(&self) -> bool {
        !self.has_failed && self.log.as_ref().is_some_and(|log| self.is_stale || log.wants_snapshot())
    }

    /// A snapshot is written; whether that is all the log knows of what happened last.
    pub(crate) fn finish_snapshot(&mut self) -> bool {
        self.is_stale = false;
        std::mem::take(&mut self.has_lost_records)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::oneshot;

    use super::*;

    /// A log that notes its steps and takes checkpoints when it is told to.
    #[derive(Default)]
    struct Steps {
        taken: Arc<Mutex<Vec<&'static str>>>,
        checkpoints: Option<oneshot::Receiver<Result<(), LogError>>>,
    }

    impl SessionLog for Steps {
        fn take_checkpoints(&mut self, _: &[Record], _: Durability) -> AppendProgress {
            self.taken.lock().unwrap().push("checkpoints");
            match self.checkpoints.take() {
                Some(done) => AppendProgress::Later(async { done.await.unwrap() }.boxed()),
                None => AppendProgress::Now(Ok(())),
            }
        }

        fn append(&mut self, _: &[Record], _: Durability) -> AppendProgress {
            self.taken.lock().unwrap().push("records");
            AppendProgress::Now(Ok(()))
        }

        fn wants_snapshot(&self) -> bool {
            false
        }
    }

    /// Appends while checkpoints are pending, which then end like this; tells the steps that were taken and the outcome.
    fn after(checkpoints: Result<(), LogError>) -> (Vec<&'static str>, Poll<Result<(), LogError>>) {
        let (tell, told) = oneshot::channel();
        let log = Steps { checkpoints: Some(told), ..Steps::default() };
        let taken = Arc::clone(&log.taken);
        let mut journal = Journal::new(Box::new(log), Vec::new(), false);
        let mut cx = Context::from_waker(futures_util::task::noop_waker_ref());
        journal.take_checkpoints(vec![Record::Dequeued], Durability::Synced).unwrap();
        assert!(journal.poll(&mut cx).is_pending());
        assert_eq!(*taken.lock().unwrap(), ["checkpoints"], "no record before its checkpoints");
        tell.send(checkpoints).unwrap();
        let done = journal.poll(&mut cx);
        assert!(!journal.is_pending());
        if done == Poll::Ready(Ok(())) {
            journal.append_checkpointed().unwrap().unwrap();
        }
        let taken = taken.lock().unwrap().clone();
        (taken, done)
    }

    #[test]
    fn records_are_appended_once_their_checkpoints_are_taken() {
        assert_eq!(after(Ok(())), (vec!["checkpoints", "records"], Poll::Ready(Ok(()))));
    }

    #[test]
    fn a_call_whose_checkpoints_fail_is_not_recorded() {
        let full = LogError("the disk is full".into());
        assert_eq!(after(Err(full.clone())), (vec!["checkpoints"], Poll::Ready(Err(full))));
    }

    #[test]
    fn nothing_is_kept_for_a_log_that_failed() {
        let log = Steps::default();
        let taken = Arc::clone(&log.taken);
        let mut journal = Journal::new(Box::new(log), Vec::new(), false);
        journal.fail();
        journal.take_checkpoints(vec![Record::Dequeued], Durability::Written).unwrap();
        assert!(journal.append_checkpointed().is_none());
        assert!(taken.lock().unwrap().is_empty());
    }
}
