//! What the command line says, and how its numbers and words are read.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use windlass_core::{ThinkingMode, ThinkingWish};
use windlass_protocol::{Effort, ThinkingDisplay};

use crate::variables::number;
use crate::{ConfigError, Settings};

/// The flags that shape a run, as they were given. The log of a session keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Flags {
    /// `--model`.
    pub model: Option<String>,
    /// `--max-turns`.
    pub turns_max: Option<u32>,
    /// `--permission-mode`.
    pub permission_mode: Option<String>,
    /// `--dangerously-skip-permissions`.
    #[serde(rename = "skipPermissions")]
    pub should_skip_permissions: bool,
    /// `--allowedTools`, every token.
    pub allowed_tools: Vec<String>,
    /// `--disallowedTools`, every token.
    pub disallowed_tools: Vec<String>,
    /// `--system-prompt` or `--system-prompt-file`.
    pub system_prompt: Option<PromptText>,
    /// `--append-system-prompt` or `--append-system-prompt-file`.
    pub append_system_prompt: Option<PromptText>,
    /// `--add-dir`, every directory.
    #[serde(rename = "addedDirectories")]
    pub add_directories: Vec<PathBuf>,
    /// `--fallback-model`, names separated by commas.
    pub fallback_models: Option<String>,
    /// `--max-budget-usd`.
    pub budget_usd: Option<String>,
    /// `--task-budget`.
    pub task_budget: Option<String>,
    /// `--effort`.
    pub effort: Option<String>,
    /// `--thinking`.
    pub thinking: Option<String>,
    /// `--max-thinking-tokens`.
    pub thinking_tokens: Option<String>,
    /// `--thinking-display`.
    pub thinking_display: Option<String>,
    /// `--json-schema`.
    pub json_schema: Option<String>,
    /// `--autocompact`.
    pub autocompact: Option<String>,
}

/// A text that is given or stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PromptText {
    /// The text.
    Text(String),
    /// The file it stands in.
    #[serde(skip)]
    File(PathBuf),
}

/// Splits a list of rules on commas and blanks outside parentheses.
pub(crate) fn split_rules(tokens: &[String]) -> impl Iterator<Item = &str> {
    let pieces = tokens.iter().flat_map(|token| {
        let mut depth = 0_u32;
        token.split(move |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (c == ',' || c.is_whitespace())
        })
    });
    pieces.filter(|piece| !piece.is_empty())
}

/// The least that providers take as a budget told to the model.
const TASK_BUDGET_MIN: u64 = 20_000;

pub(crate) fn budget_usd(flags: &Flags) -> Result<Option<f64>, ConfigError> {
    let read = |text: &str| text.trim().parse::<f64>().ok().filter(|usd| usd.is_finite() && *usd > 0.0);
    value("--max-budget-usd", flags.budget_usd.as_deref(), "give an amount above 0, such as 2.50", read)
}

pub(crate) fn task_budget(flags: &Flags) -> Result<Option<u64>, ConfigError> {
    let read = |text: &str| number(text, TASK_BUDGET_MIN, u64::MAX);
    value("--task-budget", flags.task_budget.as_deref(), "give a whole number of tokens from 20000 on", read)
}

/// `--max-thinking-tokens`; 0 turns thinking off.
fn thinking_tokens(flags: &Flags) -> Result<Option<u32>, ConfigError> {
    let read = |text: &str| number(text, 0, u32::MAX);
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

/// Tokens, with `k` or `M` behind the number. 100 to 1000 alone are thousands; fewer are likely a mistake.
fn tokens(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1_000),
        b'm' | b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number: u64 = number(digits, 1, u64::MAX)?;
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

/// How the model is to think.
pub(crate) fn thinking_wish(settings: &Settings, flags: &Flags) -> Result<ThinkingWish, ConfigError> {
    let name = flags.thinking_display.as_deref();
    let display = value("--thinking-display", name, "use summarized or omitted", ThinkingDisplay::from_name)?;
    let tokens = thinking_tokens(flags)?;
    let stated = flags.thinking.as_deref();
    // A number in the environment is what `enabled` means by itself; other words replace it.
    let inherited =
        if matches!(stated, None | Some("enabled")) { settings.models.thinking_tokens } else { None };
    let mode = match stated {
        None => ThinkingMode::Auto,
        Some("adaptive" | "enabled") => ThinkingMode::Adaptive,
        Some("disabled") => ThinkingMode::Disabled,
        Some(word) => return Err(ConfigError::flag("--thinking", word, "use adaptive, enabled or disabled")),
    };
    if let (Some(thinking), Some(tokens)) = (stated, tokens)
        && (thinking == "disabled") != (tokens == 0)
    {
        return Err(ConfigError::Unusable(format!(
            "--thinking {thinking} contradicts --max-thinking-tokens {tokens}. Give only one of the two."
        )));
    }
    Ok(match tokens.or(inherited) {
        Some(0) if stated == Some("enabled") => ThinkingWish { mode, budget_tokens: None, display },
        Some(0) => ThinkingWish { mode: ThinkingMode::Disabled, budget_tokens: None, display },
        budget_tokens => ThinkingWish { mode, budget_tokens, display },
    })
}

pub(crate) fn effort(flags: &Flags) -> Result<Option<Effort>, ConfigError> {
    let read = |text: &str| Effort::from_name(&text.trim().to_ascii_lowercase());
    value("--effort", flags.effort.as_deref(), "use low, medium, high, xhigh or max", read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tokens: &[&str], expected: &str) {
        let tokens: Vec<String> = tokens.iter().map(|&token| token.to_owned()).collect();
        assert_eq!(split_rules(&tokens).collect::<Vec<_>>().join("|"), expected);
    }

    #[test]
    fn lists_are_split_outside_parentheses() {
        check(&[], "");
        check(&["", " , "], "");
        check(&["Read,Edit", "Bash"], "Read|Edit|Bash");
        check(&["Read,Edit", " Bash  Grep"], "Read|Edit|Bash|Grep");
        check(&["Read Edit\tBash"], "Read|Edit|Bash");
        check(&["Read,Bash(git log:*, x),Edit"], "Read|Bash(git log:*, x)|Edit");
        check(&["Bash(a (b) c) Read"], "Bash(a (b) c)|Read");
    }

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
