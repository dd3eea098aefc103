//! What is sent again after a failure, how often, and how a run ends when that does not help.

use std::time::Duration;

use serde_json::Value;

use crate::support::{STREAM, Stage, result};

/// Without its watchdog this run would wait for ninety seconds, or, as long as pings come, for five minutes.
#[test]
fn a_silent_stream_is_given_up() {
    let check = |ping: &str| {
        let stall = format!(r#"{{"stall": {{"after_events": 3{ping}}}}}"#);
        let stage = Stage::new(&format!(r#"[{{"blocks": [{{"text": "I was going"}}], "fault": {stall}}}]"#));
        let command = stage.command(&STREAM).env("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "300");
        let finished = command.env("CLAUDE_CODE_MAX_RETRIES", "0").run().unwrap();
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""));
        let result = result(&finished);
        assert_eq!((&result["terminal_reason"], &result["is_error"]), (&"api_error".into(), &true.into()));
        assert!(finished.elapsed >= Duration::from_millis(300), "{:?}", finished.elapsed);
        assert!(finished.elapsed < Duration::from_secs(10), "{:?}", finished.elapsed);
        assert_eq!(stage.server.exchanges().len(), 1);
    };
    check("");
    check(r#", "ping_ms": 50"#);
}

#[test]
fn a_request_is_sent_again_as_often_as_the_environment_says() {
    let check = |retries: &str, requests: usize| {
        let overloaded = r#"{"code": 529, "message": "Overloaded", "headers": {"retry-after-ms": "5"}}"#;
        let stage = Stage::new(&format!(r#"[{{"fault": {{"status": {overloaded}}}, "repeat": 20}}]"#));
        let finished = stage.command(&STREAM).env("CLAUDE_CODE_MAX_RETRIES", retries).run().unwrap();
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        let result = result(&finished);
        assert_eq!(
            (&result["terminal_reason"], &result["api_error_status"]),
            (&"api_error".into(), &529.into())
        );
        let exchanges = stage.server.exchanges();
        assert_eq!(exchanges.len(), requests, "with {retries} retries");
        assert!(exchanges.iter().all(|exchange| exchange.body == exchanges[0].body), "the same bytes");
    };
    check("0", 1);
    check("2", 3);
    check("", 11);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let check = |cut: &str, shown: usize| {
        let stage = Stage::new(&format!(
            r#"[{{"blocks": [{{"text": "One."}}, {{"text": "Two."}}], "fault": {{"cut": {cut}}}}},
                {{"blocks": [{{"text": "All."}}]}}]"#
        ));
        let finished = stage.run(&STREAM);
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        let lines = finished.json_lines().unwrap();
        assert_eq!(lines.iter().filter(|line| line["subtype"] == "api_retry").count(), 1);
        assert_eq!(lines[1 + shown]["subtype"], "api_retry", "{}", finished.stdout);
        let said: Vec<&Value> = lines.iter().filter(|line| line["type"] == "assistant").collect();
        let (retracted, stands) = said.split_at(shown);
        let retracted: Vec<&Value> = retracted.iter().map(|line| &line["uuid"]).collect();
        assert_eq!(stands.len(), 1, "{}", finished.stdout);
        assert_eq!(stands[0]["message"]["content"][0]["text"], "All.");
        let superseded = stands[0]["supersedes"].as_array().map(|ids| ids.iter().collect());
        assert_eq!(superseded.unwrap_or(vec![]), retracted, "{}", finished.stdout);
        assert_eq!(result(&finished)["result"], "All.");
        let exchanges = stage.server.exchanges();
        assert_eq!(exchanges.len(), 2);
        assert_eq!(exchanges[0].body, exchanges[1].body, "nothing of the broken answer goes back");
    };
    // In the first block, after it, in the second, and inside of an event.
    check(r#"{"after_events": 3}"#, 0);
    check(r#"{"after_events": 4}"#, 1);
    check(r#"{"after_events": 6}"#, 1);
    check(r#"{"after_bytes": 300}"#, 0);
}

#[test]
fn an_answer_that_is_garbled_every_time_ends_the_run() {
    let garbled =
        r#"{"blocks": [{"text": "Mind"}], "fault": {"malformed": {"after_events": 2}}, "repeat": 20}"#;
    let stage = Stage::new(&format!("[{garbled}]"));
    let finished = stage.run(&STREAM);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""), "{finished:?}");
    let result = result(&finished);
    assert_eq!((&result["terminal_reason"], &result["is_error"]), (&"model_error".into(), &true.into()));
    assert_eq!(result["api_error_status"], Value::Null);
    assert_eq!(stage.server.exchanges().len(), 3, "what is garbled twice will not get better");
}
