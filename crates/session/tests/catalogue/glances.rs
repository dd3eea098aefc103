//! What a list tells about a session, from the two ends of its file.

use std::path::Path;

use serde_json::{Value, json};
use windlass_session::SessionInfo;

use crate::support::{World, user};

const CWD: &str = "/nowhere/app";

fn prompt(text: &str) -> Value {
    user(Path::new(CWD), text)
}

fn filler(bytes: usize) -> Value {
    json!({"type": "file-history-snapshot", "data": "x".repeat(bytes)})
}

/// What a list tells about a session with these lines; `None` if it is left out.
fn listed(lines: &[Value]) -> Option<SessionInfo> {
    let world = World::new();
    world.session(Path::new(CWD), 1, lines);
    world.list(Path::new(CWD)).pop()
}

#[track_caller]
fn check_summary(lines: &[Value], expected: Option<&str>) {
    assert_eq!(listed(lines).and_then(|session| session.preview.summary).as_deref(), expected);
}

#[test]
fn a_session_is_shown_by_its_title_else_by_its_last_prompt_else_by_its_first() {
    let title = |text: &str| json!({"type": "custom-title", "customTitle": text, "sessionId": "s"});
    let ai = json!({"type": "ai-title", "aiTitle": "by a model"});
    let last = json!({"type": "last-prompt", "lastPrompt": "the last", "sessionId": "s"});
    let summary = json!({"type": "summary", "summary": "in short", "leafUuid": "u"});
    let first = prompt("the first");
    check_summary(std::slice::from_ref(&first), Some("the first"));
    check_summary(&[first.clone(), summary.clone()], Some("in short"));
    check_summary(&[first.clone(), last.clone(), summary.clone()], Some("the last"));
    check_summary(&[first.clone(), ai.clone(), last.clone()], Some("by a model"));
    check_summary(&[first.clone(), title("a"), title("b"), ai.clone(), last.clone()], Some("b"));
    check_summary(&[first.clone(), title("a"), title("")], Some("a"));
    check_summary(&[first.clone(), title("far away"), filler(200_000), last.clone()], Some("far away"));
    check_summary(&[first.clone(), last.clone(), filler(200_000), first.clone()], Some("the first"));
    let nested =
        json!({"type": "assistant", "message": {"content": [{"input": {"customTitle": "not this"}}]}});
    check_summary(&[first, nested], Some("the first"));
}

#[test]
fn the_first_prompt_is_what_a_person_said_first() {
    let check = |texts: &[&str], expected: &str| {
        let lines: Vec<Value> = texts.iter().map(|text| prompt(text)).collect();
        let seen = listed(&lines).and_then(|session| session.preview.first_prompt);
        assert_eq!(seen.as_deref().unwrap_or("none"), expected, "{texts:?}");
    };
    check(&["two\nlines "], "two lines");
    check(&["<local-command-stdout>x</local-command-stdout>", "next"], "next");
    check(&["<session-start-hook>x", "<tick>1", "<goal>x", "next"], "next");
    check(&["[Request interrupted by user for tool use]", "next"], "next");
    check(&["<ide_opened_file>a.rs</ide_opened_file>", "next"], "next");
    check(&["<ide_selection>a</ide_selection> and this"], "<ide_selection>a</ide_selection> and this");
    check(&["<command-name>/clear</command-name> x", "next"], "next");
    check(&["<command-name>/clear</command-name> x", "<command-name>/two</command-name>"], "/clear");
    check(&["  ", "next"], "next");
    check(&[&"é".repeat(201)], &format!("{}\u{2026}", "é".repeat(200)));
    check(&[&"é".repeat(200)], &"é".repeat(200));
    check(&["tick"], "tick");
}

#[test]
fn what_others_said_is_no_prompt() {
    let changed = |key: &str, value: Value| {
        let mut line = prompt("not this");
        line[key] = value;
        line
    };
    let blocks = json!({"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "this"}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "content": "x"}]});
    let lines = [
        changed("isMeta", true.into()),
        changed("isCompactSummary", true.into()),
        changed("message", result),
        changed("type", "assistant".into()),
        changed("message", blocks),
    ];
    check_summary(&lines, Some("this"));
}

#[test]
fn a_first_prompt_longer_than_what_is_read_is_shown_by_its_beginning() {
    let long = format!("fix \"this\" \\ é\n{}", "x\u{1f600}".repeat(50_000));
    let session = listed(&[prompt(&long)]).unwrap();
    let shown = session.preview.first_prompt.unwrap();
    assert!(shown.starts_with("fix \"this\" \\ é x\u{1f600}"), "{shown}");
    assert!(shown.ends_with('\u{2026}') && shown.chars().count() == 201, "{shown}");
    assert_eq!(session.preview.cwd.as_deref(), Some(Path::new(CWD)));
    assert_eq!(session.preview.created_ms, Some(1_794_565_230_123));
}

#[test]
fn the_rest_is_told_too() {
    let mut second = prompt("second");
    second["gitBranch"] = "topic".into();
    second["cwd"] = "/nowhere/app/sub".into();
    second["timestamp"] = "2026-11-14T10:20:30.123Z".into();
    let tag = |tag: &str| json!({"type": "tag", "tag": tag, "sessionId": "s"});
    let session = listed(&[prompt("first"), second.clone(), tag("a"), tag("b")]).unwrap();
    assert_eq!(session.preview.branch.as_deref(), Some("topic"));
    assert_eq!(session.preview.cwd.as_deref(), Some(Path::new(CWD)));
    assert_eq!(session.preview.created_ms, Some(1_794_565_230_123));
    assert_eq!(session.modified_ms, 1_700_000_001_000);
    assert_eq!(session.preview.tag.as_deref(), Some("b"));
    assert_eq!(session.preview.entrypoint.as_deref(), Some("cli"));
    assert_eq!(session.size, std::fs::metadata(&session.path).map_or(session.size, |found| found.len()));
    assert_eq!(listed(&[prompt("first"), tag("a"), tag("")]).unwrap().preview.tag, None);
}

#[test]
fn what_has_nothing_to_show_is_left_out() {
    let mut side = prompt("of another");
    side["isSidechain"] = true.into();
    let opened = json!({"type": "windlass", "kind": "opened", "seq": 1, "cwd": CWD});
    check_summary(&[side, prompt("first")], None);
    assert_eq!(listed(std::slice::from_ref(&opened)), None);
    let answer = json!({"type": "assistant", "uuid": "u", "message": {"role": "assistant", "content": []}});
    let without_prompt = listed(&[opened, answer]).unwrap();
    assert_eq!(without_prompt.preview.summary, None);
}

#[test]
fn files_that_are_no_sessions_are_not_listed() {
    let world = World::new();
    let cwd = Path::new(CWD);
    world.said(cwd, 1, "hello");
    let folder = world.layout().project(cwd);
    std::fs::write(folder.join("notes.jsonl"), "{}\n").unwrap();
    std::fs::write(folder.join(format!("{}.jsonl", crate::support::id(2))), "").unwrap();
    std::fs::create_dir(folder.join(format!("{}.jsonl", crate::support::id(3)))).unwrap();
    std::fs::write(folder.join(format!("{}.jsonl", crate::support::id(4))), b"\xff\xfe\0 not json").unwrap();
    assert_eq!(crate::support::numbers(&world.list(cwd)), [1]);
}
