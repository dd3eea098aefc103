//! What is done about answers and requests that fail, before anybody is told.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{PNG, Stage, grew};

const BASH: [&str; 2] = ["--allowedTools", "Bash"];
const SUMMARY: &str = "replaced by what you write now";

fn stage(responses: &Value) -> Stage {
    Stage::serving(responses, |server| server)
}

fn said(text: &str) -> Value {
    json!({"blocks": [{"text": text}]})
}

#[test]
fn a_call_that_was_cut_never_runs() {
    let cut = json!({"text": "Writing."});
    let half = r#"{"file_path": "made.txt", "content": "half of i"#;
    let stage = stage(&json!([
        {"blocks": [cut, {"tool": "Write", "input_json": half}], "stop_reason": "max_tokens", "repeat": 3},
        said("I could not."),
    ]));
    let told = stage.told(&["--permission-mode", "acceptEdits"], &[]);
    told.ended("success", "completed", 0);
    assert!(stage.project.read("made.txt").is_err(), "{}", told.finished.stdout);
    assert_eq!(stage.requests(), 4);
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn complete_calls_of_a_cut_answer_run_once_and_the_cut_one_does_not() {
    let half = r#"{"file_path": "cut.txt", "content": "half of i"#;
    let stage = stage(&json!([
        {"blocks": [{"tool": "Bash", "input": {"command": "echo x >> made"}}, {"tool": "Write", "input_json": half}],
         "stop_reason": "max_tokens"},
        said("Done."),
    ]));
    let told = stage.told(&["--permission-mode", "acceptEdits", "--allowedTools", "Bash"], &[]);
    told.completed("Done.");
    assert_eq!(stage.project.read("made").unwrap(), "x\n");
    assert!(stage.project.read("cut.txt").is_err());
    assert_eq!(stage.requests(), 2, "what has acted is not asked for again with a larger cap");
    assert_eq!(stage.server.refusals(), [""; 0]);
}

/// The server has a window and means it.
#[test]
fn a_real_window_is_kept_by_compactions_and_nobody_notices() {
    let read =
        |n: u32| json!({"blocks": [{"tool": "Bash", "input": {"command": format!("seq {n}0000 {n}2000")}}]});
    let mut responses =
        vec![json!({"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}], "repeat": 99})];
    responses.extend((1..=30).map(read));
    responses.push(said("Done."));
    let stage = Stage::serving(&Value::from(responses), |server| server.window_tokens(60_000));
    let small = ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "60000");
    let told = stage.told(&BASH, &[small, ("WINDLASS_COLLAPSE", "0")]);
    told.completed("Done.");
    told.showed_no_failure();
    assert!(!told.of("compact_boundary").is_empty(), "{}", told.finished.stdout);
    let others: Vec<String> = stage
        .server
        .refusals()
        .into_iter()
        .filter(|refusal| !refusal.contains("prompt is too long"))
        .collect();
    assert_eq!(others, [""; 0]);
}

/// The engine believes in a larger window than there is.
#[test]
fn a_window_smaller_than_believed_is_found_out_by_its_refusal() {
    let read =
        |n: u32| json!({"blocks": [{"tool": "Bash", "input": {"command": format!("seq {n}0000 {n}2000")}}]});
    let mut responses =
        vec![json!({"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}], "repeat": 99})];
    responses.extend((1..=30).map(read));
    responses.push(said("Done."));
    let stage = Stage::serving(&Value::from(responses), |server| server.window_tokens(40_000));
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    told.showed_no_failure();
    assert!(!told.of("compact_boundary").is_empty());
    assert!(!stage.server.refusals().is_empty(), "the window was hit");
}

#[test]
fn whoever_gives_a_prompt_that_is_cut_is_told() {
    let summary = json!({"when": {"contains": SUMMARY}, "blocks": [{"text": "Much text."}], "repeat": 99});
    let responses = json!([summary, said("Done.")]);
    let stage = Stage::serving(&responses, |server| server.window_tokens(60_000));
    let finished = stage.command(&["-p", "review this"]).stdin("some words ".repeat(30_000)).run().unwrap();
    assert!(finished.status.success() && finished.stdout.trim() == "Done.", "{}", finished.stderr);
    assert!(finished.stderr.contains("saw only its beginning and end"), "{}", finished.stderr);
}

#[test]
fn a_gateway_that_refuses_by_bytes_is_a_prompt_that_is_too_long() {
    let page = "<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>";
    let refused =
        json!({"fault": {"status": {"code": 413, "body": page, "headers": {"content-type": "text/html"}}}});
    let stage = stage(&json!([
        {"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}]},
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 3000"}}]},
        refused,
        said("Done."),
    ]));
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    told.showed_no_failure();
    let exchanges = stage.server.exchanges();
    assert!(exchanges[3].body_bytes < exchanges[1].body_bytes, "the next request is smaller");

    let stage = self::stage(&json!([
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 3000"}}]},
        {"fault": refused["fault"], "repeat": 99},
    ]));
    let told = stage.told(&BASH, &[]);
    told.failed("prompt_too_long", &[]);
    assert!(!told.result.to_string().contains("<html>"), "{}", told.result);
}

/// Half of a summariser's requests are too long as well, and then it fails for good: the reduction needs no model.
#[test]
fn a_summariser_that_fails_is_replaced_by_a_mechanical_reduction() {
    let stage = stage(&json!([
        {"when": {"contains": SUMMARY}, "fault": {"failure": {"class": "bad_request"}}, "repeat": 99},
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 3000"}}]},
        {"fault": {"failure": {"class": "overflow", "needed": 210_000, "limit": 200_000}}},
        said("Done."),
    ]));
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    assert!(told.notes().contains("Compacting without a model"), "{}", told.notes());
    assert_eq!(told.of("compact_boundary").len(), 1);
    assert!(
        stage.server.exchanges().last().unwrap().prompt().contains("seq 3000"),
        "what was done is still known"
    );
}

#[test]
fn a_summary_request_that_is_too_long_is_made_shorter() {
    let stage = stage(&json!([
        {"when": {"contains": SUMMARY}, "fault": {"failure": {"class": "overflow"}}, "repeat": 2},
        {"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}]},
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 3000"}}]},
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 4000"}}]},
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 5000"}}]},
        {"fault": {"failure": {"class": "overflow"}}},
        said("Done."),
    ]));
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    let sizes: Vec<usize> =
        stage.server.exchanges()[4..7].iter().map(|exchange| exchange.body_bytes).collect();
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
    assert!(stage.server.exchanges()[7].prompt().contains("They counted."));
}

#[test]
fn a_refused_picture_is_left_out() {
    let read = json!({"blocks": [{"tool": "Read", "input": {"file_path": "dot.png"}}]});
    let refused = json!({"fault": {"failure": {"class": "media"}}});
    let stage = stage(&json!([read, refused, said("Done.")]));
    stage.project.write("dot.png", PNG).unwrap();
    let told = stage.told(&[], &[]);
    told.completed("Done.");
    told.showed_no_failure();
    assert!(
        told.notes().contains("Removed the content that the provider rejected from 1 message"),
        "{}",
        told.notes()
    );
    let [with, without] = [1, 2].map(|index| stage.request(index).to_string().contains("base64"));
    assert!(with && !without);
    assert_eq!(stage.server.refusals(), [""; 0]);

    let stage = self::stage(&json!([read, {"fault": refused["fault"], "repeat": 9}]));
    stage.project.write("dot.png", PNG).unwrap();
    let told = stage.told(&[], &[]);
    told.failed("image_error", &[]);
    assert_eq!(stage.requests(), 3, "it is left out once");
}

#[test]
fn a_pause_that_the_server_asks_for_is_kept() {
    let wait = json!({"fault": {"failure": {"class": "rate_limited", "retry_after_ms": 700}}});
    let stage = stage(&json!([wait, said("Done.")]));
    let told = stage.told(&[], &[]);
    told.completed("Done.");
    let exchanges = stage.server.exchanges();
    assert!(exchanges[1].first_byte - exchanges[0].read >= Duration::from_millis(700));
    assert_eq!(exchanges[0].body, exchanges[1].body, "the same bytes");
    let retry = told.of("api_retry")[0].clone();
    assert_eq!((&retry["error"], &retry["error_status"]), (&json!("rate_limit"), &json!(429)));
    assert_eq!(retry["retry_delay_ms"], 700);

    let hours =
        json!({"fault": {"failure": {"class": "rate_limited", "retry_after_ms": 3_600_000}}, "repeat": 9});
    let stage = self::stage(&json!([hours]));
    let told = stage.told(&[], &[]);
    told.ended("success", "api_error", 1);
    told.says(&["try again in 60 minutes"]);
    assert_eq!(stage.requests(), 1, "nobody waits for an hour unasked");
}

#[test]
fn a_used_up_quota_ends_with_the_time_it_is_back() {
    let quota = json!({"fault": {"failure": {"class": "quota", "resets_at": 1_893_456_000}}, "repeat": 9});
    let stage = stage(&json!([quota]));
    let told = stage.told(&[], &[]);
    told.ended("success", "api_error", 1);
    told.says(&["2030"]);
    assert_eq!((stage.requests(), &told.result["api_error_status"]), (1, &json!(429)));
    let text = self::stage(&json!([quota])).run(&["-p", "go"]);
    assert_eq!((text.code(), text.stderr.as_str()), (Some(1), ""));
    assert!(text.stdout.contains("2030"), "{}", text.stdout);
}

#[test]
fn a_patient_run_waits_for_its_quota() {
    let quota = json!({"fault": {"failure": {"class": "quota", "resets_in_s": 1}}});
    let stage = stage(&json!([quota, said("Done.")]));
    let told = stage.told(&[], &[("CLAUDE_CODE_RETRY_WATCHDOG", "1"), ("CLAUDE_CODE_MAX_RETRIES", "0")]);
    told.completed("Done.");
    assert_eq!((stage.requests(), told.of("api_retry").len()), (2, 1));
}

#[test]
fn a_silent_stream_is_cut_and_asked_for_again() {
    let stalled = json!({"blocks": [{"text": "I was going"}], "fault": {"stall": {"after_events": 3}}});
    let stage = stage(&json!([stalled, said("Done.")]));
    let told = stage.told(&[], &[("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "200")]);
    told.completed("Done.");
    assert_eq!((stage.requests(), told.of("api_retry").len()), (2, 1));
    let exchanges = stage.server.exchanges();
    assert_eq!(exchanges[0].body, exchanges[1].body);
}

#[test]
fn an_answer_is_asked_for_in_one_piece_when_streams_break() {
    let broken = json!({"blocks": [{"text": "I was"}], "fault": {"cut": {"after_events": 0}}, "repeat": 2});
    let stage = stage(
        &json!([broken, {"blocks": [{"text": "Whole."}, {"tool": "Bash", "input": {"command": "echo x >> made"}}]}, said("Done.")]),
    );
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    let streamed: Vec<bool> = stage.server.exchanges().iter().map(|exchange| exchange.is_streamed).collect();
    assert_eq!(streamed, [true, true, false, true]);
    assert_eq!(stage.project.read("made").unwrap(), "x\n");
    let exchanges = stage.server.exchanges();
    assert_eq!(exchanges[1].prompt(), exchanges[2].prompt());
    assert!(grew(&exchanges[2], &exchanges[3]));

    let stage = self::stage(&json!([broken, said("Streamed.")]));
    let told = stage.told(&[], &[("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1")]);
    told.completed("Streamed.");
    assert!(stage.server.exchanges().iter().all(|exchange| exchange.is_streamed));
}

#[test]
fn a_response_that_breaks_off_after_a_call_has_acted_stands() {
    let call = json!({"tool": "Bash", "input": {"command": "echo x >> made"}});
    let cut = json!({"blocks": [{"text": "First."}, call, {"text": "And now a long story", "delay_ms": 1_000}],
                     "fault": {"cut": {"after_events": 9}}});
    let stage = stage(&json!([cut, said("Done.")]));
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    assert_eq!(stage.project.read("made").unwrap(), "x\n", "it is not made again");
    let exchanges = stage.server.exchanges();
    assert!(grew(&exchanges[0], &exchanges[1]));
    assert!(stage.newest(1).contains("tool_result"), "{}", stage.newest(1));
    assert!(exchanges[1].prompt().contains("First."));
    assert_eq!(stage.server.refusals(), [""; 0]);
}

/// An endpoint that does not know a beta or a field says so once, and the run goes on without it.
#[test]
fn what_an_endpoint_does_not_know_is_learnt() {
    let responses = json!([{"blocks": [{"tool": "Bash", "input": {"command": "true"}}]}, said("Done.")]);
    let check = |stage: &Stage, field: &str| {
        let told = stage.told(&["--allowedTools", "Bash", "--effort", "low"], &[]);
        told.completed("Done.");
        told.showed_no_failure();
        let exchanges = stage.server.exchanges();
        assert!(exchanges[0].json().pointer(field).is_some(), "{field}");
        let later = &exchanges[exchanges.len() - 2..];
        assert!(later.iter().all(|exchange| exchange.json().pointer(field).is_none()), "{field}");
    };
    let edits = "context-management-2025-06-27";
    check(&Stage::serving(&responses, |server| server.refuse_beta(edits)), "/context_management");
    check(&Stage::serving(&responses, |server| server.refuse_beta("*")), "/context_management");
    check(
        &Stage::serving(&responses, |server| server.refuse_field("context_management")),
        "/context_management",
    );
    check(
        &Stage::serving(&responses, |server| server.refuse_field("output_config.effort")),
        "/output_config/effort",
    );
    check(&Stage::serving(&responses, |server| server.refuse_field("thinking")), "/thinking");
}

/// A paused answer goes on behind a summary only if somebody asks for it.
#[test]
fn a_paused_answer_goes_on_after_a_compaction() {
    let stage = stage(&json!([
        {"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}]},
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 3000"}}]},
        {"blocks": [{"text": "Searching. "}], "stop_reason": "pause_turn"},
        {"fault": {"failure": {"class": "overflow"}}},
        said("Found."),
    ]));
    let told = stage.told(&BASH, &[]);
    told.completed("Searching. Found.");
    told.showed_no_failure();
    assert!(stage.newest(4).contains("Continue exactly where it stopped"), "{}", stage.newest(4));
    assert_eq!(stage.server.refusals(), [""; 0]);
}
