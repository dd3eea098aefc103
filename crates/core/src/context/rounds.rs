//! What stays together: a response and its results.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_protocol::{Block, BlockKind, Message, Role, ToolUse, Transcript};

/// Neighbouring messages that only go together: a round, or one message of the user's side that belongs to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageGroup {
    /// The place of the first message.
    pub(crate) first: usize,
    /// The place behind the last.
    pub(crate) end: usize,
    /// About how many tokens.
    pub(crate) tokens: u64,
    pub(crate) is_round: bool,
}

/// The transcript in units, oldest first.
pub(crate) fn units(messages: &[&Arc<Message>]) -> Vec<MessageGroup> {
    let mut units = Vec::new();
    let mut first = 0;
    while let Some(message) = messages.get(first) {
        let is_round = message.role == Role::Assistant;
        let mut end = first + 1;
        if is_round {
            end += count_while(&messages[end..], |next| next.role == Role::Assistant);
            end += count_while(&messages[end..], |next| next.role == Role::User && holds_result(next));
        }
        let tokens = super::tokens::estimate_all(&messages[first..end]);
        units.push(MessageGroup { first, end, tokens, is_round });
        first = end;
    }
    units
}

/// The place of the first message of the newest `rounds` rounds: nothing from there on is old.
pub(crate) fn newest_from(units: &[MessageGroup], rounds: usize) -> usize {
    let all = units.last().map_or(0, |last| last.end);
    match rounds {
        0 => all,
        _ => units.iter().rev().filter(|unit| unit.is_round).nth(rounds - 1).map_or(0, |unit| unit.first),
    }
}

fn count_while(messages: &[&Arc<Message>], holds: impl Fn(&Message) -> bool) -> usize {
    messages.iter().take_while(|message| holds(message)).count()
}

fn holds_result(message: &Message) -> bool {
    message.blocks.iter().any(|block| matches!(block.kind(), BlockKind::ToolResult { .. }))
}

/// The tool uses of a transcript, by id.
pub(crate) fn tool_uses(messages: &Transcript) -> BTreeMap<&str, &ToolUse> {
    let uses = messages.iter().flat_map(|message| &message.blocks).filter_map(Block::as_tool_use);
    uses.map(|tool_use| (&*tool_use.id, tool_use)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::fixture::{answer, calls, prompt, results, transcript};

    #[track_caller]
    fn check(messages: Vec<Message>, kept: usize, expected: (&[(usize, usize)], usize)) {
        let transcript = transcript(messages);
        let list: Vec<_> = transcript.iter().collect();
        let units = units(&list);
        let places: Vec<_> = units.iter().map(|unit| (unit.first, unit.end)).collect();
        assert_eq!((&places[..], newest_from(&units, kept)), expected);
    }

    #[test]
    fn a_response_and_its_results_are_one() {
        check(vec![], 1, (&[], 0));
        let talk = || vec![prompt(1, "a"), answer(2, "b"), prompt(3, "c")];
        check(talk(), 1, (&[(0, 1), (1, 2), (2, 3)], 1));
        check(talk(), 0, (&[(0, 1), (1, 2), (2, 3)], 3));
        check(talk(), 2, (&[(0, 1), (1, 2), (2, 3)], 0));
        let work = vec![
            prompt(1, "a"),
            answer(2, "b"),
            calls(3, &[("t1", "Read", "{}")]),
            results(4, &[("t1", "x")]),
            prompt(5, "c"),
        ];
        check(work, 1, (&[(0, 1), (1, 4), (4, 5)], 1));
    }
}
