//! Reading files that anybody may have put there: only ordinary ones, and only so much.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// A file that names a path is short.
const POINTER_BYTES_MAX: u64 = 64 * 1024;

/// The path that a file such as `commondir` names, relative to the directory it is in; behind `gitdir: ` in a file `.git`.
pub fn named_path(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = read_text(file, POINTER_BYTES_MAX).ok()?;
    Some(file.parent()?.join(text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r'])))
}

pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, bytes_max)?).map_err(|_| ErrorKind::InvalidData.into())
}

pub(crate) fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Opens an ordinary file, without waiting for anybody who should write into a pipe.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidData.into()) }
}
