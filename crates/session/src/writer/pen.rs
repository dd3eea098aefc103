//! What writes: the lines of one append are made and put into the file, or none of it counts.

use std::io;
use std::mem;
use std::sync::Arc;

use windlass_protocol::Record;

use super::labels::Labels;
use super::tape::Tape;
use super::torn::TornPiece;
use crate::disk::LogFile;
use crate::{Encoder, LoadedLog, LogTime, SessionMark, SessionPaths};

/// A buffer that grew larger for once, for facts, is not kept.
const BUFFER_BYTES_MAX: usize = 1 << 20;

pub(super) struct Pen {
    encoder: Encoder,
    tape: Tape,
    /// Whether the file says that this process opened the session.
    opened: bool,
    /// Lines that go in front of the next append.
    pub(super) marks: Vec<(SessionMark, LogTime)>,
    /// How much was written since everything that counts was restated.
    since_facts: u64,
    labels: Labels,
    /// The torn end of the file, until it is set aside.
    torn: Option<TornPiece>,
    buffer: Vec<u8>,
}

impl Pen {
    pub(super) fn new(encoder: Encoder, tape: Tape) -> Self {
        Self {
            encoder,
            tape,
            opened: false,
            marks: Vec::new(),
            since_facts: 0,
            labels: Labels::default(),
            torn: None,
            buffer: Vec::new(),
        }
    }

    /// Takes over what a reader found.
    pub(super) fn resume(&mut self, loaded: &LoadedLog, paths: &SessionPaths) {
        self.since_facts = loaded.since_facts;
        if loaded.is_cut {
            let at = LogTime { at_ms: 0, wall_ms: crate::time::now_ms() };
            self.marks.push((SessionMark::Rewound { to: loaded.tail.parent() }, at));
        }
        self.torn = loaded.torn.map(|torn| TornPiece::new(paths, torn));
        // If there is no room for it now, there may be when something is written.
        let _ = self.set_aside_torn();
    }

    /// Sets the torn end of the file aside, if that was not done.
    pub(super) fn set_aside_torn(&mut self) -> io::Result<()> {
        if let Some(torn) = &self.torn {
            torn.set_aside()?;
        }
        self.torn = None;
        Ok(())
    }

    /// Whether this process has written anything.
    pub(super) fn is_begun(&self) -> bool {
        self.opened
    }

    pub(super) fn since_facts(&self) -> u64 {
        self.since_facts
    }

    /// Puts records into the file, in one write; `apart` from what is there, if that may not be what it seems. If it fails,
    /// the next append is made as if this one had never been.
    pub(super) fn write(&mut self, records: &[Record], apart: bool) -> io::Result<Arc<dyn LogFile>> {
        let place = match self.tape.open() {
            Ok(place) if apart => place.apart(),
            Ok(place) => place,
            Err(error) => {
                // A file that is made anew has to be told again.
                self.opened &= self.tape.is_open();
                return Err(error);
            }
        };
        self.labels.look_at(&place.news);
        let mut buffer = mem::take(&mut self.buffer);
        let next = self.encode(records, &mut buffer);
        self.labels.follow(&mut buffer);
        let written = self.tape.append(&place, &buffer);
        if written.is_ok() {
            self.encoder = next;
            self.opened = true;
            self.marks.clear();
            let restates = records.iter().any(|record| matches!(record, Record::Snapshot(_)));
            self.since_facts = if restates { 0 } else { self.since_facts + buffer.len() as u64 };
        } else {
            self.encoder = self.encoder.clone().after_failure(&next);
            self.labels.lost();
        }
        buffer.clear();
        buffer.shrink_to(BUFFER_BYTES_MAX);
        self.buffer = buffer;
        written
    }

    /// Makes the lines, behind a line feed for the case that the file does not end with one.
    fn encode(&self, records: &[Record], buffer: &mut Vec<u8>) -> Encoder {
        let mut encoder = self.encoder.clone();
        buffer.push(b'\n');
        if !self.opened {
            encoder.open(buffer);
        }
        for (mark, at) in &self.marks {
            encoder.mark(mark, *at, buffer);
        }
        encoder.encode(records, buffer);
        encoder
    }
}
