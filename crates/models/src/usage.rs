//! Reads token usage: counts are cumulative, so later values take the place of earlier ones.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;
use windlass_protocol::Usage;

/// The usage of one event. A field that is absent or null says nothing.
#[derive(Deserialize)]
pub(crate) struct UsageFields<'a> {
    input_tokens: Option<Count>,
    output_tokens: Option<Count>,
    cache_creation_input_tokens: Option<Count>,
    cache_read_input_tokens: Option<Count>,
    cache_creation: Option<CacheCreationFields>,
    server_tool_use: Option<ServerToolUseFields>,
    #[serde(borrow)]
    service_tier: Option<Cow<'a, str>>,
    #[serde(borrow)]
    iterations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CacheCreationFields {
    ephemeral_5m_input_tokens: Option<Count>,
    ephemeral_1h_input_tokens: Option<Count>,
}

#[derive(Deserialize)]
struct ServerToolUseFields {
    web_search_requests: Option<Count>,
    web_fetch_requests: Option<Count>,
}

impl UsageFields<'_> {
    /// Puts every value that is said in the place of the former one.
    pub(crate) fn overwrite(&self, usage: &mut Usage) {
        set(&mut usage.input_tokens, self.input_tokens.as_ref());
        set(&mut usage.output_tokens, self.output_tokens.as_ref());
        set(&mut usage.cache_creation_input_tokens, self.cache_creation_input_tokens.as_ref());
        set(&mut usage.cache_read_input_tokens, self.cache_read_input_tokens.as_ref());
        if let Some(split) = &self.cache_creation {
            let target = &mut usage.cache_creation;
            set(&mut target.ephemeral_5m_input_tokens, split.ephemeral_5m_input_tokens.as_ref());
            set(&mut target.ephemeral_1h_input_tokens, split.ephemeral_1h_input_tokens.as_ref());
        }
        if let Some(tools) = &self.server_tool_use {
            let target = &mut usage.server_tool_use;
            set(&mut target.web_search_requests, tools.web_search_requests.as_ref());
            set(&mut target.web_fetch_requests, tools.web_fetch_requests.as_ref());
        }
        if let Some(tier) = &self.service_tier {
            usage.service_tier = Some(tier.clone().into_owned());
        }
        if let Some(iterations) = self.iterations {
            usage.iterations = Some(iterations.to_owned().into());
        }
    }
}

fn set(target: &mut u64, value: Option<&Count>) {
    if let Some(Count(count)) = value {
        *target = *count;
    }
}

/// A token count. Gateways write some as `12.0` or as a negative "unknown"; the latter counts as zero.
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;

        impl Visitor<'_> for CountVisitor {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token count")
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<Count, E> {
                Ok(Count(count))
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(count).unwrap_or(0)))
            }

            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates, which is what is wanted"
            )]
            fn visit_f64<E: Error>(self, count: f64) -> Result<Count, E> {
                Ok(Count(count as u64))
            }
        }

        deserializer.deserialize_any(CountVisitor)
    }
}
