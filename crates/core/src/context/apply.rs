//! What a decision makes of a transcript: the one place where layers change messages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use windlass_protocol::{
    Block, Collapse, Compaction, Decision, Message, MessageId, Record, StoredResult, Transcript, Update,
};

use super::results::answered_call;
use crate::step::Cx;

impl Cx<'_> {
    /// Changes the transcript by a decision, and records it.
    pub(crate) fn change(&mut self, decision: Decision) {
        let carry = &mut self.state.carry;
        let after = apply(&decision, &carry.messages);
        // What is on screen no longer is, so a file that is read again must be shown again.
        carry.tools.files.forget_shown();
        if let Decision::Stored(_) = decision {
            // Only results that no request has carried yet: no prefix changes.
            carry.messages = after;
        } else {
            carry.tokens.rewritten(&carry.messages, &after, self.config);
            carry.compactions.rewritten_at_tokens = Some(self.state.ledger.run_tokens);
            self.rewrite(after);
        }
        let carry = &mut self.state.carry;
        carry.staged.retain_in(&carry.messages);
        self.persist(Record::Decided(decision.clone()));
        self.emit(Update::Decided(decision));
    }
}

/// The transcript after a decision. Messages that do not change are the same as before, and so is their JSON: what was
/// said and what was decided, in their order, always give the same transcript.
pub fn apply(decision: &Decision, before: &Transcript) -> Transcript {
    match decision {
        Decision::Stored(results) => with_previews(before, results),
        Decision::Snipped { messages, unbound_from, .. } => {
            let kept = remove_messages(before, messages);
            without_thinking_from(&kept, *unbound_from)
        }
        Decision::Cleared { results, unbound_from, .. } => {
            let results: BTreeMap<&str, &Block> =
                results.iter().map(|(call, block)| (&**call, block)).collect();
            let replaced =
                rebuild(before, |message| Some(with_new_results(message, |id| results.get(id).copied())));
            without_thinking_from(&replaced, *unbound_from)
        }
        Decision::Staged(_) => before.clone(),
        Decision::Collapsed { spans, unbound_from, .. } => {
            let collapsed = spans.iter().fold(before.clone(), |messages, span| collapse(&messages, span));
            without_thinking_from(&collapsed, *unbound_from)
        }
        Decision::Compacted(compaction) => compact(before, compaction),
        Decision::MediaStripped(messages) => rebuild(before, |old| {
            let new = messages.iter().find(|new| (new.id, new.role) == (old.id, old.role));
            Some(new.unwrap_or(old).clone())
        }),
        Decision::ThinkingStripped(messages) => rebuild(before, |message| {
            if messages.contains(&message.id) { without_thinking(message) } else { Some(message.clone()) }
        }),
    }
}

/// A message without its thinking, the same if it has none; nothing if it has nothing else.
pub(crate) fn without_thinking(message: &Arc<Message>) -> Option<Arc<Message>> {
    if !message.thinks() {
        return Some(message.clone());
    }
    let rest: Vec<Block> = message.blocks.iter().filter(|block| !block.is_thinking()).cloned().collect();
    (!rest.is_empty()).then(|| Arc::new(message.with_blocks(rest)))
}

/// The first message that stays from this place on whose thinking was bound to what changed there.
pub(crate) fn bound_after(
    messages: &Transcript,
    place: usize,
    is_gone: impl Fn(usize) -> bool,
) -> Option<MessageId> {
    let mut rest = messages.iter().enumerate().skip(place);
    let bound = rest.find(|(place, message)| !is_gone(*place) && message.thinks());
    bound.map(|(_, message)| message.id)
}

/// The place of a span in a transcript, if it is still there.
pub(crate) fn place_of(span: &Collapse, messages: &Transcript) -> Option<Range<usize>> {
    let first = messages.iter().position(|message| message.id == span.first)?;
    let behind = messages.iter().rev().position(|message| message.id == span.last)?;
    let end = messages.len() - behind;
    (first < end).then_some(first..end)
}

/// Rebuilds a transcript from the first message that changes on; `None` leaves a message out.
fn rebuild(before: &Transcript, change: impl Fn(&Arc<Message>) -> Option<Arc<Message>>) -> Transcript {
    rebuild_from(before, 0, change)
}

fn rebuild_from(
    before: &Transcript,
    from: usize,
    change: impl Fn(&Arc<Message>) -> Option<Arc<Message>>,
) -> Transcript {
    let mut old: Vec<&Arc<Message>> = before.iter().rev().take(before.len() - from).collect();
    old.reverse();
    let new: Vec<Option<Arc<Message>>> = old.iter().map(|message| change(message)).collect();
    let is_same = |(old, new): &(&&Arc<Message>, &Option<Arc<Message>>)| {
        new.as_ref().is_some_and(|new| Arc::ptr_eq(old, new))
    };
    let same = old.iter().zip(&new).take_while(is_same).count();
    let mut after = before.prefix(from + same);
    after.extend(new.into_iter().skip(same).flatten());
    after
}

/// Results that go to files are among the newest messages: older ones are not looked at.
fn with_previews(before: &Transcript, results: &[StoredResult]) -> Transcript {
    let mut open: BTreeSet<&str> = results.iter().map(|stored| &*stored.tool_use_id).collect();
    let mut from = before.len();
    for message in before.iter().rev().take_while(|_| !open.is_empty()).collect::<Vec<_>>() {
        from -= 1;
        for (id, _) in message.blocks.iter().filter_map(answered_call) {
            open.remove(&**id);
        }
    }
    let preview =
        |id: &str| results.iter().find(|stored| *stored.tool_use_id == *id).map(|stored| &stored.preview);
    rebuild_from(before, from, |message| Some(with_new_results(message, preview)))
}

fn with_new_results<'a>(message: &Arc<Message>, new: impl Fn(&str) -> Option<&'a Block>) -> Arc<Message> {
    let new = |block: &Block| answered_call(block).and_then(|(id, _)| new(id));
    if !message.blocks.iter().any(|block| new(block).is_some()) {
        return message.clone();
    }
    let blocks = message.blocks.iter().map(|block| new(block).unwrap_or(block).clone()).collect();
    Arc::new(message.with_blocks(blocks))
}

fn remove_messages(before: &Transcript, gone: &[MessageId]) -> Transcript {
    let gone: BTreeSet<MessageId> = gone.iter().copied().collect();
    rebuild(before, |message| (!gone.contains(&message.id)).then(|| message.clone()))
}

fn without_thinking_from(before: &Transcript, from: Option<MessageId>) -> Transcript {
    let Some(from) = from.and_then(|id| before.iter().position(|message| message.id == id)) else {
        return before.clone();
    };
    rebuild_from(before, from, without_thinking)
}

fn collapse(before: &Transcript, span: &Collapse) -> Transcript {
    let Some(place) = place_of(span, before) else { return before.clone() };
    let mut after = before.prefix(place.start);
    after.push(span.summary.clone());
    after.extend(before.iter().skip(place.end).cloned());
    after
}

pub(super) fn compact(before: &Transcript, compaction: &Compaction) -> Transcript {
    let tail = compaction.tail.and_then(|id| before.iter().position(|message| message.id == id));
    let tail = before.iter().skip(tail.unwrap_or(before.len()));
    let tail = tail.filter_map(|message| {
        if compaction.is_unbound { without_thinking(message) } else { Some(message.clone()) }
    });
    std::iter::once(compaction.boundary.clone()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::fixture::{answer, calls, ids, prompt, results, shared_prefix, transcript, user};
    use windlass_protocol::{CompactTrigger, Origin};

    fn work() -> Transcript {
        transcript(vec![
            prompt(1, "do it"),
            calls(2, &[("t1", "Read", "{}"), ("t2", "Bash", "{}")]),
            results(3, &[("t1", "one"), ("t2", "two")]),
            calls(4, &[("t3", "Read", "{}")]),
            results(5, &[("t3", "three")]),
            answer(6, "done"),
        ])
    }

    fn has_thinking(messages: &Transcript) -> Vec<u64> {
        let thinking = messages.iter().filter(|message| message.blocks.iter().any(Block::is_thinking));
        thinking.map(|message| message.id.0).collect()
    }

    /// What is left, how much of the start is untouched, and where thinking is left.
    #[track_caller]
    fn check(decision: &Decision, left: &[u64], untouched: usize, thinking: &[u64]) {
        let before = work();
        let after = apply(decision, &before);
        assert_eq!(ids(&after), left);
        assert_eq!(shared_prefix(&before, &after), untouched);
        assert_eq!(has_thinking(&after), thinking);
        let rebuilt: Transcript = after.iter().cloned().collect();
        assert_eq!(after.to_json(), rebuilt.to_json());
    }

    #[test]
    fn only_what_a_decision_is_about_changes() {
        let block = |id: &str| Block::tool_result(id, &[Block::text("short")], false);
        let stored =
            |id: &str| StoredResult { tool_use_id: id.into(), path: "/f".into(), preview: block(id) };
        check(&Decision::Stored(vec![stored("t3")]), &[1, 2, 3, 4, 5, 6], 4, &[2, 4]);
        check(&Decision::Stored(vec![stored("t2"), stored("t3")]), &[1, 2, 3, 4, 5, 6], 2, &[2, 4]);
        check(&Decision::Stored(vec![stored("t9")]), &[1, 2, 3, 4, 5, 6], 6, &[2, 4]);
        let id = |id| MessageId(id);
        let snipped = |messages: &[u64], unbound: Option<u64>| Decision::Snipped {
            messages: messages.iter().copied().map(MessageId).collect(),
            tokens: 1,
            unbound_from: unbound.map(MessageId),
        };
        check(&snipped(&[2, 3], None), &[1, 4, 5, 6], 1, &[4]);
        check(&snipped(&[2, 3], Some(4)), &[1, 4, 5, 6], 1, &[]);
        check(&snipped(&[99], Some(98)), &[1, 2, 3, 4, 5, 6], 6, &[2, 4]);
        let cleared = |calls: &[&str], unbound_from| Decision::Cleared {
            results: calls.iter().map(|call| ((*call).into(), block(call))).collect(),
            tokens: 1,
            unbound_from,
        };
        check(&cleared(&["t1"], None), &[1, 2, 3, 4, 5, 6], 2, &[2, 4]);
        check(&cleared(&["t1"], Some(id(4))), &[1, 2, 3, 4, 5, 6], 2, &[2]);
        let summary = Arc::new(user(9, Origin::Collapsed, "sum"));
        let span = |first, last| Collapse { first: id(first), last: id(last), summary: summary.clone() };
        check(&Decision::Staged(span(2, 3)), &[1, 2, 3, 4, 5, 6], 6, &[2, 4]);
        let collapsed =
            |span, unbound_from| Decision::Collapsed { spans: vec![span], tokens: 1, unbound_from };
        check(&collapsed(span(2, 3), None), &[1, 9, 4, 5, 6], 1, &[4]);
        check(&collapsed(span(2, 5), Some(id(4))), &[1, 9, 6], 1, &[]);
        check(&collapsed(span(3, 2), None), &[1, 2, 3, 4, 5, 6], 6, &[2, 4]);
        check(&Decision::ThinkingStripped(vec![id(4)]), &[1, 2, 3, 4, 5, 6], 3, &[2]);
        let stripped = Decision::MediaStripped(vec![Arc::new(results(5, &[("t3", "stub")]))]);
        check(&stripped, &[1, 2, 3, 4, 5, 6], 4, &[2, 4]);
    }

    #[test]
    fn a_compaction_leaves_the_boundary_and_the_tail() {
        let compacted = |tail: Option<u64>, is_unbound| {
            Decision::Compacted(Box::new(Compaction {
                trigger: CompactTrigger::Auto,
                boundary: Arc::new(user(9, Origin::Boundary, "sum")),
                tail: tail.map(MessageId),
                is_unbound,
                is_mechanical: false,
                tokens_before: 2,
                tokens_after: 1,
                duration_ms: 0,
            }))
        };
        check(&compacted(Some(4), false), &[9, 4, 5, 6], 0, &[4]);
        check(&compacted(Some(4), true), &[9, 4, 5, 6], 0, &[]);
        check(&compacted(None, false), &[9], 0, &[]);
    }

    #[test]
    fn a_message_of_nothing_but_thinking_goes_with_it() {
        let before = transcript(vec![prompt(1, "a"), calls(2, &[]), prompt(3, "b")]);
        let after = apply(&Decision::ThinkingStripped(vec![MessageId(2)]), &before);
        assert_eq!(ids(&after), [1, 3]);
    }
}
