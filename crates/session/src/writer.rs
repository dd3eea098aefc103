//! The log of one session as the driver uses it: records go in, lines of the file come out.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::FutureExt as _;
use tokio::runtime::Handle;
use windlass_ports::{AppendProgress, LogError, SessionLog};
use windlass_protocol::{Decision, Durability, Record, SyncPolicy};

use crate::disk::{Disk, OpenMode, RealDisk};
use crate::sync::{Commits, GroupCommit, SyncUrgency, Ticket};
use crate::{Encoder, Header, Lease, LoadedLog, LogTime, SessionMark, SessionPaths, Tail};

mod labels;
mod log_appender;
pub(crate) mod trouble;

use log_appender::{LogAppender, LogTail};

/// A snapshot is written after so much was written.
const SNAPSHOT_EVERY_BYTES: u64 = 16 << 20;

/// Takes pre-images of files that calls are about to change, and notes what became of them.
pub trait PreImageTaker: Send + Sync {
    /// Whether heeding these records touches the disk: then it is done on a thread that may block.
    fn touches_disk(&self, records: &[Record]) -> bool;

    /// Takes note of records before they are written. With `should_sync`, what is kept must survive a loss of power.
    fn take_note(&self, records: &[Record], should_sync: bool) -> io::Result<()>;
}

/// How a log is written.
#[derive(Clone, Default)]
pub struct LogOptions {
    /// When the disk is waited for.
    pub sync: SyncPolicy,
    /// Takes pre-images of the files that calls are about to change; `None` if that is off.
    pub pre_images: Option<Arc<dyn PreImageTaker>>,
    /// The right to write. Without one, nothing keeps others from writing as well.
    pub lease: Option<Lease>,
}

/// Writes the log of one session.
pub struct LogWriter {
    log: Arc<SharedLog>,
    group: GroupCommit,
}

/// What the writer shares with threads that block in its place.
struct SharedLog {
    path: PathBuf,
    options: LogOptions,
    commits: Arc<Commits>,
    pen: Mutex<LogAppender>,
    /// What a snapshot is wanted for, besides lost writes.
    wants_snapshot: AtomicBool,
}

impl LogWriter {
    /// The log of a new session. The file is made by the first append; a session in which nothing is said leaves none.
    pub fn create(paths: &SessionPaths, header: Arc<Header>, options: LogOptions) -> Self {
        Self::create_on(disk(&options), paths, header, options)
    }

    fn create_on(
        disk: Arc<dyn Disk>,
        paths: &SessionPaths,
        header: Arc<Header>,
        options: LogOptions,
    ) -> Self {
        let tape = LogTail::new(disk, paths.file(), OpenMode::New);
        Self::new(paths, header, Tail::default(), tape, options)
    }

    /// The log of a session that was read before. A torn end is set aside now, or before the first append if there is no room
    /// for it; the file itself stays as it is until then. If it was not read to its end, the session goes back to there: the
    /// next append says so, and a snapshot is wanted.
    pub fn resume(
        paths: &SessionPaths,
        header: Arc<Header>,
        loaded: &LoadedLog,
        options: LogOptions,
    ) -> Result<Self, LogError> {
        let mut tape = LogTail::new(disk(&options), paths.file(), OpenMode::Existing);
        tape.open().map_err(|error| trouble::of_log(paths.file(), &error))?;
        let writer = Self::new(paths, header, loaded.tail.clone(), tape, options);
        writer.log.pen().resume(loaded, paths);
        // What is torn or damaged is told once: whoever reads behind the snapshot does not come across it again.
        let is_flawed = loaded.torn.is_some() || !loaded.damage.is_empty();
        let wants =
            loaded.is_foreign || loaded.is_cut || is_flawed || loaded.since_snapshot >= SNAPSHOT_EVERY_BYTES;
        writer.log.wants_snapshot.store(wants, Ordering::Release);
        Ok(writer)
    }

    fn new(
        paths: &SessionPaths,
        mut header: Arc<Header>,
        tail: Tail,
        tape: LogTail,
        options: LogOptions,
    ) -> Self {
        // The log says whether anybody keeps what calls change: which prompts files can be brought back to follows from that.
        if options.pre_images.is_some() {
            Arc::make_mut(&mut header).note_pre_images();
        }
        let encoder = Encoder::new(paths.id(), header, tail);
        let path = paths.file().to_owned();
        let commits = Arc::new(Commits::new(path.clone()));
        let log = SharedLog {
            path,
            options,
            commits: Arc::clone(&commits),
            pen: Mutex::new(LogAppender::new(encoder, tape)),
            wants_snapshot: AtomicBool::new(false),
        };
        Self { log: Arc::new(log), group: GroupCommit::new(commits) }
    }

    /// A way to put marks into the log beside the records.
    pub fn marker(&self) -> Marker {
        Marker { log: Arc::clone(&self.log) }
    }
}

/// Puts marks into a log. They go in front of the next append.
#[derive(Clone)]
pub struct Marker {
    log: Arc<SharedLog>,
}

impl Marker {
    /// Puts a mark in front of the next append.
    pub fn mark(&self, mark: SessionMark, at: LogTime) {
        self.log.pen().marks.push((mark, at));
    }

    /// Writes the marks that wait for an append which does not come. If nothing was ever said, there is no log to write them into.
    pub fn flush(&self) -> Result<(), LogError> {
        let due = SyncUrgency::of(self.log.options.sync, Durability::Written);
        let written = self.log.write_marks()?;
        written.map_or(Ok(()), |written| self.log.settle(written, due))
    }
}

impl SessionLog for LogWriter {
    fn take_checkpoints(&mut self, records: &[Record], durability: Durability) -> AppendProgress {
        let Some(taker) = self.log.options.pre_images.clone() else { return AppendProgress::Now(Ok(())) };
        let sync = SyncUrgency::of(self.log.options.sync, durability) == SyncUrgency::Now;
        match Handle::try_current() {
            Ok(runtime) if taker.touches_disk(records) => {
                self.log.take_checkpoints_on(&runtime, taker, records.to_vec(), sync)
            }
            _ => AppendProgress::Now(self.log.check_checkpoints(taker.take_note(records, sync))),
        }
    }

    fn append(&mut self, records: &[Record], durability: Durability) -> AppendProgress {
        let due = SyncUrgency::of(self.log.options.sync, durability);
        if due != SyncUrgency::Never {
            self.group.start();
        }
        match self.log.write(records) {
            Err(error) => AppendProgress::Now(Err(error)),
            Ok(written) if due == SyncUrgency::Now => self.log.settle_later(written),
            Ok(written) => AppendProgress::Now(self.log.settle(written, due)),
        }
    }

    fn wants_snapshot(&self) -> bool {
        self.log.wants_snapshot.load(Ordering::Acquire) || self.log.commits.has_hole()
    }
}

/// An append that is in the file, and may not be on the disk yet.
#[derive(Clone, Copy)]
struct AppendTicket {
    ticket: Ticket,
    /// If it holds everything that counts: how many syncs had failed before it. Nothing they lost can be missed.
    makes_good: Option<u64>,
}

impl SharedLog {
    /// Takes checkpoints where blocking does no harm: files are copied, and they may be large. If nobody waits for them any more
    /// by then, none are taken: a call of a run that is gone does not start.
    fn take_checkpoints_on(
        self: &Arc<Self>,
        runtime: &Handle,
        taker: Arc<dyn PreImageTaker>,
        records: Vec<Record>,
        should_sync: bool,
    ) -> AppendProgress {
        let log = Arc::clone(self);
        let alive = Arc::new(());
        let asked_for = Arc::downgrade(&alive);
        let task = runtime.spawn_blocking(move || {
            if asked_for.strong_count() == 0 {
                log.wants_snapshot.store(true, Ordering::Release);
                return Err(trouble::given_up(&log.path));
            }
            log.check_checkpoints(taker.take_note(&records, should_sync))
        });
        let given_up = trouble::given_up(&self.path);
        AppendProgress::Later(
            async move {
                let taken = task.await.unwrap_or(Err(given_up));
                drop(alive);
                taken
            }
            .boxed(),
        )
    }

    /// What becomes of records whose checkpoints were taken or not. Those that are left out are missed.
    fn check_checkpoints(&self, taken: io::Result<()>) -> Result<(), LogError> {
        taken.map_err(|error| {
            self.wants_snapshot.store(true, Ordering::Release);
            trouble::of_keeping(&self.path, &error)
        })
    }

    fn write(&self, records: &[Record]) -> Result<AppendTicket, LogError> {
        let written = self.try_write(records);
        if written.is_err() {
            self.wants_snapshot.store(true, Ordering::Release);
        }
        written
    }

    fn try_write(&self, records: &[Record]) -> Result<AppendTicket, LogError> {
        let restates = records.iter().any(|record| matches!(record, Record::Snapshot(_)));
        let untold = self.commits.take_untold();
        if let Some(error) = untold.filter(|_| !restates) {
            return Err(error);
        }
        if records.is_empty() {
            return Ok(AppendTicket { ticket: self.commits.last(), makes_good: None });
        }
        let mut pen = self.pen();
        // A hole takes the end of its last line with it.
        let (failures, apart) = (self.commits.failures(), self.commits.has_hole());
        pen.set_aside_torn().map_err(|error| trouble::of_torn(&self.path, &error))?;
        let file = pen.write(records, apart).map_err(|error| trouble::of_log(&self.path, &error))?;
        let ticket = self.commits.note_append(file);
        let wants = wants_snapshot(records, self.wants_snapshot.load(Ordering::Acquire));
        self.wants_snapshot.store(wants || pen.since_snapshot >= SNAPSHOT_EVERY_BYTES, Ordering::Release);
        Ok(AppendTicket { ticket, makes_good: restates.then_some(failures) })
    }

    fn write_marks(&self) -> Result<Option<AppendTicket>, LogError> {
        let mut pen = self.pen();
        if pen.marks.is_empty() || !pen.is_opened {
            return Ok(None);
        }
        let file =
            pen.write(&[], self.commits.has_hole()).map_err(|error| trouble::of_log(&self.path, &error))?;
        Ok(Some(AppendTicket { ticket: self.commits.note_append(file), makes_good: None }))
    }

    fn settle(&self, written: AppendTicket, due: SyncUrgency) -> Result<(), LogError> {
        match due {
            SyncUrgency::Now => self.commits.sync(written.ticket)?,
            SyncUrgency::Soon => self.commits.soon(written.ticket)?,
            SyncUrgency::Never => {}
        }
        self.make_good(written);
        Ok(())
    }

    /// Settles an append without holding up whoever made it.
    fn settle_later(self: &Arc<Self>, written: AppendTicket) -> AppendProgress {
        let Some(told) = Handle::try_current().ok().and_then(|_| self.commits.ask(written.ticket)) else {
            return AppendProgress::Now(self.settle(written, SyncUrgency::Now));
        };
        let log = Arc::clone(self);
        AppendProgress::Later(
            async move {
                told.await.unwrap_or_else(|_| Err(trouble::given_up(&log.path)))?;
                log.make_good(written);
                Ok(())
            }
            .boxed(),
        )
    }

    fn make_good(&self, written: AppendTicket) {
        if let Some(failures) = written.makes_good {
            self.commits.make_good(failures);
        }
    }

    fn pen(&self) -> MutexGuard<'_, LogAppender> {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn disk(options: &LogOptions) -> Arc<dyn Disk> {
    Arc::new(RealDisk { lease: options.lease.clone() })
}

/// Whether a snapshot is to be written behind these records.
fn wants_snapshot(records: &[Record], is_wanted: bool) -> bool {
    records.iter().fold(is_wanted, |wants, record| match record {
        Record::Snapshot(_) => false,
        Record::Decided(Decision::Compacted(_)) | Record::Repaired(_) => true,
        _ => wants,
    })
}

#[cfg(test)]
mod tests;
