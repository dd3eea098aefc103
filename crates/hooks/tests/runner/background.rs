//! Handlers that nobody waits for.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_hooks::HookHost;
use windlass_protocol::HookCall;

use crate::stage::{Stage, is_alive, prompt, stop, until, words};

fn detached(line: &str, field: &str) -> Value {
    json!({"type": "command", "command": line, field: true})
}

#[tokio::test]
async fn nobody_waits_and_what_was_found_is_told_with_the_next_prompt() {
    let object = json!({
        "systemMessage": "and this", "decision": "block",
        "hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "the build is broken"}
    });
    let stage = Stage::one("Stop", detached(&format!("sleep 0.4; echo '{object}'; touch done"), "async"));
    let runner = stage.runner();
    let started = Instant::now();
    assert_eq!(words(&stage.ask_with(&runner, stop()).await), "");
    assert!(started.elapsed() < Duration::from_millis(350));
    assert_eq!(words(&stage.ask_with(&runner, prompt("early")).await), "");
    until("it is done", || stage.path().join("done").exists()).await;
    let mut told = String::new();
    for _ in 0..100 {
        told = words(&stage.ask_with(&runner, prompt("later")).await);
        if !told.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // It cannot decide any more.
    assert_eq!(told, "context the build is broken | context and this");
    let batch = HookCall::PostToolBatch { calls: Vec::new() };
    assert_eq!(words(&stage.ask_with(&runner, batch).await), "");
}

#[tokio::test]
async fn an_objection_wakes_an_idle_session() {
    let stage = Stage::one("Stop", detached("echo tests fail >&2; exit 2", "asyncRewake"));
    let woken = Arc::new(Mutex::new(Vec::new()));
    let wake = woken.clone();
    let runner = stage.runner_with(HookHost {
        wake: Some(Arc::new(move |text| wake.lock().unwrap().push(text))),
        ..stage.host()
    });
    stage.ask_with(&runner, stop()).await;
    until("it wakes", || !woken.lock().unwrap().is_empty()).await;
    assert_eq!(*woken.lock().unwrap(), ["tests fail"]);

    // Where nobody can be woken, it waits for the next prompt.
    let runner = stage.runner();
    stage.ask_with(&runner, stop()).await;
    let mut told = String::new();
    for _ in 0..200 {
        told = words(&stage.ask_with(&runner, prompt("x")).await);
        if !told.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(told, "context tests fail");
}

#[tokio::test]
async fn what_still_runs_at_the_end_is_ended() {
    let line = "(trap '' TERM; echo $$ > inner; exec sleep 60) & echo $$ > outer; wait";
    let stage = Stage::one("Stop", detached(line, "async"));
    let is_there = || !stage.read("inner").is_empty() && !stage.read("outer").is_empty();
    let is_gone = || ["inner", "outer"].iter().all(|name| !is_alive(&stage.read(name)));

    let runner = stage.runner();
    stage.ask_with(&runner, stop()).await;
    until("it runs", is_there).await;
    runner.end_background().await;
    until("it ends when asked", is_gone).await;

    for name in ["inner", "outer"] {
        std::fs::remove_file(stage.path().join(name)).unwrap();
    }
    let runner = stage.runner();
    stage.ask_with(&runner, stop()).await;
    until("it runs again", is_there).await;
    drop(runner);
    until("it ends with its runner", is_gone).await;
}
