//! A file as a sequence of lines, of which one is held in memory at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};
use std::path::Path;

/// A longer line is skipped: no line of a log is nearly as long.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

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
        let (mut length, mut is_ended) = (0, false);
        while !is_ended {
            let piece = (&mut self.input).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut self.line);
            let read = piece.inspect_err(|_| self.input.get_mut().set_limit(0))?;
            if read == 0 {
                break;
            }
            is_ended = self.line.pop_if(|last| *last == b'\n').is_some();
            length += read as u64 - u64::from(is_ended);
            if length > LINE_BYTES_MAX {
                self.line = Vec::new();
            }
        }
        self.offset += length + u64::from(is_ended);
        let bytes = (length == self.line.len() as u64).then_some(&self.line[..]);
        Ok((length > 0 || is_ended).then_some(RawLine { offset, length, bytes, is_ended }))
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
}
