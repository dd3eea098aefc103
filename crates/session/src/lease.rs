//! One writer at a time: whoever writes a session holds its lease.
//!
//! The lease is a lock that the system takes away with the process, however it ends, so there are no stale ones. The file that is
//! locked says who holds it. On file systems without such locks, what the file says decides.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::disk;

mod process;
mod unlocked;

/// How often a lease is tried for while others remove its file.
const TRIES_MAX: usize = 100;
/// What a lock file says is shorter than this.
const OWNER_BYTES_MAX: u64 = 4096;

/// The right to write a session. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    file: File,
    taken_over: bool,
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pid: u32,
    /// When the process started, in the system's own count: a number that is used again belongs to a process that started later.
    start: u64,
    /// Which start of the machine that count is about.
    boot: String,
    host: String,
    /// Milliseconds since 1970.
    since: u64,
}

/// Another process writes the session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the session is being written by process {pid} on {host}. Stop that process, or go on in a copy of it (--fork-session)"
)]
pub struct Busy {
    /// The process; 0 if it does not say.
    pub pid: u32,
    /// Since when it does, in milliseconds since 1970.
    pub since: u64,
    /// The machine it runs on.
    pub host: String,
}

/// Why a session cannot be written by this process.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another one does.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The lock cannot be used.
    #[error(
        "the session's lock {path} cannot be used: {error}. Make its directory writable, or set WINDLASS_HOME to one elsewhere"
    )]
    Failed {
        /// The lock.
        path: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
}

/// What came of one try.
enum Tried {
    Taken(Lease),
    Busy(Busy),
    /// Somebody removed the file under our hands.
    Again,
    /// The file system knows no locks.
    Unsupported,
}

impl Lease {
    /// Takes the lease whose lock is this file, which is made, with its directory, if it is not there.
    pub fn take(path: &Path) -> Result<Self, LeaseError> {
        let failed = |error| LeaseError::Failed { path: path.to_owned(), error };
        for _ in 0..TRIES_MAX {
            match try_lock(path).map_err(failed)? {
                Tried::Taken(lease) => return Ok(lease),
                Tried::Busy(busy) => return Err(busy.into()),
                Tried::Unsupported => return unlocked::take(path).map_err(failed)?.map_err(LeaseError::from),
                Tried::Again => {}
            }
        }
        Err(failed(io::Error::other("it is removed again and again")))
    }

    /// Whether the process that held it before ended without giving it back.
    pub fn taken_over(&self) -> bool {
        self.taken_over
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            // What cannot be removed is empty and locked by nobody: the next one takes it all the same.
            let _ = self.file.set_len(0);
            let _ = fs::remove_file(&self.path);
            // Goes only if nothing else is in it.
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}

fn try_lock(path: &Path) -> io::Result<Tried> {
    let Some(mut file) = open(path)? else { return Ok(Tried::Again) };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Tried::Busy(busy(read_owner(&mut file)))),
        Err(Errno::INTR) => return Ok(Tried::Again),
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK | Errno::INVAL) => return Ok(Tried::Unsupported),
        Err(error) => return Err(error.into()),
    }
    if !is_at(&file, path) {
        return Ok(Tried::Again);
    }
    let former = read_owner(&mut file);
    file.set_len(0)?;
    // The lock counts, not the name: on a full disk it is held without one.
    let _ = file.write_all(&Owner::this_process().to_line());
    Ok(Tried::Taken(Lease { path: path.to_owned(), file, taken_over: former.is_some() }))
}

/// Opens the lock; nothing if its directory went away meanwhile.
fn open(path: &Path) -> io::Result<Option<File>> {
    let parent = path.parent().unwrap_or(Path::new("."));
    // Nothing is made behind a link that stands in the place of the project's folder.
    if parent.parent().is_some_and(Path::is_symlink) {
        return Err(disk::Refused::Link.into());
    }
    disk::make_private(parent)?;
    let opened = disk::open_directory(parent).and_then(|directory| {
        disk::open_private(&directory, path.file_name().unwrap_or_default(), OFlags::CREATE)
    });
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Whether this open file is the one that others find at the path.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(theirs)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(OWNER_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn busy(owner: Option<Owner>) -> Busy {
    match owner {
        Some(owner) => Busy { pid: owner.pid, since: owner.since, host: owner.host },
        // It has the lock, but its name is not there yet, or could not be written.
        None => Busy { pid: 0, since: 0, host: "this machine".to_owned() },
    }
}

impl Owner {
    fn this_process() -> Self {
        let pid = std::process::id();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Self {
            pid,
            start: process::start_of(pid).unwrap_or_default(),
            boot: process::boot(),
            host: process::host(),
            since: u64::try_from(since).unwrap_or(u64::MAX),
        }
    }

    fn to_line(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether the process still runs. One on another machine may.
    fn is_alive(&self) -> bool {
        if self.host != process::host() {
            return true;
        }
        self.boot == process::boot() && process::start_of(self.pid) == Some(self.start)
    }
}

#[cfg(test)]
mod tests;
