//! Tokens, estimated from bytes: how large a request is, and how much of it was there before.

use std::collections::HashMap;

use serde_json::{Value, json};
use windlass_models::{ClearedSpec, UsageSpec};

use crate::binding::remove_cache_marks;

/// As for English text and code.
const BYTES_PER_TOKEN: usize = 4;

/// What stands behind the last cache breakpoint of a request.
const FRESH_TOKENS: u64 = 4;

/// The size of a request.
#[derive(Debug)]
pub(crate) struct RequestSize {
    /// What the model reads, without cache markers.
    text: String,
    /// How much of it, in bytes, is kept whatever the settings of a request are: tools and system prompt.
    before_messages: usize,
    /// What else the cache of messages depends on.
    settings: String,
    /// Its tokens.
    pub(crate) tokens: u64,
    /// What was cleared of it on the server, because the request asked for that.
    pub(crate) cleared: Option<ClearedSpec>,
}

/// What was sent last, for each model.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    sent: HashMap<String, (String, String)>,
}

impl RequestSize {
    pub(crate) fn of(body: &Value) -> Self {
        let whole = Self::plain(body, None);
        let edits = body["context_management"]["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
        let wanted = |edit: &&Value| {
            edit["type"] == "clear_tool_uses_20250919"
                && edit["trigger"]["value"].as_u64().is_none_or(|trigger| whole.tokens >= trigger)
        };
        let Some(edit) = edits.iter().find(wanted) else { return whole };
        let mut left = body.clone();
        let tool_results = clear_results(&mut left, edit["keep"]["value"].as_u64().unwrap_or(3));
        let mut after = Self::plain(&left, None);
        let tokens = whole.tokens.saturating_sub(after.tokens);
        if tool_results == 0 || tokens < edit["clear_at_least"]["value"].as_u64().unwrap_or(0) {
            return whole;
        }
        after.cleared = Some(ClearedSpec { tool_results, thinking_turns: 0, tokens });
        after
    }

    fn plain(body: &Value, cleared: Option<ClearedSpec>) -> Self {
        let text = prompt_text(body);
        let before_messages = text.len() - remove_cache_marks(&body["messages"]).to_string().len();
        let settings = ["thinking", "output_config", "context_management"].map(|name| body[name].to_string());
        Self { tokens: tokens(text.len()), text, before_messages, settings: settings.concat(), cleared }
    }
}

/// What the model reads of a request, without cache markers.
pub(crate) fn prompt_text(body: &Value) -> String {
    let part = |name: &str| remove_cache_marks(&body[name]).to_string();
    [part("tools"), part("system"), part("messages")].concat()
}

/// Clears all results but so many of the newest, and says how many that were.
fn clear_results(body: &mut Value, keep: u64) -> u32 {
    let messages = body["messages"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    let blocks = messages.iter_mut().filter_map(|message| message["content"].as_array_mut()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let old = results.rev().skip(usize::try_from(keep).unwrap_or(usize::MAX));
    let mut cleared = 0;
    for result in old {
        result["content"] = json!("[cleared to save context]");
        cleared += 1;
    }
    cleared
}

impl Cache {
    /// Fills what a response does not say about its input: what the last request for the same model had in common with this
    /// one was read from the cache, and the rest written to it. Messages are found there only by a request with the same
    /// settings.
    pub(crate) fn report(&mut self, model: &str, counted: RequestSize, usage: &mut UsageSpec) {
        let (before, settings) = self.sent.get(model).map_or(("", ""), |(text, settings)| (text, settings));
        let most = if settings == counted.settings { counted.text.len() } else { counted.before_messages };
        let pairs = before.bytes().zip(counted.text.bytes()).take(most);
        let same = pairs.take_while(|(old, new)| old == new).count();
        let fresh = *usage.input_tokens.get_or_insert(FRESH_TOKENS.min(counted.tokens));
        let rest = counted.tokens.saturating_sub(fresh);
        let read = *usage.cache_read_input_tokens.get_or_insert(tokens(same).min(rest));
        usage.cache_creation_input_tokens.get_or_insert(rest.saturating_sub(read));
        self.sent.insert(model.to_owned(), (counted.text, counted.settings));
    }
}

fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}
