//! A log from its beginning to its end: who opened the session, what happened then, and what cannot be read of it.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;

use super::lines::LineReader;
use super::walk::LogWalk;
use super::{Damage, foreign};
use crate::format::{Header, LoggedRecord, SessionMark};

/// What a log tells, in order; see [`log_items`].
#[derive(Debug)]
pub struct LogItems {
    reader: LineReader,
    walk: LogWalk,
    ready: VecDeque<LogItem>,
    /// How much of the damage was told.
    told: usize,
    is_done: bool,
}

/// One thing that a log tells.
#[derive(Clone, Debug)]
pub enum LogItem {
    /// A process opened the session. What it read then ended before this line.
    Opened {
        /// Where the line begins.
        offset: u64,
        /// What the process said.
        header: Box<Header>,
    },
    /// Something about the session itself.
    Marked(SessionMark),
    /// Something that happened.
    Told(LoggedRecord),
    /// Something that cannot be used.
    Damaged(Damage),
}

/// Everything a log tells, in order. Only one line is in memory at a time, and what belongs to it.
pub fn log_items(path: &Path) -> io::Result<LogItems> {
    let file = File::open(path)?;
    let end = file.metadata()?.len();
    let mut walk = LogWalk::default();
    let from = foreign::adopt(&file, end, &mut walk)?;
    let reader = LineReader::new(file, from, end)?;
    let mut log_items = LogItems { reader, walk, ready: VecDeque::new(), told: 0, is_done: false };
    log_items.take_ready();
    Ok(log_items)
}

impl LogItems {
    /// What could not be used, as far as the log was read.
    pub fn damage(&self) -> &[Damage] {
        &self.walk.log.damage
    }

    fn take_ready(&mut self) {
        let damage = self.walk.log.damage.iter().skip(self.told).cloned();
        self.ready.extend(damage.map(LogItem::Damaged));
        self.told = self.told.max(self.walk.log.damage.len());
        self.ready.extend(self.walk.assembler.ready().map(LogItem::Told));
        self.ready.extend(self.walk.besides.drain(..));
    }
}

impl Iterator for LogItems {
    type Item = io::Result<LogItem>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_done {
            match self.reader.next() {
                Ok(Some(raw)) => self.walk.line(raw),
                Ok(None) => {
                    self.walk.finish();
                    self.is_done = true;
                }
                Err(error) => {
                    self.is_done = true;
                    return Some(Err(error));
                }
            }
            self.take_ready();
        }
        self.ready.pop_front().map(Ok)
    }
}
