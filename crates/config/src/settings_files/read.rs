//! Reading files that anybody may have put there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::shared_file::is_missing;

/// A larger settings file is a mistake.
pub(crate) const BYTES_MAX: u64 = 1024 * 1024;

/// The text of an ordinary file; nothing if it is not there. The error is a sentence.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Option<String>, String> {
    let Some(bytes) = bytes(path, bytes_max)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8 text".into())
}

/// The content of an ordinary file; nothing if it is not there. The error is a sentence.
pub(crate) fn bytes(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, String> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(format!("cannot read it ({error})")),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("it is not a regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot read it ({error})"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it is larger than {} MiB", bytes_max / 1024 / 1024));
    }
    Ok(Some(bytes))
}

/// Opens a file without waiting for anybody who should write into it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}
