//! Chain entries: the lines that other programs read as the conversation.

use std::borrow::Cow;
use std::ops::Not;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;
use windlass_protocol::{
    AnswerBlock, Block, BlockKind, CallId, CallResult, CompactTrigger, Compaction, HostUsage, Message,
    MessageId, Origin, RawObject, RequestId, Role, UserEntry,
};

use super::field_forms::{FieldForm as _, Pair, PlainForm, choice, put_json, spans_lines};
use super::header::Header;
use super::usage::{self, UsageGaps};

/// What an entry needs to become the very record again that it was made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EntryOrigin {
    /// The blocks that the engine put in front of a message, which is the next entry.
    Front { n: MessageId, exact: ExactBlocks },
    /// Something from the user's side.
    Said {
        n: MessageId,
        origin: Origin,
        /// By the model's side, against all custom.
        is_assistant: bool,
        prompts: Vec<Arc<str>>,
        /// How many blocks at the front the engine put there.
        context: Option<usize>,
        /// Whether these are in the entry before.
        is_apart: bool,
        taken: Option<usize>,
        exact: ExactBlocks,
    },
    Answered {
        n: MessageId,
        request: RequestId,
        index: u32,
        model: Arc<str>,
        usage: Option<UsageGaps>,
        is_aborted: bool,
        exact: ExactBlocks,
    },
    Result {
        n: MessageId,
        call: CallId,
        by: MessageId,
        name: Arc<str>,
        exact: ExactBlocks,
        structured: Option<String>,
    },
    /// A compaction; the message that stands for what is gone is the next entry.
    Boundary {
        trigger: CompactTrigger,
        tail: Option<MessageId>,
        is_unbound: bool,
        is_mechanical: bool,
        before: u64,
        after: u64,
        took_ms: u64,
    },
    /// What stands for everything before a compaction.
    Summary { n: MessageId, origin: Origin, is_assistant: bool, exact: ExactBlocks },
}

choice!(EntryOrigin {
    "front" = Front { n, exact: Pair },
    "said" = Said { n, origin, is_assistant = "assistant", prompts, context, is_apart = "apart", taken, exact: Pair },
    "answered" = Answered { n, request, index, model, usage, is_aborted = "aborted", exact: Pair },
    "result" = Result { n, call, by, name, exact: Pair, structured },
    "boundary" = Boundary { trigger, tail, is_unbound = "unbound", is_mechanical = "mechanical", before, after, took_ms },
    "summary" = Summary { n, origin, is_assistant = "assistant", exact: Pair },
});

/// Blocks that the message of the entry does not show byte for byte, by position.
pub(crate) type ExactBlocks = Vec<(usize, String)>;

/// The version whose files ours look like.
const COMPATIBLE_VERSION: &str = "2.1.325";

/// What all entries of a process have in common.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryHead {
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<Arc<str>>,
    version: &'static str,
    user_type: &'static str,
    entrypoint: Arc<str>,
    is_sidechain: bool,
}

impl EntryHead {
    pub(crate) fn new(header: &Header) -> Self {
        Self {
            cwd: header.cwd.to_string_lossy().into_owned(),
            git_branch: header.git_branch.clone(),
            version: COMPATIBLE_VERSION,
            user_type: "external",
            entrypoint: header.entrypoint.clone(),
            is_sidechain: false,
        }
    }
}

/// Where an entry stands. `sessionId` stands before anything that somebody said.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryPosition<'a> {
    #[serde(with = "PlainForm")]
    pub(crate) uuid: Uuid,
    #[serde(rename = "parentUuid", with = "PlainForm")]
    pub(crate) parent: Option<Uuid>,
    #[serde(with = "PlainForm")]
    pub(crate) session_id: Uuid,
    pub(crate) timestamp: String,
    #[serde(flatten)]
    pub(crate) common: &'a EntryHead,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    place: EntryPosition<'a>,
    #[serde(skip_serializing_if = "Not::not")]
    is_meta: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    attachment: Option<Value>,
    #[serde(skip_serializing_if = "Not::not")]
    is_compact_summary: bool,
    #[serde(rename = "sourceToolAssistantUUID", with = "PlainForm", skip_serializing_if = "Option::is_none")]
    source: Option<Uuid>,
    #[serde(flatten)]
    boundary: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<ShownMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_result: Option<Cow<'a, RawValue>>,
    #[serde(with = "PlainForm")]
    windlass: EntryOrigin,
}

/// The message of an entry. An assistant's is the one on the live stream.
#[derive(Serialize)]
#[serde(untagged)]
enum ShownMessage<'a> {
    User {
        role: &'static str,
        content: ShownContent<'a>,
    },
    Assistant {
        id: &'a str,
        #[serde(rename = "type")]
        kind: &'static str,
        role: &'static str,
        model: &'a str,
        content: ShownContent<'a>,
        stop_reason: (),
        stop_sequence: (),
        usage: Box<HostUsage<'a>>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ShownContent<'a> {
    Text(&'a str),
    Blocks(Vec<Cow<'a, RawValue>>),
}

impl<'a> EntryLine<'a> {
    fn new(kind: &'static str, place: EntryPosition<'a>, windlass: EntryOrigin) -> Self {
        Self {
            kind,
            place,
            is_meta: false,
            attachment: None,
            is_compact_summary: false,
            source: None,
            boundary: None,
            message: None,
            tool_use_result: None,
            windlass,
        }
    }
}

/// Whether the engine said it to the model and nobody else is to see it. Other programs must not take such an entry for the
/// end of the conversation, as they do with those of type `user`.
fn is_note(origin: &Origin) -> bool {
    match origin {
        Origin::Prompt | Origin::Results | Origin::Interruption | Origin::Model(_) => false,
        Origin::Repair | Origin::Boundary | Origin::Collapsed | Origin::Continuation | Origin::Attachment => {
            true
        }
    }
}

/// How many blocks of a message stand in an entry of their own in front of it.
pub(crate) fn blocks_apart(said: &UserEntry) -> usize {
    if said.context < said.message.blocks.len() { said.context } else { 0 }
}

/// The entry of the blocks in front.
pub(crate) fn put_front(said: &UserEntry, place: EntryPosition<'_>, out: &mut Vec<u8>) {
    let (message, exact) = user_message(&said.message.blocks[..blocks_apart(said)]);
    let entry = EntryLine::new("user", place, EntryOrigin::Front { n: said.message.id, exact });
    put_line(&EntryLine { is_meta: true, message: Some(message), ..entry }, out);
}

pub(crate) fn put_user_entry(said: &UserEntry, place: EntryPosition<'_>, out: &mut Vec<u8>) {
    let message = &said.message;
    let front = blocks_apart(said);
    let is_note = is_note(&message.origin) || said.context > front;
    let (shown, exact) = user_message(&message.blocks[front..]);
    let meta = EntryOrigin::Said {
        n: message.id,
        origin: message.origin.clone(),
        is_assistant: message.role == Role::Assistant,
        prompts: said.prompts.clone(),
        context: Some(said.context).filter(|context| *context > 0),
        is_apart: front > 0,
        taken: Some(said.taken).filter(|taken| *taken > 0),
        exact,
    };
    let entry = EntryLine::new(if is_note { "attachment" } else { "user" }, place, meta);
    let attachment = is_note.then(|| json!({ "type": "windlass_note" }));
    put_line(&EntryLine { is_meta: is_note, attachment, message: Some(shown), ..entry }, out);
}

pub(crate) fn put_answer(answered: &AnswerBlock, place: EntryPosition<'_>, out: &mut Vec<u8>) {
    let (content, exact) = shown_blocks(std::slice::from_ref(&answered.block));
    let (shown_usage, usage) = usage::show(answered.usage.as_deref());
    let message = ShownMessage::Assistant {
        id: &answered.message_id,
        kind: "message",
        role: "assistant",
        model: &answered.answered_by,
        content,
        stop_reason: (),
        stop_sequence: (),
        usage: Box::new(shown_usage),
    };
    let meta = EntryOrigin::Answered {
        n: answered.id,
        request: answered.request,
        index: answered.index,
        model: answered.model.clone(),
        usage,
        is_aborted: answered.is_aborted,
        exact,
    };
    put_line(&EntryLine { message: Some(message), ..EntryLine::new("assistant", place, meta) }, out);
}

/// The entry of a result, with the entry of the block that made the call.
pub(crate) fn put_result(
    result: &CallResult,
    source: Option<Uuid>,
    place: EntryPosition<'_>,
    out: &mut Vec<u8>,
) {
    let (message, exact) = user_message(std::slice::from_ref(&result.result));
    let json = result.structured.as_ref().map(|raw| raw.0.get());
    let meta = EntryOrigin::Result {
        n: result.id,
        call: result.call,
        by: result.asked_by,
        name: result.name.clone(),
        exact,
        structured: json.filter(|json| needs_copy(json)).map(str::to_owned),
    };
    let tool_use_result = json.and_then(|json| raw(on_one_line(json)));
    let entry = EntryLine::new("user", place, meta);
    put_line(&EntryLine { source, message: Some(message), tool_use_result, ..entry }, out);
}

/// The entry that says that everything before was compacted.
pub(crate) fn put_boundary(
    compaction: &Compaction,
    last: Option<Uuid>,
    place: EntryPosition<'_>,
    out: &mut Vec<u8>,
) {
    let meta = EntryOrigin::Boundary {
        trigger: compaction.trigger,
        tail: compaction.tail,
        is_unbound: compaction.is_unbound,
        is_mechanical: compaction.is_mechanical,
        before: compaction.tokens_before,
        after: compaction.tokens_after,
        took_ms: compaction.duration_ms,
    };
    let trigger = if compaction.trigger == CompactTrigger::Manual { "manual" } else { "auto" };
    let mut boundary = json!({ "subtype": "compact_boundary" });
    if let Some(last) = last {
        boundary["logicalParentUuid"] = last.hyphenated().to_string().into();
    }
    boundary["content"] = "Conversation compacted".into();
    boundary["compactMetadata"] = json!({ "trigger": trigger, "preTokens": compaction.tokens_before });
    put_line(&EntryLine { boundary: Some(boundary), ..EntryLine::new("system", place, meta) }, out);
}

/// The entry of the message that stands for everything before a compaction.
pub(crate) fn put_summary(message: &Message, place: EntryPosition<'_>, out: &mut Vec<u8>) {
    let (shown, exact) = user_message(&message.blocks);
    let meta = EntryOrigin::Summary {
        n: message.id,
        origin: message.origin.clone(),
        is_assistant: message.role == Role::Assistant,
        exact,
    };
    let entry = EntryLine::new("user", place, meta);
    put_line(&EntryLine { is_compact_summary: true, message: Some(shown), ..entry }, out);
}

/// A line with the beginning of the last prompt, which lists show.
pub(crate) fn put_last_prompt(prompt: &str, session: Uuid, out: &mut Vec<u8>) {
    let session = session.hyphenated().to_string();
    put_line(&json!({ "type": "last-prompt", "lastPrompt": prompt, "sessionId": session }), out);
}

/// A message of the user's side. One plain text stays a string, as prompts come.
fn user_message(blocks: &[Block]) -> (ShownMessage<'_>, ExactBlocks) {
    let (content, exact) = match plain_text(blocks) {
        Some(text) => (ShownContent::Text(text), Vec::new()),
        None => shown_blocks(blocks),
    };
    (ShownMessage::User { role: "user", content }, exact)
}

fn plain_text(blocks: &[Block]) -> Option<&str> {
    let [block] = blocks else { return None };
    block.as_text().filter(|text| Block::text(text) == *block)
}

/// A list of blocks as other programs can read them; what they look like exactly, where that is not the same.
fn shown_blocks(blocks: &[Block]) -> (ShownContent<'_>, ExactBlocks) {
    let mut exact = Vec::new();
    let mut list = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let shown = shown_json(block);
        if needs_copy(block.json()) || shown != block.json() {
            exact.push((index, block.json().to_owned()));
        }
        list.extend(raw(shown));
    }
    (ShownContent::Blocks(list), exact)
}

/// Checked JSON, which always is some.
fn raw(json: Cow<'_, str>) -> Option<Cow<'_, RawValue>> {
    match json {
        Cow::Borrowed(json) => serde_json::from_str(json).ok().map(Cow::Borrowed),
        Cow::Owned(json) => RawValue::from_string(json).ok().map(Cow::Owned),
    }
}

/// A block as hosts need it: on one line, and thinking with a text and a signature.
fn shown_json(block: &Block) -> Cow<'_, str> {
    let json = on_one_line(block.json());
    if block.kind() != &BlockKind::Thinking {
        return json;
    }
    let Ok(object) = RawObject::parse(&json) else { return json };
    let is_text = |key: &str| object.get(key).is_some_and(|value| value.get().starts_with('"'));
    let missing: Vec<_> =
        ["thinking", "signature"].into_iter().filter(|key| !is_text(key)).map(|key| (key, r#""""#)).collect();
    if missing.is_empty() { json } else { object.with(&missing).into() }
}

/// Ends of lines between tokens become blanks.
pub(crate) fn on_one_line(json: &str) -> Cow<'_, str> {
    if spans_lines(json) { json.replace(['\n', '\r'], " ").into() } else { json.into() }
}

/// Characters that some readers take for the end of a line, and how JSON can say them otherwise.
const SEPARATORS: [(&str, &str); 3] =
    [("\u{85}", "\\u0085"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")];

/// Whether the entry cannot show this JSON byte for byte.
fn needs_copy(json: &str) -> bool {
    spans_lines(json) || has_separator(json.as_bytes())
}

fn has_separator(bytes: &[u8]) -> bool {
    let begins = |at: usize| SEPARATORS.iter().any(|(raw, _)| bytes[at..].starts_with(raw.as_bytes()));
    memchr::memchr2_iter(0xC2, 0xE2, bytes).any(begins)
}

/// Appends a line in which the line feed is the only end of a line that anybody could see.
fn put_line(line: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    put_json(line, out);
    if has_separator(&out[start..]) {
        let line = String::from_utf8_lossy(&out.split_off(start)).into_owned();
        let escape = |line: String, (raw, escaped): (&str, &str)| line.replace(raw, escaped);
        out.extend_from_slice(SEPARATORS.into_iter().fold(line, escape).as_bytes());
    }
    out.push(b'\n');
}
