//! A log from its beginning to its end: who opened the session, what happened then, and what cannot be read of it.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::Path;

use super::lines::LineReader;
use super::walk::LogWalk;
use super::{Damage, foreign};
use crate::format::{Header, LoggedRecord, SessionMark};

/// What a log tells, in order; see [`story`].
#[derive(Debug)]
pub struct LogStory {
    reader: LineReader,
    walk: LogWalk,
    ready: VecDeque<Scene>,
    /// How much of the damage was told.
    told: usize,
    is_done: bool,
}

/// One thing that a log tells.
#[derive(Clone, Debug)]
pub enum Scene {
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
pub fn story(path: &Path) -> io::Result<LogStory> {
    let file = File::open(path)?;
    let end = file.metadata()?.len();
    let mut walk = LogWalk::default();
    let from = foreign::adopt(&file, end, &mut walk)?;
    let reader = LineReader::new(file, from, end)?;
    let mut story = LogStory { reader, walk, ready: VecDeque::new(), told: 0, is_done: false };
    story.take_ready();
    Ok(story)
}

impl LogStory {
    /// What could not be used, as far as the log was read.
    pub fn damage(&self) -> &[Damage] {
        &self.walk.log.damage
    }

    fn take_ready(&mut self) {
        let damage = self.walk.log.damage.iter().skip(self.told).cloned();
        self.ready.extend(damage.map(Scene::Damaged));
        self.told = self.told.max(self.walk.log.damage.len());
        self.ready.extend(self.walk.assembler.ready().map(Scene::Told));
        self.ready.extend(self.walk.besides.drain(..));
    }
}

impl Iterator for LogStory {
    type Item = io::Result<Scene>;

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
