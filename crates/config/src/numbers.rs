//! Numbers that flags give.

use crate::flags::Flags;
use crate::{ConfigError, parse};

/// The least that providers take as a budget told to the model.
const TASK_BUDGET_MIN: u64 = 20_000;

/// `--max-budget-usd`.
pub(crate) fn budget_usd(flags: &Flags) -> Result<Option<f64>, ConfigError> {
    let read = |text: &str| text.trim().parse::<f64>().ok().filter(|usd| usd.is_finite() && *usd > 0.0);
    value("--max-budget-usd", flags.budget_usd.as_deref(), "give an amount above 0, such as 2.50", read)
}

/// `--task-budget`.
pub(crate) fn task_budget(flags: &Flags) -> Result<Option<u64>, ConfigError> {
    let read = |text: &str| parse::number(text, TASK_BUDGET_MIN, u64::MAX);
    value("--task-budget", flags.task_budget.as_deref(), "give a whole number of tokens from 20000 on", read)
}

/// `--max-thinking-tokens`; 0 turns thinking off.
pub(crate) fn thinking_tokens(flags: &Flags) -> Result<Option<u32>, ConfigError> {
    let read = |text: &str| parse::number(text, 0, u32::MAX);
    let accepts = "give a whole number of tokens, or 0 to turn thinking off";
    value("--max-thinking-tokens", flags.thinking_tokens.as_deref(), accepts, read)
}

/// `--autocompact`: a window of tokens, or none for the model's own.
pub(crate) fn window(text: &str) -> Result<Option<u64>, ConfigError> {
    if text.trim().eq_ignore_ascii_case("auto") {
        return Ok(None);
    }
    let accepts =
        "give auto or a number of tokens such as 500k, 1M or 500000; 100 to 1000 alone are thousands";
    value("--autocompact", Some(text), accepts, tokens)
}

/// A number of tokens, with `k` for thousands and `M` for millions. A number alone is one of thousands from 100 to 1000;
/// anything smaller is more likely a mistake than a window.
fn tokens(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1_000),
        b'm' | b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number: u64 = parse::number(digits, 1, u64::MAX)?;
    match (unit, number) {
        (1, 0..100) => None,
        (1, 100..=1000) => Some(number * 1_000),
        _ => number.checked_mul(unit),
    }
}

fn value<T>(
    flag: &'static str,
    text: Option<&str>,
    accepts: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    let read = |text| read(text).ok_or_else(|| ConfigError::flag(flag, text, accepts));
    text.map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_units() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(tokens(text), expected, "{text}");
        check("500k", Some(500_000));
        check("1M", Some(1_000_000));
        check("7k", Some(7_000));
        check("100", Some(100_000));
        check("1000", Some(1_000_000));
        check("1001", Some(1_001));
        check("250000", Some(250_000));
        for nonsense in
            ["", "k", "0", "0k", "-5k", "99", "1.5M", "99999999999999999999", "18446744073709551615k", "é"]
        {
            check(nonsense, None);
        }
        assert_eq!(window("auto").unwrap_or(Some(1)), None);
    }
}
