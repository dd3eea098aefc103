//! Setting aside the torn end of a file, before anything is written behind it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::disk;
use crate::{SessionPaths, TornEnd};

/// A piece of a log, and the file it goes to.
pub(super) struct TornPiece {
    log: PathBuf,
    torn: TornEnd,
    copy: PathBuf,
}

impl TornPiece {
    pub(super) fn new(paths: &SessionPaths, torn: TornEnd) -> Self {
        Self { log: paths.file().to_owned(), torn, copy: paths.torn(torn.offset) }
    }

    /// Copies it. A copy that is already there, whole, is left as it is.
    pub(super) fn set_aside(&self) -> io::Result<()> {
        let directory = self.copy.parent().unwrap_or(Path::new("."));
        disk::make_private(directory)?;
        let directory = disk::open_directory(directory)?;
        let name = self.copy.file_name().unwrap_or_default();
        let mut copy = disk::open_private(&directory, name, OFlags::CREATE)?;
        if copy.metadata()?.len() == self.torn.length {
            return Ok(());
        }
        copy.set_len(0)?;
        let mut log = File::open(&self.log)?;
        log.seek(SeekFrom::Start(self.torn.offset))?;
        io::copy(&mut log.take(self.torn.length), &mut copy)?;
        copy.sync_all()?;
        disk::sync_directory(&directory)
    }
}
