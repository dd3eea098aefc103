//! Opening a session: the last line that restates everything, and what stands behind it.

use std::fs::File;
use std::io;
use std::path::Path;

use uuid::Uuid;
use windlass_protocol::MessageId;

use super::file::LineReader;
use super::walk::LogWalk;
use super::{LoadError, LoadedLog, Upto, find, foreign};
use crate::format::{LogLine, decode_line};

/// Reads a log. Only a file that cannot be read, and an entry that is not in it, are errors.
pub fn load(path: &Path, upto: Upto) -> Result<LoadedLog, LoadError> {
    let read = |source| LoadError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(read)?;
    let end = match end(&file, upto).map_err(read)? {
        ReadEnd::At(end) => end,
        ReadEnd::NoSuchEntry(entry) => return Err(LoadError::NoSuchEntry { path: path.to_owned(), entry }),
    };
    let leaf = match upto {
        Upto::Entry(entry) => Some(entry),
        Upto::End | Upto::Offset(_) => None,
    };
    load_file(file, end, leaf).map_err(read)
}

/// Reads a log for a session that goes on from there. What stands behind stays in the file, so that none of its numbers is
/// given again.
pub fn load_back(path: &Path, upto: Upto) -> Result<LoadedLog, LoadError> {
    let mut loaded = load(path, upto)?;
    if loaded.is_cut {
        let left_out = File::open(path).and_then(|file| pass_over(file, &mut loaded));
        left_out.map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
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
                loaded.spent_left_out.extend(own.spent().cloned());
            }
            Some(Ok(LogLine::Entry(entry))) => {
                loaded.last_left_out = loaded.last_left_out.max(entry.number().unwrap_or_default());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where reading stops.
pub(crate) enum ReadEnd {
    At(u64),
    NoSuchEntry(Uuid),
}

/// Where reading stops that goes up to there.
pub(crate) fn end(file: &File, upto: Upto) -> io::Result<ReadEnd> {
    let length = file.metadata()?.len();
    Ok(match upto {
        Upto::End => ReadEnd::At(length),
        Upto::Offset(offset) if offset >= length => ReadEnd::At(length),
        Upto::Offset(offset) => ReadEnd::At(find::last_line_end(file, offset)?),
        Upto::Entry(uuid) => match find::last_entry(file, length, uuid)? {
            Some(found) => ReadEnd::At(found.end),
            None => ReadEnd::NoSuchEntry(uuid),
        },
    })
}

fn load_file(file: File, end: u64, leaf: Option<Uuid>) -> io::Result<LoadedLog> {
    let mut walk = LogWalk::default();
    walk.leaf = leaf;
    let is_cut = end < file.metadata()?.len();
    let mut records = Vec::new();
    let facts = find::last_facts(&file, end)?;
    let facts_end = facts.as_ref().map(|facts| facts.place.end);
    let from = match facts {
        Some(facts) => {
            let behind = facts.place.end;
            walk.restated(facts);
            behind
        }
        None => foreign::adopt(&file, end, &mut walk)?,
    };
    records.extend(walk.ready().map(|told| told.record));
    let mut lines = LineReader::new(file, from, end)?;
    while let Some(line) = lines.next()? {
        walk.line(line);
        records.extend(walk.ready().map(|told| told.record));
    }
    walk.finish();
    records.extend(walk.ready().map(|told| told.record));
    let since_facts = end - facts_end.unwrap_or(0);
    let last_left_out = MessageId::default();
    let LogWalk { tail, header, damage, torn, ends_open, foreign, .. } = walk;
    Ok(LoadedLog {
        header,
        records,
        tail,
        damage,
        torn,
        ends_open,
        foreign,
        length: end,
        is_cut,
        last_left_out,
        spent_left_out: Vec::new(),
        since_facts,
    })
}
