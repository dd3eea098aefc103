//! What a provider refuses: pictures and documents, thinking, and other blocks by name.

use std::sync::Arc;

use windlass_protocol::{
    Block, BlockKind, Culprit, Decision, Message, MessageId, Origin, RawObject, Transcript,
};

use super::apply::without_thinking;
use super::results::{self, answered_call};

/// Whether the transcript holds pictures or documents, also inside results.
pub(crate) fn has_media(messages: &Transcript) -> bool {
    messages.iter().flat_map(|message| &message.blocks).any(holds_media)
}

/// The messages with a short text for the medium the provider complains about, or for each of them if it names none.
pub(crate) fn strip_media(messages: &Transcript, culprit: Option<Culprit>) -> Vec<Arc<Message>> {
    let named = culprit.and_then(|culprit| place_of(messages, culprit)).filter(|(message, block)| {
        let message = messages.iter().nth(*message);
        message.and_then(|message| message.blocks.get(*block)).is_some_and(holds_media)
    });
    let wanted = |place: (usize, usize)| named.is_none_or(|named| named == place);
    let stripped =
        |(place, message): (usize, &Arc<Message>)| without_media(message, |block| wanted((place, block)));
    messages.iter().enumerate().filter_map(stripped).collect()
}

/// The message with a short text for the block the provider complains about. Calls stay, since their results answer them, and
/// so does thinking, which has a cure of its own.
pub(crate) fn replace_block(messages: &Transcript, culprit: Option<Culprit>) -> Option<Arc<Message>> {
    let (place, block) = place_of(messages, culprit?)?;
    let message = messages.iter().nth(place)?;
    let mut blocks = message.blocks.clone();
    let stub = match blocks[block].kind() {
        BlockKind::ToolUse(_) | BlockKind::Thinking | BlockKind::RedactedThinking => return None,
        BlockKind::ToolResult { tool_use_id, is_error } => {
            Block::tool_result(tool_use_id, &[Block::text(REFUSED)], *is_error)
        }
        BlockKind::Image | BlockKind::Document => stub(&blocks[block]),
        BlockKind::Text(_) | BlockKind::Other(_) => Block::text(REFUSED),
    };
    if stub == blocks[block] {
        return None;
    }
    blocks[block] = stub;
    Some(Arc::new(message.with_blocks(blocks)))
}

/// The place of a block as we count: the provider counts neighbouring messages of one role as one.
fn place_of(messages: &Transcript, culprit: Culprit) -> Option<(usize, usize)> {
    let wanted = culprit.block?;
    let (mut group, mut before, mut role) = (0, 0, None);
    for (place, message) in messages.iter().enumerate() {
        if role.is_some_and(|role| role != message.role) {
            (group, before) = (group + 1, 0);
        }
        role = Some(message.role);
        if group == culprit.message && wanted < before + message.blocks.len() {
            return Some((place, wanted - before));
        }
        before += message.blocks.len();
    }
    None
}

fn holds_media(block: &Block) -> bool {
    match block.kind() {
        BlockKind::Image | BlockKind::Document => true,
        BlockKind::ToolResult { .. } => {
            block.json().contains(r#""source""#) && block.result_blocks().iter().any(holds_media)
        }
        _ => false,
    }
}

fn without_media(message: &Arc<Message>, wanted: impl Fn(usize) -> bool) -> Option<Arc<Message>> {
    let is_wanted = |(place, block): (usize, &Block)| wanted(place) && holds_media(block);
    if !message.blocks.iter().enumerate().any(is_wanted) {
        return None;
    }
    let blocks = message.blocks.iter().enumerate();
    let blocks = blocks.map(|(place, block)| if wanted(place) { stub(block) } else { block.clone() });
    Some(Arc::new(message.with_blocks(blocks.collect())))
}

const REFUSED: &str = "[Removed: the provider rejected this part.]";

/// The text that stands for a medium; for a result, the result with such texts in it.
fn stub(block: &Block) -> Block {
    if !holds_media(block) {
        return block.clone();
    }
    if let Some((tool_use_id, is_error)) = answered_call(block) {
        let content: Vec<Block> = results::content(block).iter().map(stub).collect();
        return Block::tool_result(tool_use_id, &content, is_error);
    }
    Block::text(&stub_text(block))
}

/// What the model and later summaries read instead of a medium.
pub(crate) fn stub_text(block: &Block) -> String {
    let what = if *block.kind() == BlockKind::Document { "document" } else { "picture" };
    let object = RawObject::parse(block.json()).ok();
    let title: Option<String> = object.as_ref().and_then(|object| object.read("title"));
    let source: Option<RawObject<'_>> = object.as_ref().and_then(|object| object.read("source"));
    let media_type = source.and_then(|source| source.read("media_type"));
    let named: Vec<String> = title.into_iter().chain(media_type).collect();
    let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
    format!("[Removed: a {what}{named} that cannot be sent.]")
}

/// The same messages without their thinking.
pub(crate) fn unbound(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    messages.iter().filter_map(without_thinking).collect()
}

pub(crate) fn has_thinking(messages: &Transcript) -> bool {
    messages.iter().any(|message| message.thinks())
}

/// Takes thinking out of every answer, or out of all but those of one model.
pub(crate) fn strip_thinking(messages: &Transcript, keep_model: Option<&str>) -> Option<Decision> {
    let kept = |message: &Arc<Message>| match &message.origin {
        Origin::Model(model) => Some(&**model) == keep_model,
        _ => false,
    };
    let stripped = messages.iter().filter(|message| message.thinks() && !kept(message));
    let ids: Vec<MessageId> = stripped.map(|message| message.id).collect();
    (!ids.is_empty()).then_some(Decision::ThinkingStripped(ids))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::apply;
    use crate::context::fixture::{answer, calls, prompt, shared_prefix, thinking, transcript};

    fn picture() -> Block {
        Block::image("image/png", "AAAA")
    }

    fn document() -> Block {
        let json = r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"A"},"title":"T"}"#;
        Block::from_json(json).unwrap()
    }

    fn with_media() -> Transcript {
        let inside = Block::tool_result("t", &[Block::text("x"), picture()], false);
        transcript(vec![
            prompt(1, "look"),
            Message::user(MessageId(2), Origin::Prompt, vec![Block::text("at"), picture()]),
            answer(3, "yes"),
            Message::user(MessageId(4), Origin::Results, vec![inside, document()]),
        ])
    }

    /// How many media are left, and how much of the start is untouched.
    #[track_caller]
    fn check(culprit: Option<(usize, Option<usize>)>, left: usize, untouched: usize) {
        let before = with_media();
        let culprit = culprit.map(|(message, block)| Culprit { message, block });
        let after = apply(&Decision::MediaStripped(strip_media(&before, culprit)), &before);
        let media =
            after.iter().flat_map(|message| &message.blocks).filter(|block| holds_media(block)).count();
        assert_eq!((media, shared_prefix(&before, &after)), (left, untouched));
    }

    #[test]
    fn the_named_medium_goes_or_all_of_them() {
        check(None, 0, 1);
        // The first two messages are one to the provider.
        check(Some((0, Some(2))), 2, 1);
        check(Some((2, Some(0))), 2, 3);
        check(Some((2, Some(1))), 2, 3);
        // What is named is no medium, or is not there.
        check(Some((0, Some(0))), 0, 1);
        check(Some((0, None)), 0, 1);
        check(Some((9, Some(9))), 0, 1);
    }

    /// What stands in the place of a block that is refused by name; nothing if it stays.
    #[track_caller]
    fn check_replaced(message: usize, block: Option<usize>, expected: Option<&str>) {
        let mut before = with_media();
        before.push(Arc::new(calls(5, &[("t", "Read", "{}")])));
        let seen = replace_block(&before, Some(Culprit { message, block })).map(|replaced| {
            let after = apply(&Decision::MediaStripped(vec![replaced]), &before);
            let blocks =
                before.iter().zip(after.iter()).flat_map(|(old, new)| old.blocks.iter().zip(&new.blocks));
            let changed: Vec<&str> =
                blocks.filter(|(old, new)| old != new).map(|(_, new)| new.json()).collect();
            changed.join(" ")
        });
        assert_eq!(seen.as_deref(), expected);
    }

    #[test]
    fn a_block_that_is_refused_by_name_gives_way_unless_others_hang_on_it() {
        let text = Block::text(REFUSED);
        check_replaced(0, Some(0), Some(text.json()));
        check_replaced(0, Some(2), Some(Block::text(&stub_text(&picture())).json()));
        check_replaced(1, Some(0), Some(text.json()));
        check_replaced(2, Some(0), Some(Block::tool_result("t", std::slice::from_ref(&text), false).json()));
        // Thinking, a call, and what is not there.
        check_replaced(3, Some(0), None);
        check_replaced(3, Some(1), None);
        check_replaced(3, None, None);
        check_replaced(9, Some(0), None);
        let replaced = transcript(vec![prompt(1, REFUSED)]);
        assert!(replace_block(&replaced, Some(Culprit { message: 0, block: Some(0) })).is_none());
    }

    #[test]
    fn the_text_says_what_was_there() {
        assert_eq!(stub_text(&picture()), "[Removed: a picture (image/png) that cannot be sent.]");
        let expected = "[Removed: a document (T, application/pdf) that cannot be sent.]";
        assert_eq!(stub_text(&document()), expected);
        let plain = transcript(vec![prompt(1, "no media")]);
        assert!(strip_media(&plain, None).is_empty());
        assert!(!has_media(&plain));
        assert!(has_media(&with_media()));
    }

    #[track_caller]
    fn check_thinking(keep_model: Option<&str>, left: &[u64]) {
        let other = Message::assistant(MessageId(3), "other".into(), vec![thinking(), Block::text("x")]);
        let before = transcript(vec![prompt(1, "a"), calls(2, &[("t", "Read", "{}")]), other]);
        let after = apply(&strip_thinking(&before, keep_model).unwrap(), &before);
        let found: Vec<u64> =
            after.iter().filter(|message| message.thinks()).map(|message| message.id.0).collect();
        assert_eq!(found, left);
    }

    #[test]
    fn thinking_goes_unless_the_model_made_it() {
        check_thinking(None, &[]);
        check_thinking(Some("other"), &[3]);
        check_thinking(Some("m"), &[2]);
        let plain = transcript(vec![prompt(1, "a")]);
        assert!(strip_thinking(&plain, None).is_none());
        assert!(!has_thinking(&plain));
    }
}
