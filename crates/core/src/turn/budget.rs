//! Budgets: what a run may cost, and how many output tokens it is to spend.

use crate::config::Config;
use crate::memory::ledger::Ledger;
use crate::turn::ladder::TokensLeft;

/// Whether the whole tree may still spend money. A cap belongs to the process that was given it: what the session had cost
/// before does not count. The one place where the USD budget is checked: after each report of
/// usage, and before each request and fork.
pub(crate) fn usd_left(ledger: &Ledger, config: &Config) -> bool {
    config.budget_usd.is_none_or(|cap| ledger.opened_usd() < cap)
}

/// The output tokens a submission is to spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenBudget {
    /// How many.
    pub(crate) total: Option<u64>,
    /// How many were spent.
    pub(crate) spent: u64,
    /// How many had been spent at the last continuation.
    pub(crate) at_continuation: Option<u64>,
}

impl TokenBudget {
    /// How much is left, for the main loop; sub-agents always stop.
    pub(crate) fn tokens_left(&self, config: &Config) -> TokensLeft {
        let Some(total) = self.total.filter(|_| config.source.is_main()) else { return TokensLeft::NoBudget };
        let policy = &config.continuation;
        if self.spent.saturating_mul(100) >= total.saturating_mul(policy.percent) {
            return TokensLeft::Spent;
        }
        let gain = self.at_continuation.map(|before| self.spent.saturating_sub(before));
        TokensLeft::Enough { is_small_gain: gain.is_some_and(|gain| gain < policy.small_gain_tokens) }
    }

    /// The note that asks the model to go on.
    pub(crate) fn nudge(&self) -> String {
        let total = self.total.unwrap_or(0).max(1);
        format!(
            "You have used {} of {total} output tokens ({} %) that the user wants spent on this task. \
             Continue: look for anything missing, wrong or untested, and improve it.",
            self.spent,
            self.spent.saturating_mul(100) / total
        )
    }

    /// The budget as it is after one more continuation.
    pub(crate) fn continued(self) -> Self {
        Self { total: self.total, spent: self.spent, at_continuation: Some(self.spent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RunSource;

    #[track_caller]
    fn check(budget: TokenBudget, source: RunSource, expected: TokensLeft) {
        assert_eq!(budget.tokens_left(&Config { source, ..Config::default() }), expected);
    }

    #[test]
    fn nine_tenths_count_as_spent_and_sub_agents_always_stop() {
        let budget = |spent, at_continuation| TokenBudget { total: Some(10_000), spent, at_continuation };
        check(TokenBudget::default(), RunSource::Print, TokensLeft::NoBudget);
        check(budget(0, None), RunSource::Agent("explore".into()), TokensLeft::NoBudget);
        check(budget(8_999, None), RunSource::Print, TokensLeft::Enough { is_small_gain: false });
        check(budget(9_000, None), RunSource::Print, TokensLeft::Spent);
        check(budget(1_499, Some(1_000)), RunSource::Repl, TokensLeft::Enough { is_small_gain: true });
        check(budget(1_500, Some(1_000)), RunSource::Sdk, TokensLeft::Enough { is_small_gain: false });
    }
}
