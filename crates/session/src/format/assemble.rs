//! From lines in their order to records: parts of one record are joined, and what was heard gets back what other lines hold
//! of it.

use std::sync::Arc;

use windlass_protocol::{Block, Compaction, Said};
use windlass_protocol::{Decision, Input, MessageId, Record};

use super::At;
use super::decode::{Flaw, OwnLine};
use super::held::{self, Held};
use super::own::Own;
use super::piece::Piece;

/// A record, and where and when it was written.
#[derive(Clone, Debug)]
pub struct Told {
    /// Where its line begins.
    pub offset: u64,
    /// When it was written.
    pub at: At,
    /// The record.
    pub record: Record,
}

/// What was heard is given up if the rest of it is not among as many records behind it.
const BEHIND_MAX: usize = 1000;

/// Puts records together.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    ready: Vec<Told>,
    now: At,
    front: Option<(MessageId, Vec<Block>)>,
    boundary: Option<Box<Compaction>>,
    heard: Option<Waiting>,
}

/// Something heard that waits for the line that holds the rest of it, and what came meanwhile.
#[derive(Debug)]
struct Waiting {
    offset: u64,
    at: At,
    input: Box<Input>,
    held: Held,
    behind: Vec<Told>,
    /// Where the rest should stand, and stands changed.
    changed: Option<u64>,
}

impl Assembler {
    /// Takes a line of our own. The error is about something before it.
    pub(crate) fn own(&mut self, offset: u64, line: OwnLine) -> Result<(), (u64, Flaw)> {
        self.now = line.at;
        let cut = match &line.own {
            Own::Heard { .. } | Own::Opened(_) | Own::Facts { .. } => self.give_up(),
            Own::Mark(_) | Own::Record(_) => None,
        };
        match line.own {
            Own::Heard { input, held: Some(held) } => {
                self.heard =
                    Some(Waiting { offset, at: self.now, input, held, behind: Vec::new(), changed: None });
            }
            Own::Heard { input, held: None } => self.push(offset, Record::Heard(input)),
            Own::Record(record) => self.push(offset, *record),
            Own::Facts { facts, .. } => self.push(offset, Record::Facts(facts)),
            Own::Opened(_) | Own::Mark(_) => {}
        }
        cut.map_or(Ok(()), Err)
    }

    /// Takes what an entry holds.
    pub(crate) fn piece(&mut self, offset: u64, piece: Piece) -> Result<(), Flaw> {
        let (front, boundary) = (self.front.take(), self.boundary.take());
        match piece {
            Piece::Whole(record) => self.push(offset, record),
            Piece::Front { id, blocks } => self.front = Some((id, blocks)),
            Piece::Boundary(compaction) => self.boundary = Some(compaction),
            Piece::Rest(said) => {
                let Some((_, mut blocks)) = front.filter(|(id, _)| *id == said.message.id) else {
                    return Err(Flaw("the first part of a message is missing".into()));
                };
                blocks.extend_from_slice(&said.message.blocks);
                let message = Arc::new(said.message.with_blocks(blocks));
                self.push(offset, Record::Said(Said { message, ..said }));
            }
            Piece::Summary(message) => {
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
    pub(crate) fn ready(&mut self) -> impl Iterator<Item = Told> + use<'_> {
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
        let told = Told { offset, at: self.now, record };
        let Some(mut waiting) = self.heard.take() else { return self.ready.push(told) };
        let is_filled = held::fill(&mut waiting.input.event, &waiting.held, &told.record);
        if !is_filled && held::is_place(&waiting.held, &told.record) {
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
        self.ready.push(Told { offset: waiting.offset, at: waiting.at, record });
        self.ready.extend(waiting.behind);
    }
}
