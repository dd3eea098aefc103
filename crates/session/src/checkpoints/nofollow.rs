//! Reaching a path without following links, so that nothing that was swapped in meanwhile leads elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The directory of a path, open, and the name in it.
pub(crate) struct NoFollowPath {
    pub(crate) directory: OwnedFd,
    pub(crate) name: OsString,
}

/// Why there is no such directory.
#[derive(Debug)]
pub(crate) enum NoFollowError {
    /// So many directories are missing.
    Missing(u32),
    /// There is a link in the way.
    Link,
    /// The system refused.
    Io(io::Error),
}

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::RDONLY);
/// A directory that may be passed through but not listed.
#[cfg(target_os = "linux")]
const THROUGH: OFlags = DIRECTORY.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const THROUGH: OFlags = DIRECTORY;

impl NoFollowPath {
    /// Opens the directory that a path without links is in.
    pub(crate) fn open(path: &Path) -> Result<Self, NoFollowError> {
        Self::walk(path, false)
    }

    /// The same, and makes the directories that are missing.
    pub(crate) fn make(path: &Path) -> Result<Self, NoFollowError> {
        Self::walk(path, true)
    }

    fn walk(path: &Path, should_make: bool) -> Result<Self, NoFollowError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(NoFollowError::Io(io::ErrorKind::InvalidFilename.into()));
        };
        let mut directory = rustix::fs::openat(CWD, "/", DIRECTORY, Mode::empty())
            .map_err(|error| NoFollowError::Io(error.into()))?;
        let mut parts = parent.components();
        while let Some(part) = parts.next() {
            let part = match part {
                Component::Normal(part) => part,
                Component::RootDir | Component::CurDir => continue,
                _ => return Err(NoFollowError::Io(io::ErrorKind::InvalidFilename.into())),
            };
            directory = match step(&directory, part) {
                Err(Errno::NOENT) if should_make => {
                    make_directory(&directory, part, 0o777).map_err(NoFollowError::Io)?;
                    step(&directory, part).map_err(|error| NoFollowError::Io(error.into()))?
                }
                Err(Errno::NOENT) => {
                    let missing = 1 + parts.filter(|part| matches!(part, Component::Normal(_))).count();
                    return Err(NoFollowError::Missing(u32::try_from(missing).unwrap_or(u32::MAX)));
                }
                Err(Errno::LOOP) => return Err(NoFollowError::Link),
                // With `O_DIRECTORY`, a link is no directory either.
                Err(Errno::NOTDIR) if is_link(&directory, part) => return Err(NoFollowError::Link),
                Err(Errno::NOTDIR) => return Err(NoFollowError::Missing(0)),
                Err(error) => return Err(NoFollowError::Io(error.into())),
                Ok(next) => next,
            };
        }
        Ok(Self { directory, name: name.to_owned() })
    }

    /// What is there, itself.
    pub(crate) fn stat(&self) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the file for reading. A pipe without a writer is not waited for.
    pub(crate) fn read(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())?.into())
    }
}

/// Makes a directory, unless there is one.
pub(crate) fn make_directory(directory: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
    match rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn step(directory: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat(directory, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => rustix::fs::openat(directory, name, THROUGH, Mode::empty()),
        result => result,
    }
}

fn is_link(directory: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink)
}
