//! Questions about calls, asked at the terminal.

use std::fmt::Write as _;

use serde_json::Value;
use windlass_engine::{Answer, Behaviour, Question};
use windlass_protocol::{Destination, PermissionChange, PermissionUpdate};

use crate::terminal::leaves;
use crate::visible::{visible, visible_command, visible_content};

/// What a person said to a question.
#[derive(Debug)]
pub(crate) enum Said {
    /// Do this, after these changes of the permissions.
    Answer(Answer, Vec<PermissionUpdate>),
    /// Do nothing, and leave the session.
    Leave,
    /// It is no answer; this is to be said.
    Unclear(String),
}

/// The question as it is shown: every character of the call, why it is asked, and what can be answered.
pub(crate) fn question(question: &Question) -> String {
    let mut text = format!("\n{} asks for permission:\n\n", question.tool_use.name);
    for line in subject(question) {
        let _ = writeln!(text, "    {line}");
    }
    let _ = writeln!(text, "\n{}", visible(&question.reason));
    text.push_str("  y  yes, this once\n");
    if !question.rules.is_empty() {
        let rules = visible(&question.rules.join(", "));
        let _ = writeln!(text, "  s  yes, and for the rest of this session: {rules}");
        let _ = writeln!(text, "  a  yes, and always in this project: {rules}");
    }
    text.push_str("  n  no; what you write behind it is told to the model\n");
    if let Some(why) = unkept(question) {
        let _ = writeln!(text, "{why}");
    }
    text.push_str("> ");
    text
}

/// Why only yes and no are offered, where that is so.
fn unkept(question: &Question) -> Option<String> {
    let why = question.each_time.as_ref().filter(|_| question.rules.is_empty())?;
    Some(format!("An answer cannot be kept: {}.", visible(why)))
}

/// What would be done, in full, in lines.
fn subject(question: &Question) -> Vec<String> {
    let input: Value = serde_json::from_str(question.tool_use.input.get()).unwrap_or_default();
    let Some(fields) = input.as_object() else { return vec![visible(question.tool_use.input.get())] };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (mut first, mut others, mut removed, mut added) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, value) in fields {
        match name.as_str() {
            // What runs stands first and bare, so that nothing can be taken for it.
            "command" => first.extend(visible_command(&text(value)).split('\n').map(str::to_owned)),
            // And what is changed before how.
            "file_path" => drop(others.splice(0..0, field(name, &text(value)))),
            "old_string" => removed.extend(marked(&text(value), "-")),
            "new_string" | "content" => added.extend(marked(&text(value), "+")),
            _ => others.extend(field(name, &text(value))),
        }
    }
    [first, others, removed, added].concat()
}

/// Lines of a file behind a mark. No line can pass for a field, and an end of line at the end shows as an empty one.
fn marked(text: &str, mark: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    visible_content(text).split('\n').map(|line| format!("{mark} {line}")).collect()
}

/// A field with its name; its further lines are set in, so that none passes for a field of its own.
fn field(name: &str, text: &str) -> Vec<String> {
    let shown = format!("{}: {}", visible(name), visible_content(text));
    shown.replace('\n', "\n  ").split('\n').map(str::to_owned).collect()
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
            let why = unkept(question).map_or_else(String::new, |why| format!("{why} "));
            Said::Unclear(format!("{why}Answer y or n."))
        }
        "n" | "no" => Said::Answer(Answer::Deny(refusal(rest.trim())), Vec::new()),
        _ if leaves(line) => Said::Leave,
        _ if question.rules.is_empty() => Said::Unclear("Answer y or n; /exit leaves.".into()),
        _ => Said::Unclear("Answer y, s, a or n; /exit leaves.".into()),
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
        let shown = question(&asked("{}", &[]));
        assert!(!shown.contains("always"), "{shown}");
        assert!(
            shown.ends_with("model\nAn answer cannot be kept: it changes a protected file.\n> "),
            "{shown}"
        );
    }

    #[test]
    fn an_edit_is_shown_as_lines_that_go_and_lines_that_come() {
        let check = |input: &str, expected: &[&str]| assert_eq!(subject(&asked(input, &[])), expected);
        check(
            r#"{"new_string":"all:\n\tcc \u001bx","replace_all":false,"old_string":"all:\n","file_path":"Makefile"}"#,
            &["file_path: Makefile", "replace_all: false", "- all:", "- ", "+ all:", "+ \tcc <U+001B>x"],
        );
        check(r#"{"file_path":"a","old_string":"x","new_string":""}"#, &["file_path: a", "- x"]);
        check(r#"{"file_path":"a\nfile_path: b","content":"x"}"#, &["file_path: a", "  file_path: b", "+ x"]);
    }

    #[test]
    fn answers_are_understood() {
        let check = |line: &str, rules: &[&str], expected: &str| {
            let seen = match understand(line, &asked("{}", rules)) {
                Said::Answer(answer, updates) => format!("{answer:?} {}", updates.len()),
                Said::Leave => "Leave".to_owned(),
                Said::Unclear(text) => text,
            };
            assert!(seen.starts_with(expected), "{line}: {seen}");
        };
        check("y\n", &[], "Allow 0");
        check("Yes", &[], "Allow 0");
        check("a", &["Bash(make)"], "Allow 1");
        check("s", &["Bash(make)"], "Allow 1");
        check("a", &[], "An answer cannot be kept: it changes a protected file. Answer y or n.");
        check("n", &[], "Deny(\"The user does not want this call to be made. Do");
        check("n use cargo", &[], "Deny(\"The user does not want this call to be made, and says: use cargo");
        check("", &[], "Answer y or n;");
        check("maybe", &["Bash(make)"], "Answer y, s, a or n;");
        check("/exit", &[], "Leave");
    }
}
