//! Opens a file so that what was decided on is what is opened: a resolved path has no links left, and none is followed,
//! so a planted link makes the call fail. Nothing here waits: a pipe without a writer is refused, not read.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use windlass_protocol::FileStamp;

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("does not exist")]
    Missing,
    #[error("is a directory")]
    Directory,
    /// It is a pipe, socket or device.
    #[error("is {0}, not a regular file")]
    Special(&'static str),
    #[error("cannot be opened: {0}")]
    Io(#[from] io::Error),
}

/// A regular file, open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    /// Its look when it was opened. Files of the process file system say that their size is 0, and hold more.
    pub(crate) stamp: FileStamp,
}

/// What a file with this metadata looks like from outside.
pub(crate) fn stamp(meta: &Metadata) -> FileStamp {
    FileStamp { inode: meta.ino(), size: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
}

/// Opens the regular file at a resolved path. Blocks only as long as the disk does.
pub(crate) fn open_regular(resolved: &Path) -> Result<OpenFile, OpenError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open_without_links(resolved, flags) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(OpenError::Missing),
        // Sockets, and devices that nothing stands behind.
        Err(Errno::NXIO) => {
            let meta = std::fs::symlink_metadata(resolved)?;
            return Err(OpenError::Special(special_name(&meta)));
        }
        Err(error) => return Err(OpenError::Io(error.into())),
    };
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(OpenError::Directory);
    }
    if !meta.is_file() {
        return Err(OpenError::Special(special_name(&meta)));
    }
    Ok(OpenFile { file, stamp: stamp(&meta) })
}

/// What a file that is neither regular nor a directory is called.
pub(crate) fn special_name(meta: &Metadata) -> &'static str {
    match FileType::from_raw_mode(meta.mode()) {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        FileType::Symlink => "a symbolic link",
        _ => "of an unknown type",
    }
}

pub(crate) fn open_without_links(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Old kernels, and sandboxes that filter the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            rustix::fs::openat(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("file"), "abc").unwrap();
        rustix::fs::mknodat(CWD, root.join("fifo"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = UnixListener::bind(root.join("socket")).unwrap();
        symlink("file", root.join("link")).unwrap();
        symlink(".", root.join("here")).unwrap();
        let check = |name: &str, expected: &str| {
            let text = match open_regular(&root.join(name)) {
                Ok(open) => format!("{} bytes", open.stamp.size),
                Err(error) => error.to_string(),
            };
            assert!(text.contains(expected), "{name}: {text}");
        };
        check("file", "3 bytes");
        check("fifo", "a named pipe");
        check("socket", "a socket");
        check("", "is a directory");
        check("none", "does not exist");
        check("file/below", "does not exist");
        check("/dev/null", "a character device");
        // There may be no terminal, or one.
        check("/dev/tty", "a character device");
        // A resolved path holds no link; one that appears later is not followed.
        check("link", "cannot be opened");
        check("here/file", "cannot be opened");
    }
}
