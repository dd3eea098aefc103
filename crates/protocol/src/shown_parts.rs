//! Which parts of a message a consumer saw.

use std::collections::BTreeSet;

use crate::{MessageId, Update};

/// Which updates showed which message. A message has the id of its last part, while its blocks and results are shown one by
/// one: a consumer that removes what [`Decision::Snipped`](crate::Decision::Snipped) took out needs the ids of all of them.
#[derive(Clone, Debug, Default)]
pub struct ShownParts {
    parts: Vec<(MessageId, PartOwner)>,
    responses: u32,
}

/// What a part is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartOwner {
    /// The answer of the response with this number.
    Answer(u32),
    /// The results of its calls.
    Results(u32),
    /// A message of its own.
    Itself,
}

impl ShownParts {
    /// Notes what an update shows.
    pub fn note(&mut self, update: &Update) {
        let part = match update {
            Update::Responding { .. } => {
                self.responses = self.responses.saturating_add(1);
                return;
            }
            Update::Retracted { messages, .. } => {
                return self.parts.retain(|(id, _)| !messages.contains(id));
            }
            Update::Block { id, .. } => (*id, PartOwner::Answer(self.responses)),
            Update::ToolResult { id, .. } => (*id, PartOwner::Results(self.responses)),
            Update::UserText { id, .. } => (*id, PartOwner::Itself),
            _ => return,
        };
        self.parts.push(part);
    }

    /// Every part that was shown of these messages, in their order. A message that was not shown here, such as one from before a
    /// session was resumed, is named by its own id.
    pub fn of(&self, messages: &[MessageId]) -> Vec<MessageId> {
        let mut parts: BTreeSet<MessageId> = messages.iter().copied().collect();
        let wholes: Vec<PartOwner> = self
            .parts
            .iter()
            .filter(|(id, whole)| parts.contains(id) && *whole != PartOwner::Itself)
            .map(|(_, whole)| *whole)
            .collect();
        parts.extend(self.parts.iter().filter(|(_, whole)| wholes.contains(whole)).map(|(id, _)| *id));
        parts.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, CallId, RequestId};

    /// A history of updates: `(` begins a response, `b1` shows a block, `r1` a result, `t1` a text, `x1` takes a block back.
    #[track_caller]
    fn check(history: &str, messages: &[u64], expected: &[u64]) {
        let mut shown = ShownParts::default();
        for word in history.split_whitespace() {
            let id = MessageId(word[1..].parse().unwrap_or_default());
            shown.note(&match &word[..1] {
                "(" => Update::Responding {
                    request: RequestId(1),
                    message_id: "m".into(),
                    model: "m".into(),
                    usage: Box::default(),
                },
                "b" => Update::Block { id, index: 0, block: Block::text("x"), is_aborted: false },
                "r" => Update::ToolResult {
                    id,
                    call: CallId(1),
                    name: "t".into(),
                    result: Block::tool_result("t", &[], false),
                    structured: None,
                },
                "t" => Update::UserText { id, blocks: vec![], is_synthetic: true, prompts: vec![] },
                _ => Update::Retracted { messages: vec![id], calls: vec![] },
            });
        }
        let ids = |list: &[u64]| list.iter().map(|id| MessageId(*id)).collect::<Vec<_>>();
        assert_eq!(shown.of(&ids(messages)), ids(expected), "{history}");
    }

    #[test]
    fn a_message_is_named_by_all_the_parts_that_were_shown_of_it() {
        check("( b2 b3 r4 r5 t6 ( b7 b8 r9", &[3, 5], &[2, 3, 4, 5]);
        check("( b2 b3 r4 r5 t6 ( b7 b8 r9", &[6], &[6]);
        // A result may be shown while the answer goes on.
        check("( b2 r3 b4 r5", &[4], &[2, 4]);
        check("( b2 r3 b4 r5", &[5], &[3, 5]);
        check("( b2 x2 ( b3 b4", &[4], &[3, 4]);
        check("( b9", &[1], &[1]);
    }
}
