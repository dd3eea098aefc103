//! What the writer does with the file of a log, as a trait: a disk in tests runs full, fails and loses power.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::Lease;
use crate::layout::create_private;

/// Where the file of a log is.
pub(crate) trait Disk: Send + Sync {
    /// Opens the file to append to it, and makes it, with its directories, where it is allowed to be new.
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Arc<dyn LogFile>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// One that does not exist yet. An empty one counts as missing.
    New,
    /// One that is there.
    Existing,
    /// Whatever is there, or a new one.
    Any,
}

/// An open file that is only appended to.
pub(crate) trait LogFile: Send + Sync {
    /// Writes once, behind everything that is there; returns how many bytes went in.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Waits until all that was written is on the disk.
    fn sync(&self) -> io::Result<()>;
    /// Waits until the file's name is on the disk.
    fn sync_name(&self) -> io::Result<()>;
    /// What the file looks like now. Others may have written, or removed it.
    fn look(&self) -> io::Result<FileStatus>;
    /// Reads a piece of it.
    fn read(&self, piece: Range<u64>) -> io::Result<Vec<u8>>;
}

/// What a file looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStatus {
    /// How long it is.
    pub len: u64,
    /// Whether others find it under its name.
    pub is_named: bool,
}

/// Why a file is not touched, though the system would allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileRefusal {
    #[error("it or its directory is a symbolic link")]
    Link,
    #[error("it belongs to another user (uid {0})")]
    Owner(u32),
    #[error("it is not a regular file")]
    Kind,
    #[error("a session with this id already exists")]
    Taken,
    #[error("another program removed, replaced or shortened it while the session was open")]
    Removed,
}

impl From<FileRefusal> for io::Error {
    fn from(refused: FileRefusal) -> Self {
        Self::other(refused)
    }
}

/// What was found; nothing if there is none.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Does something until no signal interrupts it.
pub(crate) fn retry_interrupted<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// The disk of this machine. Whatever log is opened there, the lease covers it.
#[derive(Default)]
pub(crate) struct RealDisk {
    pub(crate) lease: Option<Lease>,
}

struct RealFile {
    file: File,
    name: OsString,
    directory: File,
    /// Directories that got a new entry when the file's own one was made.
    parents: Vec<PathBuf>,
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Arc<dyn LogFile>> {
        let parent = path.parent().unwrap_or(Path::new("."));
        let parents = if how == OpenMode::Existing { Vec::new() } else { make_private(parent)? };
        let directory = open_directory(parent)?;
        let name = path.file_name().unwrap_or_default();
        let file = match how {
            OpenMode::Existing => open_private(&directory, name, OFlags::empty())?,
            OpenMode::Any => open_private(&directory, name, OFlags::CREATE)?,
            OpenMode::New => open_new(&directory, name)?,
        };
        if let Some(lease) = &self.lease {
            // What was read of a log that is there came from the one that the lease is on.
            if how == OpenMode::Existing && lease.is_elsewhere(&file) {
                return Err(FileRefusal::Removed.into());
            }
            lease.cover(&file)?;
        }
        Ok(Arc::new(RealFile { file, directory, parents, name: name.to_owned() }))
    }
}

fn open_new(directory: &File, name: &OsStr) -> io::Result<File> {
    match open_private(directory, name, OFlags::CREATE | OFlags::EXCL) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = open_private(directory, name, OFlags::empty())?;
            if file.metadata()?.len() > 0 { Err(FileRefusal::Taken.into()) } else { Ok(file) }
        }
        opened => opened,
    }
}

/// Makes a directory that only its owner may enter, and those above it. Returns the directories that got a new entry.
pub(crate) fn make_private(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| is_missing(path)).collect();
    if !missing.is_empty() {
        create_private(directory)?;
    }
    Ok(missing.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect())
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty()
        && fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(directory) => Ok(directory.into()),
        // A link that is not followed is no directory either; the system says one or the other.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) if path.is_symlink() => {
            Err(FileRefusal::Link.into())
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    let directory = open_directory(path.parent().unwrap_or(Path::new(".")))?;
    open_private(&directory, path.file_name().unwrap_or_default(), OFlags::empty())
}

/// Opens a file to read and append, if it is a regular one of this user, and keeps it private.
pub(crate) fn open_private(directory: &File, name: &OsStr, flags: OFlags) -> io::Result<File> {
    // Without `NONBLOCK` a pipe in the file's place would hold us up.
    let always = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NOCTTY
        | OFlags::NONBLOCK;
    let file: File = match rustix::fs::openat(directory, name, flags | always, Mode::RUSR | Mode::WUSR) {
        Ok(file) => file.into(),
        Err(rustix::io::Errno::LOOP) => return Err(FileRefusal::Link.into()),
        Err(rustix::io::Errno::ISDIR | rustix::io::Errno::NXIO) => return Err(FileRefusal::Kind.into()),
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(FileRefusal::Kind.into());
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(FileRefusal::Owner(found.uid()).into());
    }
    if found.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(found.mode() & 0o700))?;
    }
    Ok(file)
}

impl LogFile for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_name(&self) -> io::Result<()> {
        sync_directory(&self.directory)?;
        self.parents.iter().try_for_each(|parent| sync_directory(&File::open(parent)?))
    }

    fn look(&self) -> io::Result<FileStatus> {
        let found = self.file.metadata()?;
        let under_name = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let is_named =
            under_name.is_ok_and(|other| (other.st_dev, other.st_ino) == (found.dev(), found.ino()));
        Ok(FileStatus { len: found.len(), is_named })
    }

    fn read(&self, piece: Range<u64>) -> io::Result<Vec<u8>> {
        let length = usize::try_from(piece.end.saturating_sub(piece.start)).unwrap_or_default();
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, piece.start)?;
        Ok(bytes)
    }
}

/// Waits until the names in a directory are on the disk. Some file systems keep them safe by themselves and refuse to be asked.
pub(crate) fn sync_directory(directory: &File) -> io::Result<()> {
    match directory.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

/// Whether a file ends in the middle of a line.
pub(crate) fn ends_in_a_line(file: &File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if let Some(end) = file.metadata()?.len().checked_sub(1) {
        file.read_exact_at(&mut last, end)?;
    }
    Ok(last != *b"\n")
}

#[cfg(test)]
pub(crate) mod tests;
