//! Chain entries: the lines that other programs read as the conversation.

use std::borrow::Cow;
use std::sync::Arc;

use uuid::Uuid;
use windlass_protocol::{
    Answered, Block, BlockKind, CallId, CallResult, CompactTrigger, Compaction, Message, MessageId, Origin,
    RawObject, RequestId, Role, Said,
};

use super::json::{Object, Plain, choice, spans_lines};
use super::usage::{self, UsageGaps};

/// What an entry needs to become the very record again that it was made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meta {
    /// The blocks that the engine put in front of a message, which is the next entry.
    Front { n: MessageId, exact: Exact },
    /// Something from the user's side.
    Said {
        n: MessageId,
        origin: Origin,
        /// By the model's side, against all custom.
        assistant: bool,
        prompts: Vec<Arc<str>>,
        /// How many blocks at the front the engine put there.
        context: Option<usize>,
        /// Whether these are in the entry before.
        apart: bool,
        taken: Option<usize>,
        exact: Exact,
    },
    /// A block of an answer.
    Answered {
        n: MessageId,
        request: RequestId,
        index: u32,
        model: Arc<str>,
        usage: Option<UsageGaps>,
        aborted: bool,
        exact: Exact,
    },
    /// A result.
    Result {
        n: MessageId,
        call: CallId,
        by: MessageId,
        name: Arc<str>,
        exact: Exact,
        structured: Option<String>,
    },
    /// A compaction; the message that stands for what is gone is the next entry.
    Boundary {
        trigger: CompactTrigger,
        tail: Option<MessageId>,
        unbound: bool,
        mechanical: bool,
        before: u64,
        after: u64,
        took_ms: u64,
    },
    /// What stands for everything before a compaction.
    Summary { n: MessageId, origin: Origin, assistant: bool, exact: Exact },
}

choice!(Meta {
    "front" = Front { n, exact },
    "said" = Said { n, origin, assistant, prompts, context, apart, taken, exact },
    "answered" = Answered { n, request, index, model, usage, aborted, exact },
    "result" = Result { n, call, by, name, exact, structured },
    "boundary" = Boundary { trigger, tail, unbound, mechanical, before, after, took_ms },
    "summary" = Summary { n, origin, assistant, exact },
});

/// Blocks that the message of the entry does not show byte for byte, by position.
pub(crate) type Exact = Vec<(usize, String)>;

/// What all entries of a process have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) session: Uuid,
    /// The fields of the context, from `cwd` on, as JSON without braces.
    pub(crate) fields: Vec<u8>,
}

/// Where an entry stands.
pub(crate) struct Place<'a> {
    pub(crate) common: &'a Common,
    pub(crate) uuid: Uuid,
    pub(crate) parent: Option<Uuid>,
    pub(crate) timestamp: &'a str,
}

impl Place<'_> {
    /// The fields that every entry begins with. `sessionId` stands before anything that somebody said.
    fn open<'o>(&self, kind: &str, out: &'o mut Vec<u8>) -> Object<'o> {
        let mut entry = Object::open(out);
        entry.text("type", kind);
        entry.write::<_, Plain>("uuid", &self.uuid);
        entry.write::<_, Plain>("parentUuid", &self.parent);
        entry.write::<_, Plain>("sessionId", &self.common.session);
        entry.text("timestamp", self.timestamp);
        entry.splice(&self.common.fields);
        entry
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
pub(crate) fn apart(said: &Said) -> usize {
    if said.context < said.message.blocks.len() { said.context } else { 0 }
}

/// The entry of the blocks in front.
pub(crate) fn put_front(said: &Said, place: &Place<'_>, out: &mut Vec<u8>) {
    put_line(out, |out| {
        let mut entry = place.open("user", out);
        entry.write::<_, Plain>("isMeta", &true);
        let exact = put_user_message(entry.name("message"), &said.message.blocks[..apart(said)]);
        entry.write::<_, Plain>("windlass", &Meta::Front { n: said.message.id, exact });
        entry.close();
    });
}

/// The entry of what was said.
pub(crate) fn put_said(said: &Said, place: &Place<'_>, out: &mut Vec<u8>) {
    let message = &said.message;
    let front = apart(said);
    let is_note = is_note(&message.origin) || said.context > front;
    put_line(out, |out| {
        let mut entry = place.open(if is_note { "attachment" } else { "user" }, out);
        if is_note {
            entry.write::<_, Plain>("isMeta", &true);
            entry.name("attachment").extend_from_slice(br#"{"type":"windlass_note"}"#);
        }
        let exact = put_user_message(entry.name("message"), &message.blocks[front..]);
        let meta = Meta::Said {
            n: message.id,
            origin: message.origin.clone(),
            assistant: message.role == Role::Assistant,
            prompts: said.prompts.clone(),
            context: Some(said.context).filter(|context| *context > 0),
            apart: front > 0,
            taken: Some(said.taken).filter(|taken| *taken > 0),
            exact,
        };
        entry.write::<_, Plain>("windlass", &meta);
        entry.close();
    });
}

/// The entry of a block of an answer. Its message is the one on the live stream.
pub(crate) fn put_answered(answered: &Answered, place: &Place<'_>, out: &mut Vec<u8>) {
    put_line(out, |out| {
        let mut entry = place.open("assistant", out);
        let mut message = Object::open(entry.name("message"));
        message.text("id", &answered.message_id);
        message.text("type", "message");
        message.text("role", "assistant");
        message.text("model", &answered.answered_by);
        let exact = put_blocks(std::slice::from_ref(&answered.block), message.name("content"));
        message.write::<_, Plain>("stop_reason", &None::<String>);
        message.write::<_, Plain>("stop_sequence", &None::<String>);
        let usage = usage::put(answered.usage.as_deref(), message.name("usage"));
        message.close();
        let meta = Meta::Answered {
            n: answered.id,
            request: answered.request,
            index: answered.index,
            model: answered.model.clone(),
            usage,
            aborted: answered.aborted,
            exact,
        };
        entry.write::<_, Plain>("windlass", &meta);
        entry.close();
    });
}

/// The entry of a result, with the entry of the block that made the call.
pub(crate) fn put_result(result: &CallResult, source: Option<Uuid>, place: &Place<'_>, out: &mut Vec<u8>) {
    put_line(out, |out| {
        let mut entry = place.open("user", out);
        entry.field::<_, Plain>("sourceToolAssistantUUID", &source);
        let exact = put_user_message(entry.name("message"), std::slice::from_ref(&result.result));
        let mut structured = None;
        if let Some(raw) = &result.structured {
            let json = raw.0.get();
            structured = Some(json.to_owned()).filter(|json| needs_copy(json));
            entry.name("toolUseResult").extend_from_slice(on_one_line(json).as_bytes());
        }
        let meta = Meta::Result {
            n: result.id,
            call: result.call,
            by: result.asked_by,
            name: result.name.clone(),
            exact,
            structured,
        };
        entry.write::<_, Plain>("windlass", &meta);
        entry.close();
    });
}

/// The entry that says that everything before was compacted.
pub(crate) fn put_boundary(
    compaction: &Compaction,
    last: Option<Uuid>,
    place: &Place<'_>,
    out: &mut Vec<u8>,
) {
    put_line(out, |out| {
        let mut entry = place.open("system", out);
        entry.text("subtype", "compact_boundary");
        entry.field::<_, Plain>("logicalParentUuid", &last);
        entry.text("content", "Conversation compacted");
        let mut metadata = Object::open(entry.name("compactMetadata"));
        metadata
            .text("trigger", if compaction.trigger == CompactTrigger::Manual { "manual" } else { "auto" });
        metadata.write::<_, Plain>("preTokens", &compaction.tokens_before);
        metadata.close();
        let meta = Meta::Boundary {
            trigger: compaction.trigger,
            tail: compaction.tail,
            unbound: compaction.unbound,
            mechanical: compaction.mechanical,
            before: compaction.tokens_before,
            after: compaction.tokens_after,
            took_ms: compaction.duration_ms,
        };
        entry.write::<_, Plain>("windlass", &meta);
        entry.close();
    });
}

/// The entry of the message that stands for everything before a compaction.
pub(crate) fn put_summary(message: &Message, place: &Place<'_>, out: &mut Vec<u8>) {
    put_line(out, |out| {
        let mut entry = place.open("user", out);
        entry.write::<_, Plain>("isCompactSummary", &true);
        let exact = put_user_message(entry.name("message"), &message.blocks);
        let meta = Meta::Summary {
            n: message.id,
            origin: message.origin.clone(),
            assistant: message.role == Role::Assistant,
            exact,
        };
        entry.write::<_, Plain>("windlass", &meta);
        entry.close();
    });
}

/// A line with the beginning of the last prompt, which lists show.
pub(crate) fn put_last_prompt(prompt: &str, common: &Common, out: &mut Vec<u8>) {
    put_line(out, |out| {
        let mut line = Object::open(out);
        line.text("type", "last-prompt");
        line.text("lastPrompt", prompt);
        line.write::<_, Plain>("sessionId", &common.session);
        line.close();
    });
}

/// A message of the user's side. One plain text stays a string, as prompts come.
fn put_user_message(out: &mut Vec<u8>, blocks: &[Block]) -> Exact {
    let mut message = Object::open(out);
    message.text("role", "user");
    let exact = match plain_text(blocks) {
        Some(text) => {
            message.text("content", text);
            Vec::new()
        }
        None => put_blocks(blocks, message.name("content")),
    };
    message.close();
    exact
}

fn plain_text(blocks: &[Block]) -> Option<&str> {
    let [block] = blocks else { return None };
    block.as_text().filter(|text| Block::text(text) == *block)
}

/// A list of blocks as other programs can read them; what they look like exactly, where that is not the same.
fn put_blocks(blocks: &[Block], out: &mut Vec<u8>) -> Exact {
    let mut exact = Vec::new();
    out.push(b'[');
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let shown = shown(block);
        if needs_copy(block.json()) || shown != block.json() {
            exact.push((index, block.json().to_owned()));
        }
        out.extend_from_slice(shown.as_bytes());
    }
    out.push(b']');
    exact
}

/// A block as hosts need it: on one line, and thinking with a text and a signature.
fn shown(block: &Block) -> Cow<'_, str> {
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
    spans_lines(json) || next_separator(json.as_bytes()).is_some()
}

fn next_separator(bytes: &[u8]) -> Option<(usize, &'static str, &'static str)> {
    memchr::memchr2_iter(0xC2, 0xE2, bytes).find_map(|at| {
        let (raw, escaped) = SEPARATORS.iter().find(|(raw, _)| bytes[at..].starts_with(raw.as_bytes()))?;
        Some((at, *raw, *escaped))
    })
}

/// Appends a line in which the line feed is the only end of a line that anybody could see.
fn put_line(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    if next_separator(&out[start..]).is_some() {
        let line = out.split_off(start);
        let mut rest = &line[..];
        while let Some((at, raw, escaped)) = next_separator(rest) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(escaped.as_bytes());
            rest = &rest[at + raw.len()..];
        }
        out.extend_from_slice(rest);
    }
    out.push(b'\n');
}
