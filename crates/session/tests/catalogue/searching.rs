//! Words in what was said.

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value, json};
use windlass_session::{ListScope, SearchHit, SearchSpeaker, search};

use crate::support::{World, numbers, user};

const CWD: &str = "/nowhere/app";

fn entry(kind: &str, uuid: &str, content: &Value) -> Value {
    json!({"type": kind, "uuid": uuid, "timestamp": "2026-11-13T10:20:30.123Z", "message": {"content": content}})
}

/// Who said the words in which session, and the line around them.
fn found(world: &World, words: &str) -> Vec<(u128, SearchSpeaker, String)> {
    let sessions = world.catalogue().list(ListScope::Everywhere);
    let mut hits = Vec::new();
    let unreadable = search(&sessions, words, &mut |hit: SearchHit<'_>| {
        let session = numbers(std::slice::from_ref(hit.session))[0];
        hits.push((session, hit.who, format!("{}[{}]{}", hit.before, hit.words, hit.behind)));
        ControlFlow::Continue(())
    });
    assert_eq!(unreadable, Vec::<std::path::PathBuf>::new());
    hits
}

fn conversation(world: &World) {
    let cwd = Path::new(CWD);
    let call =
        json!([{"type": "tool_use", "id": "t1", "name": "Grep", "input": {"pattern": "needle in \"hay\""}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "one\nNeedle\nthree"}]);
    let mut note = entry("user", "u5", &json!("a needle nobody said"));
    note["isMeta"] = true.into();
    world.session(
        cwd,
        1,
        &[
            user(cwd, "Where is the NEEDLE?"),
            json!({"type": "windlass", "kind": "heard", "seq": 1, "of": "needle"}),
            entry("assistant", "u2", &call),
            entry("user", "u3", &result),
            entry("assistant", "u4", &json!([{"type": "text", "text": "Stra\u{df}e und N\u{c4}HE"}])),
            note,
        ],
    );
    world.session(
        cwd,
        2,
        &[user(cwd, "Hello"), json!({"type": "custom-title", "customTitle": "Needlework"})],
    );
}

#[test]
fn words_are_found_with_who_said_them() {
    let world = World::new();
    conversation(&world);
    let expected = [
        (2, SearchSpeaker::Title, "[Needle]work"),
        (1, SearchSpeaker::User, "Where is the [NEEDLE]?"),
        (1, SearchSpeaker::Assistant, "{\"pattern\":\"[needle] in \\\"hay\\\"\"}"),
        (1, SearchSpeaker::Tool("Grep".into()), "one\n[Needle]\nthree"),
    ];
    assert_eq!(found(&world, "needle"), expected.map(|(session, who, line)| (session, who, line.to_owned())));
}

#[test]
fn words_beyond_ascii_and_marks_are_found_too() {
    let world = World::new();
    conversation(&world);
    let check = |words: &str, expected: &[&str]| {
        let lines: Vec<String> = found(&world, words).into_iter().map(|(_, _, line)| line).collect();
        assert_eq!(lines, expected, "{words}");
    };
    check("n\u{e4}he", &["Stra\u{df}e und [N\u{c4}HE]"]);
    check("the needle?", &["Where is [the NEEDLE?]"]);
    check("haystack", &[]);
    check("  ", &[]);
}

#[test]
fn long_texts_are_shown_around_the_words() {
    let world = World::new();
    let cwd = Path::new(CWD);
    world.said(cwd, 1, &format!("{}needle{}", "\u{e9}".repeat(100), "x".repeat(300)));
    let line = format!("\u{2026}{}[needle]{}\u{2026}", "\u{e9}".repeat(40), "x".repeat(120));
    assert_eq!(found(&world, "needle"), [(1, SearchSpeaker::User, line)]);
}

#[test]
fn what_was_taken_back_is_not_found() {
    let world = World::new();
    let cwd = Path::new(CWD);
    let mut gone =
        entry("assistant", "u2", &json!([{"type": "text", "text": "a needle that did not stand"}]));
    gone["windlass"] = json!({"is": "answered", "n": 7});
    let retracted = json!({"type": "windlass", "kind": "retracted", "seq": 2, "of": [7]});
    world.session(cwd, 1, &[user(cwd, "hello"), gone.clone(), retracted]);
    assert_eq!(found(&world, "needle"), []);
    world.session(cwd, 1, &[user(cwd, "hello"), gone]);
    assert_eq!(found(&world, "needle").len(), 1);
}

#[test]
fn a_search_ends_when_enough_was_found() {
    let world = World::new();
    for number in 1..=5 {
        world.said(Path::new(CWD), number, "needle");
    }
    let sessions = world.catalogue().list(ListScope::Everywhere);
    let mut count = 0;
    search(&sessions, "needle", &mut |_| {
        count += 1;
        if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(count, 2);
}

#[test]
fn a_session_that_cannot_be_read_is_named() {
    let world = World::new();
    let path = world.said(Path::new(CWD), 1, "needle");
    let sessions = world.catalogue().list(ListScope::Everywhere);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(search(&sessions, "needle", &mut |_| ControlFlow::Continue(())), [path]);
}

#[test]
fn damage_does_not_stop_a_search() {
    let world = World::new();
    let cwd = Path::new(CWD);
    let path = world.said(cwd, 1, "hello");
    let mut bytes = b"\xff\xfe needle\n{\"type\":\"user\",\"uuid\":\n".to_vec();
    bytes.extend(std::fs::read(&path).unwrap());
    bytes.extend(format!("{}\n{{\"type\":\"user\"", entry("user", "u9", &json!("the needle"))).into_bytes());
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(found(&world, "needle"), [(1, SearchSpeaker::User, "the [needle]".to_owned())]);
}
