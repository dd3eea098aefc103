//! Questions about calls, asked at the terminal.

use std::fmt::Write as _;

use serde_json::Value;
use windlass_engine::{Answer, Behaviour, Question};
use windlass_protocol::{Destination, PermissionChange, PermissionUpdate};

use crate::visible::visible;

/// What a person said to a question.
#[derive(Debug)]
pub(crate) enum Said {
    /// Do this, after these changes of the permissions.
    Answer(Answer, Vec<PermissionUpdate>),
    /// It is no answer; this is to be said.
    Unclear(&'static str),
}

/// The question as it is shown: every character of the call, why it is asked, and what can be answered.
pub(crate) fn question(question: &Question) -> String {
    let mut text = format!("\n{} asks for permission:\n\n", question.tool_use.name);
    for line in visible(&subject(question)).split('\n') {
        let _ = writeln!(text, "    {line}");
    }
    let _ = writeln!(text, "\n{}", visible(&question.reason));
    text.push_str("  y  yes, this once\n");
    if !question.rules.is_empty() {
        let rules = visible(&question.rules.join(", "));
        let _ = writeln!(text, "  s  yes, and for the rest of this session: {rules}");
        let _ = writeln!(text, "  a  yes, and always in this project: {rules}");
    }
    text.push_str("  n  no; what you write behind it is told to the model\n> ");
    text
}

/// What would be done, in full.
fn subject(question: &Question) -> String {
    let input: Value = serde_json::from_str(question.tool_use.input.get()).unwrap_or_default();
    let Some(fields) = input.as_object() else { return question.tool_use.input.get().to_owned() };
    let mut lines = Vec::new();
    for (name, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match name.as_str() {
            // What runs stands first and bare, so that nothing can be taken for it.
            "command" => lines.insert(0, text),
            _ => lines.push(format!("{name}: {text}")),
        }
    }
    lines.join("\n")
}

/// What a line that was typed means.
pub(crate) fn understand(line: &str, question: &Question) -> Said {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let remember = |destination| {
        let rules = question.rules.clone();
        let change = PermissionChange::AddRules { behaviour: Behaviour::Allow, rules };
        Said::Answer(Answer::Allow, vec![PermissionUpdate { change, destination }])
    };
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => Said::Answer(Answer::Allow, Vec::new()),
        "s" | "session" if !question.rules.is_empty() => remember(Destination::Session),
        "a" | "always" if !question.rules.is_empty() => remember(Destination::Local),
        "s" | "session" | "a" | "always" => {
            Said::Unclear("Nothing can be remembered for this call. Answer y or n.")
        }
        "n" | "no" => Said::Answer(Answer::Deny(refusal(rest.trim())), Vec::new()),
        _ => Said::Unclear("Answer y, s, a or n."),
    }
}

/// What the model reads after a no.
fn refusal(words: &str) -> String {
    match words {
        "" => "The user does not want this call to be made. Do not try it in another way; ask what to do instead."
            .to_owned(),
        words => format!("The user does not want this call to be made, and says: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_engine::CallId;
    use windlass_engine::protocol::{CallFacts, CallKind, RawValue, ToolUse};

    use super::*;

    fn asked(input: &str, rules: &[&str]) -> Question {
        Question {
            call: CallId(1),
            tool_use: ToolUse {
                id: "t1".into(),
                name: "Bash".into(),
                input: Arc::from(RawValue::from_string(input.into()).unwrap()),
            },
            facts: CallFacts::new(CallKind::Execute),
            reason: "Bash needs permission: nothing allows `make`.".into(),
            rules: rules.iter().map(ToString::to_string).collect(),
            each_time: rules.is_empty().then(|| "it changes a protected file".into()),
        }
    }

    #[test]
    fn the_whole_call_is_shown() {
        let shown =
            question(&asked(r#"{"description":"Lists","command":"ls\u001b[2K\nrm x"}"#, &["Bash(make)"]));
        assert_eq!(
            shown,
            "\nBash asks for permission:\n\n    ls<U+001B>[2K\n    rm x\n    description: Lists\n\n\
             Bash needs permission: nothing allows `make`.\n  y  yes, this once\n  \
             s  yes, and for the rest of this session: Bash(make)\n  \
             a  yes, and always in this project: Bash(make)\n  n  no; what you write behind it is told to the model\n> "
        );
        assert!(!question(&asked("{}", &[])).contains("always"));
    }

    #[test]
    fn answers_are_understood() {
        let check = |line: &str, rules: &[&str], expected: &str| {
            let seen = match understand(line, &asked("{}", rules)) {
                Said::Answer(answer, updates) => format!("{answer:?} {}", updates.len()),
                Said::Unclear(text) => text.to_owned(),
            };
            assert!(seen.starts_with(expected), "{line}: {seen}");
        };
        check("y\n", &[], "Allow 0");
        check("Yes", &[], "Allow 0");
        check("a", &["Bash(make)"], "Allow 1");
        check("s", &["Bash(make)"], "Allow 1");
        check("a", &[], "Nothing can be remembered");
        check("n", &[], "Deny(\"The user does not want this call to be made. Do");
        check("n use cargo", &[], "Deny(\"The user does not want this call to be made, and says: use cargo");
        check("", &[], "Answer y");
        check("maybe", &[], "Answer y");
    }
}
