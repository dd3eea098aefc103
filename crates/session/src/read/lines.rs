//! Going through a whole log, a line at a time.

use std::io;
use std::path::Path;

use super::file::LineReader;
use crate::format::{Flaw, LogLine, decode_line};

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
pub fn lines(path: &Path) -> io::Result<impl Iterator<Item = io::Result<LocatedLine>>> {
    let mut reader = LineReader::open(path)?;
    Ok(std::iter::from_fn(move || {
        let raw = match reader.next() {
            Ok(raw) => raw?,
            Err(error) => return Some(Err(error)),
        };
        let line = raw.bytes.map_or_else(|| Err(Flaw::too_long()), decode_line);
        Some(Ok(LocatedLine { offset: raw.offset, length: raw.length, line }))
    }))
}
