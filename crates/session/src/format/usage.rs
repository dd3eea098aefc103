//! Usage in the words of the live stream, where every key is there and none is null, and what these words leave open.

use windlass_protocol::{RawValue, Usage};

use super::json::{Fields, Object, Plain, Unfit, object};

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

/// Appends what hosts read; returns what is missing in it, if anything is.
pub(crate) fn put(usage: Option<&Usage>, out: &mut Vec<u8>) -> Option<UsageGaps> {
    let known = usage.cloned().unwrap_or_default();
    let passes = known.iterations.map(|raw| raw.get().to_owned());
    let mut object = Object::open(out);
    object.write::<_, Plain>("input_tokens", &known.input_tokens);
    object.write::<_, Plain>("output_tokens", &known.output_tokens);
    object.write::<_, Plain>("cache_creation_input_tokens", &known.cache_creation_input_tokens);
    object.write::<_, Plain>("cache_read_input_tokens", &known.cache_read_input_tokens);
    object.write::<_, Plain>("cache_creation", &known.cache_creation);
    object.write::<_, Plain>("server_tool_use", &known.server_tool_use);
    object.text("service_tier", known.service_tier.as_deref().unwrap_or(USUAL_TIER));
    object.text("inference_geo", "");
    let shown = passes.as_deref().map_or("[]".into(), super::entry::on_one_line);
    object.name("iterations").extend_from_slice(shown.as_bytes());
    object.name("output_tokens_details").extend_from_slice(b"{}");
    object.text("speed", "standard");
    object.close();
    let gaps = UsageGaps { unknown: usage.is_none(), tier: known.service_tier.is_some(), passes };
    Some(gaps).filter(|gaps| *gaps != UsageGaps::default())
}

/// Takes usage back from what hosts read.
pub(crate) fn take(json: &str, gaps: Option<UsageGaps>) -> Result<Option<Box<Usage>>, Unfit> {
    let gaps = gaps.unwrap_or_default();
    if gaps.unknown {
        return Ok(None);
    }
    let fields = Fields::parse(json)?;
    let tier: String = fields.read::<_, Plain>("service_tier")?;
    let passes = gaps.passes.map(RawValue::from_string).transpose().map_err(Unfit::new)?;
    Ok(Some(Box::new(Usage {
        input_tokens: fields.read::<_, Plain>("input_tokens")?,
        output_tokens: fields.read::<_, Plain>("output_tokens")?,
        cache_creation_input_tokens: fields.read::<_, Plain>("cache_creation_input_tokens")?,
        cache_read_input_tokens: fields.read::<_, Plain>("cache_read_input_tokens")?,
        cache_creation: fields.read::<_, Plain>("cache_creation")?,
        server_tool_use: fields.read::<_, Plain>("server_tool_use")?,
        service_tier: gaps.tier.then_some(tier),
        iterations: passes.map(Into::into),
    })))
}
