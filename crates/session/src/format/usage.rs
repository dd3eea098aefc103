//! Usage in the words of the live stream, where every key is there and none is null, and what these words leave open.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use windlass_protocol::{CacheCreation, RawValue, RawValueEq, ServerToolUse, Usage};

use super::form::object;

/// What hosts read where the provider names no service tier.
const USUAL_TIER: &str = "standard";

/// What the words of the live stream do not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UsageGaps {
    /// Nothing was known.
    unknown: bool,
    /// The service tier is the provider's word, not ours.
    tier: bool,
    /// Passes that are billed one by one, as they came.
    passes: Option<String>,
}

object!(UsageGaps { unknown, tier, passes });

/// What hosts read.
#[derive(Serialize)]
pub(crate) struct ShownUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation: CacheCreation,
    server_tool_use: ServerToolUse,
    service_tier: Cow<'static, str>,
    inference_geo: &'static str,
    iterations: Option<Box<RawValue>>,
    output_tokens_details: BTreeMap<&'static str, u64>,
    speed: &'static str,
}

/// Usage as hosts read it, and what is missing in it, if anything is.
pub(crate) fn show(usage: Option<&Usage>) -> (ShownUsage, Option<UsageGaps>) {
    let known = usage.cloned().unwrap_or_default();
    let passes = known.iterations.map(|raw| raw.0.get().to_owned());
    let tier = known.service_tier.is_some();
    let iterations = passes.as_deref().map_or("[]".into(), super::entry::on_one_line);
    let shown = ShownUsage {
        input_tokens: known.input_tokens,
        output_tokens: known.output_tokens,
        cache_creation_input_tokens: known.cache_creation_input_tokens,
        cache_read_input_tokens: known.cache_read_input_tokens,
        cache_creation: known.cache_creation,
        server_tool_use: known.server_tool_use,
        service_tier: known.service_tier.map_or(USUAL_TIER.into(), Cow::Owned),
        inference_geo: "",
        iterations: RawValue::from_string(iterations.into_owned()).ok(),
        output_tokens_details: BTreeMap::new(),
        speed: "standard",
    };
    let gaps = UsageGaps { unknown: usage.is_none(), tier, passes };
    (shown, Some(gaps).filter(|gaps| *gaps != UsageGaps::default()))
}

/// Takes usage back from what hosts read.
pub(crate) fn take(json: &str, gaps: Option<UsageGaps>) -> serde_json::Result<Option<Box<Usage>>> {
    let gaps = gaps.unwrap_or_default();
    if gaps.unknown {
        return Ok(None);
    }
    let mut usage: Box<Usage> = serde_json::from_str(json)?;
    usage.service_tier.take_if(|_| !gaps.tier);
    usage.iterations =
        gaps.passes.map(RawValue::from_string).transpose()?.map(|raw| Arc::new(RawValueEq(raw)));
    Ok(Some(usage))
}
