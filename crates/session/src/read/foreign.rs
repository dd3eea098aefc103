//! Files of other programs: which of their entries are the conversation, and what these say in our words.

mod convert;
mod select;

use std::fs::File;
use std::io;

use super::find;
use super::lines::LineReader;
use super::walk::LogWalk;
use crate::format::{LogLine, SessionMark, decode_line};

pub(crate) use convert::Adopter;
use select::EntryIndex;

/// Takes what stands before the first line of ours. Tells where the rest begins.
pub(crate) fn adopt(file: &File, end: u64, walk: &mut LogWalk) -> io::Result<u64> {
    let mut index = EntryIndex::default();
    let mut lines = LineReader::new(file.try_clone()?, 0, end)?;
    // What is no line at the end is left to whoever goes on from there.
    let mut rest = 0;
    while let Some(raw) = lines.next()? {
        match raw.bytes.map(decode_line) {
            Some(Ok(LogLine::Own(own))) => {
                if let Some(SessionMark::Forked { entry, .. }) = own.mark() {
                    walk.leaf = walk.leaf.or(*entry);
                }
                break;
            }
            Some(Ok(line)) => {
                if let LogLine::Entry(entry) = line {
                    index.add(raw.offset, raw.length, &entry);
                }
                rest = raw.offset + raw.length + u64::from(raw.is_ended);
                walk.log.is_open_ended = !raw.is_ended;
            }
            Some(Err(flaw)) => walk.note_damage(raw.offset, &flaw),
            None => {}
        }
    }
    if index.is_empty() {
        walk.log.damage.clear();
        return Ok(0);
    }
    // What stands behind is read again.
    walk.log.damage.retain(|damage| damage.offset < rest);
    let (places, leaf) = index.select(walk.leaf);
    for (offset, length) in places {
        let line = find::read(file, offset, offset + length)?;
        if let Ok(LogLine::Entry(entry)) = decode_line(&line) {
            walk.adopt(offset, &entry);
        }
    }
    walk.log.tail.chain.go_on_from(Some(leaf));
    Ok(rest)
}
