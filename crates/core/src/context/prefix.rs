//! Prefix watch: when the provider's cache held far less than it should have, say which part of the request is to blame.

use std::sync::Arc;

use windlass_protocol::{ModelRequest, PrefixPart, SentRequest, Transcript, Update, Usage};

/// A request that went out.
#[derive(Clone, Debug)]
pub(crate) struct SentPrefix {
    body: Arc<ModelRequest>,
    at_ms: u64,
    has_thinking: bool,
    /// What the provider's cache holds of it, once its response said so.
    cached_tokens: Option<u64>,
    /// What it was said to hold of the request before, which this one begins with.
    cached_before: u64,
}

/// The shortest time a provider keeps a prefix.
const KEPT_MS: u64 = 5 * 60 * 1_000;
/// Shorter prefixes may not be kept at all.
const KEPT_TOKENS_MIN: u64 = 4_096;

impl SentPrefix {
    /// A request that begins with the one before.
    pub(crate) fn new(
        body: Arc<ModelRequest>,
        has_thinking: bool,
        at_ms: u64,
        before: Option<&Self>,
    ) -> Self {
        let cached_before = before.map_or(0, |before| before.cached_at(at_ms));
        Self { body, at_ms, has_thinking, cached_tokens: None, cached_before }
    }

    /// How many tokens of it the provider's cache holds at this time, as far as is known.
    pub(crate) fn cached_at(&self, at_ms: u64) -> u64 {
        let is_kept = at_ms.saturating_sub(self.at_ms) < KEPT_MS;
        if is_kept { self.cached_tokens.unwrap_or(self.cached_before) } else { 0 }
    }

    /// What a session remembers of it.
    pub(crate) fn sent_request(&self) -> SentRequest {
        let (messages, model) = (self.body.transcript.len(), self.body.model.clone());
        SentRequest { messages, model, has_thinking: self.has_thinking }
    }

    /// What a session remembered. How much of it a cache holds after a restart is anybody's guess.
    pub(crate) fn restore(memory: &SentRequest, messages: &Transcript) -> Self {
        let transcript = messages.prefix(memory.messages);
        let body =
            Arc::new(ModelRequest { model: memory.model.clone(), transcript, ..ModelRequest::default() });
        Self::new(body, memory.has_thinking, 0, None)
    }

    /// The last message of the request: the provider's cache ends there.
    pub(crate) fn last_message(&self) -> Option<usize> {
        self.body.transcript.len().checked_sub(1)
    }

    /// Whether it went to this model, with thinking on or off.
    pub(crate) fn is_for(&self, model: &str, has_thinking: bool) -> bool {
        *self.body.model == *model && self.has_thinking == has_thinking
    }

    /// Notes what the response says about the cache.
    pub(crate) fn note_cache(&mut self, usage: &Usage) {
        self.cached_tokens =
            Some(usage.cache_read_input_tokens.saturating_add(usage.cache_creation_input_tokens));
    }

    /// The miss, if the cache should have held this request and held less than half of it.
    pub(crate) fn find_miss(&self, next: &Self, usage: &Usage) -> Option<Update> {
        let expected = self.cached_tokens.filter(|tokens| *tokens >= KEPT_TOKENS_MIN)?;
        let read = usage.cache_read_input_tokens;
        let is_kept = next.at_ms.saturating_sub(self.at_ms) < KEPT_MS;
        let is_missed = read.saturating_mul(2) < expected;
        (is_kept && is_missed).then(|| Update::CacheMissed { expected, read, part: self.differs_at(next) })
    }

    /// The first part in which the next request differs from this one, in the order of the cache.
    fn differs_at(&self, next: &Self) -> Option<PrefixPart> {
        let (old, new) = (&*self.body, &*next.body);
        if old.model != new.model {
            return Some(PrefixPart::Model);
        }
        if !Arc::ptr_eq(&old.tools, &new.tools) {
            return Some(PrefixPart::Tools);
        }
        if old.system != new.system {
            return Some(PrefixPart::System);
        }
        if (old.thinking, old.effort, old.task_budget) != (new.thinking, new.effort, new.task_budget) {
            return Some(PrefixPart::Settings);
        }
        let mut after = new.transcript.iter();
        old.transcript.iter().enumerate().find_map(|(index, message)| {
            let same =
                after.next().is_some_and(|next| Arc::ptr_eq(message, next) || message.blocks == next.blocks);
            (!same).then_some(PrefixPart::Message { index, id: message.id })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Block, Message, MessageId, Origin, Transcript};

    fn body(texts: &[&str]) -> ModelRequest {
        let message = |(n, text): (u64, &&str)| {
            Arc::new(Message::user(MessageId(n), Origin::Prompt, vec![Block::text(text)]))
        };
        let transcript: Transcript = (1..).zip(texts).map(message).collect();
        ModelRequest { model: "m".into(), transcript, ..ModelRequest::default() }
    }

    fn usage(read: u64, written: u64) -> Usage {
        Usage { cache_read_input_tokens: read, cache_creation_input_tokens: written, ..Usage::default() }
    }

    /// What is said about a miss; nothing if there is none.
    #[track_caller]
    fn check(before: ModelRequest, after: ModelRequest, read: u64, expected: &str) {
        let tools = before.tools.clone();
        let same_tools = after.tools.is_empty();
        let mut sent = SentPrefix::new(Arc::new(before), true, 0, None);
        sent.note_cache(&usage(9_000, 1_000));
        let after = if same_tools { ModelRequest { tools, ..after } } else { after };
        let next = SentPrefix::new(Arc::new(after), true, 1_000, None);
        let seen = match sent.find_miss(&next, &usage(read, 0)) {
            Some(Update::CacheMissed { part: None, .. }) => "nothing differs".to_owned(),
            Some(Update::CacheMissed { part: Some(PrefixPart::Message { index, id }), .. }) => {
                format!("{index} {id:?}")
            }
            Some(Update::CacheMissed { part: Some(part), .. }) => format!("{part:?}"),
            _ => String::new(),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_miss_names_the_first_part_that_differs() {
        let (two, three) = (|| body(&["a", "b"]), || body(&["a", "b", "c"]));
        check(two(), three(), 10_000, "");
        check(two(), three(), 5_000, "");
        check(two(), three(), 4_999, "nothing differs");
        check(two(), ModelRequest { model: "other".into(), ..three() }, 0, "Model");
        check(two(), ModelRequest { system: "new".into(), ..three() }, 0, "System");
        let harder = ModelRequest { effort: Some(windlass_protocol::Effort::Max), ..three() };
        check(two(), harder, 0, "Settings");
        check(two(), body(&["a", "B", "c"]), 0, "1 MessageId(2)");
        check(two(), body(&["a"]), 0, "1 MessageId(2)");
    }

    #[test]
    fn what_the_provider_need_not_keep_is_no_miss() {
        let mut short = SentPrefix::new(Arc::new(body(&["a"])), true, 0, None);
        short.note_cache(&usage(0, 2_000));
        assert!(
            short
                .find_miss(&SentPrefix::new(Arc::new(body(&["a", "b"])), true, 1, None), &usage(0, 0))
                .is_none()
        );
        let mut old = SentPrefix::new(Arc::new(body(&["a"])), true, 0, None);
        old.note_cache(&usage(0, 20_000));
        let next = SentPrefix::new(Arc::new(body(&["a", "b"])), true, KEPT_MS, None);
        assert!(old.find_miss(&next, &usage(0, 0)).is_none());
        let unanswered = SentPrefix::new(Arc::new(body(&["a"])), true, 0, None);
        assert!(unanswered.find_miss(&next, &usage(0, 0)).is_none());
    }
}
