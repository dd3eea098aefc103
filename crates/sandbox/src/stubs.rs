//! Placeholders for protected paths that do not exist.
//!
//! Nothing can be mounted over what is not there, so while a confined command runs, an empty directory stands in. A
//! time of change that no real file has marks it for removal after a crash. Several commands, even of different
//! engines, may use the same one: each holds a shared lock, and only who gets the exclusive one removes it, which would
//! take the mounts of all others away.

use std::fs::{self, DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use crate::policy::StandIn;

/// The time of change that marks a placeholder, in seconds.
const MARK: i64 = 7_777_778;
/// What a file says that is to name its own directory.
const HERE: &str = ".\n";
/// Somebody else may remove one again and again just before it is locked.
const TRIES: usize = 100;

#[derive(Default)]
pub(crate) struct Stubs(Vec<Stub>);

struct Stub {
    path: PathBuf,
    file: File,
}

impl Stubs {
    /// Makes a placeholder, or joins one or something as empty; false if something real has turned up.
    pub(crate) fn put(&mut self, path: &Path, kind: StandIn) -> io::Result<bool> {
        if self.0.iter().any(|stub| stub.path == path) {
            return Ok(true);
        }
        for _ in 0..TRIES {
            make(path, kind)?;
            let file = match open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(false),
                Err(error) => return Err(error),
            };
            rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
            if !is_at(path, &file) {
                continue;
            }
            // Whoever made it may not have marked it yet.
            if !is_blank(&file.metadata()?, path) {
                return Ok(false);
            }
            self.0.push(Stub { path: path.to_owned(), file });
            return Ok(true);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Drop for Stubs {
    fn drop(&mut self) {
        for stub in self.0.drain(..).rev() {
            // Who fails leaves it to whoever comes next.
            let _ = stub.remove();
        }
    }
}

impl Stub {
    fn remove(&self) -> io::Result<()> {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive)?;
        let found = self.file.metadata()?;
        if !is_at(&self.path, &self.file) || !is_blank(&found, &self.path) || found.mtime() != MARK {
            return Ok(());
        }
        if found.is_dir() { fs::remove_dir(&self.path) } else { fs::remove_file(&self.path) }
    }
}

/// Whether what was found at a path may be a placeholder: it holds nothing.
pub(crate) fn is_blank(found: &Metadata, path: &Path) -> bool {
    match found {
        found if found.is_file() => found.len() <= HERE.len() as u64,
        found if found.is_dir() => fs::read_dir(path).is_ok_and(|mut list| list.next().is_none()),
        _ => false,
    }
}

fn make(path: &Path, kind: StandIn) -> io::Result<()> {
    let made = match kind {
        StandIn::Directory => DirBuilder::new().mode(0o755).create(path),
        StandIn::Pointer => {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
            made.and_then(|mut file| file.write_all(HERE.as_bytes()))
        }
    };
    match made {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(MARK.unsigned_abs());
    match open(path) {
        Ok(file) => file.set_times(FileTimes::new().set_modified(time)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

fn is_at(path: &Path, file: &File) -> bool {
    let (Ok(there), Ok(here)) = (fs::symlink_metadata(path), file.metadata()) else { return false };
    (there.dev(), there.ino()) == (here.dev(), here.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_removes_it() {
        let root = tempfile::tempdir().unwrap();
        for (name, kind) in [("directory", StandIn::Directory), ("pointer", StandIn::Pointer)] {
            let path = root.path().join(name);
            let (mut first, mut second) = (Stubs::default(), Stubs::default());
            assert!(first.put(&path, kind).unwrap() && first.put(&path, kind).unwrap());
            assert!(second.put(&path, kind).unwrap());
            drop(first);
            assert!(path.exists(), "still in use");
            drop(second);
            assert!(!path.exists(), "{name}");
        }
    }

    #[test]
    fn what_a_crash_left_is_removed_and_what_is_real_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("left");
        make(&path, StandIn::Directory).unwrap();
        let mut stubs = Stubs::default();
        assert!(stubs.put(&path, StandIn::Directory).unwrap());
        let real = root.path().join("real");
        fs::write(&real, "text").unwrap();
        assert!(!stubs.put(&real, StandIn::Directory).unwrap());
        let blank = root.path().join("blank");
        fs::create_dir(&blank).unwrap();
        assert!(stubs.put(&blank, StandIn::Directory).unwrap());
        let becomes_real = root.path().join("becomes");
        assert!(stubs.put(&becomes_real, StandIn::Directory).unwrap());
        fs::write(becomes_real.join("file"), "").unwrap();
        drop(stubs);
        assert!(!path.exists() && real.exists() && blank.exists() && becomes_real.exists());
    }
}
