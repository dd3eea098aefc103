//! Usage and cost in the protocol's words.

use serde::Serialize;
use serde_json::value::RawValue;
use windlass_protocol::{CacheCreation, ModelSpend, ServerToolUse, Usage};

/// Usage with every key hosts expect; none is null.
#[derive(Serialize)]
pub(crate) struct UsageJson<'a> {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation: CacheCreation,
    server_tool_use: ServerToolUse,
    service_tier: &'a str,
    inference_geo: &'static str,
    iterations: Iterations<'a>,
    output_tokens_details: OutputTokensDetails,
    speed: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Iterations<'a> {
    None([u8; 0]),
    Some(&'a RawValue),
}

#[derive(Serialize)]
struct OutputTokensDetails {}

impl<'a> UsageJson<'a> {
    pub(crate) fn new(usage: &'a Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_creation: usage.cache_creation,
            server_tool_use: usage.server_tool_use,
            service_tier: usage.service_tier.as_deref().unwrap_or("standard"),
            inference_geo: "",
            iterations: match &usage.iterations {
                Some(raw) => Iterations::Some(raw),
                None => Iterations::None([]),
            },
            output_tokens_details: OutputTokensDetails {},
            speed: "standard",
        }
    }
}

/// What one model took, of all runs of the session.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelUsageJson {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    web_search_requests: u64,
    /// Null when the price is unknown: zero would be a lie.
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
    context_window: u64,
    max_output_tokens: u32,
    #[serde(rename = "cacheCreationEphemeral5mInputTokens")]
    written_5m: u64,
    #[serde(rename = "cacheCreationEphemeral1hInputTokens")]
    written_1h: u64,
}

impl ModelUsageJson {
    pub(crate) fn new(spend: &ModelSpend) -> Self {
        Self {
            input_tokens: spend.usage.input_tokens,
            output_tokens: spend.usage.output_tokens,
            cache_read_input_tokens: spend.usage.cache_read_input_tokens,
            cache_creation_input_tokens: spend.usage.cache_creation_input_tokens,
            web_search_requests: spend.usage.server_tool_use.web_search_requests,
            cost_usd: spend.cost_usd,
            context_window: spend.window_tokens,
            max_output_tokens: spend.output_tokens_max,
            written_5m: spend.usage.cache_creation.ephemeral_5m_input_tokens,
            written_1h: spend.usage.cache_creation.ephemeral_1h_input_tokens,
        }
    }
}

/// Adds what a run took of one model to what earlier runs took.
pub(crate) fn add_spend(total: &mut ModelSpend, spend: &ModelSpend) {
    total.usage.add(&spend.usage);
    total.cost_usd = total.cost_usd.zip(spend.cost_usd).map(|(a, b)| a + b);
    total.window_tokens = spend.window_tokens;
    total.output_tokens_max = spend.output_tokens_max;
}
