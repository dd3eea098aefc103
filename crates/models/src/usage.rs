//! Token usage, and what a provider did to the request. Worth less than the answer it comes with: what is not as it
//! should be is ignored. Counts are cumulative, so later values take the place of earlier ones.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{ModelNote, RawValueEq, Usage};

/// More than any real list of iterations has; they are shown again with every message.
const ITERATIONS_BYTES_MAX: usize = 64 * 1024;

/// The usage of one event, its values not looked at yet.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UsageFields<'a> {
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    output_tokens: Option<&'a RawValue>,
    cache_creation_input_tokens: Option<&'a RawValue>,
    cache_read_input_tokens: Option<&'a RawValue>,
    cache_creation: Option<&'a RawValue>,
    server_tool_use: Option<&'a RawValue>,
    service_tier: Option<&'a RawValue>,
    iterations: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CacheCreationFields<'a> {
    #[serde(borrow)]
    ephemeral_5m_input_tokens: Option<&'a RawValue>,
    ephemeral_1h_input_tokens: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServerToolUseFields<'a> {
    #[serde(borrow)]
    web_search_requests: Option<&'a RawValue>,
    web_fetch_requests: Option<&'a RawValue>,
}

/// Puts every value that `said` holds in the place of the former one.
pub(crate) fn overwrite(usage: &mut Usage, said: Option<&RawValue>) {
    let fields: UsageFields<'_> = read(said).unwrap_or_default();
    set(&mut usage.input_tokens, fields.input_tokens);
    set(&mut usage.output_tokens, fields.output_tokens);
    set(&mut usage.cache_creation_input_tokens, fields.cache_creation_input_tokens);
    set(&mut usage.cache_read_input_tokens, fields.cache_read_input_tokens);
    let split: CacheCreationFields<'_> = read(fields.cache_creation).unwrap_or_default();
    set(&mut usage.cache_creation.ephemeral_5m_input_tokens, split.ephemeral_5m_input_tokens);
    set(&mut usage.cache_creation.ephemeral_1h_input_tokens, split.ephemeral_1h_input_tokens);
    let tools: ServerToolUseFields<'_> = read(fields.server_tool_use).unwrap_or_default();
    set(&mut usage.server_tool_use.web_search_requests, tools.web_search_requests);
    set(&mut usage.server_tool_use.web_fetch_requests, tools.web_fetch_requests);
    if let Some(tier) = read(fields.service_tier) {
        usage.service_tier = Some(tier);
    }
    let is_list = |raw: &&RawValue| raw.get().starts_with('[') && raw.get().len() <= ITERATIONS_BYTES_MAX;
    if let Some(iterations) = fields.iterations.filter(is_list) {
        usage.iterations = Some(Arc::new(RawValueEq(iterations.to_owned())));
    }
}

/// The value of a field, if it is there and as it should be.
fn read<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(value?.get()).ok()
}

/// Gateways write some counts as `12.0` or as a negative "unknown"; the latter counts as zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
fn set(target: &mut u64, value: Option<&RawValue>) {
    if let Some(count) = read::<u64>(value).or_else(|| read::<f64>(value).map(|count| count as u64)) {
        *target = count;
    }
}

#[derive(Deserialize)]
struct Management {
    #[serde(default)]
    applied_edits: Vec<AppliedEdit>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AppliedEdit {
    #[serde(rename = "cleared_tool_uses")]
    tool_uses: u32,
    #[serde(rename = "cleared_thinking_turns")]
    thinking_turns: u32,
    #[serde(rename = "cleared_input_tokens")]
    input_tokens: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Transformation {
    #[serde(rename = "type")]
    kind: String,
    reason: String,
}

#[derive(Deserialize)]
struct Details {
    category: Option<String>,
    explanation: Option<String>,
}

/// What the provider cleared from its copy of the transcript.
pub(crate) fn clearing_note(management: Option<&RawValue>) -> Option<ModelNote> {
    let edits = read::<Management>(management)?.applied_edits;
    let sum = edits.into_iter().reduce(|sum, edit| AppliedEdit {
        tool_uses: sum.tool_uses.saturating_add(edit.tool_uses),
        thinking_turns: sum.thinking_turns.saturating_add(edit.thinking_turns),
        input_tokens: sum.input_tokens.saturating_add(edit.input_tokens),
    })?;
    let AppliedEdit { tool_uses: tool_results, thinking_turns, input_tokens: tokens } = sum;
    let is_nothing = tool_results == 0 && thinking_turns == 0 && tokens == 0;
    (!is_nothing).then_some(ModelNote::Cleared { tool_results, thinking_turns, tokens })
}

/// What the provider left out of the request, one note for each reason.
pub(crate) fn dropped_thinking(transformations: Option<&RawValue>) -> Vec<ModelNote> {
    let list: Vec<Transformation> = read(transformations).unwrap_or_default();
    let mut reasons: Vec<(String, u32)> = Vec::new();
    for entry in list.into_iter().filter(|entry| entry.kind == "thinking_dropped") {
        match reasons.iter_mut().find(|(reason, _)| *reason == entry.reason) {
            Some((_, blocks)) => *blocks += 1,
            None => reasons.push((entry.reason, 1)),
        }
    }
    let note = |(reason, blocks): (String, u32)| ModelNote::ThinkingDropped { blocks, reason: reason.into() };
    reasons.into_iter().map(note).collect()
}

/// Why the model declined.
pub(crate) fn refusal(details: Option<&RawValue>) -> Option<ModelNote> {
    let Details { category, explanation } = read(details)?;
    if category.is_none() && explanation.is_none() {
        return None;
    }
    Some(ModelNote::Refusal { category: category.map(Into::into), explanation: explanation.map(Into::into) })
}
