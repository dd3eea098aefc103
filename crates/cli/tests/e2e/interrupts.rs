//! Ctrl-C at every point of a run: one result, promptly, and nothing left behind.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_testkit::TestProcess;

use crate::support::{STREAM, Stage, Told};

const BASH: [&str; 2] = ["--allowedTools", "Bash"];

fn stage(responses: &Value) -> Stage {
    Stage::serving(responses, |server| server)
}

fn start(stage: &Stage, variables: &[(&str, &str)]) -> TestProcess {
    let command = stage.command(&[&STREAM[..], &BASH].concat());
    variables.iter().fold(command, |command, (name, value)| command.env(name, value)).start().unwrap()
}

/// Interrupts a run; what it told. It does not wait for what was under way.
#[track_caller]
fn interrupted(running: TestProcess) -> Told {
    let began = Instant::now();
    running.interrupt().unwrap();
    let told = Told::new(running.finish().unwrap());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    told
}

#[test]
fn before_the_first_word() {
    let stage = stage(&json!([{"blocks": [{"text": "late"}], "delay_ms": 20_000}]));
    let running = start(&stage, &[]);
    assert!(stage.server.wait_for_requests(1, Duration::from_secs(10)));
    interrupted(running).failed("aborted_streaming", &["Interrupted while the model was answering."]);
}

#[test]
fn while_a_call_runs_and_the_model_still_talks() {
    let stage = stage(
        &json!([{"blocks": [{"tool": "Bash", "input": {"command": "echo x >> made; sleep 20"}}], "end_delay_ms": 20_000}]),
    );
    let running = start(&stage, &[]);
    stage.wait_for_file("made");
    let told = interrupted(running);
    told.failed("aborted_streaming", &[]);
    assert_eq!(told.of("user")[0]["message"]["content"][0]["is_error"], true, "{}", told.finished.stdout);
}

#[test]
fn while_the_summariser_writes() {
    let stage = stage(&json!([
        {"when": {"contains": "replaced by what you write now"}, "blocks": [{"text": "late"}], "delay_ms": 20_000},
        {"blocks": [{"tool": "Bash", "input": {"command": "seq 2000"}}], "usage": {"input_tokens": 168_000}},
        {"blocks": [{"text": "never"}]},
    ]));
    let running = start(&stage, &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "200000"), ("WINDLASS_COLLAPSE", "0")]);
    assert!(stage.server.wait_for_requests(2, Duration::from_secs(10)));
    let told = interrupted(running);
    told.failed("aborted_streaming", &[]);
    assert_eq!((stage.requests(), told.of("compact_boundary").len()), (2, 0));
}

#[test]
fn during_the_pause_before_a_retry() {
    let stage = stage(
        &json!([{"fault": {"failure": {"class": "rate_limited", "retry_after_ms": 60_000}}, "repeat": 9}]),
    );
    let running = start(&stage, &[]);
    running.wait_for_output("api_retry").unwrap();
    interrupted(running).failed("aborted_streaming", &[]);
    assert_eq!(stage.requests(), 1);
}

#[test]
fn a_host_can_go_on_after_it() {
    // The answer to the second prompt shows that the conversation is still valid to the API.
    let stage = stage(&json!([
        {"blocks": [{"text": "On it."}, {"tool": "Bash", "input": {"command": "touch began; sleep 20"}}]},
        {"blocks": [{"text": "Fine."}]},
    ]));
    let running = start(&stage, &[]);
    stage.wait_for_file("began");
    let told = interrupted(running);
    told.failed("aborted_tools", &[]);
    let said = told.of("user").into_iter().map(Value::to_string).collect::<String>();
    assert!(said.contains("interrupted"), "{said}");
}
