//! The mechanical reduction: what can be said about a conversation without a model.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use windlass_protocol::{Block, Message, Origin, RawObject, Role, ToolUse};

use super::text::{clip, one_line};

/// The tags of texts that the engine puts beside what a user says.
const NOTES: [&str; 4] = ["environment", "memory", "system-reminder", "task-notification"];

/// What was asked for, touched, run and said last, in at most about so many characters.
pub(crate) fn digest(past: &[&Arc<Message>], chars: usize) -> String {
    let mut text = String::from(
        "This summary was made without a model. It lists what the conversation was \
                                 about.",
    );
    section(&mut text, "Earlier summary", &earlier(past, chars / 4));
    section(&mut text, "User requests, oldest first", &prompts(past, chars / 4));
    section(
        &mut text,
        "Files read or changed, newest first",
        &list_inputs(past, chars / 8, &["file_path", "notebook_path"]),
    );
    section(&mut text, "Commands run, newest first", &list_inputs(past, chars / 8, &["command"]));
    section(&mut text, "Last answers of the assistant", &last_texts(past, chars / 4));
    text
}

fn section(text: &mut String, title: &str, content: &str) {
    if !content.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\n{title}:\n{content}");
    }
}

/// The first block of a boundary is the summary; the others are attached anew.
fn earlier(past: &[&Arc<Message>], chars: usize) -> String {
    let mut boundaries = past.iter().rev().filter(|message| message.origin == Origin::Boundary);
    let summary = boundaries.next().and_then(|message| message.blocks.first()).and_then(Block::as_text);
    summary.map_or_else(String::new, |summary| clip(summary, chars))
}

/// The first prompt and as many of the newest as there is room for.
fn prompts(past: &[&Arc<Message>], chars: usize) -> String {
    let prompts: Vec<String> = past.iter().filter_map(|message| prompt_text(message)).collect();
    let Some((first, others)) = prompts.split_first() else { return String::new() };
    let first = format!("- {}", one_line(first, chars / 2));
    let others: Vec<String> =
        others.iter().rev().map(|prompt| format!("- {}", one_line(prompt, chars / 4))).collect();
    let newest = fitting_lines(&others, chars / 2).into_iter().rev();
    std::iter::once(&first).chain(newest).cloned().collect::<Vec<_>>().join("\n")
}

/// What the user asked for in a message: in a prompt, or in what was typed while calls ran and came with their results.
pub(crate) fn prompt_text(message: &Message) -> Option<String> {
    let may_hold = matches!(message.origin, Origin::Prompt | Origin::Results);
    may_hold.then(|| said_text(message)).filter(|text| !text.trim().is_empty())
}

/// What somebody said in a message, without what the engine added.
fn said_text(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(Block::as_text);
    texts.filter(|text| !is_note(text)).collect::<Vec<_>>().join("\n")
}

/// Whether a text is a note of the engine.
fn is_note(text: &str) -> bool {
    NOTES.iter().any(|tag| text.starts_with(&format!("<{tag}>")) && text.ends_with(&format!("</{tag}>")))
}

fn last_texts(past: &[&Arc<Message>], chars: usize) -> String {
    let answers =
        past.iter().rev().filter(|message| message.role == Role::Assistant).map(|message| said_text(message));
    let texts: Vec<String> = answers
        .filter(|text| !text.trim().is_empty())
        .take(3)
        .map(|text| clip(text.trim(), chars / 3))
        .collect();
    fitting_lines(&texts, chars).into_iter().rev().cloned().collect::<Vec<_>>().join("\n\n")
}

/// What the newest calls say in the first of these fields that they have, each text once.
fn list_inputs(past: &[&Arc<Message>], chars: usize, fields: &[&str]) -> String {
    let mut seen = BTreeSet::new();
    let blocks = past.iter().rev().flat_map(|message| message.blocks.iter().rev());
    let text = |call: &ToolUse| fields.iter().find_map(|field| text_field(call, field));
    let texts = blocks.filter_map(Block::as_tool_use).filter_map(text).map(|text| one_line(&text, 200));
    let lines: Vec<String> =
        texts.filter(|text| seen.insert(text.clone())).map(|text| format!("- {text}")).collect();
    fitting_lines(&lines, chars).into_iter().cloned().collect::<Vec<_>>().join("\n")
}

/// A field of a call's input, if it is a text.
fn text_field(call: &ToolUse, field: &str) -> Option<String> {
    RawObject::parse(call.input.get()).ok()?.read(field)
}

/// As many lines from the start as there is room for.
fn fitting_lines(lines: &[String], chars: usize) -> Vec<&String> {
    let mut left = chars;
    let fits = |line: &&String| {
        let size = line.chars().count() + 1;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    };
    lines.iter().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::fixture::{answer, calls, prompt, results, transcript, user};

    fn past() -> windlass_protocol::Transcript {
        transcript(vec![
            user(1, Origin::Boundary, "Earlier: a parser."),
            prompt(2, "<system-reminder>date</system-reminder>"),
            prompt(3, "fix the parser"),
            calls(
                4,
                &[
                    ("t1", "Read", r#"{"file_path":"/p/a.rs"}"#),
                    ("t2", "Bash", r#"{"command":"cargo\ntest"}"#),
                ],
            ),
            results(5, &[("t1", "x"), ("t2", "y")]),
            calls(
                6,
                &[("t3", "Edit", r#"{"file_path":"/p/b.rs"}"#), ("t4", "Edit", r#"{"file_path":"/p/a.rs"}"#)],
            ),
            results(7, &[("t3", "x"), ("t4", "y")]),
            answer(8, "The parser is fixed."),
            prompt(9, "now the tests"),
        ])
    }

    #[test]
    fn it_says_what_was_asked_touched_run_and_said() {
        let past = past();
        let list: Vec<&Arc<Message>> = past.iter().collect();
        let text = digest(&list, 8_000);
        let expected = "This summary was made without a model. It lists what the conversation was about.\n\n\
            Earlier summary:\nEarlier: a parser.\n\n\
            User requests, oldest first:\n- fix the parser\n- now the tests\n\n\
            Files read or changed, newest first:\n- /p/a.rs\n- /p/b.rs\n\n\
            Commands run, newest first:\n- cargo test\n\n\
            Last answers of the assistant:\nThe parser is fixed.";
        assert_eq!(text, expected);
    }

    #[test]
    fn it_is_never_much_longer_than_asked_for() {
        let long = "word ".repeat(10_000);
        let messages: Vec<Message> =
            (0..200).map(|n| if n % 2 == 0 { prompt(n, &long) } else { answer(n, &long) }).collect();
        let messages = transcript(messages);
        let list: Vec<&Arc<Message>> = messages.iter().collect();
        for chars in [0, 100, 1_000, 10_000] {
            let size = digest(&list, chars).chars().count();
            assert!(size <= chars + 600, "{size} for {chars}");
        }
    }
}
