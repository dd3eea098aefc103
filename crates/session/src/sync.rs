//! When what was written is made safe against a loss of power.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use windlass_ports::LogError;
use windlass_protocol::{Durability, SyncPolicy};

use crate::disk::{LogFile, retry_interrupted};
use crate::writer::trouble;

/// How long something written waits at most until its sync begins. With the sync itself it is on the disk within 100 ms.
const GROUP_WAIT: Duration = Duration::from_millis(70);

/// The same for a new file: long enough that a run which is over in an instant waits for the disk only once.
const NAME_WAIT: Duration = Duration::from_millis(5);

/// What an append has to do about the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncUrgency {
    Now,
    Soon,
    Never,
}

impl SyncUrgency {
    pub(crate) fn of(policy: SyncPolicy, durability: Durability) -> Self {
        match (policy, durability) {
            (SyncPolicy::Always, _) | (SyncPolicy::Turn, Durability::Synced) => Self::Now,
            (SyncPolicy::Turn, Durability::Written) => Self::Soon,
            (SyncPolicy::Never, _) => Self::Never,
        }
    }
}

/// A place in the order of appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Which appends are on the disk, shared by all who write and sync.
#[derive(Default)]
pub(crate) struct Commits {
    path: PathBuf,
    state: Mutex<State>,
    wake: Condvar,
    /// One sync at a time: the system reports a failure to one of several that wait, and all must hear of it.
    syncing: Mutex<()>,
    /// How many syncs have failed, and how many of these failures matter no more. Atomic, since both are read for each append.
    failures: AtomicU64,
    made_good: AtomicU64,
}

#[derive(Default)]
struct State {
    file: Option<Arc<dyn LogFile>>,
    is_named: bool,
    written: u64,
    synced: u64,
    lost: Option<LostAppends>,
    /// A failure that nobody was told of yet.
    untold: Option<LogError>,
    /// When something is to be synced that nobody waits for.
    due: Option<Instant>,
    /// Who waits for what.
    asked: Vec<(Ticket, oneshot::Sender<SyncResult>)>,
    has_thread: bool,
    is_closing: bool,
}

impl State {
    /// What is safe stands on everything before it: whoever waits hears of a loss that nobody heard of.
    fn tell(&mut self, asker: Asker) -> SyncResult {
        let untold = if asker == Asker::Somebody { self.untold.take() } else { None };
        untold.map_or(Ok(()), Err)
    }
}

type SyncResult = Result<(), LogError>;

/// Appends that a failed sync may have lost. No later success brings them back.
struct LostAppends {
    from: u64,
    upto: u64,
    error: LogError,
}

impl LostAppends {
    fn error_of(&self, ticket: Ticket) -> Option<LogError> {
        (self.from < ticket.0 && ticket.0 <= self.upto).then(|| self.error.clone())
    }
}

/// Who waits for a sync, and hears if it fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Somebody,
    /// The next append is told instead.
    Nobody,
}

impl Commits {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    /// Something was appended to this file.
    pub(crate) fn note_append(&self, file: Arc<dyn LogFile>) -> Ticket {
        let mut state = self.state();
        if state.file.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &file)) {
            state.file = Some(file);
            state.is_named = false;
        }
        state.written += 1;
        Ticket(state.written)
    }

    pub(crate) fn last(&self) -> Ticket {
        Ticket(self.state().written)
    }

    /// Has the append synced soon; at once if there is no thread to do it.
    pub(crate) fn soon(&self, ticket: Ticket) -> SyncResult {
        let mut state = self.state();
        if !state.has_thread {
            drop(state);
            return self.sync(ticket);
        }
        if state.due.is_none() {
            // The name of a new file takes the disk longest. Nobody waits for it if it is done while the model thinks.
            let wait = if state.is_named { GROUP_WAIT } else { NAME_WAIT };
            state.due = Some(Instant::now() + wait);
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Has the append synced by the thread, which tells what became of it. None if there is no thread.
    pub(crate) fn ask(&self, ticket: Ticket) -> Option<oneshot::Receiver<SyncResult>> {
        let mut state = self.state();
        if !state.has_thread {
            return None;
        }
        let (tell, told) = oneshot::channel();
        state.asked.push((ticket, tell));
        self.wake.notify_one();
        Some(told)
    }

    /// Waits until the append is on the disk, with whatever else was written by then.
    pub(crate) fn sync(&self, ticket: Ticket) -> SyncResult {
        self.sync_for(ticket, Asker::Somebody)
    }

    fn sync_for(&self, ticket: Ticket, asker: Asker) -> SyncResult {
        let _one_at_a_time = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, target, named) = {
            let mut state = self.state();
            if let Some(error) = state.lost.as_ref().and_then(|lost| lost.error_of(ticket)) {
                state.untold = None;
                return Err(error);
            }
            match &state.file {
                Some(file) if state.synced < ticket.0 => (Arc::clone(file), state.written, state.is_named),
                _ => return state.tell(asker),
            }
        };
        let synced = sync_file(&*file, named);
        let mut state = self.state();
        let from = std::mem::replace(&mut state.synced, target);
        match synced {
            Ok(()) => {
                state.is_named |= state.file.as_ref().is_some_and(|now| Arc::ptr_eq(now, &file));
                state.tell(asker)
            }
            Err(error) => {
                let error = trouble::of_sync(&self.path, &error);
                let from = state.lost.as_ref().map_or(from, |before| before.from.min(from));
                state.lost = Some(LostAppends { from, upto: target, error: error.clone() });
                state.untold = (asker == Asker::Nobody).then(|| error.clone());
                self.failures.fetch_add(1, Ordering::Release);
                Err(error)
            }
        }
    }

    /// A failure that came when nobody waited for it. It is told once.
    pub(crate) fn take_untold(&self) -> Option<LogError> {
        self.state().untold.take()
    }

    /// How many syncs have failed so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Acquire)
    }

    /// Whether something that was written may be gone and is missed: a piece of the file may come back as zeros.
    pub(crate) fn has_hole(&self) -> bool {
        self.failures() > self.made_good.load(Ordering::Acquire)
    }

    /// Everything that counts was restated when so many syncs had failed: what they lost is not missed any more.
    pub(crate) fn make_good(&self, failures: u64) {
        self.made_good.fetch_max(failures, Ordering::AcqRel);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sync_file(file: &dyn LogFile, is_named: bool) -> io::Result<()> {
    retry_interrupted(|| file.sync())?;
    if is_named { Ok(()) } else { retry_interrupted(|| file.sync_name()) }
}

/// The thread that syncs. It sleeps while there is nothing to do, and ends, after a last sync, when this is dropped.
pub(crate) struct GroupCommit {
    commits: Arc<Commits>,
    thread: Option<JoinHandle<()>>,
}

impl GroupCommit {
    pub(crate) fn new(commits: Arc<Commits>) -> Self {
        Self { commits, thread: None }
    }

    /// Starts the thread, if it does not run. The system may refuse to; then appends sync themselves.
    pub(crate) fn start(&mut self) {
        if self.thread.is_some() {
            return;
        }
        let commits = Arc::clone(&self.commits);
        let run = move || run(&commits);
        self.thread = thread::Builder::new().name("windlass-log".to_owned()).spawn(run).ok();
        self.commits.state().has_thread = self.thread.is_some();
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        let is_done = {
            let mut state = self.commits.state();
            state.is_closing = true;
            state.has_thread = false;
            let is_done = state.synced >= state.written && state.asked.is_empty();
            if is_done {
                // The thread may last a moment longer; the file must not.
                state.file = None;
            }
            is_done
        };
        self.commits.wake.notify_one();
        // A thread that has nothing left to do ends without anybody waiting for it.
        if let Some(thread) = self.thread.take().filter(|_| !is_done) {
            // It ends without a panic; and if not, there is nothing left to do for it.
            let _ = thread.join();
        }
    }
}

/// What the thread is to do.
enum Job {
    /// Sync for those who wait.
    Asked(Vec<(Ticket, oneshot::Sender<SyncResult>)>),
    /// Sync what nobody waits for.
    SyncUrgency(Ticket),
}

fn run(commits: &Commits) {
    while let Some(job) = next(commits) {
        match job {
            Job::Asked(asked) => {
                for (ticket, tell) in asked {
                    if let Err(Err(error)) = tell.send(commits.sync(ticket)) {
                        // Who asked has gone; the next append is told.
                        commits.state().untold = Some(error);
                    }
                }
            }
            // A failure is kept for the next append.
            Job::SyncUrgency(ticket) => drop(commits.sync_for(ticket, Asker::Nobody)),
        }
    }
}

/// Waits until there is something to do; nothing comes any more when the log is closed.
fn next(commits: &Commits) -> Option<Job> {
    let mut state = commits.state();
    loop {
        if !state.asked.is_empty() {
            return Some(Job::Asked(std::mem::take(&mut state.asked)));
        }
        if state.synced >= state.written {
            state.due = None;
        }
        let left = state.due.map(|due| due.saturating_duration_since(Instant::now()));
        match left {
            Some(left) if state.is_closing || left.is_zero() => {
                state.due = None;
                return Some(Job::SyncUrgency(Ticket(state.written)));
            }
            None if state.is_closing => return None,
            Some(left) => {
                let woken = commits.wake.wait_timeout(state, left);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            None => state = commits.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

#[cfg(test)]
mod tests;
