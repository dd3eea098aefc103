//! Which calls a handler is for, by its group's matcher and its own permission rule, which is read elsewhere.

use std::sync::Arc;

use regex::Regex;
use windlass_protocol::{ExaminedCall, HookAnswer, HookCall, HookEvent, HookPermission, KNOWN_TOOLS};
use windlass_text::nearest::nearest;

use crate::events::MatcherSubject;
use crate::handler::Handler;

#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    All,
    Names(Vec<String>),
    /// Whatever holds this somewhere.
    Pattern(Regex),
}

impl Matcher {
    /// Reads a matcher. What is no list of names is a regular expression that need not match the whole word.
    pub(crate) fn parse(text: &str, matching: MatcherSubject) -> Result<Self, String> {
        if text.is_empty() || text == "*" || matching == MatcherSubject::Nothing {
            return Ok(Self::All);
        }
        let is_wide = matching != MatcherSubject::NarrowWord;
        let is_plain = |letter: char| {
            letter.is_ascii_alphanumeric() || "_|".contains(letter) || (is_wide && "-, ".contains(letter))
        };
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(str::to_owned).collect()));
        }
        Regex::new(text).map(Self::Pattern).map_err(|error| {
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("the matcher {text:?} is not a regular expression: {why}")
        })
    }

    /// The names it lists that no tool has, each with the nearest that one has. Tools of servers are not known before they run.
    pub(crate) fn unknown_tools(&self, own: &[String]) -> Vec<(&str, Option<&'static str>)> {
        let Self::Names(names) = self else { return Vec::new() };
        let is_known = |name: &str| {
            name.starts_with("mcp__") || KNOWN_TOOLS.contains(&name) || own.iter().any(|own| own == name)
        };
        let unknown = names.iter().map(String::as_str).filter(|name| !is_known(name));
        unknown.map(|name| (name, nearest(name, KNOWN_TOOLS))).collect()
    }

    /// Whether it is for this word, or one of these other names of it. An event without one is for everybody.
    pub(crate) fn matches(&self, word: Option<&str>, aliases: &[&str]) -> bool {
        let Some(word) = word else { return true };
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == word || aliases.contains(&&**name)),
            Self::Pattern(pattern) => pattern.is_match(word),
        }
    }
}

/// Whether a permission rule matches a call. `None` where that is unknown.
pub type RuleMatch = Arc<dyn Fn(&str, &ExaminedCall) -> Option<bool> + Send + Sync>;

/// Which of the calls that its matcher means a handler is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    None,
    /// Those that a permission rule matches.
    Rule(String),
    /// Some; what was configured says not which, since it cannot be read.
    Unreadable,
}

/// Whether the handler's condition lets it run. Where nobody can tell it runs: a guard that is not asked guards nothing.
pub(crate) fn holds(handler: &Handler, call: &HookCall, rules: Option<&RuleMatch>) -> bool {
    let Condition::Rule(rule) = &handler.condition else { return true };
    let (Some(call), Some(rules)) = (call.tool_call(), rules) else { return true };
    rules(rule, call).unwrap_or(true)
}

/// What counts of an answer: a handler that is asked about too many calls may object to each, but allow none.
pub(crate) fn limit_answer(handler: &Handler, mut answer: HookAnswer) -> HookAnswer {
    let allows = answer.permission == Some(HookPermission::Allow);
    if handler.condition == Condition::Unreadable && allows {
        answer.permission = None;
        answer.updates.clear();
        answer.input = answer.input.filter(|_| handler.event == HookEvent::PreToolUse);
        answer
            .notices
            .push(format!("{} allows a call; ignored, since its \"if\" is invalid.", handler.name()));
    }
    answer
}

#[cfg(test)]
mod tests {
    use windlass_protocol::ToolProfile;

    use super::*;

    #[track_caller]
    fn check(matcher: &str, word: &str, expected: bool) {
        let parsed = Matcher::parse(matcher, MatcherSubject::Tool).unwrap();
        assert_eq!(
            parsed.matches(Some(word), ToolProfile::named(word).aliases),
            expected,
            "{matcher} on {word}"
        );
    }

    #[test]
    fn names_are_exact_and_patterns_are_not_anchored() {
        check("*", "Bash", true);
        check("", "Bash", true);
        check("Bash", "Bash", true);
        check("Bash", "bash", false);
        check("Bash", "BashOutput", false);
        check("Bash|Edit", "Edit", true);
        check("Bash, Edit", "Edit", true);
        check("Bash | Edit", "Bash", true);
        check("Bash|Edit", "Write", false);
        check("mcp__memory", "mcp__memory__store", false);
        check("mcp__memory__.*", "mcp__memory__store", true);
        check("Edit.*", "NotebookEdit", true);
        check("^Edit$", "NotebookEdit", false);
        check("edit.*", "NotebookEdit", false);
        check("mcp__my-server__read", "mcp__my-server__read", true);
        check("Task", "Agent", true);
        check("KillShell", "TaskStop", true);
        check("|", "Bash", false);
        check("Bash.?|Read.?", "Read", true);
    }

    #[test]
    fn an_event_without_a_word_is_for_every_matcher() {
        let parsed = Matcher::parse("Bash", MatcherSubject::Tool).unwrap();
        assert!(parsed.matches(None, &[]));
        assert!(matches!(Matcher::parse("[", MatcherSubject::Nothing), Ok(Matcher::All)));
    }

    #[test]
    fn some_events_have_a_narrower_idea_of_names() {
        let narrow = |text: &str| Matcher::parse(text, MatcherSubject::NarrowWord).unwrap();
        assert!(matches!(narrow("rate_limit|overloaded"), Matcher::Names(_)));
        assert!(matches!(narrow("rate_limit,overloaded"), Matcher::Pattern(_)));
        assert!(matches!(narrow("a-b"), Matcher::Pattern(_)));
    }

    #[test]
    fn what_cannot_be_compiled_is_said() {
        let problem = |text: &str| Matcher::parse(text, MatcherSubject::Tool).unwrap_err();
        assert!(problem("Bash(").contains("unclosed group"), "{}", problem("Bash("));
        assert!(problem("(?=Bash)").contains("look-around"), "{}", problem("(?=Bash)"));
    }
}
