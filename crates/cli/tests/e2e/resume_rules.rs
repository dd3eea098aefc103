//! What hosts rely on when they resume: which entries may be named, what is refused, and that refusing changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::resume::logs;
use crate::support::{Stage, Told};

const UNKNOWN: &str = "99999999-2222-4333-8444-555555555555";

/// A session of two prompts; the first takes a turn with two calls.
struct Session {
    stage: Stage,
    id: String,
    /// The entries of the conversation, in their order.
    entries: Vec<Value>,
}

impl Session {
    fn new() -> Self {
        let read = json!({"tool": "Read", "input": {"file_path": "notes.txt"}});
        let answers = (0..20).map(|n| json!({"blocks": [{"text": format!("Answer {n}.")}]}));
        let responses: Vec<Value> =
            [json!({"blocks": [{"text": "Let me look."}, read, read]})].into_iter().chain(answers).collect();
        let stage = Stage::serving(&responses.into(), |server| server);
        stage.project.write("notes.txt", "hello\n").unwrap();
        let told = run(&stage, &["first"]);
        let id = told.result["session_id"].as_str().unwrap().to_owned();
        run(&stage, &["--continue", "second"]);
        let log = std::fs::read_to_string(&logs(&stage)[0]).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let entries = lines.filter(|line| line["uuid"].is_string()).collect();
        Self { stage, id, entries }
    }

    /// The id of the entry whose message holds this.
    fn entry(&self, words: &str) -> &str {
        let found = self.entries.iter().find(|entry| entry["message"].to_string().contains(words));
        found.unwrap_or_else(|| panic!("no entry says {words}"))["uuid"].as_str().unwrap()
    }

    /// Everything that is kept: names and contents.
    fn kept(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        logs(&self.stage).into_iter().map(|log| (log.clone(), std::fs::read(log).unwrap())).collect()
    }

    /// Checks that this is refused in a form that hosts read, that nothing was asked, and that nothing changed.
    #[track_caller]
    fn refuses(&self, flags: &[&str], expected: &str) {
        let (before, requests) = (self.kept(), self.stage.requests());
        let told = run(&self.stage, flags);
        assert_eq!(
            (told.finished.code(), &told.result["subtype"]),
            (Some(1), &json!("error_during_execution"))
        );
        assert_eq!(told.result["is_error"], true);
        let why = told.result["errors"][0].as_str().unwrap();
        assert!(why.starts_with(expected), "{why}");
        assert!(told.finished.stderr.contains(expected), "{}", told.finished.stderr);
        assert_eq!((self.kept() == before, self.stage.requests()), (true, requests));
    }
}

fn run(stage: &Stage, flags: &[&str]) -> Told {
    let stream = ["-p", "--output-format", "stream-json", "--verbose"];
    Told::new(stage.command(&[&stream[..], flags].concat()).run().unwrap())
}

#[test]
fn a_session_goes_on_behind_any_of_its_entries() {
    let session = Session::new();
    let source = session.kept();
    for entry in &session.entries {
        let (uuid, words) = (entry["uuid"].as_str().unwrap(), entry["message"].to_string());
        let flags = ["--resume", &session.id, "--fork-session", "--resume-session-at", uuid, "third"];
        let told = run(&session.stage, &flags);
        assert_eq!((told.finished.code(), &told.result["subtype"]), (Some(0), &json!("success")), "{words}");
        let asked = session.stage.last_user_text();
        let at = session.entries.iter().position(|other| other["uuid"] == uuid).unwrap();
        let second =
            session.entries.iter().position(|other| other["uuid"] == session.entry("second")).unwrap();
        assert_eq!(
            (asked.contains("second"), asked.contains("third")),
            (at >= second, true),
            "{words}: {asked}"
        );
    }
    assert_eq!(session.stage.server.refusals(), [""; 0]);
    assert!(source.iter().all(|(path, content)| std::fs::read(path).unwrap() == *content));
}

#[test]
fn only_the_turn_that_is_named_may_be_dropped() {
    let session = Session::new();
    let (answer, second) = (session.entry("Answer 0."), session.entry("second"));
    let (first, look) = (session.entry("first"), session.entry("Let me look."));
    let resume = ["--resume", &session.id, "--resume-session-at"];
    let drops = |at: &str, turn: &str| -> Vec<String> {
        resume
            .map(str::to_owned)
            .into_iter()
            .chain([at.to_owned(), format!("--resume-drops-turn={turn}"), "third".into()])
            .collect()
    };
    let refused = |at: &str, turn: &str| {
        let flags = drops(at, turn);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        session.refuses(&flags, "Resume rejected by --resume-drops-turn:");
    };
    refused(answer, "");
    refused(answer, "x");
    refused(answer, UNKNOWN);
    refused(answer, first);
    refused(answer, look);
    refused(look, second);
    refused(look, first);
    refused(first, second);
    refused(UNKNOWN, second);
    let flags = drops(answer, second);
    let told = run(&session.stage, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((told.finished.code(), &told.result["session_id"]), (Some(0), &json!(session.id)));
    assert!(!session.stage.last_user_text().contains("second"));
    assert_eq!(session.stage.server.refusals(), [""; 0]);
}

/// What was dropped before is no part of the conversation any more.
#[test]
fn a_turn_may_be_dropped_in_place_of_another() {
    let session = Session::new();
    let answer = session.entry("Answer 0.").to_owned();
    let flags = ["--resume", &session.id, "--resume-session-at", &answer, "third"];
    assert_eq!(run(&session.stage, &flags).finished.code(), Some(0));
    let log = std::fs::read_to_string(&logs(&session.stage)[0]).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let third = lines.iter().find(|line| line["message"]["content"] == "third").unwrap();
    let turn = format!("--resume-drops-turn={}", third["uuid"].as_str().unwrap());
    let flags = ["--resume", &session.id, "--resume-session-at", &answer, &turn, "fourth"];
    let told = run(&session.stage, &flags);
    assert_eq!(told.finished.code(), Some(0), "{}", told.result);
    let asked = session.stage.last_user_text();
    assert!(asked.contains("fourth") && !asked.contains("third") && !asked.contains("second"), "{asked}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let session = Session::new();
    let id = session.id.as_str();
    session.refuses(&["--resume", UNKNOWN, "x"], "no session matches");
    session.refuses(&["--resume", "words of nobody", "x"], "no session matches");
    session.refuses(&["--resume", id, "--session-id", UNKNOWN, "x"], "--session-id is for a new session");
    session.refuses(&["--continue", "--session-id", UNKNOWN, "x"], "--session-id is for a new session");
    session.refuses(&["--session-id", "7", "x"], "--session-id 7 is not a UUID");
    session.refuses(&["--session-id", id, "x"], &format!("the session {id} already exists"));
    session.refuses(
        &["--resume", id, "--fork-session", "--session-id", id, "x"],
        &format!("the session {id} already exists"),
    );
    session.refuses(
        &["--resume", id, "--resume-session-at", UNKNOWN, "x"],
        &format!("cannot open the session {id}"),
    );
    session
        .refuses(&["--resume", id, "--resume-session-at", "7", "x"], "--resume-session-at 7 is not a UUID");
    session.refuses(&["--fork-session", "x"], "--fork-session needs a session");
    session.refuses(&["--resume", id, "--continue", "x"], "--resume and --continue name two sessions");

    let told = run(&session.stage, &["--resume", id, "--fork-session", "--session-id", UNKNOWN, "x"]);
    assert_eq!((told.finished.code(), &told.result["session_id"]), (Some(0), &json!(UNKNOWN)));
}

#[test]
fn without_a_session_the_newest_is_a_new_one() {
    let stage = Stage::hello();
    let told = run(&stage, &["--continue", "x"]);
    assert_eq!((told.finished.code(), &told.result["result"]), (Some(0), &json!("Hello.")));
    assert_eq!(logs(&stage).len(), 1);
}
