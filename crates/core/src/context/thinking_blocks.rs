//! Thinking that a provider or another model does not take.

use std::sync::Arc;

use windlass_protocol::{Block, Decision, Message, MessageId, Origin, Transcript};
pub(crate) fn has_thinking(messages: &Transcript) -> bool {
    messages.iter().any(|message| thinks(message))
}

/// Takes thinking out of every answer, or out of all but those of one model.
pub(crate) fn strip_thinking(messages: &Transcript, keep_model: Option<&str>) -> Option<Decision> {
    let kept = |message: &Arc<Message>| match &message.origin {
        Origin::Model(model) => Some(&**model) == keep_model,
        _ => false,
    };
    let stripped = messages.iter().filter(|message| thinks(message) && !kept(message));
    let ids: Vec<MessageId> = stripped.map(|message| message.id).collect();
    (!ids.is_empty()).then_some(Decision::ThinkingStripped { messages: ids })
}

fn thinks(message: &Message) -> bool {
    message.blocks.iter().any(Block::is_thinking)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::apply;
    use crate::context::fixture::{calls, prompt, thinking, transcript};

    #[track_caller]
    fn check(keep_model: Option<&str>, left: &[u64]) {
        let other = Message::assistant(MessageId(3), "other".into(), vec![thinking(), Block::text("x")]);
        let before = transcript(vec![prompt(1, "a"), calls(2, &[("t", "Read", "{}")]), other]);
        let after = apply(&strip_thinking(&before, keep_model).unwrap(), &before);
        let found: Vec<u64> =
            after.iter().filter(|message| thinks(message)).map(|message| message.id.0).collect();
        assert_eq!(found, left);
    }

    #[test]
    fn thinking_goes_unless_the_model_made_it() {
        check(None, &[]);
        check(Some("other"), &[3]);
        check(Some("m"), &[2]);
        let plain = transcript(vec![prompt(1, "a")]);
        assert!(strip_thinking(&plain, None).is_none());
        assert!(!has_thinking(&plain));
    }
}
