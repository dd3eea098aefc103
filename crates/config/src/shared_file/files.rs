//! Where a shared file really is, its lock, and how it is replaced.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{SharedFileError, SharedText};

/// So many links are followed, as the system does.
const LINKS_MAX: usize = 40;
const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
/// Of the permissions of a file, those that are kept.
const MODE_BITS: u32 = 0o777;

/// The directory in which a file is, with links followed, and its name there.
pub(super) struct FileLocation {
    path: PathBuf,
    name: OsString,
    directory: OwnedFd,
}

/// A place that nobody else changes.
pub(super) struct LockedFile {
    pub(super) place: FileLocation,
    /// Closing it gives the lock back, and so does the end of the process.
    lock: OwnedFd,
}

/// Makes the directory of a file, for this user alone, if there is none.
pub(super) fn create_directory(path: &Path) -> Result<(), SharedFileError> {
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else {
        return Ok(());
    };
    windlass_text::folders::create_private(directory).map_err(failed(path, "create"))
}

impl FileLocation {
    pub(super) fn find(path: &Path) -> Result<Self, SharedFileError> {
        let path = follow(path)?;
        let name = path.file_name().ok_or_else(|| foreign(&path, "the path has no file name"))?.to_owned();
        let directory = match path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty()).map_err(failed(&path, "open"))?;
        Ok(Self { path, name, directory })
    }

    /// Waits until nobody else changes the file. Where its links lead is looked at again then.
    pub(super) fn lock(path: &Path) -> Result<LockedFile, SharedFileError> {
        loop {
            let place = Self::find(path)?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let lock = rustix::fs::openat(&place.directory, place.sibling("lock"), flags, PRIVATE_FILE)
                .map_err(failed(&place.path, "lock"))?;
            loop {
                match rustix::fs::flock(&lock, FlockOperation::LockExclusive) {
                    Err(Errno::INTR) => {}
                    done => break done.map_err(failed(&place.path, "lock"))?,
                }
            }
            if place.is_current(&lock) && follow(path)? == place.path {
                return Ok(LockedFile { place, lock });
            }
        }
    }

    /// Whether this is still the lock that others would take: somebody may have removed its file.
    fn is_current(&self, lock: &OwnedFd) -> bool {
        let named = rustix::fs::statat(&self.directory, self.sibling("lock"), AtFlags::SYMLINK_NOFOLLOW);
        let held = rustix::fs::fstat(lock);
        named.is_ok_and(|named| {
            held.is_ok_and(|held| (named.st_ino, named.st_dev) == (held.st_ino, held.st_dev))
        })
    }

    /// A hidden name beside the file.
    fn sibling(&self, end: &str) -> OsString {
        [OsStr::new("."), &self.name, OsStr::new("."), OsStr::new(end)].into_iter().collect()
    }

    pub(super) fn read(&self) -> Result<SharedText, SharedFileError> {
        let mut bytes = Vec::new();
        if let Some(mut file) = self.open()? {
            file.read_to_end(&mut bytes).map_err(failed(&self.path, "read"))?;
        }
        let broken = |(line, problem)| SharedFileError::Broken { path: self.path.clone(), line, problem };
        SharedText::parse(&bytes).map_err(broken)
    }

    /// The file, if there is one. It must be an ordinary one that belongs to the user.
    fn open(&self) -> Result<Option<File>, SharedFileError> {
        // A pipe would wait for somebody to write into it.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(&self.path, "read")(error)),
        };
        let facts = file.metadata().map_err(failed(&self.path, "read"))?;
        if !facts.is_file() {
            return Err(foreign(&self.path, "it is not a regular file"));
        }
        if facts.uid() != rustix::process::geteuid().as_raw() {
            return Err(foreign(&self.path, "it belongs to another user"));
        }
        Ok(Some(file))
    }

    /// Waits until the disk knows which file has the name.
    pub(super) fn sync_directory(&self) -> Result<(), SharedFileError> {
        rustix::fs::fsync(&self.directory).map_err(failed(&self.path, "sync the changed file"))
    }
}

impl LockedFile {
    /// Puts a new file in the place of the old one.
    pub(super) fn replace(&self, text: &SharedText) -> Result<(), SharedFileError> {
        let place = &self.place;
        let bytes = text.to_bytes().map_err(|error| failed(&place.path, "write")(io::Error::from(error)))?;
        let draft = place.sibling("new");
        let written = self.write(&draft, &bytes);
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&place.directory, &draft, AtFlags::empty());
        }
        written
    }

    fn write(&self, draft: &OsStr, bytes: &[u8]) -> Result<(), SharedFileError> {
        let FileLocation { path, name, directory } = &self.place;
        let former =
            self.place.open()?.map(|file| file.metadata()).transpose().map_err(failed(path, "read"))?;
        let mode = former.map_or(PRIVATE_FILE, |facts| Mode::from_raw_mode(facts.mode() & MODE_BITS));
        // Whoever wrote it last died; nobody else writes it while we have the lock.
        let _ = rustix::fs::unlinkat(directory, draft, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file =
            rustix::fs::openat(directory, draft, flags, PRIVATE_FILE).map_err(failed(path, "write"))?;
        rustix::fs::fchmod(&file, mode).map_err(failed(path, "write"))?;
        let mut file = File::from(file);
        file.write_all(bytes).map_err(failed(path, "write"))?;
        file.sync_data().map_err(failed(path, "write"))?;
        rustix::fs::renameat(directory, draft, directory, name).map_err(failed(path, "write"))
    }

    /// Takes the name of the lock away. Whoever waits for it notices and takes a new one.
    pub(super) fn remove(&self) {
        if self.place.is_current(&self.lock) {
            let _ = rustix::fs::unlinkat(&self.place.directory, self.place.sibling("lock"), AtFlags::empty());
        }
    }

    /// Lets others change the file.
    pub(super) fn release(self) -> FileLocation {
        drop(self.lock);
        self.place
    }
}

/// Where links lead. The last one may lead to a file that is not there yet.
fn follow(path: &Path) -> Result<PathBuf, SharedFileError> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(failed(&path, "find")(error)),
        }
    }
    Err(foreign(&path, "its symbolic links lead nowhere"))
}

fn failed<E: Into<io::Error>>(path: &Path, action: &'static str) -> impl FnOnce(E) -> SharedFileError {
    let path = path.to_owned();
    move |error| SharedFileError::Io { path, action, source: error.into() }
}

fn foreign(path: &Path, problem: &'static str) -> SharedFileError {
    SharedFileError::Foreign { path: path.to_owned(), problem }
}
