//! A lease without a lock: a file that one process at a time can make, and what it says about its maker. It is for file systems
//! without locks, and for a session that has no log yet.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{SessionBusy, TRIES_MAX, is_at, process};
use crate::disk;

/// What such a file says is shorter than this.
const OWNER_BYTES_MAX: u64 = 4096;

/// A file that says who has the lease. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    file: File,
}

/// Who made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) pid: u32,
    /// When the process started, in the system's own count: a number that is used again belongs to a process that started later.
    pub(super) start: u64,
    /// Which start of the machine that count is about.
    pub(super) boot: String,
    pub(super) host: String,
}

impl LockFile {
    /// Whether others find it.
    pub(super) fn is_there(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
            // Goes only if nothing else is in it.
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}

/// Takes the lease, or tells who holds it.
pub(super) fn take(path: &Path) -> io::Result<Result<LockFile, SessionBusy>> {
    let directory = path.parent().unwrap_or(Path::new("."));
    disk::make_private(directory)?;
    let (mut file, own) = NamedTempFile::new_in(directory)?.into_parts();
    file.write_all(&serde_json::to_vec(&Owner::this_process())?)?;
    Ok(link(path, &own)?.map(|()| LockFile { path: path.to_owned(), file }))
}

/// Gives our file the lock's name. The name is given to one of several that try.
fn link(path: &Path, own: &Path) -> io::Result<Result<(), SessionBusy>> {
    for _ in 0..TRIES_MAX {
        match fs::hard_link(own, path) {
            Ok(()) => return Ok(Ok(())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let owner = read_owner(path);
        if let Some(Owner { pid, host, .. }) = owner.clone().filter(Owner::is_alive) {
            return Ok(Err(SessionBusy { pid, host }));
        }
        move_away(path, owner.as_ref())?;
    }
    Err(io::Error::other("other processes keep taking the lock"))
}

/// Moves a dead owner's file away. If somebody else did that first and has the lease, it gets its file back.
fn move_away(path: &Path, dead: Option<&Owner>) -> io::Result<()> {
    let mut away = path.as_os_str().to_owned();
    away.push(format!(".{}.dead", std::process::id()));
    if disk::if_there(fs::rename(path, &away))?.is_none() {
        return Ok(());
    }
    if read_owner(away.as_ref()).as_ref() != dead {
        fs::hard_link(&away, path)?;
    }
    fs::remove_file(&away)
}

fn read_owner(path: &Path) -> Option<Owner> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(OWNER_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl Owner {
    pub(super) fn this_process() -> Self {
        let pid = std::process::id();
        let start = process::start_of(pid).unwrap_or_default();
        Self { pid, start, boot: process::boot(), host: process::host() }
    }

    /// Whether the process still runs. One on another machine may.
    fn is_alive(&self) -> bool {
        if self.host != process::host() {
            return true;
        }
        self.boot == process::boot() && process::start_of(self.pid) == Some(self.start)
    }
}
