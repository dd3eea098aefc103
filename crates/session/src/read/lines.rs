//! A file as a sequence of lines, of which one is held in memory at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};
use std::path::Path;

use crate::format::{Flaw, LogLine, decode_line};

/// A longer line is skipped: no line of a log is nearly as long.
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What is read from the file at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Lines of a part of a file.
#[derive(Debug)]
pub(crate) struct LineReader {
    input: BufReader<Take<File>>,
    offset: u64,
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RawLine<'a> {
    /// Where it begins.
    pub(crate) offset: u64,
    /// How many bytes it has, without the line feed.
    pub(crate) length: u64,
    /// The bytes; none if they are too many.
    pub(crate) bytes: Option<&'a [u8]>,
    /// Whether a line feed ends it.
    pub(crate) is_ended: bool,
}

impl LineReader {
    /// The lines of a file as long as it is now.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let end = file.metadata()?.len();
        Self::new(file, 0, end)
    }

    /// The lines from one offset, where a line begins, to another.
    pub(crate) fn new(mut file: File, from: u64, to: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(from))?;
        let input = BufReader::with_capacity(CHUNK_BYTES, file.take(to.saturating_sub(from)));
        Ok(Self { input, offset: from, line: Vec::new() })
    }

    /// The next line; `None` at the end, and behind an error.
    pub(crate) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.line.clear();
        // One large line must not hold its memory for the rest of the file.
        self.line.shrink_to(4 * CHUNK_BYTES);
        let offset = self.offset;
        let mut length = 0;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.input.get_mut().set_limit(0);
                    return Err(error);
                }
            };
            if chunk.is_empty() {
                self.offset += length;
                return Ok((length > 0).then(|| self.line(offset, length, false)));
            }
            let end = memchr::memchr(b'\n', chunk);
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            length += piece.len() as u64;
            if length <= LINE_BYTES_MAX as u64 {
                self.line.extend_from_slice(piece);
            } else {
                self.line = Vec::new();
            }
            let used = piece.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                self.offset += length + 1;
                return Ok(Some(self.line(offset, length, true)));
            }
        }
    }

    /// The next line that is not too long.
    pub(crate) fn next_bytes(&mut self) -> io::Result<Option<&[u8]>> {
        while let Some(raw) = self.next()? {
            if raw.bytes.is_some() {
                return Ok(Some(&self.line));
            }
        }
        Ok(None)
    }

    fn line(&self, offset: u64, length: u64, is_ended: bool) -> RawLine<'_> {
        let bytes = (length == self.line.len() as u64).then_some(&self.line[..]);
        RawLine { offset, length, bytes, is_ended }
    }
}

/// A line and its place.
#[derive(Clone, Debug)]
pub(crate) struct LocatedLine {
    pub(crate) offset: u64,
    pub(crate) line: Result<LogLine, Flaw>,
}

/// All lines of a log, in order. Only one is in memory at a time. An error ends them.
pub(crate) fn lines(path: &Path) -> io::Result<impl Iterator<Item = io::Result<LocatedLine>>> {
    let mut reader = LineReader::open(path)?;
    Ok(std::iter::from_fn(move || {
        let raw = match reader.next() {
            Ok(raw) => raw?,
            Err(error) => return Some(Err(error)),
        };
        let line = raw.bytes.map_or_else(|| Err(Flaw::too_long()), decode_line);
        Some(Ok(LocatedLine { offset: raw.offset, line }))
    }))
}
