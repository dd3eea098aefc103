//! Which entry the next one follows: other programs read a conversation from its last entry back to the first.

use std::sync::Arc;

use uuid::Uuid;
use windlass_protocol::{AnswerBlock, MessageId, Record, UserEntry};

use super::field_forms::{Pair, choice, object};

/// How much of the last prompt lists show.
const LAST_PROMPT_CHARS_MAX: usize = 200;

/// The end of the chain of entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chain {
    /// The entry that those of the present request follow.
    base: Option<Uuid>,
    /// What was said since that request went out and still stands, in order.
    standing: Vec<ChainEntry>,
    /// The entries of calls that are not answered.
    asked: Vec<(MessageId, Uuid)>,
    /// The beginning of the last prompt.
    pub(crate) last_prompt: Option<Arc<str>>,
}

object!(Chain { base, standing, asked: Pair, last_prompt });

#[derive(Clone, Debug, PartialEq)]
struct ChainEntry {
    id: MessageId,
    uuid: Uuid,
    link: Link,
}

object!(ChainEntry { id, uuid, link });

/// What an entry is to those that follow it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Link {
    Said,
    Block {
        /// The response it is part of.
        message_id: Arc<str>,
        /// Whether it makes a call.
        is_call: bool,
    },
    Result {
        /// The block that made the call.
        asked_by: MessageId,
    },
}

choice!(Link { "said" = Said, "block" = Block { message_id, is_call = "asks" }, "result" = Result { asked_by } });

impl Chain {
    /// What the next entry follows: the last result of the round, else the last entry.
    pub(crate) fn parent(&self) -> Option<Uuid> {
        let round = self.round();
        let result = round.iter().rfind(|entry| matches!(entry.link, Link::Result { .. }));
        result.or_else(|| self.standing.last()).map(|entry| entry.uuid).or(self.base)
    }

    /// What a block of this response follows: the block before it, whatever results came in between.
    pub(crate) fn parent_of_block(&self, response: &str) -> Option<Uuid> {
        let of_response = |entry: &&ChainEntry| matches!(&entry.link, Link::Block { message_id, .. } if **message_id == *response);
        self.round().iter().rfind(of_response).map(|entry| entry.uuid).or_else(|| self.parent())
    }

    /// The entry of the block that made a call.
    pub(crate) fn asker(&self, asked_by: MessageId) -> Option<Uuid> {
        self.asked.iter().find(|(id, _)| *id == asked_by).map(|(_, uuid)| *uuid)
    }

    /// Adds the entry of a record. Where the conversation begins anew, nothing before it counts.
    pub(crate) fn add_record(&mut self, uuid: Uuid, record: &Record) {
        match record {
            Record::Said(said) => self.add_said(uuid, said),
            Record::Answered(answered) => self.add_answered(uuid, answered),
            Record::Result(result) => self.add(result.id, uuid, Link::Result { asked_by: result.asked_by }),
            _ => self.go_on_from(Some(uuid)),
        }
    }

    /// Adds what was said. The beginning of a prompt is remembered, behind the blocks that the engine put in front.
    pub(crate) fn add_said(&mut self, uuid: Uuid, said: &UserEntry) {
        self.add(said.message.id, uuid, Link::Said);
        let blocks = said.message.blocks.get(said.context..).filter(|_| said.is_prompt()).unwrap_or_default();
        let text = blocks.iter().find_map(|block| block.as_text().filter(|text| !text.trim().is_empty()));
        if let Some(text) = text {
            self.last_prompt =
                Some(text.trim().chars().take(LAST_PROMPT_CHARS_MAX).collect::<String>().into());
        }
    }

    pub(crate) fn add_answered(&mut self, uuid: Uuid, answered: &AnswerBlock) {
        let is_call = answered.block.as_tool_use().is_some();
        self.add(answered.id, uuid, Link::Block { message_id: answered.message_id.clone(), is_call });
    }

    pub(crate) fn add(&mut self, id: MessageId, uuid: Uuid, link: Link) {
        match &link {
            Link::Block { is_call: true, .. } => {
                self.asked.retain(|(asker, _)| *asker != id);
                self.asked.push((id, uuid));
            }
            Link::Result { asked_by } => self.asked.retain(|(asker, _)| asker != asked_by),
            Link::Said | Link::Block { .. } => {}
        }
        self.standing.push(ChainEntry { id, uuid, link });
    }

    /// A request goes out: what stands now is not taken back any more.
    pub(crate) fn end_round(&mut self) {
        self.base = self.parent();
        self.standing.clear();
    }

    pub(crate) fn retract(&mut self, messages: &[MessageId]) {
        self.standing.retain(|entry| !messages.contains(&entry.id));
        self.asked.retain(|(id, _)| !messages.contains(id));
    }

    /// The conversation goes on from this entry.
    pub(crate) fn go_on_from(&mut self, entry: Option<Uuid>) {
        self.base = entry;
        self.standing.clear();
    }

    /// The blocks and results at the end.
    fn round(&self) -> &[ChainEntry] {
        let said = self.standing.iter().rposition(|entry| entry.link == Link::Said);
        &self.standing[said.map_or(0, |place| place + 1)..]
    }
}

#[cfg(test)]
mod tests {
    use super::super::field_forms::{FieldForm as _, FieldValue, PlainForm};
    use super::*;

    /// Plays a list of entries and tells each one's parent. A letter is an entry: `A`… are blocks of one response, `a` is
    /// the result of `A`, `.` is something said, `!` a request, `-A` takes an entry back.
    fn check(entries: &str, expected: &str) {
        let mut chain = Chain::default();
        let name = |uuid: Option<Uuid>| uuid.map_or('-', |uuid| char::from(uuid.as_bytes()[0]));
        let mut parents = String::new();
        let mut letters = entries.bytes();
        while let Some(letter) = letters.next() {
            let (id, uuid) = (MessageId(letter.into()), Uuid::from_bytes([letter; 16]));
            match letter {
                b'!' => chain.end_round(),
                b'-' => chain.retract(&[MessageId(letters.next().unwrap().into())]),
                b'A'..=b'Z' => {
                    parents.push(name(chain.parent_of_block("response")));
                    chain.add(id, uuid, Link::Block { message_id: "response".into(), is_call: true });
                }
                b'a'..=b'z' => {
                    let asked_by = MessageId(letter.to_ascii_uppercase().into());
                    parents.push(name(chain.asker(asked_by)));
                    chain.add(id, uuid, Link::Result { asked_by });
                }
                _ => {
                    parents.push(name(chain.parent()));
                    chain.add(id, uuid, Link::Said);
                }
            }
        }
        assert_eq!(parents, expected, "{entries}");
        let json = serde_json::to_string(&FieldValue::<_, PlainForm>::new(&chain)).unwrap();
        let back: Chain = PlainForm::deserialize(&mut serde_json::Deserializer::from_str(&json)).unwrap();
        assert_eq!(back, chain);
    }

    #[test]
    fn each_entry_follows_the_one_that_other_programs_expect() {
        check(".!A", "-.");
        check(".!ABC!", "-.AB");
        check(".!ABab.", "-.AABb");
        check(".!AaBb.", "-.AABb");
        check(".!AaB.", "-.AAa");
        check(".!Aa!B", "-.Aa");
        check(".!AB-B-A!C", "-.A.");
        check(".!Aa-A-a!C", "-.A.");
        check(".1!A", "-.1");
    }
}
