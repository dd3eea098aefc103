//! What the command line says, before it is checked.

use std::path::PathBuf;

/// The flags that shape a run, as they were given.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--model`.
    pub model: Option<String>,
    /// `--max-turns`.
    pub turns_max: Option<u32>,
    /// `--permission-mode`.
    pub permission_mode: Option<String>,
    /// `--dangerously-skip-permissions`.
    pub skip_permissions: bool,
    /// `--allowedTools`, every token.
    pub allowed_tools: Vec<String>,
    /// `--disallowedTools`, every token.
    pub disallowed_tools: Vec<String>,
    /// `--system-prompt` or `--system-prompt-file`.
    pub system_prompt: Option<PromptText>,
    /// `--append-system-prompt` or `--append-system-prompt-file`.
    pub append_system_prompt: Option<PromptText>,
    /// `--add-dir`, every directory.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptText {
    /// The text.
    Text(String),
    /// The file it stands in.
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
}
