//! Reads token usage: counts are cumulative, so later values take the place of earlier ones.
//!
//! Usage is worth less than the response it comes with: what is not as it should be says nothing.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{RawValueEq, Usage};

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
pub(crate) fn read<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Option<T> {
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
