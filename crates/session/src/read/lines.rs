//! Going through a whole log, a line at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;

use super::file::LineReader;
use super::walk::LogWalk;
use super::{Damage, foreign};
use crate::format::{Flaw, LogLine, LoggedRecord, decode_line};

/// The lines of a log, see [`lines`].
#[derive(Debug)]
pub struct LogLines {
    reader: LineReader,
    is_done: bool,
}

/// A line and its place.
#[derive(Clone, Debug)]
pub struct LocatedLine {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has, without the line feed.
    pub length: u64,
    /// What it says.
    pub line: Result<LogLine, Flaw>,
}

/// All lines of a log, in order. Only one is in memory at a time. An error ends them.
pub fn lines(path: &Path) -> io::Result<LogLines> {
    let file = File::open(path)?;
    let end = file.metadata()?.len();
    Ok(LogLines { reader: LineReader::new(file, 0, end)?, is_done: false })
}

impl Iterator for LogLines {
    type Item = io::Result<LocatedLine>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let raw = match self.reader.next() {
            Ok(raw) => raw?,
            Err(error) => {
                self.is_done = true;
                return Some(Err(error));
            }
        };
        let line = raw.bytes.map_or_else(|| Err(Flaw::too_long()), decode_line);
        Some(Ok(LocatedLine { offset: raw.offset, length: raw.length, line }))
    }
}

/// The records of a log, see [`records`].
#[derive(Debug)]
pub struct LogRecords {
    reader: LineReader,
    walk: LogWalk,
    ready: VecDeque<LoggedRecord>,
    is_done: bool,
}

/// All records of a log, in order, whatever was restated meanwhile. A file of another program gives those of its conversation.
pub fn records(path: &Path) -> io::Result<LogRecords> {
    let file = File::open(path)?;
    let end = file.metadata()?.len();
    let mut walk = LogWalk::default();
    let from = foreign::adopt(&file, end, &mut walk)?;
    let ready = walk.ready().collect();
    Ok(LogRecords { reader: LineReader::new(file, from, end)?, walk, ready, is_done: false })
}

impl LogRecords {
    /// What could not be used, as far as the log was read.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.walk.damage
    }
}

impl Iterator for LogRecords {
    type Item = io::Result<LoggedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_done {
            match self.reader.next() {
                Ok(Some(line)) => self.walk.line(line),
                Ok(None) => {
                    self.walk.finish();
                    self.is_done = true;
                }
                Err(error) => {
                    self.is_done = true;
                    return Some(Err(error));
                }
            }
            self.ready.extend(self.walk.ready());
        }
        self.ready.pop_front().map(Ok)
    }
}
