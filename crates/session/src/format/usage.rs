//! Usage in the words of the live stream, where every key is there and none is null, and what these words leave open.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use windlass_protocol::{HostUsage, RawValue, RawValueEq, Usage};

use super::entry::on_one_line;
use super::field_forms::{object, spans_lines};

/// What the words of the live stream do not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UsageGaps {
    /// Nothing was known.
    is_unknown: bool,
    /// The service tier is the provider's word, not ours.
    has_tier: bool,
    /// Passes that are billed one by one, as they came.
    passes: Option<String>,
}

object!(UsageGaps { is_unknown = "unknown", has_tier = "tier", passes });

/// Usage as hosts read it, and what is missing in it, if anything is.
pub(crate) fn show(usage: Option<&Usage>) -> (HostUsage<'_>, Option<UsageGaps>) {
    static UNKNOWN: LazyLock<Usage> = LazyLock::new(Usage::default);
    let known = usage.unwrap_or(&UNKNOWN);
    let mut shown = HostUsage::from(known);
    let passes = known.iterations.as_ref().map(|raw| raw.0.get().to_owned());
    if let Some(passes) = passes.as_deref().filter(|passes| spans_lines(passes)) {
        let on_one_line = RawValue::from_string(on_one_line(passes).into_owned());
        shown.iterations = Cow::Owned(on_one_line.unwrap_or_default());
    }
    let gaps = UsageGaps { is_unknown: usage.is_none(), has_tier: known.service_tier.is_some(), passes };
    (shown, Some(gaps).filter(|gaps| *gaps != UsageGaps::default()))
}

/// Takes usage back from what hosts read.
pub(crate) fn take(json: &str, gaps: Option<UsageGaps>) -> serde_json::Result<Option<Box<Usage>>> {
    let gaps = gaps.unwrap_or_default();
    if gaps.is_unknown {
        return Ok(None);
    }
    let mut usage: Box<Usage> = serde_json::from_str(json)?;
    usage.service_tier.take_if(|_| !gaps.has_tier);
    usage.iterations =
        gaps.passes.map(RawValue::from_string).transpose()?.map(|raw| Arc::new(RawValueEq(raw)));
    Ok(Some(usage))
}
