//! From records to lines.

use std::sync::Arc;

use uuid::Uuid;
use windlass_protocol::{
    AnswerBlock, CallResult, Compaction, Decision, Input, MessageId, Record, SessionKey, UserEntry,
};

use super::LogTime;
use super::chain::{Chain, Link};
use super::entry::{self, EntryHead, EntryPosition};
use super::field_forms::FieldValue;
use super::header::Header;
use super::own_lines::{OwnLineFrame, SessionMark};
use super::stored_elsewhere;

/// Lists look for the first prompt only so far; one beyond it is also written at once, not only at the run's end.
const IN_SIGHT_BYTES: usize = 32 * 1024;

/// Where a log ends: what the next line has to follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    pub(crate) chain: Chain,
    pub(crate) seq: u64,
}

impl Tail {
    /// The number of the last line of our own; 0 if there is none.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The entry that the next one follows.
    pub fn parent(&self) -> Option<Uuid> {
        self.chain.parent()
    }
}

/// Turns the records of a session into lines. Cheap to clone, so that a failed append leaves the former one.
#[derive(Clone, Debug)]
pub struct Encoder {
    session: Uuid,
    common: Arc<EntryHead>,
    header: Arc<Header>,
    tail: Tail,
    now: LogTime,
}

impl Encoder {
    /// An encoder for a session that a process opened as `header` says, and that ends so far with `tail`.
    pub fn new(session: Uuid, header: Arc<Header>, tail: Tail) -> Self {
        let common = EntryHead::new(&header);
        let now = LogTime { at_ms: 0, wall_ms: header.wall_ms };
        Self { session, common: Arc::new(common), header, tail, now }
    }

    /// Appends the line that says who opened the session: the first that a process writes.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        let header = self.header.clone();
        let timestamp = crate::time::iso(header.wall_ms);
        OwnLineFrame { timestamp: Some(&timestamp), ..self.frame("opened") }.put(&*header, out);
    }

    /// Appends the lines of records that are written together.
    pub fn encode(&mut self, records: &[Record], out: &mut Vec<u8>) {
        for (index, record) in records.iter().enumerate() {
            self.encode_record(record, &records[index + 1..], out);
        }
    }

    /// Appends a line about the session itself.
    pub fn mark(&mut self, mark: &SessionMark, at: LogTime, out: &mut Vec<u8>) {
        self.now = at;
        self.tail.seq += 1;
        mark.put(self.tail.seq, at, out);
        if let SessionMark::Rewound { to } = mark {
            self.tail.chain.go_on_from(*to);
        }
    }

    /// Where the log ends with what was encoded.
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// This encoder after the lines of `failed`, made from a clone of it, could not be appended. Some of them may be in the file
    /// after all, so that none of their numbers is used again.
    #[must_use]
    pub fn after_failure(mut self, failed: &Self) -> Self {
        self.tail.seq = self.tail.seq.max(failed.tail.seq);
        self
    }

    fn encode_input(&mut self, input: &Input, following: &[Record], out: &mut Vec<u8>) {
        self.now = LogTime { at_ms: input.at_ms, wall_ms: input.wall_ms };
        let split = stored_elsewhere::split(input, following);
        let frame = self.frame("heard");
        match &split {
            Some((rest, held)) => OwnLineFrame { held: Some(FieldValue::new(held)), ..frame }.put(rest, out),
            None => frame.put(input, out),
        }
    }

    fn encode_user_entry(&mut self, said: &UserEntry, out: &mut Vec<u8>) {
        let id = said.message.id;
        if entry::blocks_apart(said) > 0 {
            let uuid = self.header.seed.message_uuid(second_entry_id(id, 0));
            entry::put_front(said, self.place(uuid, self.tail.chain.parent()), out);
            self.tail.chain.add(id, uuid, Link::Said);
        }
        let parent = self.tail.chain.parent();
        let seed = self.header.seed;
        let key = SessionKey { id: self.session, seed, process: seed };
        let uuid = key.said_uuid(id, &said.prompts);
        entry::put_user_entry(said, self.place(uuid, parent), out);
        self.tail.chain.add_said(uuid, said);
        if said.is_prompt() && out.len() > IN_SIGHT_BYTES {
            self.encode_last_prompt(out);
        }
    }

    fn encode_last_prompt(&self, out: &mut Vec<u8>) {
        if let Some(prompt) = &self.tail.chain.last_prompt {
            entry::put_last_prompt(prompt, self.session, out);
        }
    }

    fn encode_answer(&mut self, answered: &AnswerBlock, out: &mut Vec<u8>) {
        let uuid = self.header.seed.message_uuid(answered.id);
        let parent = self.tail.chain.parent_of_block(&answered.message_id);
        entry::put_answer(answered, self.place(uuid, parent), out);
        self.tail.chain.add_answered(uuid, answered);
    }

    fn encode_result(&mut self, result: &CallResult, out: &mut Vec<u8>) {
        let uuid = self.header.seed.message_uuid(result.id);
        let asker = self.tail.chain.asker(result.asked_by);
        let parent = asker.or_else(|| self.tail.chain.parent());
        entry::put_result(result, asker, self.place(uuid, parent), out);
        self.tail.chain.add(result.id, uuid, Link::Result { asked_by: result.asked_by });
    }

    fn encode_compaction(&mut self, compaction: &Compaction, out: &mut Vec<u8>) {
        let id = compaction.boundary.id;
        let boundary = self.header.seed.message_uuid(second_entry_id(id, 1));
        let last = self.tail.chain.parent();
        entry::put_boundary(compaction, last, self.place(boundary, None), out);
        let summary = self.header.seed.message_uuid(id);
        entry::put_summary(&compaction.boundary, self.place(summary, Some(boundary)), out);
        self.tail.chain.go_on_from(Some(summary));
    }

    fn encode_record(&mut self, record: &Record, following: &[Record], out: &mut Vec<u8>) {
        match record {
            Record::Heard(input) => self.encode_input(input, following, out),
            Record::Said(said) => self.encode_user_entry(said, out),
            Record::Answered(answered) => self.encode_answer(answered, out),
            Record::Result(result) => self.encode_result(result, out),
            Record::Decided(Decision::Compacted(compaction)) => self.encode_compaction(compaction, out),
            Record::Retracted(messages) => {
                self.frame("retracted").put(messages, out);
                self.tail.chain.retract(messages);
            }
            Record::Queued(prompt) => self.frame("queued").put(prompt, out),
            Record::Dequeued => self.frame("dequeued").put_bare(out),
            Record::Requested(requested) => {
                self.frame("requested").put(requested, out);
                self.tail.chain.end_round();
            }
            Record::Ruled(ruled) => self.frame("ruled").put(ruled, out),
            Record::Intended(intended) => self.frame("intended").put(intended, out),
            Record::Finished(finished) => self.frame("finished").put(finished, out),
            Record::Decided(decision) => self.frame("decided").put(decision, out),
            Record::Spent(spent) => self.frame("spent").put(spent, out),
            Record::Repaired(repairs) => self.frame("repaired").put(repairs, out),
            Record::Ended(ending) => {
                self.frame("ended").put(ending, out);
                self.encode_last_prompt(out);
            }
            Record::Snapshot(snapshot) => {
                let frame = self.frame("facts");
                let (header, chain) = (FieldValue::new(&*self.header), FieldValue::new(&self.tail.chain));
                OwnLineFrame { header: Some(header), chain: Some(chain), ..frame }.put(snapshot, out);
            }
        }
    }

    fn frame<'a>(&mut self, kind: &'a str) -> OwnLineFrame<'a> {
        self.tail.seq += 1;
        OwnLineFrame::new(kind, self.tail.seq, self.now)
    }

    fn place(&self, uuid: Uuid, parent: Option<Uuid>) -> EntryPosition<'_> {
        let timestamp = crate::time::iso(self.now.wall_ms);
        EntryPosition { uuid, parent, session_id: self.session, timestamp, common: &self.common }
    }
}

/// The id of a second entry for the same message. Counted where neither messages nor the lines of a stream ever get.
fn second_entry_id(message: MessageId, which: u64) -> MessageId {
    MessageId((1 << 62) ^ (message.0 << 1) ^ which)
}
