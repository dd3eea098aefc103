//! Cost in the protocol's words.

use serde_json::{Value, json};
use windlass_protocol::ModelSpend;

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
