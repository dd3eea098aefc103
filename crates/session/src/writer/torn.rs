//! Setting aside the torn end of a file, before anything is written behind it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::OFlags;

use crate::disk;

/// Copies a piece of the log into a file of its own. A copy that is already there, whole, is left as it is.
pub(crate) fn set_aside(log: &Path, offset: u64, length: u64, part: &Path) -> io::Result<()> {
    let directory = part.parent().unwrap_or(Path::new("."));
    disk::make_private(directory)?;
    let directory = disk::open_directory(directory)?;
    let mut copy = disk::open_private(&directory, part.file_name().unwrap_or_default(), OFlags::CREATE)?;
    if copy.metadata()?.len() == length {
        return Ok(());
    }
    copy.set_len(0)?;
    let mut log = File::open(log)?;
    log.seek(SeekFrom::Start(offset))?;
    io::copy(&mut log.take(length), &mut copy)?;
    copy.sync_all()?;
    directory.sync_all()
}
