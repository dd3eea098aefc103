//! The sizes at which layers act.

use windlass_protocol::ModelCard;

use crate::config::Config;

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

    /// Margins that would leave less than half of a small window leave half of it: a threshold of nothing would compact
    /// for ever.
    pub(crate) fn of(config: &Config, model: &ModelCard) -> Self {
        let policy = &config.context;
        let window = Self::window(config, model);
        let below = |size: u64, margin: u64| size.saturating_sub(margin).max(size / 2);
        let reserve = u64::from(model.output_tokens_max).min(policy.output_reserve_tokens);
        let effective = below(window, reserve);
        let compact = below(effective, policy.compact_margin_tokens);
        let by_share =
            policy.compact_percent.map_or(compact, |percent| effective.saturating_mul(percent) / 100);
        Self {
            effective,
            compact: compact.min(by_share),
            blocking: below(effective, policy.blocking_margin_tokens),
            warning: below(effective, policy.warning_margin_tokens),
        }
    }
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
        check(200_000, 32_000, window(100_000), [80_000, 67_000, 77_000, 60_000]);
        check(200_000, 32_000, window(900_000), [180_000, 167_000, 177_000, 160_000]);
    }

    #[test]
    fn a_small_window_keeps_half_of_itself() {
        check(32_000, 32_000, ContextPolicy::default(), [16_000, 8_000, 13_000, 8_000]);
        check(0, 0, ContextPolicy::default(), [0; 4]);
    }
}
