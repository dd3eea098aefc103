//! From lines in their order to records: parts of one record are joined, and what was heard gets back what other lines hold
//! of it.

use std::sync::Arc;

use windlass_protocol::{Block, Compaction, UserEntry};
use windlass_protocol::{Decision, Input, MessageId, Record};

use super::LogTime;
use super::decode::{Flaw, OwnLine};
use super::entry_part::EntryPart;
use super::own_lines::OwnLineBody;
use super::stored_elsewhere::{self, StoredElsewhere};

/// A record, and where and when it was written.
#[derive(Clone, Debug)]
pub struct LoggedRecord {
    /// Where its line begins.
    pub offset: u64,
    /// When it was written.
    pub at: LogTime,
    /// The record.
    pub record: Record,
}

/// What was heard is given up if the rest of it is not among as many records behind it.
const BEHIND_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct RecordAssembler {
    ready: Vec<LoggedRecord>,
    now: LogTime,
    front: Option<(MessageId, Vec<Block>)>,
    boundary: Option<Box<Compaction>>,
    heard: Option<UnfilledEvent>,
}

/// Something heard that waits for the line that holds the rest of it, and what came meanwhile.
#[derive(Debug)]
struct UnfilledEvent {
    offset: u64,
    at: LogTime,
    input: Box<Input>,
    held: StoredElsewhere,
    behind: Vec<LoggedRecord>,
    /// Where the rest should stand, and stands changed.
    changed: Option<u64>,
}

impl RecordAssembler {
    /// Takes a line of our own. The error is about something before it.
    pub(crate) fn own(&mut self, offset: u64, line: OwnLine) -> Result<(), (u64, Flaw)> {
        self.now = line.at;
        let cut = match &line.own {
            OwnLineBody::Heard { .. } | OwnLineBody::Opened(_) | OwnLineBody::Facts { .. } => self.give_up(),
            OwnLineBody::Mark(_) | OwnLineBody::Record(_) => None,
        };
        match line.own {
            OwnLineBody::Heard { input, held: Some(held) } => {
                self.heard = Some(UnfilledEvent {
                    offset,
                    at: self.now,
                    input,
                    held,
                    behind: Vec::new(),
                    changed: None,
                });
            }
            OwnLineBody::Heard { input, held: None } => self.push(offset, Record::Heard(input)),
            OwnLineBody::Record(record) => self.push(offset, *record),
            OwnLineBody::Facts { facts, .. } => self.push(offset, Record::Snapshot(facts)),
            OwnLineBody::Opened(_) | OwnLineBody::Mark(_) => {}
        }
        cut.map_or(Ok(()), Err)
    }

    pub(crate) fn piece(&mut self, offset: u64, piece: EntryPart) -> Result<(), Flaw> {
        let (front, boundary) = (self.front.take(), self.boundary.take());
        match piece {
            EntryPart::Whole(record) => self.push(offset, record),
            EntryPart::Front { id, blocks } => self.front = Some((id, blocks)),
            EntryPart::Boundary(compaction) => self.boundary = Some(compaction),
            EntryPart::Rest(said) => {
                let Some((_, mut blocks)) = front.filter(|(id, _)| *id == said.message.id) else {
                    return Err(Flaw("the first part of a message is missing".into()));
                };
                blocks.extend_from_slice(&said.message.blocks);
                let message = Arc::new(said.message.with_blocks(blocks));
                self.push(offset, Record::Said(UserEntry { message, ..said }));
            }
            EntryPart::Summary(message) => {
                let Some(compaction) = boundary else {
                    return Err(Flaw("the compaction before a summary is missing".into()));
                };
                let compaction = Compaction { boundary: message, ..*compaction };
                self.push(offset, Record::Decided(Decision::Compacted(Box::new(compaction))));
            }
        }
        Ok(())
    }

    /// Takes a record of another program's making.
    pub(crate) fn foreign(&mut self, offset: u64, wall_ms: Option<u64>, record: Record) {
        self.now.wall_ms = wall_ms.unwrap_or(self.now.wall_ms);
        self.push(offset, record);
    }

    /// Records that are complete, in order.
    pub(crate) fn ready(&mut self) -> impl Iterator<Item = LoggedRecord> + use<'_> {
        self.ready.drain(..)
    }

    /// The end, or a place that nothing before it reaches over. What still waits was cut off; records behind it count.
    pub(crate) fn give_up(&mut self) -> Option<(u64, Flaw)> {
        let waiting = self.heard.take()?;
        self.ready.extend(waiting.behind);
        let flaw = match waiting.changed {
            Some(offset) => {
                format!("the line at byte {offset} was changed and no longer holds the rest of this event")
            }
            None => "the line with the rest of an event is missing".into(),
        };
        Some((waiting.offset, Flaw(flaw)))
    }

    fn push(&mut self, offset: u64, record: Record) {
        let told = LoggedRecord { offset, at: self.now, record };
        let Some(mut waiting) = self.heard.take() else { return self.ready.push(told) };
        let is_filled = stored_elsewhere::fill(&mut waiting.input.event, &waiting.held, &told.record);
        if !is_filled && stored_elsewhere::is_place(&waiting.held, &told.record) {
            waiting.changed = Some(told.offset);
        }
        waiting.behind.push(told);
        if !is_filled && waiting.behind.len() < BEHIND_MAX {
            self.heard = Some(waiting);
            return;
        }
        if !is_filled {
            return self.ready.extend(waiting.behind);
        }
        let record = Record::Heard(waiting.input);
        self.ready.push(LoggedRecord { offset: waiting.offset, at: waiting.at, record });
        self.ready.extend(waiting.behind);
    }
}
