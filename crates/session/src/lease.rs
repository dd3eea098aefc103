//! One writer at a time: a process writes a session only while it holds its lease.
//!
//! The lease is a lock on the log itself that the system takes away with the process, however it ends: there are no stale ones,
//! and nothing is left behind. On file systems without such locks, a file beside the log says who has it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::{Errno, retry_on_intr};

use crate::disk;

mod lock_file;
mod process;

use lock_file::LockFile;

/// How often a lease is tried for while others remove the file.
const TRIES_MAX: usize = 100;

/// How long the lock of a process that is gone is waited for: what it had just started has it until it becomes another program.
const INHERITED_TIME: Duration = Duration::from_millis(500);
const INHERITED_PAUSE: Duration = Duration::from_millis(10);

/// The right to write a session. It ends when this and its copies are dropped, or with the process.
#[derive(Clone, Debug)]
pub struct Lease {
    log: PathBuf,
    holding: Arc<Mutex<LeaseHold>>,
}

/// What keeps others away.
#[derive(Debug, Default)]
enum LeaseHold {
    /// Nothing: there is no log yet, and no other process can know its name.
    #[default]
    Nothing,
    /// A file, as long as there is no log.
    Reserved(LockFile),
    /// A lock on the log.
    Lock(File),
    /// A file, because the log cannot be locked.
    File(LockFile),
}

/// Another process writes the session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is using the session. Stop that process, or continue in a copy (--fork-session)", self.who())]
pub struct SessionBusy {
    /// The process; 0 if that is not known.
    pub pid: u32,
    /// The machine it runs on.
    pub host: String,
}

impl SessionBusy {
    /// Whether the process with the lock may be gone and only its child hold it; containers do not name such a process.
    fn can_be_gone(&self) -> bool {
        self.pid == 0 || process::start_of(self.pid).is_none()
    }

    /// The process, in words.
    pub fn who(&self) -> String {
        match self.pid {
            0 => "another process".to_owned(),
            pid if self.host == process::host() => format!("process {pid}"),
            pid => format!("process {pid} on {}", self.host),
        }
    }
}

/// Why a session cannot be written by this process.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another one does.
    #[error(transparent)]
    Busy(#[from] SessionBusy),
    /// The log cannot be locked.
    #[error(
        "cannot lock the session log {}: {}. Make the file and its directory writable, or set \
         WINDLASS_HOME to another directory",
        .0.display(),
        .1
    )]
    Failed(PathBuf, io::Error),
}

impl Lease {
    /// Takes the lease of a session whose log is there.
    pub fn take(log: &Path) -> Result<Self, LeaseError> {
        let failed = |error| LeaseError::Failed(log.to_owned(), error);
        let began = Instant::now();
        for _ in 0..TRIES_MAX {
            let file = disk::open_log(log).map_err(failed)?;
            match lock(&file).map_err(failed)? {
                LockAttempt::Yes if is_at(&file, log) => return Ok(Self::new(log, LeaseHold::Lock(file))),
                LockAttempt::Yes => {}
                LockAttempt::ByAnother(busy) if busy.can_be_gone() && began.elapsed() < INHERITED_TIME => {
                    std::thread::sleep(INHERITED_PAUSE);
                }
                LockAttempt::ByAnother(busy) => return Err(busy.into()),
                LockAttempt::Unsupported => {
                    let file = lock_file::take(&lock_file(log)).map_err(failed)??;
                    return Ok(Self::new(log, LeaseHold::File(file)));
                }
            }
        }
        Err(failed(io::Error::other("another process keeps replacing it")))
    }

    /// The lease of a session that is about to begin, with an id that no other process can know. It is taken when the log is made.
    pub fn of_new(log: &Path) -> Self {
        Self::new(log, LeaseHold::Nothing)
    }

    /// The same with an id that others may know: a file beside the log reserves it until the log can be locked.
    pub fn reserve(log: &Path) -> Result<Self, LeaseError> {
        let reserved = lock_file::take(&lock_file(log));
        let reserved = reserved.map_err(|error| LeaseError::Failed(log.to_owned(), error))??;
        Ok(Self::new(log, LeaseHold::Reserved(reserved)))
    }

    fn new(log: &Path, holding: LeaseHold) -> Self {
        Self { log: log.to_owned(), holding: Arc::new(Mutex::new(holding)) }
    }

    /// Makes sure that the lease is one on this file: the log may have been made just now, for the first time or anew.
    pub(crate) fn cover(&self, file: &File) -> io::Result<()> {
        let mut holding = self.holding();
        let covers = match &*holding {
            LeaseHold::Lock(locked) => is_same(file.metadata(), locked.metadata()),
            LeaseHold::File(lock) => lock.is_there(),
            LeaseHold::Reserved(_) | LeaseHold::Nothing => false,
        };
        if covers {
            return Ok(());
        }
        *holding = match lock(file)? {
            LockAttempt::Yes => LeaseHold::Lock(file.try_clone()?),
            LockAttempt::ByAnother(busy) => return Err(io::Error::other(busy)),
            LockAttempt::Unsupported => match std::mem::take(&mut *holding) {
                LeaseHold::Reserved(reserved) => LeaseHold::File(reserved),
                _ => LeaseHold::File(lock_file::take(&lock_file(&self.log))?.map_err(io::Error::other)?),
            },
        };
        Ok(())
    }

    /// Whether it is a lock on another file than this.
    pub(crate) fn is_elsewhere(&self, file: &File) -> bool {
        match &*self.holding() {
            LeaseHold::Lock(locked) => !is_same(file.metadata(), locked.metadata()),
            LeaseHold::Reserved(_) | LeaseHold::File(_) | LeaseHold::Nothing => false,
        }
    }

    fn holding(&self) -> MutexGuard<'_, LeaseHold> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of asking for a lock.
enum LockAttempt {
    Yes,
    ByAnother(SessionBusy),
    /// The file system knows no locks.
    Unsupported,
}

fn lock(file: &File) -> io::Result<LockAttempt> {
    match retry_on_intr(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(LockAttempt::Yes),
        Err(Errno::WOULDBLOCK) => Ok(LockAttempt::ByAnother(process::holder_of(file))),
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK | Errno::INVAL) => Ok(LockAttempt::Unsupported),
        Err(error) => Err(error.into()),
    }
}

/// The file that stands for the lock where there are none.
pub(crate) fn lock_file(log: &Path) -> PathBuf {
    log.with_extension("").join("lock")
}

/// Whether this open file is the one that others find at the path.
fn is_at(file: &File, path: &Path) -> bool {
    is_same(file.metadata(), fs::symlink_metadata(path))
}

fn is_same(one: io::Result<fs::Metadata>, other: io::Result<fs::Metadata>) -> bool {
    let (Ok(one), Ok(other)) = (one, other) else { return false };
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests;
