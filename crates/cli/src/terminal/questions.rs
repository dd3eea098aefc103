//! Questions about calls, asked at the terminal.

use std::fmt::Write as _;

use serde_json::Value;
use windlass::protocol::{Offers, PermissionUpdate, SettingsDestination};
use windlass::{Answer, Question};

use crate::terminal::is_exit_word;
use crate::views::visible::{visible, visible_command, visible_content};

/// What diffs say of a file whose last line does not end.
const NO_LAST_LINE_END: &str = "\\ No newline at end of file";

/// What a person said to a question.
#[derive(Debug)]
pub(crate) enum QuestionReply {
    /// Do this, after these changes of the permissions.
    Answer(Answer, Vec<PermissionUpdate>),
    /// Do nothing, and leave the session.
    Leave,
    /// It is no answer; this is to be said.
    Unclear(String),
}

/// The question as it is shown: every character of the call, why it is asked, and what can be answered.
pub(crate) fn question(question: &Question) -> String {
    let mut text = format!("\n{} needs your approval:\n\n", question.tool_use.name);
    for line in subject(question) {
        let _ = writeln!(text, "    {line}");
    }
    let _ = writeln!(text, "\n{}", visible(&question.reason));
    text.push_str("  y   yes, this once\n");
    for ([session, project], rules) in rule_offers(question) {
        let rules = visible(&rules.join(", "));
        let _ = writeln!(text, "  {session:<3} yes, and for the rest of this session: {rules}");
        let _ = writeln!(text, "  {project:<3} yes, and always in this project: {rules}");
    }
    if question.offers.can_accept_edits {
        text.push_str("  e   yes, and accept edits for the rest of this session\n");
    }
    text.push_str("  n   no (add a reason for the model: `n use tabs`)\n");
    if let Some(why) = unkept(question) {
        let _ = writeln!(text, "{why}");
    }
    text
}

/// The rules that can be kept, each list with what is typed to keep it: for the session, or in the project.
fn rule_offers(question: &Question) -> impl Iterator<Item = ([&'static str; 2], &Vec<String>)> {
    let offers = &question.offers;
    [(["s", "a"], &offers.rules), (["s*", "a*"], &offers.prefix_rules)]
        .into_iter()
        .filter(|(_, rules)| !rules.is_empty())
}

/// Why only yes and no are offered, where that is so.
fn unkept(question: &Question) -> Option<String> {
    let why = question.each_time.as_ref().filter(|_| question.offers.is_empty())?;
    Some(format!("Asked every time: {}.", visible(why)))
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
            "old_string" => removed.extend(mark_lines(&text(value), "-")),
            "new_string" => added.extend(mark_lines(&text(value), "+")),
            "content" => added.extend(added_lines(&text(value))),
            _ => others.extend(field(name, &text(value))),
        }
    }
    [first, others, removed, added].concat()
}

/// A whole file. That its last line ends goes without saying, as in every diff.
fn added_lines(content: &str) -> Vec<String> {
    match content.strip_suffix('\n') {
        Some("") => vec!["+ ".to_owned()],
        Some(lines) => mark_lines(lines, "+"),
        None if content.is_empty() => Vec::new(),
        None => mark_lines(content, "+").into_iter().chain([NO_LAST_LINE_END.to_owned()]).collect(),
    }
}

/// Lines of a file behind a mark. No line can pass for a field, and an end of line at the end shows as an empty one.
fn mark_lines(text: &str, mark: &str) -> Vec<String> {
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

/// What a line that was typed means. Only a no takes words: a sentence that happens to begin with a key grants nothing.
pub(crate) fn understand(line: &str, question: &Question) -> QuestionReply {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !rest.is_empty() && !matches!(word.to_ascii_lowercase().as_str(), "n" | "no") {
        return QuestionReply::Unclear(format!("Answer {}; only n takes words.", answers(question)));
    }
    let word = match word.to_ascii_lowercase().as_str() {
        "session" => "s".to_owned(),
        "always" => "a".to_owned(),
        word => word.to_owned(),
    };
    let kept = rule_offers(question).find_map(|([session, project], rules)| {
        let destination = match word.as_str() {
            word if word == session => SettingsDestination::Session,
            word if word == project => SettingsDestination::Local,
            _ => return None,
        };
        Some(PermissionUpdate::allow(rules, destination))
    });
    if let Some(update) = kept {
        return QuestionReply::Answer(Answer::Allow, vec![update]);
    }
    match word.as_str() {
        "y" | "yes" => QuestionReply::Answer(Answer::Allow, Vec::new()),
        "e" if question.offers.can_accept_edits => {
            QuestionReply::Answer(Answer::Allow, vec![Offers::accept_edits()])
        }
        "n" | "no" => QuestionReply::Answer(Answer::rejected(rest.trim()), Vec::new()),
        _ if is_exit_word(line) => QuestionReply::Leave,
        "s" | "a" | "s*" | "a*" | "e" => {
            let why = unkept(question).map_or_else(String::new, |why| format!("{why} "));
            QuestionReply::Unclear(format!("{why}Answer {}.", answers(question)))
        }
        _ => QuestionReply::Unclear(format!("Answer {}; /exit leaves.", answers(question))),
    }
}

/// The keys that can be typed.
fn answers(question: &Question) -> String {
    let kept = rule_offers(question).flat_map(|(keys, _)| keys);
    let edits = question.offers.can_accept_edits.then_some("e");
    let keys: Vec<&str> = std::iter::once("y").chain(kept).chain(edits).collect();
    format!("{} or n", keys.join(", "))
}

#[cfg(test)]
mod tests {

    use windlass::engine::CallId;
    use windlass::protocol::{CallFacts, CallKind, RawValue, ToolUse};

    use super::*;

    fn asked(input: &str, rules: &[&str]) -> Question {
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let offers = Offers { rules, ..Offers::default() };
        Question {
            call: CallId(1),
            tool_use: ToolUse {
                id: "t1".into(),
                name: "Bash".into(),
                input: RawValue::from_string(input.into()).unwrap().into(),
            },
            facts: CallFacts::new(CallKind::Execute),
            reason: "No rule allows `make`.".into(),
            is_repeated: false,
            each_time: offers.is_empty().then(|| "it changes a protected file".into()),
            offers,
        }
    }

    fn asked_with_everything() -> Question {
        let asked = asked("{}", &["Bash(cargo test -q)"]);
        let prefix_rules = vec!["Bash(cargo test *)".to_owned()];
        Question { offers: Offers { prefix_rules, can_accept_edits: true, ..asked.offers }, ..asked }
    }

    #[test]
    fn the_whole_call_is_shown() {
        let shown =
            question(&asked(r#"{"description":"Lists","command":"ls\u001b[2K\nrm x"}"#, &["Bash(make)"]));
        assert_eq!(
            shown,
            "\nBash needs your approval:\n\n    ls<U+001B>[2K\n    rm x\n    description: Lists\n\n\
             No rule allows `make`.\n  y   yes, this once\n  \
             s   yes, and for the rest of this session: Bash(make)\n  \
             a   yes, and always in this project: Bash(make)\n  n   no (add a reason for the model: `n use tabs`)\n"
        );
        let shown = question(&asked("{}", &[]));
        assert!(!shown.contains("always"), "{shown}");
        assert!(shown.ends_with("tabs`)\nAsked every time: it changes a protected file.\n"), "{shown}");
    }

    #[test]
    fn every_offer_is_shown_with_its_key() {
        let shown = question(&asked_with_everything());
        let keys = "  y   yes, this once\n  \
             s   yes, and for the rest of this session: Bash(cargo test -q)\n  \
             a   yes, and always in this project: Bash(cargo test -q)\n  \
             s*  yes, and for the rest of this session: Bash(cargo test *)\n  \
             a*  yes, and always in this project: Bash(cargo test *)\n  \
             e   yes, and accept edits for the rest of this session\n  n   no ";
        assert!(shown.contains(keys), "{shown}");
    }

    #[test]
    fn an_edit_is_shown_as_lines_that_go_and_lines_that_come() {
        let check = |input: &str, expected: &[&str]| assert_eq!(subject(&asked(input, &[])), expected);
        check(
            r#"{"new_string":"all:\n\tcc \u001bx","replace_all":false,"old_string":"all:\n","file_path":"Makefile"}"#,
            &["file_path: Makefile", "replace_all: false", "- all:", "- ", "+ all:", "+ \tcc <U+001B>x"],
        );
        check(r#"{"file_path":"a","old_string":"x","new_string":""}"#, &["file_path: a", "- x"]);
        check(
            r#"{"file_path":"a\nfile_path: b","content":"x\n"}"#,
            &["file_path: a", "  file_path: b", "+ x"],
        );
    }

    #[test]
    fn a_written_file_is_shown_as_its_lines() {
        let check = |content: &str, expected: &[&str]| {
            let input = serde_json::json!({ "content": content }).to_string();
            assert_eq!(subject(&asked(&input, &[])), expected);
        };
        check("a\nb\n", &["+ a", "+ b"]);
        check("a\n\n", &["+ a", "+ "]);
        check("\n", &["+ "]);
        check("", &[]);
        check("a\nb", &["+ a", "+ b", "\\ No newline at end of file"]);
    }

    #[track_caller]
    fn check(line: &str, question: &Question, expected: &str) {
        let seen = match understand(line, question) {
            QuestionReply::Answer(answer, updates) => {
                let updates: Vec<String> = updates.iter().map(PermissionUpdate::to_json).collect();
                format!("{answer:?} {}", updates.join(" "))
            }
            QuestionReply::Leave => "Leave".to_owned(),
            QuestionReply::Unclear(text) => text,
        };
        assert!(seen.starts_with(expected), "{line}: {seen}");
    }

    #[test]
    fn answers_are_understood() {
        let (nothing, make) = (asked("{}", &[]), asked("{}", &["Bash(make)"]));
        check("y\n", &nothing, "Allow ");
        check("Yes", &nothing, "Allow ");
        let adds = r#"Allow {"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"make"}],"behavior":"allow","#;
        check("a", &make, &format!(r#"{adds}"destination":"localSettings"}}"#));
        check("session", &make, &format!(r#"{adds}"destination":"session"}}"#));
        check("a", &nothing, "Asked every time: it changes a protected file. Answer y or n.");
        check("e", &make, "Answer y, s, a or n.");
        check("n", &nothing, "Deny(\"The user rejected this call. Do");
        check("n use cargo", &nothing, "Deny(\"The user rejected this call: use cargo");
        check("", &nothing, "Answer y or n;");
        check("maybe", &make, "Answer y, s, a or n;");
        for sentence in ["y please", "a better way is mv", "s touch *", "always do it", "exit the loop"] {
            check(sentence, &make, "Answer y, s, a or n; only n takes words.");
        }
        check("/exit", &nothing, "Leave");
    }

    #[test]
    fn prefixes_and_accepted_edits_can_be_chosen() {
        let question = asked_with_everything();
        let content = r#""ruleContent":"cargo test *"}],"behavior":"allow""#;
        let adds = format!(r#"Allow {{"type":"addRules","rules":[{{"toolName":"Bash",{content},"#);
        check("s*", &question, &format!(r#"{adds}"destination":"session"}}"#));
        check("A*", &question, &format!(r#"{adds}"destination":"localSettings"}}"#));
        check("e", &question, r#"Allow {"type":"setMode","mode":"acceptEdits","destination":"session"}"#);
        check("x", &question, "Answer y, s, a, s*, a*, e or n; /exit leaves.");
    }
}
