//! The sizes at which layers act, and the blocking limit: no request that is doomed, where nothing is summarised automatically.

use windlass_protocol::{ModelCard, Terminal};

use crate::config::{CompactionPolicy, Config};
use crate::step::Cx;
use crate::turn::prepare::{LayerReply, LayerStep, Preparation};

/// The sizes at which layers act, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds {
    pub(crate) effective: u64,
    pub(crate) compact: u64,
    pub(crate) blocking: u64,
    pub(crate) warning: u64,
}

impl Thresholds {
    /// The model's window, or the smaller one that the user wants.
    pub(crate) fn window(config: &Config, model: &ModelCard) -> u64 {
        config.context.window_tokens.map_or(model.window_tokens, |own| own.min(model.window_tokens))
    }

    /// Margins that were set to more than half of a window leave half of it: a threshold of nothing would compact for ever.
    pub(crate) fn of(config: &Config, model: &ModelCard) -> Self {
        let policy = &config.context;
        let window = Self::window(config, model);
        let below = |size: u64, margin: u64| size.saturating_sub(margin).max(size / 2);
        // A margin that nobody set is no more than this share of the window, so that a small one is not spent on margins.
        let margin = |set: Option<u64>, tokens: u64, window_divisor: u64| {
            set.unwrap_or_else(|| tokens.min(window / window_divisor))
        };
        let reserve = margin(policy.output_reserve_tokens, 20_000, 8);
        let effective = below(window, reserve.min(model.output_tokens_max.into()));
        let compact = below(effective, margin(policy.compact_margin_tokens, 13_000, 12));
        let by_share =
            policy.compact_percent.map_or(compact, |percent| effective.saturating_mul(percent) / 100);
        Self {
            effective,
            compact: compact.min(by_share),
            blocking: below(effective, margin(policy.blocking_margin_tokens, 3_000, 48)),
            warning: below(effective, margin(policy.warning_margin_tokens, 20_000, 8)),
        }
    }
}

/// Without automatic compaction a full context ends the run: only the user can ask for a compaction then.
pub(crate) fn blocking_limit(cx: &mut Cx<'_>, _: &mut Preparation, _: Option<LayerReply>) -> LayerStep {
    let is_automatic = cx.config.context.compaction == CompactionPolicy::Automatic;
    if is_automatic || cx.config.source.is_summariser() {
        return LayerStep::Passed;
    }
    let limit = Thresholds::of(cx.config, cx.model()).blocking;
    if cx.context_tokens() < limit { LayerStep::Passed } else { LayerStep::End(Terminal::BlockingLimit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ContextPolicy;

    #[track_caller]
    fn check(window_tokens: u64, output_tokens_max: u32, context: ContextPolicy, expected: [u64; 4]) {
        let model = ModelCard { window_tokens, output_tokens_max, ..ModelCard::unknown("m") };
        let found = Thresholds::of(&Config { context, ..Config::default() }, &model);
        assert_eq!([found.effective, found.compact, found.blocking, found.warning], expected);
    }

    #[test]
    fn thresholds_follow_from_the_window() {
        let plain = ContextPolicy::default();
        check(200_000, 20_000, plain, [180_000, 167_000, 177_000, 160_000]);
        check(200_000, 128_000, plain, [180_000, 167_000, 177_000, 160_000]);
        check(200_000, 8_192, plain, [191_808, 178_808, 188_808, 171_808]);
        check(1_000_000, 128_000, plain, [980_000, 967_000, 977_000, 960_000]);
    }

    #[test]
    fn margins_are_shares_of_a_small_window() {
        let plain = ContextPolicy::default();
        check(8_192, 32_000, plain, [7_168, 6_486, 6_998, 6_144]);
        check(16_384, 32_000, plain, [14_336, 12_971, 13_995, 12_288]);
        check(32_768, 32_000, plain, [28_672, 25_942, 27_990, 24_576]);
        check(32_768, 2_048, plain, [30_720, 27_990, 30_038, 26_624]);
        check(65_536, 32_000, plain, [57_344, 51_883, 55_979, 49_152]);
        check(131_072, 32_000, plain, [114_688, 103_766, 111_958, 98_304]);
        check(160_000, 32_000, plain, [140_000, 127_000, 137_000, 120_000]);
        check(0, 0, plain, [0; 4]);
    }

    #[test]
    fn margins_that_were_set_hold_in_any_window_up_to_half_of_it() {
        let set = |tokens| ContextPolicy {
            output_reserve_tokens: Some(tokens),
            compact_margin_tokens: Some(tokens),
            blocking_margin_tokens: Some(tokens),
            warning_margin_tokens: Some(tokens),
            ..ContextPolicy::default()
        };
        check(200_000, 64_000, set(1_000), [199_000, 198_000, 198_000, 198_000]);
        check(32_768, 64_000, set(6_000), [26_768, 20_768, 20_768, 20_768]);
        check(32_768, 64_000, set(0), [32_768; 4]);
        check(32_768, 64_000, set(30_000), [16_384, 8_192, 8_192, 8_192]);
    }

    #[test]
    fn settings_lower_them() {
        let plain = ContextPolicy::default();
        check(
            200_000,
            32_000,
            ContextPolicy { compact_percent: Some(50), ..plain },
            [180_000, 90_000, 177_000, 160_000],
        );
        check(
            200_000,
            32_000,
            ContextPolicy { compact_percent: Some(99), ..plain },
            [180_000, 167_000, 177_000, 160_000],
        );
        check(
            200_000,
            32_000,
            ContextPolicy { compact_percent: Some(1), ..plain },
            [180_000, 1_800, 177_000, 160_000],
        );
        let window = |tokens| ContextPolicy { window_tokens: Some(tokens), ..plain };
        check(200_000, 32_000, window(100_000), [87_500, 79_167, 85_417, 75_000]);
        check(200_000, 32_000, window(900_000), [180_000, 167_000, 177_000, 160_000]);
    }
}
