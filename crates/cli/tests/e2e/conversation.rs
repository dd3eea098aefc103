//! Prompts and requests as lines on standard input.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::host::{Host, LINES, interrupt, prompt};
use crate::support::{Stage, check_refused};

fn answers(texts: &[&str]) -> Stage {
    let responses: Vec<Value> = texts.iter().map(|text| json!({"blocks": [{"text": text}]})).collect();
    Stage::new(&Value::from(responses).to_string())
}

#[test]
fn one_prompt_after_the_other() {
    let stage = answers(&["One.", "Two."]);
    let mut host = Host::start(&stage, &[]);
    for (text, expected) in [("first", "One."), ("second", "Two.")] {
        host.say(&json!({"type": "keep_alive"}));
        host.say(&prompt(text, text));
        let lines = host.hear_until("result");
        assert_eq!(lines[0]["subtype"], "init");
        assert_eq!(lines[0]["capabilities"], json!(["interrupt_receipt_v1"]));
        assert_eq!(lines.last().unwrap()["result"], expected);
    }
    let (rest, status) = host.end();
    assert_eq!((rest.len(), status.code()), (0, Some(0)));
    assert!(stage.last_user_text().contains("first") && stage.last_user_text().contains("second"));
}

#[test]
fn the_end_of_input_finishes_what_was_taken() {
    let stage = answers(&["One."]);
    let mut host = Host::start(&stage, &["-p"]);
    host.say(&prompt("go", "u1"));
    let (lines, status) = host.end();
    assert_eq!((lines.last().unwrap()["result"].as_str(), status.code()), (Some("One."), Some(0)));
    let (nothing, status) = Host::start(&stage, &[]).end();
    assert_eq!((nothing.len(), status.code()), (0, Some(0)));
}

#[test]
fn a_prompt_during_a_run_joins_it_and_shares_its_result() {
    let stage = Stage::call("Bash", r#"{"command": "sleep 1"}"#);
    let mut host = Host::start(&stage, &["--allowedTools", "Bash"]);
    host.say(&prompt("go", "u1"));
    let first = host.hear_until("assistant").pop().unwrap();
    assert_eq!(first["user_message_uuids"], json!(["u1"]));
    host.say(&prompt("and hurry", "u2"));
    let lines = host.hear_until("result");
    let answer = lines.iter().find(|line| line["type"] == "assistant").unwrap();
    assert_eq!(answer["user_message_uuids"], json!(["u2"]));
    let result = lines.last().unwrap();
    assert_eq!((&result["result"], &result["user_message_uuids"]), (&json!("Done."), &json!(["u1", "u2"])));
    let (rest, status) = host.end();
    assert_eq!((rest.len(), status.code(), stage.server.exchanges().len()), (0, Some(0), 2));
    assert!(stage.last_user_text().contains("and hurry"));
}

#[test]
fn a_prompt_that_comes_too_late_for_a_run_starts_the_next() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "One."}], "end_delay_ms": 1000}, {"blocks": [{"text": "Two."}]}]"#,
    );
    let mut host = Host::start(&stage, &[]);
    host.say(&prompt("go", "u1"));
    host.hear_until("assistant");
    host.say(&prompt("and on", "u2"));
    host.close();
    let (lines, status) = host.end();
    let results: Vec<&Value> = lines.iter().filter(|line| line["type"] == "result").collect();
    let seen: Vec<_> = results.iter().map(|line| (&line["result"], &line["user_message_uuids"])).collect();
    assert_eq!(seen, [(&json!("One."), &json!(["u1"])), (&json!("Two."), &json!(["u2"]))]);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn an_interrupt_ends_the_run_and_not_the_process() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "Slow."}], "end_delay_ms": 20000}, {"blocks": [{"text": "After."}]}]"#,
    );
    let mut host = Host::start(&stage, &[]);
    host.say(&interrupt("idle"));
    let idle = host.hear().unwrap();
    assert_eq!(idle["response"]["request_id"], "idle");
    host.say(&prompt("go", "u1"));
    host.hear_until("assistant");
    host.say(&interrupt("r1"));
    let lines = host.hear_until("result");
    let answer = lines.iter().find(|line| line["type"] == "control_response").unwrap();
    assert_eq!(answer["response"]["subtype"], "success");
    assert_eq!(answer["response"]["request_id"], "r1");
    assert_eq!(answer["response"]["response"], json!({"still_queued": []}));
    assert_eq!(lines.last().unwrap()["terminal_reason"], "aborted_streaming");
    host.say(&prompt("again", "u2"));
    assert_eq!(host.hear_until("result").last().unwrap()["result"], "After.");
    assert_eq!(host.end().1.code(), Some(0));
}

#[test]
fn other_requests_are_refused_in_their_own_form() {
    let stage = answers(&["One."]);
    let mut host = Host::start(&stage, &[]);
    host.say(&json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "set_model", "model": "x"}}));
    let answer = host.hear().unwrap();
    assert_eq!(answer["response"]["subtype"], "error");
    assert!(answer["response"]["error"].as_str().unwrap().contains("set_model is not supported"));
    assert_eq!(host.end().1.code(), Some(0));
}

#[test]
fn prompts_are_said_back_when_asked() {
    let stage = answers(&["One."]);
    let mut host = Host::start(&stage, &["--replay-user-messages"]);
    host.say(&prompt("go", "u1"));
    let lines = host.hear_until("result");
    let said = lines.iter().find(|line| line["isReplay"] == true).unwrap();
    assert_eq!((&lines[0]["subtype"], &said["uuid"]), (&json!("init"), &json!("u1")));
    assert_eq!(said["message"]["content"][0]["text"], "go");
    assert_eq!(said["session_id"], lines[0]["session_id"]);
}

#[test]
fn a_prompt_that_wants_no_answer_waits_for_the_next() {
    let stage = answers(&["One."]);
    let mut host = Host::start(&stage, &[]);
    let mut silent = prompt("know this", "u1");
    silent["shouldQuery"] = false.into();
    host.say(&silent);
    host.say(&prompt("go", "u2"));
    host.hear_until("result");
    let (rest, status) = host.end();
    assert_eq!((rest.len(), status.code(), stage.server.exchanges().len()), (0, Some(0), 1));
    let text = stage.last_user_text();
    assert!(text.find("know this").unwrap() < text.find("\"go\"").unwrap(), "{text}");
}

#[test]
fn commands_are_prompts_too() {
    let stage = answers(&["One.", "Verbatim."]);
    let mut host = Host::start(&stage, &[]);
    host.say(&prompt("go", "u1"));
    host.hear_until("result");
    host.say(&prompt("/cost", "u2"));
    let result = host.hear_until("result").pop().unwrap();
    assert!(result["result"].as_str().unwrap().starts_with("Cost: $"), "{result}");
    assert_eq!((result.get("terminal_reason"), &result["user_message_uuid"]), (None, &json!("u2")));
    let mut verbatim = prompt("/cost", "u3");
    verbatim["client_composed"] = true.into();
    host.say(&verbatim);
    assert_eq!(host.hear_until("result").pop().unwrap()["result"], "Verbatim.");
    assert_eq!(host.end().1.code(), Some(0));
}

#[test]
fn a_compaction_on_demand_has_a_result_of_its_own() {
    let stage = answers(&["One.", "The user said a lot, and the answer was one.", "Two."]);
    let command = stage.command(&LINES).env("WINDLASS_TAIL_TOKENS", "0");
    let mut host = Host::spawn(command.into_command());
    host.say(&prompt(&"many words ".repeat(20_000), "u1"));
    host.hear_until("result");
    host.say(&prompt("/compact keep the number", "u2"));
    let lines = host.hear_until("result");
    let subtypes: Vec<&Value> = lines.iter().map(|line| &line["subtype"]).collect();
    assert!(subtypes.contains(&&json!("compact_boundary")), "{subtypes:?}");
    let result = lines.last().unwrap();
    assert!(
        result["result"].as_str().unwrap().starts_with("The conversation was compacted: from"),
        "{result}"
    );
    assert_eq!((result.get("terminal_reason"), &result["user_message_uuids"]), (None, &json!(["u2"])));
    assert!(stage.request(1).to_string().contains("keep the number"));
    host.say(&prompt("go on", "u3"));
    assert_eq!(host.hear_until("result").pop().unwrap()["result"], "Two.");
    let text = stage.last_user_text();
    assert!(text.contains("The user said a lot"), "{text}");
    assert!(text.len() * 2 < stage.request(0).to_string().len(), "{} bytes are left", text.len());
}

#[test]
fn a_compaction_that_is_turned_off_is_an_error_and_not_the_end() {
    let stage = answers(&["One."]);
    let mut host = Host::spawn(stage.command(&LINES).env("DISABLE_COMPACT", "1").into_command());
    host.say(&prompt("/compact", "u1"));
    let result = host.hear_until("result").pop().unwrap();
    assert_eq!(
        (&result["is_error"], &result["terminal_reason"]),
        (&json!(true), &json!("turn_setup_failed"))
    );
    assert!(result["errors"][0].as_str().unwrap().contains("DISABLE_COMPACT"), "{result}");
    host.say(&prompt("go", "u2"));
    assert_eq!(host.hear_until("result").pop().unwrap()["result"], "One.");
    assert_eq!(host.end().1.code(), Some(0), "the last result counts");
}

/// More prompts than anybody keeps: the host waits, and none is lost.
#[test]
fn a_flood_of_prompts_is_answered_to_the_last() {
    const PROMPTS: usize = 300;
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "sleep 0.3"}}]}, {"blocks": [{"text": "Done."}], "repeat": 400}]"#,
    );
    let mut host = Host::start(&stage, &["--allowedTools", "Bash"]);
    let mut input = host.input.take().unwrap();
    let flood = std::thread::spawn(move || {
        for number in 0..PROMPTS {
            writeln!(input, "{}", prompt("again", &format!("u{number}"))).unwrap();
        }
    });
    let (lines, status) = host.end();
    flood.join().unwrap();
    let results = lines.iter().filter(|line| line["type"] == "result");
    let answered: Vec<&Value> =
        results.flat_map(|line| line["user_message_uuids"].as_array().unwrap()).collect();
    let expected: Vec<Value> = (0..PROMPTS).map(|number| format!("u{number}").into()).collect();
    assert_eq!(answered, expected.iter().collect::<Vec<_>>());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_signal_ends_a_process_that_waits_for_lines() {
    let stage = Stage::hello();
    let mut host = Host::start(&stage, &[]);
    host.say(&interrupt("there"));
    host.hear_until("control_response");
    let id = rustix::process::Pid::from_child(&host.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(host.child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_bad_line_is_told_and_ends_the_conversation() {
    let check = |bad: &[u8], words: &str| {
        let stage = answers(&["One."]);
        let mut input = format!("{}\n", prompt("go", "u1")).into_bytes();
        input.extend_from_slice(bad);
        let finished = stage.command(&LINES).stdin(input).run().unwrap();
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
        assert_eq!(finished.json_lines().unwrap().last().unwrap()["result"], "One.");
    };
    check(b"hello\n", "invalid line on standard input: invalid message: expected value");
    check(b"{\"type\":\"user\"}\n", "missing field `message`");
    check(b"\xff\n", "not UTF-8 text");
}

#[test]
fn lines_in_need_lines_out() {
    let stage = Stage::hello();
    let refused = stage.run(&["-p", "--input-format", "stream-json"]);
    check_refused(&refused, &["--input-format stream-json needs --output-format stream-json"]);
    let refused = stage.run(&[&LINES[..], &["go"]].concat());
    check_refused(&refused, &["reads prompts from standard input"]);
}
