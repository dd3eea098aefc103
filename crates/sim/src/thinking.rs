//! Thinking as the provider sees it: whose it is, and what stood before it when it was made.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use windlass_core::Config;
use windlass_protocol::{Block, Message, ModelCard, ModelRequest, Origin, RequestThinking, Role, Transcript};

/// What the provider remembers of every thinking block it has given out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    made: BTreeMap<Box<str>, BoundThinking>,
    /// The request that is out and what came of its response so far.
    answering: Option<(Arc<ModelRequest>, Vec<Block>)>,
}

#[derive(Clone, Debug)]
struct BoundThinking {
    model: Arc<str>,
    before: Prefix,
}

/// Everything before a block, as a hash. Neighbouring messages of one role are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Prefix {
    hash: u64,
    is_answer_last: bool,
}

impl Prefix {
    fn and(self, role: Role, block: &Block) -> Self {
        let is_answer_last = role == Role::Assistant;
        let mut hasher = DefaultHasher::new();
        self.hash.hash(&mut hasher);
        (self.is_answer_last != is_answer_last).hash(&mut hasher);
        block.json().hash(&mut hasher);
        Self { hash: hasher.finish(), is_answer_last }
    }
}

impl Bindings {
    /// The thinking of a session that is resumed was right when it was made.
    pub(crate) fn of(messages: &Transcript) -> Self {
        let mut bindings = Self::default();
        let mut prefix = Prefix::default();
        for message in messages.iter() {
            for block in &message.blocks {
                if let (true, Origin::Model(model)) = (block.is_thinking(), &message.origin) {
                    let made = BoundThinking { model: model.clone(), before: prefix };
                    bindings.made.insert(block.json().into(), made);
                }
                prefix = prefix.and(message.role, block);
            }
        }
        bindings
    }

    /// A request goes out: what its response says stands behind it.
    pub(crate) fn on_request(&mut self, body: &Arc<ModelRequest>) {
        self.answering = Some((body.clone(), Vec::new()));
    }

    /// The response says one block more.
    pub(crate) fn on_block(&mut self, block: &Block) {
        let Some((body, said)) = &mut self.answering else { return };
        if block.is_thinking() {
            let sent = body
                .transcript
                .iter()
                .flat_map(|message| message.blocks.iter().map(|block| (message.role, block)));
            let said = said.iter().map(|block| (Role::Assistant, block));
            let before =
                sent.chain(said).fold(Prefix::default(), |prefix, (role, block)| prefix.and(role, block));
            self.made.insert(block.json().into(), BoundThinking { model: body.model.clone(), before });
        }
        said.push(block.clone());
    }

    /// Whether the provider takes the thinking of a request: only to the model that made it, only with thinking on, and for
    /// models that bind it only behind the very prefix it was made for.
    pub(crate) fn check(&self, body: &ModelRequest, config: &Config) -> Result<(), String> {
        let card = card_of(&body.model, config);
        let is_on = is_thinking_on(body.thinking, card);
        let mut prefix = Prefix::default();
        let blocks = body
            .transcript
            .iter()
            .flat_map(|message| message.blocks.iter().map(move |block| (message, block)));
        for (message, block) in blocks {
            if block.is_thinking() {
                let made = self.check_maker(message, block, body)?;
                if !is_on {
                    return Err(format!("thinking is sent with thinking off: {block:?}"));
                }
                if card.is_thinking_bound && made.before != prefix {
                    return Err(format!("the prefix of bound thinking changed: {block:?}"));
                }
            }
            if card.is_thinking_bound {
                prefix = prefix.and(message.role, block);
            }
        }
        Ok(())
    }

    fn check_maker(
        &self,
        message: &Message,
        block: &Block,
        body: &ModelRequest,
    ) -> Result<&BoundThinking, String> {
        let made = self.made.get(block.json()).ok_or_else(|| format!("nobody thought {block:?}"))?;
        if made.model != body.model || message.origin != Origin::Model(body.model.clone()) {
            return Err(format!("thinking of {} is sent to {}", made.model, body.model));
        }
        Ok(made)
    }
}

/// The card of a model of this configuration.
pub(crate) fn card_of<'a>(model: &str, config: &'a Config) -> &'a ModelCard {
    config.fallbacks.iter().find(|card| *card.id == *model).unwrap_or(&config.model)
}

/// Whether the model thinks; one that nobody knows and that is told nothing may.
pub(crate) fn is_thinking_on(thinking: RequestThinking, card: &ModelCard) -> bool {
    match thinking {
        RequestThinking::Disabled => false,
        RequestThinking::Adaptive { .. } | RequestThinking::Budgeted { .. } => true,
        RequestThinking::Unsaid => card.thinking.is_on_by_default || !card.is_known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene;
    use windlass_protocol::MessageId;

    fn prompt(text: &str) -> Arc<Message> {
        Message::user(MessageId(1), Origin::Prompt, vec![Block::text(text)]).into()
    }

    fn request(messages: Vec<Arc<Message>>, model: &str, thinking: RequestThinking) -> ModelRequest {
        ModelRequest {
            model: model.into(),
            transcript: messages.into_iter().collect(),
            thinking,
            ..ModelRequest::default()
        }
    }

    /// Sends `first`, thinks, and then sends a second request.
    #[track_caller]
    fn check(first: &str, second: &str, model: &str, thinking: RequestThinking, expected: &str) {
        let card = |id| ModelCard { is_thinking_bound: true, ..ModelCard::unknown(id) };
        let config = Config { model: card("a"), fallbacks: [card("b")].into(), ..Config::default() };
        let thought = scene::thinking("s").unwrap();
        let mut bindings = Bindings::default();
        bindings.on_request(&request(vec![prompt(first)], "a", RequestThinking::Unsaid).into());
        bindings.on_block(&thought);
        let answer = Message::assistant(MessageId(2), "a".into(), vec![thought, Block::text("said")]);
        let next = request(vec![prompt(second), answer.into(), prompt("next")], model, thinking);
        let found = bindings.check(&next, &config).err().unwrap_or_default();
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}");
    }

    #[test]
    fn thinking_is_taken_only_as_it_was_given() {
        check("hi", "hi", "a", RequestThinking::Unsaid, "");
        check("hi", "ho", "a", RequestThinking::Unsaid, "prefix of bound thinking changed");
        check("hi", "hi", "b", RequestThinking::Unsaid, "is sent to b");
        check("hi", "hi", "a", RequestThinking::Disabled, "with thinking off");
    }
}
