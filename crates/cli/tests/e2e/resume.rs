//! Sessions that go on in another process.

use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_testkit::Exchange;

use crate::host::{Host, prompt};
use crate::support::{Stage, Told};

const READ: &str = r#"{"tool": "Read", "input": {"file_path": "notes.txt"}}"#;

/// Two prompts; the first takes a turn.
fn conversation() -> Stage {
    let stage = Stage::new(&format!(
        r#"[{{"blocks": [{{"text": "Let me look."}}, {READ}]}}, {{"blocks": [{{"text": "It says hello."}}]}},
            {{"blocks": [{{"text": "Bye."}}]}}]"#
    ));
    stage.project.write("notes.txt", "hello\n").unwrap();
    stage
}

/// A run with a prompt that prints a line of JSON per message.
fn told(stage: &Stage, flags: &[&str]) -> Told {
    let stream = ["-p", "--output-format", "stream-json", "--verbose"];
    Told::new(stage.command(&[&stream[..], flags].concat()).run().unwrap())
}

/// The log of the only session.
pub(crate) fn log(stage: &Stage) -> PathBuf {
    let logs = logs(stage);
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs[0].clone()
}

/// The logs of all sessions.
pub(crate) fn logs(stage: &Stage) -> Vec<PathBuf> {
    let projects = stage.project.home().join(".windlass/projects");
    let Ok(projects) = std::fs::read_dir(projects) else { return Vec::new() };
    let files = projects.flat_map(|project| std::fs::read_dir(project.unwrap().path()).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files
}

pub(crate) fn id(log: &std::path::Path) -> String {
    log.file_stem().unwrap().to_str().unwrap().to_owned()
}

fn lines(log: &std::path::Path) -> Vec<Value> {
    std::fs::read_to_string(log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a request says, without what no model reads.
fn body(exchange: &Exchange) -> String {
    exchange.json().to_string()
}

#[test]
fn the_next_request_is_what_it_would_have_been_without_the_restart() {
    let whole = conversation();
    let mut host = Host::start(&whole, &[]);
    for text in ["what do the notes say?", "thanks"] {
        host.say(&prompt(text, "11111111-2222-4333-8444-555555555555"));
        host.hear_until("result");
    }
    host.end();

    let parts = conversation();
    let first = parts.run(&["-p", "what do the notes say?"]);
    assert_eq!((first.stdout.trim(), first.code()), ("It says hello.", Some(0)), "{}", first.stderr);
    let second = parts.run(&["-p", "--resume", &id(&log(&parts)), "thanks"]);
    assert_eq!((second.stdout.trim(), &*second.stderr), ("Bye.", ""));

    let (whole, parts) = (whole.server.exchanges(), parts.server.exchanges());
    assert_eq!((whole.len(), parts.len()), (3, 3));
    let place = |stage: &Exchange| body(stage);
    assert_eq!(without_places(&place(&whole[2])), without_places(&place(&parts[2])));
}

/// Each stage has a directory of its own.
fn without_places(body: &str) -> String {
    let mut parts: Vec<String> = body.split("windlass-test-").map(str::to_owned).collect();
    for part in parts.iter_mut().skip(1) {
        *part = part.split_once('/').map_or(String::new(), |(_, rest)| rest.to_owned());
    }
    parts.join("windlass-test-/")
}

#[test]
fn the_newest_session_goes_on_and_a_copy_leaves_it_alone() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}, {"blocks": [{"text": "Three."}]}]"#,
    );
    stage.run(&["-p", "first"]);
    let log = log(&stage);
    let second = told(&stage, &["--continue", "second"]);
    assert_eq!((&second.result["result"], &second.result["session_id"]), (&json!("Two."), &json!(id(&log))));
    let before = std::fs::read(&log).unwrap();
    let copy = told(&stage, &["--continue", "--fork-session", "third"]);
    assert_eq!(copy.result["result"], "Three.");
    assert_ne!(copy.result["session_id"], json!(id(&log)));
    assert_eq!(std::fs::read(&log).unwrap(), before);
    assert_eq!(logs(&stage).len(), 2);
    let text = stage.last_user_text();
    assert!(["first", "second", "third"].iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn a_session_goes_on_behind_a_message_as_if_nothing_had_followed() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}, {"blocks": [{"text": "Three."}]}]"#,
    );
    let first = told(&stage, &["first"]);
    let answer = first.lines.iter().find(|line| line["type"] == "assistant").unwrap()["uuid"].clone();
    stage.run(&["-p", "--continue", "second"]);
    let told = told(&stage, &["--continue", "--resume-session-at", answer.as_str().unwrap(), "third"]);
    assert_eq!(told.result["result"], "Three.", "{}", told.finished.stderr);
    let text = stage.last_user_text();
    assert!(text.contains("first") && text.contains("third") && !text.contains("second"), "{text}");
}

#[test]
fn every_line_of_the_live_stream_is_an_entry_of_the_log() {
    let stage = conversation();
    let told = told(&stage, &["what do the notes say?"]);
    let log = lines(&log(&stage));
    for line in
        told.lines.iter().filter(|line| ["assistant", "user"].contains(&line["type"].as_str().unwrap()))
    {
        let entry = log.iter().find(|entry| entry["uuid"] == line["uuid"]);
        let entry = entry.unwrap_or_else(|| panic!("{} is not in the log", line["uuid"]));
        assert_eq!((&entry["type"], &entry["message"]), (&line["type"], &line["message"]));
    }
    assert!(
        log.iter()
            .any(|entry| entry["type"] == "user" && entry["message"]["content"] == "what do the notes say?")
    );
}

#[test]
fn nothing_is_kept_where_nothing_is_to_be_kept() {
    let stage = Stage::hello();
    let finished = stage.run(&["-p", "--no-session-persistence", "hi"]);
    assert_eq!((finished.stdout.trim(), logs(&stage).len()), ("Hello.", 0));
    assert!(!stage.project.home().join(".windlass").exists());
}

#[test]
fn a_session_has_the_id_it_was_given_and_only_once() {
    let given = "11111111-2222-4333-8444-555555555555";
    let stage = Stage::new(r#"[{"blocks": [{"text": "One."}]}]"#);
    let told = told(&stage, &["--session-id", given, "hi"]);
    assert_eq!((told.result["session_id"].as_str(), id(&log(&stage)).as_str()), (Some(given), given));
    let again = stage.run(&["-p", "--session-id", given, "hi"]);
    assert_eq!(again.code(), Some(1));
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    let copy = stage.run(&["-p", "--resume", given, "--fork-session", "--session-id", given, "hi"]);
    assert!(copy.stderr.contains("already exists"), "{}", copy.stderr);
    let other = stage.run(&["-p", "--resume", "99999999-2222-4333-8444-555555555555", "hi"]);
    assert_eq!(other.code(), Some(1));
    assert!(other.stderr.contains("99999999"), "{}", other.stderr);
}

/// The first one has not said anything yet, so there is no log that the second could find.
#[test]
fn one_process_begins_a_session_with_an_id() {
    let given = "11111111-2222-4333-8444-555555555555";
    let stage = Stage::hello();
    let mut host = Host::start(&stage, &["--session-id", given]);
    host.say(&json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}}));
    host.hear_until("control_response");
    let second = stage.run(&["-p", "--session-id", given, "second"]);
    assert_eq!(second.code(), Some(1), "{}", second.stdout);
    assert!(second.stderr.contains("another process (pid"), "{}", second.stderr);
    host.say(&prompt("first", given));
    assert_eq!(host.hear_until("result").pop().unwrap()["result"], "Hello.");
    host.end();
}

#[test]
fn a_copy_does_not_take_an_id_that_another_process_has() {
    let given = "11111111-2222-4333-8444-555555555556";
    let stage = Stage::hello();
    stage.run(&["-p", "a session to copy"]);
    let mut host = Host::start(&stage, &["--session-id", given]);
    host.say(&json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}}));
    host.hear_until("control_response");
    let copy = stage.run(&["-p", "--continue", "--fork-session", "--session-id", given, "second"]);
    assert_eq!(copy.code(), Some(1), "{}", copy.stdout);
    assert!(copy.stderr.contains("another process (pid"), "{}", copy.stderr);
    host.end();
}

#[test]
fn a_run_that_was_killed_tells_what_is_unknown_and_does_not_repeat_it() {
    let count = r#"{"tool": "Bash", "input": {"command": "echo x >> count; touch counted; sleep 30"}}"#;
    let stage = Stage::new(&format!(
        r#"[{{"blocks": [{count}]}}, {{"blocks": [{count}]}}, {{"blocks": [{{"text": "I will not."}}]}}, {{"blocks": [{count}]}},
            {{"blocks": [{{"text": "Never reached."}}]}}]"#
    ));
    let mut child = stage.command(&["-p", "go", "--allowedTools", "Bash"]).into_command().spawn().unwrap();
    stage.wait_for_file("counted");
    child.kill().unwrap();
    child.wait().unwrap();
    let finished = stage.run(&["-p", "--continue", "go on"]);
    assert_eq!(finished.stdout.trim(), "I will not.", "{}", finished.stderr);
    assert!(finished.stderr.contains("whether they took effect is unknown"), "{}", finished.stderr);
    assert_eq!(stage.project.read("count").unwrap(), "x\n");
    let told = stage.request(1)["messages"].to_string();
    assert!(told.contains("whether it took effect is unknown"), "{told}");
    let denied = stage.newest(2);
    assert!(denied.contains("was running when the session was cut off"), "{denied}");
}

#[test]
fn a_session_is_found_by_its_name() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}]"#);
    stage.run(&["-p", "--name", "the parser", "first"]);
    let second = stage.run(&["-p", "--resume", "the parser", "second"]);
    assert_eq!((second.stdout.trim(), &*second.stderr), ("Two.", ""));
    assert!(stage.last_user_text().contains("first"));
    assert_eq!(logs(&stage).len(), 1);
}

#[test]
fn a_run_that_was_cut_off_goes_on_without_a_prompt() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "touch begun; sleep 30"}}]}, {"blocks": [{"text": "Where was I?"}]}]"#,
    );
    let command = stage.command(&["-p", "go", "--allowedTools", "Bash"]);
    let mut child = command.into_command().spawn().unwrap();
    stage.wait_for_file("begun");
    child.kill().unwrap();
    child.wait().unwrap();
    let finished = stage.run(&["-p", "--continue"]);
    assert_eq!(finished.stdout.trim(), "Where was I?", "{}", finished.stderr);
    let again = stage.run(&["-p", "--continue"]);
    assert_eq!(again.code(), Some(1));
    assert!(again.stderr.contains("there is no prompt"), "{}", again.stderr);
}

#[test]
fn a_session_that_is_open_elsewhere_goes_on_in_a_copy() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}]"#);
    let mut host = Host::start(&stage, &[]);
    host.say(&prompt("first", "11111111-2222-4333-8444-555555555555"));
    let id = host.hear_until("result").pop().unwrap()["session_id"].clone();
    let second = told(&stage, &["--resume", id.as_str().unwrap(), "second"]);
    assert_ne!(second.result["session_id"], id);
    let said = second.lines.iter().any(|line| line.to_string().contains("is using the session"));
    assert!(said, "{:?}", second.lines);
    host.end();
    assert_eq!(logs(&stage).len(), 2);
    assert!(stage.last_user_text().contains("first"));
}

#[test]
fn a_session_that_goes_on_elsewhere_tells_the_model_where_it_is() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}, {"blocks": [{"text": "Three."}]}]"#,
    );
    stage.run(&["-p", "first"]);
    let session = id(&log(&stage));
    let elsewhere = stage.project.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for text in ["second", "third"] {
        let command = stage.command(&["-p", "--resume", &session, text]).current_dir(&elsewhere);
        assert_eq!(command.run().unwrap().code(), Some(0));
    }
    let place = format!("Working directory: {}", elsewhere.canonicalize().unwrap().display());
    let told = |message: &Value| message.to_string().contains(&place);
    let messages = stage.request(2)["messages"].clone();
    let messages: Vec<bool> = messages.as_array().unwrap().iter().map(told).collect();
    assert_eq!(messages, [false, false, true, false, false], "once, with the first prompt there");
}

#[test]
fn settings_and_costs_of_a_session_come_back() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"tool": "Bash", "input": {"command": "echo x > made"}}]}, {"blocks": [{"text": "Two."}]}]"#,
    );
    let flags = [
        "--model",
        "claude-sonnet-5",
        "--allowedTools",
        "Bash",
        "--append-system-prompt",
        "Be kind.",
        "--effort",
        "low",
        "first",
    ];
    let first = told(&stage, &flags);
    let second = told(&stage, &["--continue", "second"]);
    assert_eq!(second.result["result"], "Two.", "{}", second.result);
    assert_eq!(stage.project.read("made").unwrap(), "x\n");
    let (before, after) = (stage.request(0), stage.request(1));
    for key in ["model", "system", "tools", "output_config", "thinking"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let cost = |told: &Told| told.result["total_cost_usd"].as_f64().unwrap();
    assert!(cost(&second) > cost(&first), "{} {}", cost(&first), cost(&second));
}

#[test]
fn a_background_task_that_ended_with_its_process_is_told_to_have_ended() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "touch begun; sleep 60", "run_in_background": true}},
                        {"tool": "Bash", "input": {"command": "sleep 60"}}]},
            {"blocks": [{"text": "I see."}]}, {"blocks": [{"text": "Yes."}]}]"#,
    );
    let command = stage.command(&["-p", "go", "--allowedTools", "Bash"]);
    let mut child = command.into_command().spawn().unwrap();
    stage.wait_for_file("begun");
    std::thread::sleep(std::time::Duration::from_millis(300));
    child.kill().unwrap();
    child.wait().unwrap();
    let finished = stage.run(&["-p", "--continue", "go on"]);
    assert_eq!(finished.stdout.trim(), "I see.", "{}", finished.stderr);
    let told = stage.last_user_text();
    assert!(told.contains("It ended with the process that ran it"), "{told}");
    stage.run(&["-p", "--continue", "once more"]);
    assert_eq!(stage.last_user_text().matches("It ended with the process that ran it").count(), 1);
}

#[test]
fn a_session_that_there_is_not_is_said_to_be_new() {
    let stage = Stage::hello();
    let new = stage.run(&["-p", "--continue", "hello"]);
    assert_eq!(new.stdout.trim(), "Hello.");
    assert!(new.stderr.contains("No session of this directory to continue"), "{}", new.stderr);
}

#[test]
fn a_conversation_that_is_cut_on_purpose_is_not_called_cut_off() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}]"#);
    let first = told(&stage, &["first"]);
    let prompt = first.lines.iter().find(|line| line["type"] == "assistant").unwrap()["uuid"].clone();
    let second = stage.run(&["-p", "--continue", "--resume-session-at", prompt.as_str().unwrap(), "second"]);
    assert_eq!(second.stdout.trim(), "Two.");
    assert!(!second.stderr.contains("cut off"), "{}", second.stderr);
}

#[test]
fn a_project_that_moved_finds_a_session_that_was_over_in_an_instant() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}]"#);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let mut git = std::process::Command::new("git");
        let done = git.current_dir(stage.project.path()).args(identity).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "root"]);
    stage.run(&["-p", "first"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy");
    git(&["clone", "-q", ".", copy.to_str().unwrap()]);
    let mut command = stage.command(&["-p", "--continue", "second"]).into_command();
    let second = command.current_dir(&copy).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&second.stdout).trim(), "Two.");
    assert!(stage.request(1)["messages"].to_string().contains("first"));
}
