//! From an entry of ours to the record it was made of, or a part of one.

use std::sync::Arc;

use serde::de::Error as _;
use serde_json::value::RawValue;
use windlass_protocol::{
    AnswerBlock, Block, CallResult, Compaction, Message, MessageId, Origin, RawValueEq, Record, Role,
    UserEntry,
};

use super::chain::Link;
use super::decode::{Flaw, LogEntry};
use super::entry::{Exact, Meta};
use super::form::{JsonFields, text};
use super::usage;

/// What an entry of ours holds.
#[derive(Clone, Debug)]
pub(crate) enum EntryPart {
    Whole(Record),
    /// The blocks in front of the message in the next entry.
    Front {
        id: MessageId,
        blocks: Vec<Block>,
    },
    /// A message whose first blocks are in the entry before.
    Rest(UserEntry),
    /// A compaction whose message is the next entry; until then it has an empty one.
    Boundary(Box<Compaction>),
    /// The message of the compaction in the entry before.
    Summary(Arc<Message>),
}

/// What an entry holds; `None` if it is not of ours.
pub(crate) fn entry_part(entry: &LogEntry) -> Option<Result<EntryPart, Flaw>> {
    let meta = entry.meta.as_ref()?;
    Some(take(meta, entry).map_err(|why| Flaw(format!("message entry: {why}"))))
}

/// How an entry of ours is linked to those that follow it.
pub(crate) fn link(piece: &EntryPart) -> Option<(MessageId, Link)> {
    match piece {
        EntryPart::Front { id, .. } => Some((*id, Link::Said)),
        EntryPart::Rest(said) | EntryPart::Whole(Record::Said(said)) => Some((said.message.id, Link::Said)),
        EntryPart::Whole(Record::Answered(answered)) => {
            let asks = answered.block.as_tool_use().is_some();
            Some((answered.id, Link::Block { message_id: answered.message_id.clone(), asks }))
        }
        EntryPart::Whole(Record::Result(result)) => {
            Some((result.id, Link::Result { asked_by: result.asked_by }))
        }
        EntryPart::Whole(_) | EntryPart::Boundary(_) | EntryPart::Summary(_) => None,
    }
}

fn take(meta: &Meta, entry: &LogEntry) -> Result<EntryPart, serde_json::Error> {
    match meta.clone() {
        Meta::Front { n, exact } => Ok(EntryPart::Front { id: n, blocks: blocks(entry, &exact)? }),
        Meta::Said { n, origin, assistant, prompts, context, apart, taken, exact } => {
            let message = Message::new(n, role(assistant), origin, blocks(entry, &exact)?);
            let (context, taken) = (context.unwrap_or(0), taken.unwrap_or(0));
            let said = UserEntry { message: Arc::new(message), context, prompts, taken };
            Ok(if apart { EntryPart::Rest(said) } else { EntryPart::Whole(Record::Said(said)) })
        }
        Meta::Answered { n, request, index, model, usage, aborted, exact } => {
            let fields = message(entry)?;
            let usage_json = fields.raw("usage").map_or("{}", RawValue::get);
            Ok(EntryPart::Whole(Record::Answered(AnswerBlock {
                id: n,
                request,
                message_id: fields.plain("id")?,
                model,
                answered_by: fields.plain("model")?,
                index,
                block: only(blocks(entry, &exact)?)?,
                usage: usage::take(usage_json, usage)?,
                aborted,
            })))
        }
        Meta::Result { n, call, by, name, exact, structured } => {
            let shown = entry.structured.as_deref().map(RawValue::get);
            let structured =
                structured.as_deref().or(shown).map(|json| RawValue::from_string(json.to_owned()));
            let structured = structured.transpose()?;
            Ok(EntryPart::Whole(Record::Result(CallResult {
                id: n,
                call,
                asked_by: by,
                name,
                result: only(blocks(entry, &exact)?)?,
                structured: structured.map(|raw| Arc::new(RawValueEq(raw))),
            })))
        }
        Meta::Boundary { trigger, tail, unbound, mechanical, before, after, took_ms } => {
            Ok(EntryPart::Boundary(Box::new(Compaction {
                trigger,
                boundary: Arc::new(Message::user(MessageId(0), Origin::Boundary, Vec::new())),
                tail,
                unbound,
                mechanical,
                tokens_before: before,
                tokens_after: after,
                duration_ms: took_ms,
            })))
        }
        Meta::Summary { n, origin, assistant, exact } => {
            let message = Message::new(n, role(assistant), origin, blocks(entry, &exact)?);
            Ok(EntryPart::Summary(Arc::new(message)))
        }
    }
}

fn role(assistant: bool) -> Role {
    if assistant { Role::Assistant } else { Role::User }
}

fn message(entry: &LogEntry) -> Result<JsonFields<'_>, serde_json::Error> {
    serde_json::from_str(entry.message.as_deref().map_or("null", RawValue::get))
}

/// The blocks of an entry's message, byte for byte.
fn blocks(entry: &LogEntry, exact: &Exact) -> Result<Vec<Block>, serde_json::Error> {
    let fields = message(entry)?;
    let Some(content) = fields.raw("content") else { return Ok(Vec::new()) };
    if content.get().starts_with('"') {
        return Ok(vec![Block::text(&text(content)?)]);
    }
    let block = |(index, json): (usize, &RawValue)| {
        let copy = exact.iter().find(|(place, _)| *place == index).map(|(_, json)| json.as_str());
        Block::from_log(copy.unwrap_or(json.get())).map_err(serde_json::Error::custom)
    };
    serde_json::from_str::<Vec<&RawValue>>(content.get())?.into_iter().enumerate().map(block).collect()
}

fn only(blocks: Vec<Block>) -> Result<Block, serde_json::Error> {
    match <[Block; 1]>::try_from(blocks) {
        Ok([block]) => Ok(block),
        Err(blocks) => Err(serde_json::Error::custom(format_args!("{} blocks instead of one", blocks.len()))),
    }
}
