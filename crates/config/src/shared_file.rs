//! JSON files that several processes change: each change is whole, and none is lost. It happens under a lock beside the
//! file, which is then replaced, so that readers see the old or the new content. What a change does not touch stays:
//! unknown names, their order, the indentation, the mode of the file, a link that leads to it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

/// A JSON file that others may change at the same time.
///
/// ```
/// use windlass_config::SharedFile;
/// # let directory = tempfile::tempdir()?;
/// let file = SharedFile::new(directory.path().join("counts.json"));
/// file.update(|json| json["seen"] = 1.into())?;
/// assert_eq!(file.read()?["seen"], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedFile {
    /// Where it is.
    pub path: PathBuf,
    should_leave_lock: bool,
}

/// Why a shared file cannot be read or changed. It is as it was, unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum SharedFileError {
    /// Its content is no JSON. It is never overwritten.
    #[error("{}:{line}: {problem}. Correct the file or move it away; nothing was changed.", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where it stops to be JSON, counted from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Something else is in its place.
    #[error("cannot use {}: {problem}. Move it away; nothing was changed.", .path.display())]
    Foreign {
        /// The file, or where its link leads.
        path: PathBuf,
        /// What it is.
        problem: &'static str,
    },
    /// The system refuses.
    #[error("cannot {action} {}: {source}.", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl SharedFile {
    /// The file at a path. It need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), should_leave_lock: true }
    }

    /// Takes the file of the lock away after each change: for folders in which others would wonder about it.
    #[must_use]
    pub fn leaving_no_lock(self) -> Self {
        Self { should_leave_lock: false, ..self }
    }

    /// What it says now; an empty object if it is not there or has nothing in it.
    pub fn read(&self) -> Result<Value, SharedFileError> {
        match FileLocation::find(&self.path) {
            Ok(place) => place.read().map(|found| found.value),
            Err(SharedFileError::Io { source, .. }) if is_missing(&source) => {
                Ok(Value::Object(serde_json::Map::default()))
            }
            Err(error) => Err(error),
        }
    }

    /// Applies `change` to the newest content, durably once this returns; without a difference nothing is written.
    /// Other changes wait meanwhile, so `change` must be quick, and must not update the same file.
    pub fn update<T>(&self, change: impl FnOnce(&mut Value) -> T) -> Result<T, SharedFileError> {
        create_directory(&self.path)?;
        let locked = FileLocation::lock(&self.path)?;
        let changed = locked.place.read().and_then(|mut found| {
            let before = found.value.clone();
            let result = change(&mut found.value);
            let is_new = found.value != before;
            if is_new {
                locked.replace(&found)?;
            }
            Ok((result, is_new))
        });
        if !self.should_leave_lock {
            locked.remove();
        }
        // Whoever comes next need not wait for the disk to remember the name; one wait serves several.
        let LockedFile { place, lock } = locked;
        drop(lock);
        let (result, is_new) = changed?;
        if is_new {
            place.sync_directory()?;
        }
        Ok(result)
    }
}

/// Whether there is no such file: its folder may be missing or be a file.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What a file says, and how.
struct SharedText {
    value: Value,
    /// What stands in front of the line of each field; nothing if everything is in one line.
    indent: Option<Vec<u8>>,
}

impl SharedText {
    /// Reads JSON; an error says in which line and why.
    fn parse(bytes: &[u8]) -> Result<Self, (usize, String)> {
        if bytes.trim_ascii().is_empty() {
            let value = Value::Object(serde_json::Map::default());
            return Ok(Self { value, indent: Some(b"  ".to_vec()) });
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| (error.line(), problem(&error)))?;
        Ok(Self { value, indent: indent(bytes.trim_ascii()) })
    }

    fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match &self.indent {
            None => self.value.serialize(&mut serde_json::Serializer::new(&mut bytes))?,
            Some(indent) => {
                let format = PrettyFormatter::with_indent(indent);
                self.value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, format))?;
            }
        }
        bytes.push(b'\n');
        Ok(bytes)
    }
}

fn indent(bytes: &[u8]) -> Option<Vec<u8>> {
    let newline = bytes.iter().position(|byte| *byte == b'\n')?;
    let behind = &bytes[newline + 1..];
    let blanks = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(if blanks == 0 { b"  ".to_vec() } else { behind[..blanks].to_vec() })
}

/// The parser's words without the place, which is told in another way.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// So many links are followed, as the system does.
const LINKS_MAX: usize = 40;
const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
/// Of the permissions of a file, those that are kept.
const MODE_BITS: u32 = 0o777;

/// The directory in which a file is, with links followed, and its name there.
struct FileLocation {
    path: PathBuf,
    name: OsString,
    directory: OwnedFd,
}

/// A place that nobody else changes.
struct LockedFile {
    place: FileLocation,
    /// Closing it gives the lock back, and so does the end of the process.
    lock: OwnedFd,
}

/// Makes the directory of a file, for this user alone, if there is none.
fn create_directory(path: &Path) -> Result<(), SharedFileError> {
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else {
        return Ok(());
    };
    windlass_text::folders::create_private(directory).map_err(failed(path, "create"))
}

impl FileLocation {
    fn find(path: &Path) -> Result<Self, SharedFileError> {
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
    fn lock(path: &Path) -> Result<LockedFile, SharedFileError> {
        loop {
            let place = Self::find(path)?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let lock = rustix::fs::openat(&place.directory, place.sibling("lock"), flags, PRIVATE_FILE)
                .map_err(failed(&place.path, "lock"))?;
            retry_on_intr(|| rustix::fs::flock(&lock, FlockOperation::LockExclusive))
                .map_err(failed(&place.path, "lock"))?;
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

    fn read(&self) -> Result<SharedText, SharedFileError> {
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
        let metadata = file.metadata().map_err(failed(&self.path, "read"))?;
        if !metadata.is_file() {
            return Err(foreign(&self.path, "it is not a regular file"));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(foreign(&self.path, "it belongs to another user"));
        }
        Ok(Some(file))
    }

    /// Waits until the disk knows which file has the name.
    fn sync_directory(&self) -> Result<(), SharedFileError> {
        rustix::fs::fsync(&self.directory).map_err(failed(&self.path, "sync the changed file"))
    }
}

impl LockedFile {
    /// Puts a new file in the place of the old one.
    fn replace(&self, text: &SharedText) -> Result<(), SharedFileError> {
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
        let old = self.place.open()?.map(|file| file.metadata()).transpose().map_err(failed(path, "read"))?;
        let mode = old.map_or(PRIVATE_FILE, |metadata| Mode::from_raw_mode(metadata.mode() & MODE_BITS));
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
    fn remove(&self) {
        if self.place.is_current(&self.lock) {
            let _ = rustix::fs::unlinkat(&self.place.directory, self.place.sibling("lock"), AtFlags::empty());
        }
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
