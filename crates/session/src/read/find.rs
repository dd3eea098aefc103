//! Searching a file from its end, so that the time does not follow its size.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem::FinderRev;
use uuid::Uuid;

use crate::disk::retry_interrupted;
use crate::format::{LogLine, SNAPSHOT_BEGINNING, decode_line};

/// What is searched at once.
const CHUNK_BYTES: usize = 1024 * 1024;

/// A line that restates everything.
#[derive(Debug)]
pub(crate) struct SnapshotLine {
    pub(crate) offset: u64,
    /// Where the next one begins.
    pub(crate) end: u64,
    /// Whether a line feed ends it.
    pub(crate) is_ended: bool,
    pub(crate) line: LogLine,
}

/// The last line within the first `end` bytes that restates everything and can be used.
pub(crate) fn last_snapshot(file: &File, end: u64) -> io::Result<Option<SnapshotLine>> {
    let needle = format!("\n{SNAPSHOT_BEGINNING}");
    let mut before = end;
    loop {
        let offset = match rfind(file, before, needle.as_bytes())? {
            Some(at) => at + 1,
            None if read(file, 0, end.min(needle.len() as u64 - 1))? == SNAPSHOT_BEGINNING.as_bytes() => 0,
            None => return Ok(None),
        };
        let line_end = end_of_line(file, offset, end)?;
        let line = read(file, offset, line_end)?;
        if let Ok(line @ LogLine::Own(_)) = decode_line(&line) {
            let is_ended = line_end < end;
            return Ok(Some(SnapshotLine { offset, end: (line_end + 1).min(end), is_ended, line }));
        }
        if offset == 0 {
            return Ok(None);
        }
        before = offset;
    }
}

/// Where the last line within the first `end` bytes ends that is this entry.
pub(crate) fn end_of_entry(file: &File, end: u64, uuid: Uuid) -> io::Result<Option<u64>> {
    let needle = uuid.hyphenated().to_string();
    let mut before = end;
    while let Some(at) = rfind(file, before, needle.as_bytes())? {
        let offset = rfind(file, at, b"\n")?.map_or(0, |feed| feed + 1);
        let line_end = end_of_line(file, at, end)?;
        let line = read(file, offset, line_end)?;
        if matches!(decode_line(&line), Ok(LogLine::Entry(entry)) if entry.uuid == uuid) {
            return Ok(Some((line_end + 1).min(end)));
        }
        before = offset;
    }
    Ok(None)
}

/// Where the last whole line within the first `end` bytes ends.
pub(crate) fn last_line_end(file: &File, end: u64) -> io::Result<u64> {
    Ok(rfind(file, end, b"\n")?.map_or(0, |feed| feed + 1))
}

/// The last place within the first `end` bytes where the needle stands whole.
fn rfind(file: &File, end: u64, needle: &[u8]) -> io::Result<Option<u64>> {
    let finder = FinderRev::new(needle);
    let overlap = needle.len() as u64 - 1;
    let mut upto = end;
    while upto > overlap {
        let from = upto.saturating_sub(CHUNK_BYTES as u64);
        let chunk = read(file, from, upto)?;
        if let Some(at) = finder.rfind(&chunk) {
            return Ok(Some(from + at as u64));
        }
        if from == 0 {
            break;
        }
        upto = from + overlap;
    }
    Ok(None)
}

/// Where the line feed of the line stands that holds `at`; the end if it has none.
fn end_of_line(file: &File, at: u64, end: u64) -> io::Result<u64> {
    let mut from = at;
    while from < end {
        let upto = (from + CHUNK_BYTES as u64).min(end);
        if let Some(feed) = memchr::memchr(b'\n', &read(file, from, upto)?) {
            return Ok(from + feed as u64);
        }
        from = upto;
    }
    Ok(end)
}

/// The bytes from one offset to another, or fewer if the file has become shorter.
pub(crate) fn read(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match retry_interrupted(|| file.read_at(&mut bytes[filled..], from + filled as u64))? {
            0 => break,
            more => filled += more,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
