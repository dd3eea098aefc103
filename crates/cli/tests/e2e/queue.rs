//! What comes while a run goes on: when it goes in, what it replaces, what becomes of it, and what is offered again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::host::{Host, prompt};
use crate::resume::{id, log};
use crate::support::Stage;
use crate::talk::{Talk, check_order};

/// A call that takes a while, then a short answer, then another.
fn busy(command: &str) -> Stage {
    let call = json!({"blocks": [{"tool": "Bash", "input": {"command": command}}]});
    let answer = |text: &str| json!({"blocks": [{"text": text}]});
    Stage::serving(&json!([call, answer("One."), answer("Two."), answer("Three.")]), |server| server)
}

fn prioritised(text: &str, uuid: &str, priority: &str) -> Value {
    let mut line = prompt(text, uuid);
    line["priority"] = priority.into();
    line
}

/// What became of prompts, in order.
fn fates(lines: &[Value]) -> Vec<String> {
    let told = lines.iter().filter(|line| line["type"] == "command_lifecycle");
    let words = |line: &Value| {
        format!("{} {}", line["command_uuid"].as_str().unwrap(), line["state"].as_str().unwrap())
    };
    told.map(words).collect()
}

/// What the user's side says in a request, in order.
fn said(stage: &Stage, request: usize) -> String {
    stage.request(request)["messages"].to_string()
}

const BASH: [&str; 2] = ["--allowedTools", "Bash"];

#[test]
fn what_cannot_wait_replaces_the_run_and_leaves_no_note() {
    let check = |now: Value| {
        let stage = busy("touch began; sleep 20");
        let mut host = Host::start(&stage, &BASH);
        host.say(&prompt("go", "u1"));
        stage.wait_for_file("began");
        host.say(&now);
        let lines = host.hear_until("result");
        assert_eq!(lines.last().unwrap()["terminal_reason"], "aborted_tools");
        assert_eq!(lines.last().unwrap()["errors"], json!(["Interrupted by a new message."]));
        assert_eq!(fates(&lines), ["u1 started", "u1 cancelled"]);
        let lines = host.hear_until("result");
        assert_eq!(
            (&lines.last().unwrap()["result"], fates(&lines)),
            (&json!("One."), vec!["u2 started".to_owned(), "u2 completed".to_owned()])
        );
        let said = said(&stage, 1);
        assert!(said.contains("something else") && !said.contains("The user interrupted"), "{said}");
        assert_eq!(host.end().1.code(), Some(0));
    };
    check(prioritised("something else", "u2", "now"));
    check(json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt",
        "message": {"role": "user", "content": "something else"}, "uuid": "u2"}}));
}

#[test]
fn an_interrupt_with_a_message_that_waits_leaves_no_note() {
    let stage = busy("touch began; sleep 20");
    let mut host = Host::start(&stage, &BASH);
    host.say(&prompt("go", "u1"));
    stage.wait_for_file("began");
    host.say(&prompt("something else", "u2"));
    host.say(&crate::host::interrupt("r1"));
    let lines = host.hear_until("result");
    let receipt = lines.iter().find(|line| line["type"] == "control_response").unwrap();
    assert_eq!(receipt["response"]["response"], json!({"still_queued": ["u2"]}));
    assert_eq!(host.hear_until("result").last().unwrap()["result"], "One.");
    assert!(!said(&stage, 1).contains("The user interrupted"), "{}", said(&stage, 1));
    assert_eq!(host.end().1.code(), Some(0));
}

#[test]
fn what_is_next_joins_the_run_and_what_is_for_later_follows_it() {
    let stage = busy("touch began; until [ -e go-on ]; do sleep 0.05; done");
    let mut host = Host::start(&stage, &BASH);
    host.say(&prompt("go", "u1"));
    stage.wait_for_file("began");
    host.say(&prioritised("this is for later", "u2", "later"));
    host.say(&prioritised("this is next", "u3", "next"));
    std::thread::sleep(Duration::from_millis(300));
    stage.project.write("go-on", "").unwrap();
    let lines = host.hear_until("result");
    assert_eq!(lines.last().unwrap()["user_message_uuids"], json!(["u1", "u3"]));
    assert_eq!(fates(&lines), ["u1 started", "u3 started", "u1 completed", "u3 completed"]);
    let lines = host.hear_until("result");
    assert_eq!(fates(&lines), ["u2 started", "u2 completed"]);
    assert!(said(&stage, 1).contains("this is next") && !said(&stage, 1).contains("for later"));
    assert!(said(&stage, 2).contains("this is for later"));
    assert_eq!(host.end().1.code(), Some(0));
}

#[test]
fn what_is_for_later_goes_in_after_a_call_that_only_sleeps() {
    let stage = busy("sleep 1");
    let mut host = Host::start(&stage, &BASH);
    host.say(&prompt("go", "u1"));
    host.hear_until("assistant");
    host.say(&prioritised("this is for later", "u2", "later"));
    let lines = host.hear_until("result");
    assert_eq!(lines.last().unwrap()["user_message_uuids"], json!(["u1", "u2"]));
    assert!(said(&stage, 1).contains("this is for later"));
}

#[test]
fn a_command_during_a_run_is_done_after_it_and_never_sent() {
    let stage = busy("touch began; until [ -e go-on ]; do sleep 0.05; done");
    let mut host = Host::start(&stage, &BASH);
    host.say(&prompt("go", "u1"));
    stage.wait_for_file("began");
    host.say(&prompt("/cost", "u2"));
    let mut silent = prompt("/context", "u3");
    silent["shouldQuery"] = false.into();
    host.say(&silent);
    std::thread::sleep(Duration::from_millis(300));
    stage.project.write("go-on", "").unwrap();
    assert_eq!(host.hear_until("result").last().unwrap()["result"], "One.");
    let lines = host.hear_until("result");
    assert_eq!(fates(&lines), ["u2 started", "u2 completed"]);
    assert!(lines.last().unwrap()["result"].as_str().unwrap().starts_with("Cost:"));
    assert_eq!(fates(&host.hear_until("result")), ["u3 started", "u3 completed"]);
    host.say(&prompt("/nonsense", "u4"));
    assert_eq!(fates(&host.hear_until("result")), ["u4 refused"]);
    host.say(&prompt("on", "u5"));
    assert_eq!(host.hear_until("result").last().unwrap()["result"], "Two.");
    assert!(!said(&stage, 2).contains("/cost") && !said(&stage, 2).contains("/context"));
}

#[test]
fn a_command_holds_no_message_back() {
    let stage = busy("touch began; until [ -e go-on ]; do sleep 0.05; done");
    let mut host = Host::start(&stage, &BASH);
    host.say(&prompt("go", "u1"));
    stage.wait_for_file("began");
    host.say(&prompt("/cost", "u2"));
    host.say(&prompt("this is next", "u3"));
    std::thread::sleep(Duration::from_millis(300));
    stage.project.write("go-on", "").unwrap();
    assert_eq!(host.hear_until("result").last().unwrap()["user_message_uuids"], json!(["u1", "u3"]));
    assert_eq!(fates(&host.hear_until("result")), ["u2 started", "u2 completed"]);
    assert!(said(&stage, 1).contains("this is next"));
    assert_eq!(host.end().0.len(), 0, "nothing else is owed");
}

#[test]
fn an_interrupt_can_bring_a_command_and_one_that_makes_no_sense_is_answered() {
    let stage = busy("touch began; sleep 20");
    let mut host = Host::start(&stage, &BASH);
    host.say(&prompt("go", "u1"));
    stage.wait_for_file("began");
    let interrupt = |content: &str| {
        json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt",
            "message": {"role": "user", "content": content}, "uuid": "u2"}})
    };
    host.say(&interrupt(""));
    let answer = host.hear_until("control_response").pop().unwrap();
    assert_eq!(
        (&answer["response"]["subtype"], &answer["response"]["request_id"]),
        (&json!("error"), &json!("r1"))
    );
    host.say(&interrupt("/cost"));
    assert_eq!(host.hear_until("result").last().unwrap()["terminal_reason"], "aborted_tools");
    let lines = host.hear_until("result");
    assert!(lines.last().unwrap()["result"].as_str().unwrap().starts_with("Cost:"));
    assert_eq!(fates(&lines), ["u2 started", "u2 completed"]);
    assert_eq!(host.end().1.code(), Some(0));
}

#[test]
fn a_message_that_a_hook_blocks_is_refused_and_asks_no_model() {
    let stage = busy("touch began; until [ -e go-on ]; do sleep 0.05; done");
    let hook =
        json!({"type": "command", "command": "grep -q 'bad words' && { echo no >&2; exit 2; }; exit 0"});
    let settings = json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}).to_string();
    let mut host = Host::start(&stage, &["--allowedTools", "Bash", "--settings", &settings]);
    host.say(&prompt("go", "u1"));
    stage.wait_for_file("began");
    host.say(&prompt("bad words", "u2"));
    std::thread::sleep(Duration::from_millis(300));
    stage.project.write("go-on", "").unwrap();
    let lines = host.hear_until("result");
    assert_eq!(fates(&lines), ["u1 started", "u2 refused", "u1 completed"]);
    assert_eq!((host.end().0.len(), stage.requests()), (0, 2), "no run follows");
}

#[test]
fn at_a_question_a_message_can_replace_the_run() {
    let stage = busy("touch began; sleep 20");
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.types("/now something else");
    talk.sees("One.");
    talk.types("/exit");
    assert_eq!(talk.ends().0, Some(0));
    assert!(said(&stage, 1).contains("something else") && stage.project.read("began").is_err());
}

#[test]
fn a_process_that_is_told_to_end_leaves_its_prompt_to_the_next() {
    let stage = busy("touch began; sleep 20");
    let running = stage.command(&["-p", "first words", "--allowedTools", "Bash"]).start().unwrap();
    stage.wait_for_file("began");
    running.terminate().unwrap();
    assert_eq!(running.finish().unwrap().code(), Some(143));
    let mut talk = Talk::begin(&stage, &["--continue"]);
    talk.sees("Not finished: first words");
    talk.presses("\r");
    talk.sees("One.");
    talk.types("/exit");
    assert_eq!(talk.ends().0, Some(0));
}

#[test]
fn at_a_terminal_a_message_can_replace_the_run() {
    let stage = busy("touch began; sleep 20");
    let mut talk = Talk::begin(&stage, &["--allowedTools", "Bash", "--", "go"]);
    stage.wait_for_file("began");
    talk.types("/now something else");
    talk.sees("One.");
    talk.types("/now");
    talk.sees("/now needs a message");
    talk.types("/now third");
    talk.sees("Two.");
    talk.types("/exit");
    let (code, screen) = talk.ends();
    check_order(&screen, &["Interrupted by a new message.", "something else", "One.", "third", "Two."]);
    assert_eq!(code, Some(0), "{screen:?}");
    let said = said(&stage, 1);
    assert!(said.contains("something else") && !said.contains("/now"), "{said}");
    assert!(!said.contains("The user interrupted"), "{said}");
}

/// A session whose process is killed while a call runs: u1 is part of the run, u2 waits.
fn killed() -> (Stage, String) {
    let stage = busy("touch began; sleep 20");
    let mut host = Host::start(&stage, &BASH);
    host.say(&prompt("first words", "11111111-2222-4333-8444-555555555555"));
    stage.wait_for_file("began");
    host.say(&prompt("/cost", "51111111-2222-4333-8444-555555555555"));
    host.say(&prompt("second words", "21111111-2222-4333-8444-555555555555"));
    let file = log(&stage);
    let is_queued = || std::fs::read_to_string(&file).unwrap().contains("second words");
    while !is_queued() {
        std::thread::sleep(Duration::from_millis(10));
    }
    host.child.kill().unwrap();
    let session = id(&file);
    drop(host);
    (stage, session)
}

#[test]
fn after_a_crash_hosts_hear_what_was_not_completed() {
    let (stage, session) = killed();
    let mut host = Host::start(&stage, &["--resume", &session]);
    host.say(&prompt("go on", "31111111-2222-4333-8444-555555555555"));
    let lines = host.hear_until("result");
    assert_eq!(lines[0]["subtype"], "init");
    let fates = fates(&lines);
    let short: Vec<String> =
        fates.iter().map(|fate| fate.replace("1111111-2222-4333-8444-555555555555", "")).collect();
    assert_eq!(
        short,
        ["1 cancelled", "5 cancelled", "2 queued", "2 started", "3 started", "2 completed", "3 completed"]
    );
    host.end();
    let mut host = Host::start(&stage, &["--resume", &session]);
    host.say(&prompt("and on", "41111111-2222-4333-8444-555555555555"));
    let fates = self::fates(&host.hear_until("result"));
    assert_eq!(fates.len(), 2, "a run that ends well answers to all before it: {fates:?}");
}

#[test]
fn after_a_crash_a_person_is_offered_the_prompt_again() {
    let (stage, session) = killed();
    let mut talk = Talk::begin(&stage, &["--resume", &session]);
    talk.sees("Not done: /cost");
    talk.sees("Not finished: first words");
    talk.sees("Not sent yet: second words");
    talk.sees("Press Enter to go on with it, or type another prompt.");
    talk.presses("\r");
    talk.sees("One.");
    talk.types("/exit");
    let (code, screen) = talk.ends();
    assert_eq!(code, Some(0), "{screen:?}");
    let said = said(&stage, 1);
    assert_eq!((said.matches("first words").count(), said.matches("second words").count()), (1, 1), "{said}");
    let talk = Talk::begin(&stage, &["--resume", &session]);
    talk.sees("Leave with Ctrl-D");
    let (_, screen) = {
        let mut talk = talk;
        talk.types("/exit");
        talk.ends()
    };
    assert!(!screen.contains("Not finished"), "{screen:?}");
}

#[test]
fn after_a_failure_the_run_goes_on_without_a_prompt() {
    let stage = Stage::new(
        r#"[{"fault": {"status": {"code": 401, "message": "no key"}}}, {"blocks": [{"text": "One."}]}]"#,
    );
    let failed = stage.run(&["-p", "first words"]);
    assert_eq!(failed.code(), Some(1));
    let again = stage.run(&["-p", "--resume", &id(&log(&stage))]);
    assert_eq!((again.stdout.trim(), again.code()), ("One.", Some(0)), "{}", again.stderr);
    assert_eq!(said(&stage, 1).matches("first words").count(), 1);
}
