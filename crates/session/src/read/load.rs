//! Opening a session: the last line that restates everything, and what stands behind it.

use std::fs::File;
use std::io;
use std::path::Path;

use uuid::Uuid;
use windlass_protocol::Record;

use super::lines::LineReader;
use super::walk::LogWalk;
use super::{LoadError, LoadedLog, LogEnd, find, foreign};
use crate::format::{LogLine, decode_line};

/// Reads a log. Only a file that cannot be read, and an entry that is not in it, are errors.
pub fn load(path: &Path, upto: LogEnd) -> Result<LoadedLog, LoadError> {
    let read = |error| LoadError::Read(path.to_owned(), error);
    let file = File::open(path).map_err(read)?;
    let end = end(path, &file, upto)?;
    load_file(file, end, upto.entry()).map_err(read)
}

/// Reads a log for a session that goes on from there; what follows stays in the file, so no number is given twice.
pub fn load_back(path: &Path, upto: LogEnd) -> Result<LoadedLog, LoadError> {
    let mut loaded = load(path, upto)?;
    if loaded.is_cut {
        let left_out = File::open(path).and_then(|file| pass_over(file, &mut loaded));
        left_out.map_err(|error| LoadError::Read(path.to_owned(), error))?;
    }
    Ok(loaded)
}

/// Notes the numbers of what is left out, and what it took.
fn pass_over(file: File, loaded: &mut LoadedLog) -> io::Result<()> {
    let mut lines = LineReader::new(file, loaded.length, u64::MAX)?;
    while let Some(raw) = lines.next()? {
        match raw.bytes.map(decode_line) {
            Some(Ok(LogLine::Own(own))) => {
                loaded.tail.seq = loaded.tail.seq.max(own.seq);
                if let Some(Record::Spent(spent)) = own.record() {
                    loaded.spent_left_out.push(spent.clone());
                }
            }
            Some(Ok(LogLine::Entry(entry))) => {
                loaded.last_left_out = loaded.last_left_out.max(entry.number().unwrap_or_default());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where reading stops that goes up to there.
pub(crate) fn end(path: &Path, file: &File, upto: LogEnd) -> Result<u64, LoadError> {
    let read = |error| LoadError::Read(path.to_owned(), error);
    let length = file.metadata().map_err(read)?.len();
    match upto {
        LogEnd::Offset(offset) if offset < length => find::last_line_end(file, offset).map_err(read),
        LogEnd::End | LogEnd::Offset(_) => Ok(length),
        LogEnd::Entry(entry) => {
            let end = find::end_of_entry(file, length, entry).map_err(read)?;
            end.ok_or_else(|| LoadError::NoSuchEntry(path.to_owned(), entry))
        }
    }
}

fn load_file(file: File, end: u64, leaf: Option<Uuid>) -> io::Result<LoadedLog> {
    let mut walk = LogWalk::default();
    walk.leaf = leaf;
    let is_cut = end < file.metadata()?.len();
    let mut records = Vec::new();
    let snapshot = find::last_snapshot(&file, end)?;
    let snapshot_end = snapshot.as_ref().map_or(0, |snapshot| snapshot.end);
    let from = match snapshot {
        Some(snapshot) => {
            walk.take_snapshot(snapshot);
            snapshot_end
        }
        None => foreign::adopt(&file, end, &mut walk)?,
    };
    records.extend(walk.assembler.ready().map(|told| told.record));
    let mut lines = LineReader::new(file, from, end)?;
    while let Some(line) = lines.next()? {
        walk.line(line);
        records.extend(walk.assembler.ready().map(|told| told.record));
    }
    walk.finish();
    records.extend(walk.assembler.ready().map(|told| told.record));
    Ok(LoadedLog { records, length: end, is_cut, since_snapshot: end - snapshot_end, ..walk.log })
}
