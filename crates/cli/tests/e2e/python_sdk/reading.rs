//! What the SDK reads of each kind of session: every message that stands, once, in order, with the ids of the live stream.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Live, Sdk, bash, check_requests, converse, outline, prompt_id, says, stage, uuids};
use crate::host::{Host, prompt};
use crate::resume::{log, logs};
use crate::support::Stage;

/// A picture in the form that messages hold.
const RED_PIXEL: &str =
    "ICAgIIlQTkcNChoKAAAADUlIRFIAAAABAAAAAQgCAAAAkHdT3gAAAAxJREFUeNpj+M/AAAADAQEA9wNBQwAAAABJRU5ErkJggg==";

/// Checks what the SDK reads of a session, and that it names each message as the hosts heard it. Gives the messages.
#[track_caller]
fn check(sdk: &mut Sdk, live: &[&Live], expected: &[&str]) -> Vec<Value> {
    let id = live.last().unwrap().id();
    let messages = sdk.messages(&id);
    assert_eq!(outline(&messages), expected);
    let seen = uuids(&messages);
    let once: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(once.len(), seen.len(), "a message comes twice");
    let standing: BTreeSet<String> = live.iter().flat_map(|live| live.standing()).collect();
    assert_eq!(once, standing, "what was heard is what is read");
    assert!(messages.iter().all(|message| message["session_id"] == id.as_str()));
    messages
}

#[test]
fn plain_answers_also_of_several_processes() {
    let stage = stage(&json!([says("One."), says("Two."), says("Three.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let first = converse(&stage, &[], &[(1, "first"), (2, "second")]);
    let expected = ["user: first", "assistant: One.", "user: second", "assistant: Two."];
    let messages = check(&mut sdk, &[&first], &expected);
    assert_eq!(messages[0]["uuid"], prompt_id(1).as_str(), "a host's own id");
    assert_eq!(messages[0]["message"], json!({"role": "user", "content": "first"}), "in the form it came");

    let second = converse(&stage, &["--continue"], &[(3, "third")]);
    check(&mut sdk, &[&first, &second], &[&expected[..], &["user: third", "assistant: Three."]].concat());
    check_requests(&stage);
}

#[test]
fn calls_that_ran_side_by_side_are_all_there() {
    let calls = [bash("sleep 1; echo slow"), bash("echo fast"), bash("sleep 0.5; echo middle")];
    let [slow, fast, middle] = calls;
    let stage = stage(&json!([
        {"blocks": [{"thinking": "Hm."}, {"text": "Three at once."}, slow, fast, middle]}, says("Done."), says("Bye."),
    ]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let live = converse(&stage, &[], &[(1, "go"), (2, "thanks")]);
    let messages = check(
        &mut sdk,
        &[&live],
        &[
            "user: go",
            "assistant: thinking",
            "assistant: Three at once.",
            "assistant: Bash sleep 1; echo slow",
            "assistant: Bash echo fast",
            "assistant: Bash sleep 0.5; echo middle",
            "user: -> slow",
            "user: -> fast",
            "user: -> middle",
            "assistant: Done.",
            "user: thanks",
            "assistant: Bye.",
        ],
    );
    let page = sdk.call("get_session_messages", &json!({"session_id": live.id(), "limit": 4, "offset": 5}));
    assert_eq!(page.as_array().unwrap()[..], messages[5..9]);
    check_requests(&stage);
}

#[test]
fn what_was_taken_back_is_not_there() {
    let flags = ["--fallback-model", "sonnet"];
    let other = json!({"when": {"model": "sonnet"}, "model": "claude-sonnet-5-5", "blocks": [{"text": "A whole one."}]});
    let read = json!({"tool": "Read", "input": {"file_path": "a"}});
    let cut = json!({"blocks": [{"text": "Half."}, read, {"text": "and more"}], "fault": {"cut": {"after_events": 8}}});
    let whole = stage(&json!([other, cut, says("Bye.")]));
    let Some(mut sdk) = Sdk::start(&whole) else { return };
    let live = converse(&whole, &flags, &[(1, "go"), (2, "thanks")]);
    check(&mut sdk, &[&live], &["user: go", "assistant: A whole one.", "user: thanks", "assistant: Bye."]);

    // What has acted stands, and all that was said before the response broke off.
    let act = bash("echo x >> made; echo made");
    let cut = json!({"blocks": [{"text": "First."}, act, {"text": "Second."}, {"text": "a story", "delay_ms": 1_000}],
        "fault": {"cut": {"after_events": 12}}});
    let part = stage(&json!([other, cut, says("Bye.")]));
    let Some(mut sdk) = Sdk::start(&part) else { return };
    let live = converse(&part, &flags, &[(1, "go"), (2, "thanks")]);
    let expected = [
        "user: go",
        "assistant: First.",
        "assistant: Bash echo x >> made; echo made",
        "assistant: Second.",
        "user: -> made",
        "assistant: A whole one.",
        "user: thanks",
        "assistant: Bye.",
    ];
    check(&mut sdk, &[&live], &expected);
    check_requests(&part);
}

#[test]
fn prompts_with_images_and_prompts_during_a_run() {
    let stage = stage(&json!([says("Red."), {"blocks": [bash("sleep 1; echo slept")]}, says("Done.")]));
    stage.project.write("CLAUDE.md", "Be kind.").unwrap();
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let mut host = Host::start(&stage, &["--replay-user-messages", "--allowedTools", "Bash"]);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png",
        "data": RED_PIXEL}});
    host.say(&json!({"type": "user", "uuid": prompt_id(1), "parent_tool_use_id": null,
        "message": {"role": "user", "content": [{"type": "text", "text": "which colour?"}, image]}}));
    let mut lines = host.hear_until("result");
    host.say(&prompt("go", &prompt_id(2)));
    lines.extend(host.hear_until("assistant"));
    host.say(&prompt("and hurry", &prompt_id(3)));
    lines.extend(host.hear_until("result"));
    assert_eq!(host.end().1.code(), Some(0));
    let live = Live(lines);
    let expected = [
        "user: which colour? + image",
        "assistant: Red.",
        "user: go",
        "assistant: Bash sleep 1; echo slept",
        "user: -> slept",
        "user: and hurry",
        "assistant: Done.",
    ];
    let messages = check(&mut sdk, &[&live], &expected);
    assert_eq!(messages[0]["message"]["content"].as_array().unwrap().len(), 2, "memory files are not shown");
    assert_eq!(uuids(&messages)[5], prompt_id(3));
    check_requests(&stage);
}

#[test]
fn copies_and_cuts() {
    let stage = stage(&json!([says("One."), says("Two."), says("Three."), says("Four.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let source = converse(&stage, &[], &[(1, "first"), (2, "second")]);
    let read = sdk.messages(&source.id());
    let copy = converse(&stage, &["--continue", "--fork-session"], &[(3, "third")]);
    let all = [
        "user: first",
        "assistant: One.",
        "user: second",
        "assistant: Two.",
        "user: third",
        "assistant: Three.",
    ];
    let copied = check(&mut sdk, &[&source, &copy], &all);
    assert_eq!(uuids(&copied)[..4], uuids(&read));
    assert_eq!(sdk.messages(&source.id()), read, "the source is what it was");

    let behind = uuids(&read)[1].clone();
    let flags = ["--resume", &source.id(), "--resume-session-at", &behind];
    let cut = converse(&stage, &flags, &[(4, "fourth")]);
    assert_eq!(cut.id(), source.id());
    let messages = sdk.messages(&cut.id());
    assert_eq!(outline(&messages), ["user: first", "assistant: One.", "user: fourth", "assistant: Four."]);
    assert_eq!(uuids(&messages)[..2], uuids(&read)[..2]);
    assert!(cut.standing().iter().all(|uuid| uuids(&messages).contains(uuid)));
    assert_eq!(sdk.list(&stage).len(), 2);
    check_requests(&stage);
}

#[test]
fn what_stands_after_a_compaction() {
    let summary =
        json!({"when": {"contains": "replaced by what you write now"}, "blocks": [{"text": "They spoke."}]});
    let stage = stage(&json!([summary, says("One."), says("Two."), says("Three.")]));
    stage.project.write("CLAUDE.md", "Be kind.").unwrap();
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let long = "many words ".repeat(3_000);
    let flags = ["--replay-user-messages"];
    let mut host = Host::spawn(
        stage
            .command(&[&crate::host::LINES[..], &flags].concat())
            .env("WINDLASS_TAIL_TOKENS", "0")
            .into_command(),
    );
    host.say(&prompt(&long, &prompt_id(1)));
    host.hear_until("result");
    host.say(&prompt("/compact", &prompt_id(2)));
    let id = Live(host.hear_until("result")).id();
    let compacted = outline(&sdk.messages(&id));
    assert!(matches!(&compacted[..], [summary] if summary.contains("They spoke.")), "{compacted:?}");
    host.say(&prompt("go on", &prompt_id(3)));
    let live = Live(host.hear_until("result"));
    assert_eq!(host.end().1.code(), Some(0));
    let messages = sdk.messages(&id);
    let seen = outline(&messages);
    assert!(seen[0].contains("They spoke."), "{seen:?}");
    assert_eq!(seen[1..], ["user: go on", "assistant: Two."]);
    assert_eq!(uuids(&messages)[1..].iter().cloned().collect::<BTreeSet<_>>(), live.standing());

    let resumed = converse(&stage, &["--resume", &id], &[(4, "and on")]);
    let seen = outline(&sdk.messages(&resumed.id()));
    assert_eq!(seen[1..], ["user: go on", "assistant: Two.", "user: and on", "assistant: Three."]);
    check_requests(&stage);
}

#[test]
fn a_run_that_was_killed_and_a_line_that_was_torn() {
    let stage = stage(
        &json!([says("One."), {"blocks": [{"text": "Wait."}, bash("touch begun; sleep 30")]}, says("Two.")]),
    );
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let mut host = Host::start(&stage, &["--replay-user-messages", "--allowedTools", "Bash"]);
    host.say(&prompt("first", &prompt_id(1)));
    let mut lines = host.hear_until("result");
    host.say(&prompt("go", &prompt_id(2)));
    lines.extend(host.hear_until("assistant"));
    lines.extend(host.hear_until("assistant"));
    stage.wait_for_file("begun");
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    let killed = Live(lines);
    let begun = [
        "user: first",
        "assistant: One.",
        "user: go",
        "assistant: Wait.",
        "assistant: Bash touch begun; sleep 30",
    ];
    check(&mut sdk, &[&killed], &begun);
    let listed = sdk.info(&killed.id());
    assert_eq!((&listed["summary"], &listed["first_prompt"]), (&json!("first"), &json!("first")));

    let file = log(&stage);
    let torn = [&std::fs::read(&file).unwrap()[..], br#"{"type":"user","uuid":"#].concat();
    std::fs::write(&file, torn).unwrap();
    check(&mut sdk, &[&killed], &begun);

    let resumed = converse(&stage, &["--continue"], &[(3, "and now?")]);
    let messages = sdk.messages(&resumed.id());
    let seen = outline(&messages);
    assert_eq!(seen[..5], begun);
    assert!(seen[5].starts_with("user: -> ") && seen[5].contains("unknown"), "{seen:?}");
    assert_eq!(seen[6..], ["user: and now?", "assistant: Two."]);
    assert_eq!(logs(&stage).len(), 1);
    check_requests(&stage);
}

#[test]
fn the_version_passes_the_check_of_the_sdk() {
    let stage = Stage::hello();
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let init = stage.told(&[], &[]).lines[0].clone();
    assert_eq!(sdk.call("version_warnings", &json!({"line": init})), json!([]));
    let ours = json!({"type": "system", "subtype": "init", "claude_code_version": "windlass"});
    assert_eq!(sdk.call("version_warnings", &json!({"line": ours})).as_array().unwrap().len(), 2);
}
