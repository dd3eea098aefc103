//! `windlass replay`: sessions of the real binary, played again without a model and without tools.

use std::path::Path;

use serde_json::Value;
use windlass_testkit::FinishedProcess;

use crate::host::{Host, prompt};
use crate::resume::{log, logs};
use crate::support::{Stage, check_refused};

/// Reads a short file and a long one side by side, then counts, then answers; a second prompt is answered at once.
fn stage() -> Stage {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "Let me look."}, {"tool": "Read", "input": {"file_path": "notes.txt"}},
                {"tool": "Read", "input": {"file_path": "long.txt"}},
                {"tool": "Bash", "input": {"command": "echo x >> count; wc -l < count"}}]},
            {"blocks": [{"text": "It says hello."}]}, {"blocks": [{"text": "Bye."}]}, {"blocks": [{"text": "Else."}]}]"#,
    );
    stage.project.write("notes.txt", "hello\n").unwrap();
    stage.project.write("long.txt", "a long line of words\n".repeat(40)).unwrap();
    let finished = stage.run(&["-p", "what do the notes say?", "--allowedTools", "Bash"]);
    assert_eq!(finished.stdout.trim(), "It says hello.", "{}", finished.stderr);
    stage
}

fn id(log: &Path) -> String {
    log.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Replaces a text in one line of a log: the one that holds all of these words.
#[track_caller]
fn tamper(log: &Path, words: &[&str], from: &str, to: &str) {
    let text = std::fs::read_to_string(log).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = lines.iter_mut().find(|line| words.iter().all(|word| line.contains(word))).unwrap();
    assert!(line.contains(from), "{line}");
    *line = line.replacen(from, to, 1);
    std::fs::write(log, format!("{}\n", lines.join("\n"))).unwrap();
}

#[track_caller]
fn check_equal(finished: &FinishedProcess) {
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{}", finished.stdout);
    assert!(finished.stdout.contains(" events replayed, no differences. "), "{}", finished.stdout);
}

/// Checks that a difference is shown, with these words about it.
#[track_caller]
fn check_differs(finished: &FinishedProcess, words: &[&str]) {
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""), "{}", finished.stdout);
    for word in words {
        assert!(finished.stdout.contains(word), "{word:?} is not in {}", finished.stdout);
    }
}

/// A log that names the command line of its process, and not the flags that it stood for.
#[test]
fn a_session_of_an_earlier_version_is_played_and_goes_on() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Still one and two."}]}]"#);
    let id = "11111111-2222-4333-8444-555555555555";
    let project = stage.project.home().join(".windlass/projects/-");
    std::fs::create_dir_all(&project).unwrap();
    let log = include_str!("../sessions/before-flags.jsonl");
    std::fs::write(project.join(format!("{id}.jsonl")), log).unwrap();
    check_equal(&stage.run(&["replay", id]));
    let finished = stage.run(&["-p", "--resume", id, "Again?"]);
    assert_eq!(finished.stdout.trim(), "Still one and two.", "{}", finished.stderr);
    assert!(stage.request(0).to_string().contains("It printed one and two."));
    check_equal(&stage.run(&["replay", id]));
}

#[test]
fn a_session_is_played_without_a_model_and_without_tools() {
    let stage = stage();
    let id = id(&log(&stage));
    let before = std::fs::read(log(&stage)).unwrap();
    check_equal(&stage.run(&["replay", &id]));
    stage.run(&["-p", "--resume", &id, "thanks", "--max-turns", "3"]);
    let requests = stage.requests();
    let after = std::fs::read(log(&stage)).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    check_equal(&stage.run(&["replay", &id]));
    // Without a server and a key as well, and from anywhere.
    check_equal(
        &stage.project.command(crate::support::WINDLASS).args(["replay", "what do the"]).run().unwrap(),
    );
    assert_eq!((stage.requests(), stage.project.read("count").unwrap().as_str()), (requests, "x\n"));
    assert_eq!(std::fs::read(log(&stage)).unwrap(), after);
}

#[test]
fn a_changed_result_is_shown() {
    let stage = stage();
    let (file, id) = (log(&stage), id(&log(&stage)));
    let whole = std::fs::read(&file).unwrap();
    tamper(&file, &[r#""tool_result""#, "hello"], "hello", "jello");
    let words =
        ["the end of a call", "record `result`, field `result`:", "log:", "jello", "engine:", "hello"];
    check_differs(&stage.run(&["replay", &id]), &words);
    let finished = stage.run(&["replay", &id, "--json"]);
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&told["equal"], &told["difference"]["record"]), (&false.into(), &"result".into()), "{told}");
    assert_eq!(finished.code(), Some(1));

    std::fs::write(&file, &whole).unwrap();
    tamper(&file, &[r#""kind":"intended""#], r#""tool":"Read""#, r#""tool":"Grep""#);
    check_differs(&stage.run(&["replay", &id]), &["the log is damaged (byte ", "checksum mismatch"]);

    std::fs::write(&file, &whole).unwrap();
    tamper(&file, &[r#""assistant""#, "Let me look."], "Let me look.", "Let me hook.");
    check_differs(&stage.run(&["replay", &id]), &["`answered`", "Let me hook.", "Let me look."]);
}

#[test]
fn a_changed_line_that_something_heard_refers_to_is_shown() {
    let stage = Stage::call("Read", r#"{"file_path": "long.txt"}"#);
    stage.project.write("long.txt", "a long line of words\n".repeat(40)).unwrap();
    stage.run(&["-p", "go"]);
    let (file, id) = (log(&stage), id(&log(&stage)));
    check_equal(&stage.run(&["replay", &id]));
    tamper(&file, &[r#""tool_result""#], "a long line", "a wrong line");
    check_differs(&stage.run(&["replay", &id]), &["the log is damaged (byte ", "was changed"]);
}

#[test]
fn a_session_is_played_up_to_an_event() {
    let stage = stage();
    let id = id(&log(&stage));
    let shown = stage.run(&["replay", &id, "--until", "4"]);
    check_equal(&shown);
    for words in
        ["4 events", "doing     streaming, turn 1", "context   ", "last      model: {", "open      Read ("]
    {
        assert!(shown.stdout.contains(words), "{words:?} is not in {}", shown.stdout);
    }
    let finished = stage.run(&["replay", &id, "--until", "1", "--json"]);
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&told["events"], &told["equal"], &told["cutOff"]), (&1.into(), &true.into(), &false.into()));
    let state = &told["state"];
    assert_eq!((&state["phase"], &state["turn"]), (&"streaming".into(), &1.into()));
    assert_eq!(
        (&state["last"]["speaker"], &state["last"]["text"]),
        (&"user".into(), &"what do the notes say?".into())
    );
    assert_eq!(state["openCalls"].as_array().map(Vec::len), Some(0));
    check_refused(&stage.run(&["replay", &id, "--until", "9999"]), &["has only", "no event 9999"]);
    check_refused(&stage.run(&["replay", "no such session"]), &["no such session"]);
    check_refused(&stage.run(&["replay", &id, "--prompt", "x"]), &["--with-model"]);
}

#[test]
fn another_model_goes_on_in_a_copy() {
    let stage = stage();
    let (source, id) = (log(&stage), id(&log(&stage)));
    let before = std::fs::read(&source).unwrap();
    let refused = stage.run(&["replay", &id, "--with-model", "claude-haiku-4-5"]);
    check_refused(&refused, &["the model has already answered there", "--prompt"]);
    assert_eq!(logs(&stage).len(), 1);

    let flags = ["replay", &id, "--with-model", "claude-haiku-4-5", "--prompt", "and in short?"];
    let finished = stage.run(&flags);
    assert_eq!((finished.stdout.trim(), finished.code()), ("Bye.", Some(0)), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("no differences. Continuing in a copy of the session: "),
        "{}",
        finished.stderr
    );
    assert_eq!((stage.models().pop().unwrap().as_str(), stage.requests()), ("claude-haiku-4-5", 3));
    assert!(stage.last_user_text().contains("what do the notes say?"));

    // The first answer has begun, and nothing of it stands: the other model is asked instead.
    let finished = stage.run(&["replay", &id, "--until", "2", "--with-model", "claude-haiku-4-5"]);
    assert_eq!((finished.stdout.trim(), finished.code()), ("Else.", Some(0)), "{}", finished.stderr);
    assert!(!stage.last_user_text().contains("tool_result"));
    assert_eq!(std::fs::read(&source).unwrap(), before);
    let copies: Vec<_> = logs(&stage).into_iter().filter(|file| *file != source).collect();
    assert_eq!(copies.len(), 2);
    for copy in copies {
        check_equal(&stage.run(&["replay", copy.file_stem().unwrap().to_str().unwrap()]));
    }
    assert_eq!(stage.project.read("count").unwrap(), "x\n");
}

#[test]
fn a_process_that_was_killed_is_played_too() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "touch begun; sleep 30"}}]}, {"blocks": [{"text": "Again."}]}]"#,
    );
    let mut child = stage.command(&["-p", "go", "--allowedTools", "Bash"]).into_command().spawn().unwrap();
    stage.wait_for_file("begun");
    child.kill().unwrap();
    child.wait().unwrap();
    let id = id(&log(&stage));
    check_equal(&stage.run(&["replay", &id]));
    stage.run(&["-p", "--continue", "go on"]);
    check_equal(&stage.run(&["replay", &id]));
}

#[test]
fn a_session_that_went_back_is_played_too() {
    let call = r#"{"blocks": [{"tool": "Read", "input": {"file_path": "notes.txt"}}]}"#;
    let stage = Stage::new(&format!(
        r#"[{call}, {{"blocks": [{{"text": "One."}}]}}, {{"blocks": [{{"text": "Two."}}]}}, {call}, {{"blocks": [{{"text": "Three."}}]}},
            {call}, {{"blocks": [{{"text": "Four."}}]}}]"#
    ));
    let mut host = Host::start(&stage, &[]);
    for text in ["first", "second", "/rewind 2", "third"] {
        host.say(&prompt(text, &format!("11111111-2222-4333-8444-55555555555{}", text.len())));
        host.hear_until("result");
    }
    host.end();
    let (file, id) = (log(&stage), id(&log(&stage)));
    check_equal(&stage.run(&["replay", &id]));
    let entries = std::fs::read_to_string(&file).unwrap();
    let asked = entries.lines().find(|line| line.contains(r#""type":"assistant""#)).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let at = ["--resume-session-at", asked["uuid"].as_str().unwrap()];
    let finished = stage.run(&[&["-p", "--continue", "fourth"], &at[..]].concat());
    assert_eq!(finished.stdout.trim(), "Four.", "{}", finished.stderr);
    check_equal(&stage.run(&["replay", &id]));
}

#[test]
fn settings_that_come_back_come_back_in_a_replay() {
    let stage = stage();
    std::fs::create_dir(stage.project.path().join("more")).unwrap();
    let id = id(&log(&stage));
    let flags = ["--disallowedTools", "Write", "--add-dir", "more", "--append-system-prompt", "Be brief."];
    stage.run(&[&["-p", "--resume", &id, "thanks", "--effort", "low"], &flags[..]].concat());
    stage.run(&["-p", "--resume", &id, "more thanks", "--fallback-model", "claude-haiku-4-5"]);
    check_equal(&stage.run(&["replay", &id]));
}

/// What was done in a directory is played after that is gone, and whatever project it is played in.
#[test]
fn directories_that_are_gone_are_no_difference() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Write", "input": {"file_path": "../more/new.txt", "content": "x"}},
                {"tool": "Bash", "input": {"command": "ls ../more"}}]}, {"blocks": [{"text": "Done."}]}]"#,
    );
    let (here, more) = (stage.project.path().join("here"), stage.project.path().join("more"));
    std::fs::create_dir(&here).unwrap();
    std::fs::create_dir(&more).unwrap();
    let flags = ["-p", "go", "--add-dir", "../more", "--permission-mode", "acceptEdits"];
    let finished = stage.command(&flags).current_dir(&here).run().unwrap();
    assert!(finished.stdout.contains("Done.") && more.join("new.txt").exists(), "{}", finished.stderr);
    let id = id(&log(&stage));
    check_equal(&stage.run(&["replay", &id]));
    std::fs::remove_dir_all(&more).unwrap();
    check_equal(&stage.run(&["replay", &id]));
    std::fs::remove_dir_all(&here).unwrap();
    check_equal(&stage.run(&["replay", &id]));
}

#[test]
fn the_settings_that_held_hold_in_a_replay() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "touch made"}}, {"tool": "Bash", "input": {"command": "touch other"}},
                {"tool": "Write", "input": {"file_path": "no.txt", "content": "x"}}]},
            {"blocks": [{"text": "Done."}]}]"#,
    );
    let rules = r#"{"permissions": {"allow": ["Bash(touch made)"], "deny": ["Edit(no.txt)"]}, "effortLevel": "low",
        "autoCompactEnabled": false, "env": {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "5000"},
        "hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    stage.project.write("rules.json", rules).unwrap();
    let finished = stage.run(&["-p", "go", "--settings", "rules.json"]);
    assert_eq!(finished.stdout.trim(), "Done.", "{}", finished.stderr);
    assert!(stage.project.read("made").is_ok() && stage.project.read("other").is_err());
    let id = id(&log(&stage));
    check_equal(&stage.run(&["replay", &id]));
    let others =
        ["{}", r#"{"permissions": {"deny": ["Bash"], "defaultMode": "acceptEdits"}}"#, "this is not JSON"];
    for other in others {
        stage.project.write("rules.json", other).unwrap();
        check_equal(&stage.run(&["replay", &id]));
    }
    std::fs::remove_file(stage.project.path().join("rules.json")).unwrap();
    check_equal(&stage.run(&["replay", &id]));
}

#[test]
fn what_is_not_as_it_was_is_said() {
    let long = "The gate is blue. ".repeat(8_000);
    let summary = r#"{"blocks": [{"text": "<summary>We spoke.</summary>"}]}"#;
    let stage = Stage::new(&format!(r#"[{{"blocks": [{{"text": "{long}"}}]}}, {summary}]"#));
    stage.project.write("CLAUDE.md", "Be brief.\n").unwrap();
    stage.run(&["-p", "hi"]);
    let compacted = stage.run(&["-p", "--continue", "/compact"]);
    assert_eq!(compacted.code(), Some(0), "{}", compacted.stderr);
    let id = id(&log(&stage));
    check_equal(&stage.run(&["replay", &id]));
    stage.project.write("CLAUDE.md", "Be verbose.\n").unwrap();
    let finished = stage.run(&["replay", &id]);
    check_differs(&finished, &["Be brief.", "Be verbose.", "Possible cause: different memory files."]);
}

#[test]
fn a_log_of_another_program_cannot_be_played() {
    let stage = stage();
    let file = log(&stage);
    let text = std::fs::read_to_string(&file).unwrap();
    let entries: Vec<&str> = text.lines().filter(|line| !line.contains(r#""type":"windlass""#)).collect();
    std::fs::write(&file, format!("{}\n", entries.join("\n"))).unwrap();
    check_refused(&stage.run(&["replay", &id(&file)]), &["cannot be replayed"]);
}
