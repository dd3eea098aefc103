//! Tokens, estimated from bytes: how large a request is, and how much of it was there before.

use std::collections::HashMap;

use serde_json::Value;
use windlass_models::UsageSpec;

use crate::binding::unmarked;

/// As for English text and code.
const BYTES_PER_TOKEN: usize = 4;

/// What stands behind the last cache breakpoint of a request.
const FRESH_TOKENS: u64 = 4;

/// The size of a request.
#[derive(Debug)]
pub(crate) struct Counted {
    /// What the model reads, without cache markers.
    text: String,
    /// Its tokens.
    pub(crate) tokens: u64,
}

/// What was sent last, for each model.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    sent: HashMap<String, String>,
}

impl Counted {
    pub(crate) fn of(body: &Value) -> Self {
        let part = |name: &str| unmarked(&body[name]).to_string();
        let text = [part("tools"), part("system"), part("messages")].concat();
        Self { tokens: tokens(text.len()), text }
    }
}

impl Cache {
    /// Fills what a response does not say about its input: what the last request for the same model had in common with this
    /// one was read from the cache, and the rest written to it.
    pub(crate) fn report(&mut self, model: &str, counted: Counted, usage: &mut UsageSpec) {
        let before = self.sent.get(model).map_or("", String::as_str);
        let same = before.bytes().zip(counted.text.bytes()).take_while(|(old, new)| old == new).count();
        let fresh = *usage.input_tokens.get_or_insert(FRESH_TOKENS.min(counted.tokens));
        let rest = counted.tokens.saturating_sub(fresh);
        let read = *usage.cache_read_input_tokens.get_or_insert(tokens(same).min(rest));
        usage.cache_creation_input_tokens.get_or_insert(rest.saturating_sub(read));
        self.sent.insert(model.to_owned(), counted.text);
    }
}

fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}
