//! Writes the lines of one append whole, or none of them counts; other content keeps lines of its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use windlass_protocol::Record;

use super::labels::Labels;
use crate::disk::{self, Disk, FileRefusal, LogFile, OpenMode, retry_interrupted};
use crate::{Encoder, LoadedLog, LogTime, SessionMark, SessionPaths, TornEnd};

/// A buffer that grew larger for once, for a snapshot, is not kept.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// As much is read at each end of what others wrote.
const WINDOW: u64 = 64 * 1024;

pub(super) struct LogAppender {
    encoder: Encoder,
    tape: LogTail,
    /// Whether the file says that this process opened the session.
    pub(super) is_opened: bool,
    /// Lines that go in front of the next append.
    pub(super) marks: Vec<(SessionMark, LogTime)>,
    /// How much was written since everything that counts was restated.
    pub(super) since_snapshot: u64,
    labels: Labels,
    /// The torn end of the file, until it is set aside.
    torn: Option<(TornEnd, SessionPaths)>,
    buffer: Vec<u8>,
}

impl LogAppender {
    pub(super) fn new(encoder: Encoder, tape: LogTail) -> Self {
        Self {
            encoder,
            tape,
            is_opened: false,
            marks: Vec::new(),
            since_snapshot: 0,
            labels: Labels::default(),
            torn: None,
            buffer: Vec::new(),
        }
    }

    /// Takes over what a reader found.
    pub(super) fn resume(&mut self, loaded: &LoadedLog, paths: &SessionPaths) {
        self.since_snapshot = loaded.since_snapshot;
        if loaded.is_cut {
            let at = LogTime { at_ms: 0, wall_ms: crate::time::now_ms() };
            self.marks.push((SessionMark::Rewound { to: loaded.tail.parent() }, at));
        }
        self.torn = loaded.torn.map(|torn| (torn, paths.clone()));
        // If there is no room for it now, there may be when something is written.
        let _ = self.set_aside_torn();
    }

    /// Sets the torn end of the file aside, if that was not done.
    pub(super) fn set_aside_torn(&mut self) -> io::Result<()> {
        if let Some((torn, paths)) = &self.torn {
            copy_torn(*torn, paths)?;
        }
        self.torn = None;
        Ok(())
    }

    /// Puts records into the file, in one write; `apart` from what is there, if that may not be what it seems. If it fails,
    /// the next append is made as if this one had never been.
    pub(super) fn write(&mut self, records: &[Record], is_apart: bool) -> io::Result<Arc<dyn LogFile>> {
        let place = match self.tape.open() {
            Ok(place) if is_apart => place.in_new_line(),
            Ok(place) => place,
            Err(error) => {
                // A file that is made anew has to be told again.
                self.is_opened &= self.tape.file.is_some();
                return Err(error);
            }
        };
        self.labels.look_at(&place.news);
        let mut buffer = mem::take(&mut self.buffer);
        let next = self.encode(records, &mut buffer);
        self.labels.follow(&mut buffer);
        let written = self.tape.append(&place, &buffer);
        if written.is_ok() {
            self.encoder = next;
            self.is_opened = true;
            self.marks.clear();
            let restates = records.iter().any(|record| matches!(record, Record::Snapshot(_)));
            self.since_snapshot = if restates { 0 } else { self.since_snapshot + buffer.len() as u64 };
        } else {
            self.encoder = self.encoder.clone().after_failure(&next);
            self.labels.note_loss();
        }
        buffer.clear();
        buffer.shrink_to(BUFFER_BYTES_MAX);
        self.buffer = buffer;
        written
    }

    /// Makes the lines, behind a line feed for the case that the file does not end with one.
    fn encode(&self, records: &[Record], buffer: &mut Vec<u8>) -> Encoder {
        let mut encoder = self.encoder.clone();
        buffer.push(b'\n');
        if !self.is_opened {
            encoder.open(buffer);
        }
        for (mark, at) in &self.marks {
            encoder.mark(mark, *at, buffer);
        }
        encoder.encode(records, buffer);
        encoder
    }
}

/// The file of a log. It is opened, and made if need be, by the first append.
pub(super) struct LogTail {
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
    is_in_line: bool,
    /// What others wrote since the last append; its two ends, if it is much.
    news: Vec<u8>,
}

impl FileEnd {
    /// As if the file ended with a line that nobody finished.
    fn in_new_line(self) -> Self {
        Self { is_in_line: self.len > 0, ..self }
    }
}

impl LogTail {
    pub(super) fn new(disk: Arc<dyn Disk>, path: &Path, opening: OpenMode) -> Self {
        Self { disk, path: path.to_owned(), opening, file: None, last: None }
    }

    /// Opens the file, if it is not open, and makes sure that it is still the one that others find under its name.
    ///
    /// A file that was removed or cut is given up with an error; the next call makes it anew, or goes on behind what is left.
    pub(super) fn open(&mut self) -> io::Result<FileEnd> {
        let file = match self.file.clone() {
            Some(file) => file,
            None => retry_interrupted(|| self.disk.open(&self.path, self.opening))?,
        };
        self.file = Some(Arc::clone(&file));
        let look = retry_interrupted(|| file.look())?;
        let is_cut = self.last.is_some_and(|(_, end)| look.len < end);
        if !look.is_named || is_cut {
            self.file = None;
            self.last = None;
            self.opening = OpenMode::Any;
            return Err(FileRefusal::Removed.into());
        }
        Ok(self.place(&*file, look.len))
    }

    fn place(&self, file: &dyn LogFile, len: u64) -> FileEnd {
        if self.last.map_or(0, |(_, end)| end) == len {
            return FileEnd { len, is_in_line: false, news: Vec::new() };
        }
        // What was written at the same time as the last append may stand in front of it.
        let from = self.last.map_or(0, |(begin, _)| begin.min(len));
        let news = both_ends(file, from, len).unwrap_or_default();
        // When in doubt it is in a line: an empty line does no harm.
        let is_in_line = len > 0 && news.last() != Some(&b'\n');
        FileEnd { len, is_in_line, news }
    }

    /// Appends in one write. `bytes` begins with a line feed, which is left out where the file ends with a whole line.
    fn append(&mut self, place: &FileEnd, bytes: &[u8]) -> io::Result<Arc<dyn LogFile>> {
        let file = self.file.clone().ok_or(FileRefusal::Removed)?;
        let bytes = if place.is_in_line { bytes } else { bytes.get(1..).unwrap_or_default() };
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
        match retry_interrupted(|| file.append(rest))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => rest = rest.get(written..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Copies the torn end of a log into a file of its own. A copy that is already there, whole, is left as it is.
fn copy_torn(torn: TornEnd, paths: &SessionPaths) -> io::Result<()> {
    let side = paths.side();
    disk::make_private(&side)?;
    let directory = disk::open_directory(&side)?;
    let path = paths.torn_end(torn.offset);
    let name = path.file_name().unwrap_or_default();
    let mut copy = disk::open_private(&directory, name, OFlags::CREATE)?;
    if copy.metadata()?.len() == torn.length {
        return Ok(());
    }
    copy.set_len(0)?;
    let mut log = File::open(paths.file())?;
    log.seek(SeekFrom::Start(torn.offset))?;
    io::copy(&mut log.take(torn.length), &mut copy)?;
    copy.sync_all()?;
    disk::sync_directory(&directory)
}
