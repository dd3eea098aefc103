//! From lines in their order to records: parts are joined, and events get back what other lines hold of them.

use std::sync::Arc;

use serde::de::Error as _;
use serde_json::value::RawValue;
use windlass_protocol::{
    AnswerBlock, Block, CallResult, Compaction, Decision, Input, Message, MessageId, Origin, RawValueEq,
    Record, Role, UserEntry,
};

use super::decode::{Flaw, LogEntry, OwnLine};
use super::entry::{EntryOrigin, ExactBlocks};
use super::field_forms::{JsonFields, text};
use super::own_lines::OwnLineBody;
use super::stored_elsewhere::{self, StoredElsewhere};
use super::{LogTime, usage};

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
    /// The blocks in front of the message in the next entry.
    front: Option<(MessageId, Vec<Block>)>,
    /// A compaction whose message is the next entry; until then it has an empty one.
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
    pub(crate) fn take_own(&mut self, offset: u64, line: OwnLine) -> Result<(), (u64, Flaw)> {
        self.now = line.at;
        let cut = match &line.own {
            OwnLineBody::Mark(_) | OwnLineBody::Record(_) => None,
            _ => self.give_up(),
        };
        match line.own {
            OwnLineBody::Heard { input, held: Some(held) } => {
                let (at, behind) = (self.now, Vec::new());
                self.heard = Some(UnfilledEvent { offset, at, input, held, behind, changed: None });
            }
            OwnLineBody::Heard { input, held: None } => self.push(offset, Record::Heard(input)),
            OwnLineBody::Record(record) => self.push(offset, *record),
            OwnLineBody::Snapshot { snapshot, .. } => self.push(offset, Record::Snapshot(snapshot)),
            OwnLineBody::Opened(_) | OwnLineBody::Mark(_) => {}
        }
        cut.map_or(Ok(()), Err)
    }

    /// The record that is complete with this entry of ours; none for the first part of one.
    pub(crate) fn join(&mut self, meta: &EntryOrigin, entry: &LogEntry) -> Result<Option<Record>, Flaw> {
        let (front, boundary) = (self.front.take(), self.boundary.take());
        let missing = |what: &str| Flaw(format!("{what} is missing"));
        let record = match meta.clone() {
            EntryOrigin::Front { n, exact } => {
                self.front = Some((n, blocks(entry, &exact)?));
                return Ok(None);
            }
            EntryOrigin::Said { n, origin, is_assistant, prompts, context, is_apart, taken, exact } => {
                let front = front.filter(|(id, _)| is_apart && *id == n).map(|(_, blocks)| blocks);
                if is_apart && front.is_none() {
                    return Err(missing("the first part of a message"));
                }
                let mut said = front.unwrap_or_default();
                said.extend(blocks(entry, &exact)?);
                let message = Arc::new(Message::new(n, role(is_assistant), origin, said));
                let (context, taken) = (context.unwrap_or(0), taken.unwrap_or(0));
                Record::Said(UserEntry { message, context, prompts, taken })
            }
            EntryOrigin::Answered { n, request, index, model, usage, is_aborted, exact } => {
                let fields = message(entry)?;
                let usage_json = fields.raw("usage").map_or("{}", RawValue::get);
                Record::Answered(AnswerBlock {
                    id: n,
                    request,
                    message_id: fields.plain("id").map_err(flaw)?,
                    model,
                    answered_by: fields.plain("model").map_err(flaw)?,
                    index,
                    block: only_block(blocks(entry, &exact)?)?,
                    usage: usage::take(usage_json, usage).map_err(flaw)?,
                    is_aborted,
                })
            }
            EntryOrigin::Result { n, call, by, name, exact, structured } => {
                let shown = entry.structured.as_deref().map(RawValue::get);
                let structured =
                    structured.as_deref().or(shown).map(|json| RawValue::from_string(json.to_owned()));
                Record::Result(CallResult {
                    id: n,
                    call,
                    asked_by: by,
                    name,
                    result: only_block(blocks(entry, &exact)?)?,
                    structured: structured.transpose().map_err(flaw)?.map(|raw| Arc::new(RawValueEq(raw))),
                })
            }
            EntryOrigin::Boundary { trigger, tail, is_unbound, is_mechanical, before, after, took_ms } => {
                self.boundary = Some(Box::new(Compaction {
                    trigger,
                    boundary: Arc::new(Message::user(MessageId(0), Origin::Boundary, Vec::new())),
                    tail,
                    is_unbound,
                    is_mechanical,
                    tokens_before: before,
                    tokens_after: after,
                    duration_ms: took_ms,
                }));
                return Ok(None);
            }
            EntryOrigin::Summary { n, origin, is_assistant, exact } => {
                let mut compaction = boundary.ok_or_else(|| missing("the compaction before a summary"))?;
                compaction.boundary =
                    Arc::new(Message::new(n, role(is_assistant), origin, blocks(entry, &exact)?));
                Record::Decided(Decision::Compacted(compaction))
            }
        };
        Ok(Some(record))
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

    pub(crate) fn push(&mut self, offset: u64, record: Record) {
        let told = LoggedRecord { offset, at: self.now, record };
        let Some(mut waiting) = self.heard.take() else { return self.ready.push(told) };
        let is_filled = stored_elsewhere::fill(&mut waiting.input.event, &waiting.held, &told.record);
        if !is_filled && stored_elsewhere::is_place(&waiting.held, &told.record) {
            waiting.changed = Some(told.offset);
        }
        waiting.behind.push(told);
        if is_filled {
            let record = Record::Heard(waiting.input);
            self.ready.push(LoggedRecord { offset: waiting.offset, at: waiting.at, record });
        } else if waiting.behind.len() < BEHIND_MAX {
            self.heard = Some(waiting);
            return;
        }
        self.ready.extend(waiting.behind);
    }
}

fn role(is_assistant: bool) -> Role {
    if is_assistant { Role::Assistant } else { Role::User }
}

#[expect(clippy::needless_pass_by_value, reason = "it fits `map_err`")]
fn flaw(why: serde_json::Error) -> Flaw {
    Flaw(format!("message entry: {why}"))
}

fn message(entry: &LogEntry) -> Result<JsonFields<'_>, Flaw> {
    serde_json::from_str(entry.message.as_deref().map_or("null", RawValue::get)).map_err(flaw)
}

/// The blocks of an entry's message, byte for byte.
fn blocks(entry: &LogEntry, exact: &ExactBlocks) -> Result<Vec<Block>, Flaw> {
    let fields = message(entry)?;
    let Some(content) = fields.raw("content") else { return Ok(Vec::new()) };
    if content.get().starts_with('"') {
        return Ok(vec![Block::text(&text(content).map_err(flaw)?)]);
    }
    let list = serde_json::from_str::<Vec<&RawValue>>(content.get()).map_err(flaw)?;
    let block = |(index, json): (usize, &RawValue)| {
        let copy = exact.iter().find(|(place, _)| *place == index).map(|(_, json)| json.as_str());
        Block::from_log(copy.unwrap_or(json.get())).map_err(|why| flaw(serde_json::Error::custom(why)))
    };
    list.into_iter().enumerate().map(block).collect()
}

fn only_block(blocks: Vec<Block>) -> Result<Block, Flaw> {
    let [block] = <[Block; 1]>::try_from(blocks)
        .map_err(|blocks| Flaw(format!("message entry: {} blocks instead of one", blocks.len())))?;
    Ok(block)
}
