//! Transcripts for tests.

use std::sync::Arc;

use windlass_protocol::{Block, Message, MessageId, Origin, RawValue, Transcript};

pub(crate) fn transcript(messages: Vec<Message>) -> Transcript {
    messages.into_iter().map(Arc::new).collect()
}

pub(crate) fn user(id: u64, origin: Origin, text: &str) -> Message {
    Message::user(MessageId(id), origin, vec![Block::text(text)])
}

pub(crate) fn prompt(id: u64, text: &str) -> Message {
    user(id, Origin::Prompt, text)
}

pub(crate) fn answer(id: u64, text: &str) -> Message {
    Message::assistant(MessageId(id), "m".into(), vec![Block::text(text)])
}

pub(crate) fn thinking() -> Block {
    Block::from_json(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#).unwrap()
}

/// An answer that thinks and makes these calls: id, tool, input.
pub(crate) fn calls(id: u64, calls: &[(&str, &str, &str)]) -> Message {
    let uses = calls.iter().map(|(id, name, input)| {
        Block::tool_use(id, name, RawValue::from_string((*input).to_owned()).unwrap())
    });
    let blocks = std::iter::once(thinking()).chain(uses).collect();
    Message::assistant(MessageId(id), "m".into(), blocks)
}

/// Results: call, text.
pub(crate) fn results(id: u64, results: &[(&str, &str)]) -> Message {
    let blocks =
        results.iter().map(|(id, text)| Block::tool_result(id, &[Block::text(text)], false)).collect();
    Message::user(MessageId(id), Origin::Results, blocks)
}

/// The ids of the messages.
pub(crate) fn ids(messages: &Transcript) -> Vec<u64> {
    messages.iter().map(|message| message.id.0).collect()
}

/// How many messages at the start are the very same in both, and whether their JSON is too.
pub(crate) fn shared_prefix(before: &Transcript, after: &Transcript) -> usize {
    let same = before.iter().zip(after.iter()).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
    assert_eq!(before.prefix(same).to_json(), after.prefix(same).to_json());
    same
}
