//! What a response cost in tokens, in the provider's own terms.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::RawValueEq;

/// Token usage of one response, or of several added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens after the last cache breakpoint.
    pub input_tokens: u64,
    /// Output tokens, thinking included.
    pub output_tokens: u64,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// How the written tokens split by lifetime.
    pub cache_creation: CacheCreation,
    /// Requests of tools that ran at the provider.
    pub server_tool_use: ServerToolUse,
    /// The provider's service tier, where it says one.
    pub service_tier: Option<String>,
    /// Passes of one response that are billed one by one, kept as they came.
    #[serde(skip_deserializing)]
    pub iterations: Option<Arc<RawValueEq>>,
}

/// Cache writes by lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    /// Tokens written for five minutes.
    pub ephemeral_5m_input_tokens: u64,
    /// Tokens written for an hour.
    pub ephemeral_1h_input_tokens: u64,
}

/// Calls of tools that ran at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerToolUse {
    /// Web searches.
    pub web_search_requests: u64,
    /// Web fetches.
    pub web_fetch_requests: u64,
}

/// Usage in the words of hosts: every key they expect is there, and none is null.
#[derive(Clone, Debug, Serialize)]
pub struct HostUsage<'a> {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation: CacheCreation,
    server_tool_use: ServerToolUse,
    service_tier: &'a str,
    inference_geo: &'static str,
    /// Passes of one response that are billed one by one.
    pub iterations: Cow<'a, RawValue>,
    output_tokens_details: BTreeMap<&'static str, u64>,
    speed: &'static str,
}

impl<'a> From<&'a Usage> for HostUsage<'a> {
    fn from(usage: &'a Usage) -> Self {
        let none = || Cow::Owned(RawValue::from_string("[]".to_owned()).unwrap_or_default());
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_creation: usage.cache_creation,
            server_tool_use: usage.server_tool_use,
            service_tier: usage.service_tier.as_deref().unwrap_or("standard"),
            inference_geo: "",
            iterations: usage.iterations.as_ref().map_or_else(none, |passes| Cow::Borrowed(&*passes.0)),
            output_tokens_details: BTreeMap::new(),
            speed: "standard",
        }
    }
}

impl Usage {
    /// Adds the usage of another response.
    pub fn add(&mut self, other: &Self) {
        let add = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cache_creation_input_tokens, other.cache_creation_input_tokens);
        add(&mut self.cache_read_input_tokens, other.cache_read_input_tokens);
        let (cached, more) = (&mut self.cache_creation, &other.cache_creation);
        add(&mut cached.ephemeral_5m_input_tokens, more.ephemeral_5m_input_tokens);
        add(&mut cached.ephemeral_1h_input_tokens, more.ephemeral_1h_input_tokens);
        let (served, more) = (&mut self.server_tool_use, &other.server_tool_use);
        add(&mut served.web_search_requests, more.web_search_requests);
        add(&mut served.web_fetch_requests, more.web_fetch_requests);
        self.service_tier.clone_from(&other.service_tier);
    }

    /// Everything that went in: fresh, written to the cache and read from it.
    pub fn input_total(&self) -> u64 {
        let cached = self.cache_creation_input_tokens.saturating_add(self.cache_read_input_tokens);
        self.input_tokens.saturating_add(cached)
    }
}
