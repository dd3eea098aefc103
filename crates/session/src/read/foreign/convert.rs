//! What the entries of another program say, in our words.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use windlass_protocol::{
    AnswerBlock, Block, BlockKind, CallId, CallResult, CompactTrigger, Compaction, Decision, Message,
    MessageId, Origin, RawObject, RawValueEq, Record, RequestId, Usage, UserEntry,
};

use crate::format::{EntryKind, LogEntry};

/// How the note begins that other programs leave when a person interrupts.
const INTERRUPTION: &str = "[Request interrupted by user";

/// The name of the model in answers that no model gave.
const NO_MODEL: &str = "<synthetic>";

/// Gives the messages of another program their numbers, and calls their callers.
#[derive(Debug, Default)]
pub(crate) struct Adopter {
    last: MessageId,
    request: RequestId,
    /// The response that is being taken, and how many blocks of it there were.
    response: Option<(Arc<str>, u32)>,
    /// Calls that are not answered: who made them, and how.
    calls: BTreeMap<Arc<str>, ForeignCall>,
    calls_made: u32,
    /// The compaction whose summary comes next.
    boundary: Option<(CompactTrigger, u64)>,
    /// Numbers that had to be changed.
    renumbered: BTreeMap<MessageId, MessageId>,
}

#[derive(Debug, Default)]
struct ForeignCall {
    asked_by: MessageId,
    id: CallId,
    name: Arc<str>,
}

impl Adopter {
    /// A number that is taken.
    pub(crate) fn saw(&mut self, message: MessageId) {
        self.last = self.last.max(message);
    }

    /// The number of a request that is taken.
    pub(crate) fn saw_request(&mut self, request: RequestId) {
        self.request = self.request.max(request);
        self.response = None;
    }

    /// A record of ours, whose calls may be answered by another program.
    pub(crate) fn saw_record(&mut self, record: &Record) {
        match record {
            Record::Answered(answered) => {
                self.saw_request(answered.request);
                self.note_call(answered.id, &answered.block);
            }
            Record::Result(result) => drop(self.take_call(&result.result)),
            _ => {}
        }
    }

    /// A record of ours in a file that somebody wrote anew: its numbers are kept as long as they grow.
    pub(crate) fn renumber(&mut self, record: Record) -> Record {
        let record = match record {
            Record::Said(said) => {
                let message = self.renumber_message(&said.message);
                Record::Said(UserEntry { message, ..said })
            }
            Record::Answered(answered) => {
                let id = self.renumber_id(answered.id);
                Record::Answered(AnswerBlock { id, ..answered })
            }
            Record::Result(result) => {
                let asked_by = self.renumbered.get(&result.asked_by).copied().unwrap_or(result.asked_by);
                Record::Result(CallResult { id: self.renumber_id(result.id), asked_by, ..result })
            }
            Record::Decided(Decision::Compacted(compaction)) => {
                let tail = compaction.tail.and_then(|tail| self.renumbered.get(&tail).copied());
                let boundary = self.renumber_message(&compaction.boundary);
                Record::Decided(Decision::Compacted(Box::new(Compaction { boundary, tail, ..*compaction })))
            }
            other => other,
        };
        self.saw_record(&record);
        record
    }

    /// What an entry of another program says.
    pub(crate) fn convert(&mut self, entry: &LogEntry) -> Vec<Record> {
        if entry.is_boundary {
            self.boundary = Some(compaction(entry));
        }
        let message = entry.message.as_deref().and_then(|raw| RawObject::parse(raw.get()).ok());
        let Some(message) = message else { return Vec::new() };
        let blocks = blocks(&message);
        match entry.kind {
            EntryKind::User => self.user(entry, blocks),
            EntryKind::Assistant => self.assistant(&message, blocks),
            EntryKind::System | EntryKind::Attachment | EntryKind::Progress => Vec::new(),
        }
    }

    fn user(&mut self, entry: &LogEntry, blocks: Vec<Block>) -> Vec<Record> {
        let (results, said): (Vec<Block>, Vec<Block>) =
            blocks.into_iter().partition(|block| matches!(block.kind(), BlockKind::ToolResult { .. }));
        let structured = entry.structured.as_ref().filter(|_| results.len() == 1);
        let structured = structured.map(|raw| Arc::new(RawValueEq((**raw).to_owned())));
        let mut records: Vec<Record> =
            results.into_iter().map(|result| self.result(result, structured.clone())).collect();
        if said.is_empty() {
            return records;
        }
        self.response = None;
        let origin = match said.first().and_then(Block::as_text) {
            _ if entry.is_summary => Origin::Boundary,
            _ if entry.is_meta => Origin::Attachment,
            Some(text) if text.starts_with(INTERRUPTION) => Origin::Interruption,
            _ => Origin::Prompt,
        };
        let message = Arc::new(Message::user(self.next_id(), origin, said));
        records.push(if entry.is_summary {
            self.compaction_record(message)
        } else {
            Record::Said(UserEntry::plain(message))
        });
        records
    }

    fn assistant(&mut self, message: &RawObject<'_>, blocks: Vec<Block>) -> Vec<Record> {
        let model: Arc<str> = message.read("model").unwrap_or_else(|| "unknown".into());
        if &*model == NO_MODEL {
            return Vec::new();
        }
        let message_id: Arc<str> = message.read("id").unwrap_or_else(|| "unknown".into());
        let usage: Option<Box<Usage>> = message.read("usage");
        blocks
            .into_iter()
            .map(|block| {
                let id = self.next_id();
                let index = self.index(&message_id);
                self.note_call(id, &block);
                Record::Answered(AnswerBlock {
                    id,
                    request: self.request,
                    message_id: message_id.clone(),
                    model: model.clone(),
                    answered_by: model.clone(),
                    index,
                    block,
                    usage: usage.clone(),
                    is_aborted: false,
                })
            })
            .collect()
    }

    /// The position of the next block in its response.
    fn index(&mut self, message_id: &Arc<str>) -> u32 {
        match &mut self.response {
            Some((response, blocks)) if response == message_id => {
                *blocks += 1;
                *blocks
            }
            _ => {
                self.request = RequestId(self.request.0.saturating_add(1));
                self.response = Some((message_id.clone(), 0));
                0
            }
        }
    }

    fn result(&mut self, result: Block, structured: Option<Arc<RawValueEq>>) -> Record {
        let ForeignCall { asked_by, id: call, name } = self.take_call(&result).unwrap_or_default();
        Record::Result(CallResult { id: self.next_id(), call, asked_by, name, result, structured })
    }

    fn compaction_record(&mut self, boundary: Arc<Message>) -> Record {
        let (trigger, tokens_before) = self.boundary.take().unwrap_or((CompactTrigger::Auto, 0));
        let tokens_after = boundary.tokens().into();
        Record::Decided(Decision::Compacted(Box::new(Compaction {
            trigger,
            boundary,
            tail: None,
            is_unbound: false,
            is_mechanical: false,
            tokens_before,
            tokens_after,
            duration_ms: 0,
        })))
    }

    fn note_call(&mut self, asked_by: MessageId, block: &Block) {
        if let Some(tool_use) = block.as_tool_use() {
            self.calls_made = self.calls_made.saturating_add(1);
            let call = ForeignCall { asked_by, id: CallId(self.calls_made), name: tool_use.name.clone() };
            self.calls.insert(tool_use.id.clone(), call);
        }
    }

    /// Takes out the call that a result answers: it gets no other.
    fn take_call(&mut self, result: &Block) -> Option<ForeignCall> {
        let BlockKind::ToolResult { tool_use_id, .. } = result.kind() else { return None };
        self.calls.remove(tool_use_id)
    }

    fn next_id(&mut self) -> MessageId {
        self.last = MessageId(self.last.0.saturating_add(1));
        self.last
    }

    fn renumber_id(&mut self, id: MessageId) -> MessageId {
        let new = if id > self.last { id } else { MessageId(self.last.0.saturating_add(1)) };
        self.last = new;
        self.renumbered.insert(id, new);
        new
    }

    fn renumber_message(&mut self, message: &Arc<Message>) -> Arc<Message> {
        let id = self.renumber_id(message.id);
        if id == message.id {
            return message.clone();
        }
        Arc::new(Message::new(id, message.role, message.origin.clone(), message.blocks.clone()))
    }
}

/// The blocks of a message; those that are none are left out.
fn blocks(message: &RawObject<'_>) -> Vec<Block> {
    if let Some(text) = message.read::<String>("content") {
        return vec![Block::text(&text)];
    }
    let list = message.read::<Vec<&RawValue>>("content").unwrap_or_default();
    list.into_iter().filter_map(|raw| Block::from_json(raw.get()).ok()).collect()
}

fn compaction(entry: &LogEntry) -> (CompactTrigger, u64) {
    let json = entry.metadata.as_deref().and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let json = json.unwrap_or_default();
    let trigger = if json["trigger"] == "manual" { CompactTrigger::Manual } else { CompactTrigger::Auto };
    (trigger, json["preTokens"].as_u64().unwrap_or_default())
}
