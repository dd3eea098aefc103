//! Going through lines in their order: what they say together.

use std::collections::HashSet;

use uuid::Uuid;
use windlass_protocol::Record;

use super::find::SnapshotLine;
use super::foreign::Adopter;
use super::lines::RawLine;
use super::{Damage, LoadedLog, LogItem, TornEnd};
use crate::format::{
    Flaw, Link, LogEntry, LogLine, OwnLine, OwnLineBody, RecordAssembler, SessionMark, decode_line,
};

/// More damage than this is not told one by one.
const DAMAGE_MAX: usize = 1000;

/// The state of going through a log.
#[derive(Debug, Default)]
pub(crate) struct LogWalk {
    pub(crate) assembler: RecordAssembler,
    adopter: Adopter,
    /// What the lines told that is no record.
    pub(crate) besides: Vec<LogItem>,
    /// What the lines told of the log as a whole; not its records.
    pub(crate) log: LoadedLog,
    /// The entry that the conversation ends with, if that was said.
    pub(crate) leaf: Option<Uuid>,
    /// What was seen, to know it again: the number or the id of a line, and a sum of it.
    seen: HashSet<(Uuid, u32)>,
}

impl LogWalk {
    pub(crate) fn line(&mut self, raw: RawLine<'_>) {
        self.log.torn = None;
        self.log.is_open_ended = !raw.is_ended;
        let Some(bytes) = raw.bytes else {
            return self.note_flaw(raw, &Flaw::too_long());
        };
        match decode_line(bytes) {
            Ok(line) => self.take_line(raw.offset, line, crc32fast::hash(bytes)),
            Err(flaw) => self.note_flaw(raw, &flaw),
        }
    }

    /// Takes an entry that another program wrote, or that stands in its file, in the order of the conversation.
    pub(crate) fn adopt(&mut self, offset: u64, entry: &LogEntry) {
        self.log.is_foreign = true;
        let records: Vec<Record> = match &entry.meta {
            None => self.adopter.convert(entry),
            Some(meta) => {
                let joined = self.assembler.join(meta, entry);
                let joined = joined.unwrap_or_else(|flaw| {
                    self.note_damage(offset, &flaw);
                    None
                });
                joined.map(|record| self.adopter.renumber(record)).into_iter().collect()
            }
        };
        for record in records {
            self.log.tail.chain.add_record(entry.uuid, &record);
            self.assembler.foreign(offset, entry.wall_ms, record);
        }
    }

    pub(crate) fn note_damage(&mut self, offset: u64, what: &impl ToString) {
        if self.log.damage.len() < DAMAGE_MAX {
            self.log.damage.push(Damage { offset, what: what.to_string() });
        }
    }

    pub(crate) fn finish(&mut self) {
        // A last line that cannot be used was torn rather than damaged.
        if let Some(torn) = self.log.torn {
            self.log.damage.retain(|damage| damage.offset != torn.offset);
        }
        // What was heard last may miss lines that were never written behind it: nothing is wrong with it.
        self.assembler.give_up();
    }

    fn note_flaw(&mut self, raw: RawLine<'_>, flaw: &Flaw) {
        self.log.torn = Some(TornEnd { offset: raw.offset, length: raw.length });
        self.note_damage(raw.offset, flaw);
    }

    /// Takes the line that everything before it can be forgotten for.
    pub(crate) fn take_snapshot(&mut self, snapshot: SnapshotLine) {
        self.log.is_open_ended = !snapshot.is_ended;
        self.take_line(snapshot.offset, snapshot.line, 0);
    }

    fn take_line(&mut self, offset: u64, line: LogLine, sum: u32) {
        match line {
            LogLine::Own(own) => {
                if self.is_new(Uuid::from_u128(own.seq.into()), own.sum.unwrap_or(sum), offset) {
                    self.take_own_line(offset, own);
                }
            }
            LogLine::Entry(entry) => {
                if !entry.is_aside && self.is_new(entry.uuid, sum, offset) {
                    self.take_entry(offset, &entry);
                }
            }
            LogLine::Other => {}
        }
    }

    fn is_new(&mut self, name: Uuid, sum: u32, offset: u64) -> bool {
        let is_new = self.seen.insert((name, sum));
        if !is_new {
            self.note_damage(offset, &"duplicate line");
        }
        is_new
    }

    fn take_own_line(&mut self, offset: u64, line: OwnLine) {
        let expected = self.log.tail.seq + 1;
        if self.log.tail.seq > 0 && line.seq != expected {
            self.note_damage(offset, &out_of_sequence(expected, line.seq));
        }
        self.log.tail.seq = self.log.tail.seq.max(line.seq);
        let chain = &mut self.log.tail.chain;
        match &line.own {
            OwnLineBody::Opened(header) => {
                self.log.header = Some((**header).clone());
                self.besides.push(LogItem::Opened { offset, header: header.clone() });
            }
            OwnLineBody::Mark(mark) => {
                if let SessionMark::Rewound { to } = mark {
                    chain.go_on_from(*to);
                }
                self.besides.push(LogItem::Marked(mark.clone()));
            }
            OwnLineBody::Snapshot { snapshot, header, chain: restated } => {
                self.log.header = Some((**header).clone());
                chain.clone_from(restated);
                self.adopter.saw(snapshot.last_message);
            }
            OwnLineBody::Record(record) => match &**record {
                Record::Requested(requested) => {
                    chain.end_round();
                    self.adopter.saw_request(requested.request);
                }
                Record::Retracted(messages) => chain.retract(messages),
                _ => {}
            },
            OwnLineBody::Heard { .. } => {}
        }
        if let Err((offset, flaw)) = self.assembler.take_own(offset, line) {
            self.note_damage(offset, &flaw);
        }
    }

    fn take_entry(&mut self, offset: u64, entry: &LogEntry) {
        let Some(meta) = &entry.meta else { return self.adopt(offset, entry) };
        let number = entry.number();
        self.adopter.saw(number.unwrap_or_default());
        match self.assembler.join(meta, entry) {
            Ok(Some(record)) => {
                self.adopter.saw_record(&record);
                self.log.tail.chain.add_record(entry.uuid, &record);
                self.assembler.push(offset, record);
            }
            Ok(None) => number.into_iter().for_each(|id| self.log.tail.chain.add(id, entry.uuid, Link::Said)),
            Err(flaw) => {
                self.log.tail.chain.go_on_from(Some(entry.uuid));
                self.note_damage(offset, &flaw);
            }
        }
    }
}

fn out_of_sequence(expected: u64, found: u64) -> String {
    match found.checked_sub(expected) {
        None => format!("line {found} comes after line {}", expected - 1),
        Some(1) => format!("line {expected} is missing"),
        Some(_) => format!("lines {expected}\u{2013}{} are missing", found - 1),
    }
}
