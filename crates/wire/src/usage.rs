//! Usage and cost in the protocol's words.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
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
                Some(raw) => Iterations::Some(&raw.0),
                None => Iterations::None([]),
            },
            output_tokens_details: OutputTokensDetails {},
            speed: "standard",
        }
    }
}

/// What one model took, of all runs of the session. The cost is null when the price is unknown: zero would be a lie.
pub(crate) fn model_usage(spend: &ModelSpend) -> Value {
    let usage = &spend.usage;
    json!({
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadInputTokens": usage.cache_read_input_tokens,
        "cacheCreationInputTokens": usage.cache_creation_input_tokens,
        "webSearchRequests": usage.server_tool_use.web_search_requests,
        "costUSD": spend.cost_usd,
        "contextWindow": spend.window_tokens,
        "maxOutputTokens": spend.output_tokens_max,
        "cacheCreationEphemeral5mInputTokens": usage.cache_creation.ephemeral_5m_input_tokens,
        "cacheCreationEphemeral1hInputTokens": usage.cache_creation.ephemeral_1h_input_tokens,
    })
}
