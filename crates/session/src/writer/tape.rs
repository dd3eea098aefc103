//! The file as a place to append to: whole appends go in, and whatever else is in the file stays on lines of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, FileRefusal, LogFile, OpenMode, uninterrupted};

/// As much is read at each end of what others wrote.
const WINDOW: u64 = 64 * 1024;

/// The file of a log. It is opened, and made if need be, by the first append.
pub(super) struct Tape {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    opening: OpenMode,
    file: Option<Arc<dyn LogFile>>,
    /// From where to where the last append went. If the file does not end there, somebody else wrote, or an append failed.
    last: Option<(u64, u64)>,
}

/// The end of the file, just before an append.
pub(super) struct FileEnd {
    len: u64,
    /// Whether the file ends with a line that nobody finished.
    in_a_line: bool,
    /// What others wrote since the last append; its two ends, if it is much.
    pub(super) news: Vec<u8>,
}

impl FileEnd {
    /// As if the file ended with a line that nobody finished.
    pub(super) fn apart(self) -> Self {
        Self { in_a_line: self.len > 0, ..self }
    }
}

impl Tape {
    pub(super) fn new(disk: Arc<dyn Disk>, path: &Path, opening: OpenMode) -> Self {
        Self { disk, path: path.to_owned(), opening, file: None, last: None }
    }

    /// Opens the file, if it is not open, and makes sure that it is still the one that others find under its name.
    ///
    /// A file that was removed or cut is given up with an error; the next call makes it anew, or goes on behind what is left.
    pub(super) fn open(&mut self) -> io::Result<FileEnd> {
        let file = match self.file.clone() {
            Some(file) => file,
            None => uninterrupted(|| self.disk.open(&self.path, self.opening))?,
        };
        self.file = Some(Arc::clone(&file));
        let look = uninterrupted(|| file.look())?;
        let is_cut = self.last.is_some_and(|(_, end)| look.len < end);
        if !look.named || is_cut {
            self.file = None;
            self.last = None;
            self.opening = OpenMode::Any;
            return Err(FileRefusal::Removed.into());
        }
        Ok(self.place(&*file, look.len))
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    fn place(&self, file: &dyn LogFile, len: u64) -> FileEnd {
        if self.last.map_or(0, |(_, end)| end) == len {
            return FileEnd { len, in_a_line: false, news: Vec::new() };
        }
        // What was written at the same time as the last append may stand in front of it.
        let from = self.last.map_or(0, |(begin, _)| begin.min(len));
        let news = both_ends(file, from, len).unwrap_or_default();
        // When in doubt it is in a line: an empty line does no harm.
        let in_a_line = len > 0 && news.last() != Some(&b'\n');
        FileEnd { len, in_a_line, news }
    }

    /// Appends in one write. `bytes` begins with a line feed, which is left out where the file ends with a whole line.
    pub(super) fn append(&mut self, place: &FileEnd, bytes: &[u8]) -> io::Result<Arc<dyn LogFile>> {
        let file = self.file.clone().ok_or(FileRefusal::Removed)?;
        let bytes = if place.in_a_line { bytes } else { bytes.get(1..).unwrap_or_default() };
        self.last = None;
        write_all(&*file, bytes)?;
        self.last = Some((place.len, place.len + bytes.len() as u64));
        Ok(file)
    }
}

fn both_ends(file: &dyn LogFile, from: u64, upto: u64) -> io::Result<Vec<u8>> {
    if upto - from <= 2 * WINDOW {
        return file.read(from..upto);
    }
    let mut bytes = file.read(from..from + WINDOW)?;
    bytes.extend(file.read(upto - WINDOW..upto)?);
    Ok(bytes)
}

fn write_all(file: &dyn LogFile, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match uninterrupted(|| file.append(rest))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => rest = rest.get(written..).unwrap_or_default(),
        }
    }
    Ok(())
}
