//! How handlers fail, what that blocks, and that nothing is left of them.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_hooks::{Confinement, HookHost};
use windlass_ports::{CancellationToken, HookRunner};
use windlass_protocol::{EndReason, HookCall, ToolOutput};

use crate::stage::{Stage, after, bash, is_alive, prompt, stop, until, words};

/// Starts a grandchild that ignores polite requests and leaves the pipes open.
const TREE: &str = "(trap '' TERM; echo $BASHPID > inner; exec sleep 60) & echo $$ > outer; wait";

fn slow(seconds: f64) -> serde_json::Value {
    json!({"type": "command", "command": TREE, "shell": "bash", "timeout": seconds})
}

async fn nothing_is_left(stage: &Stage) {
    until("the whole tree ends", || {
        ["inner", "outer"].iter().all(|name| !stage.read(name).is_empty() && !is_alive(&stage.read(name)))
    })
    .await;
}

#[tokio::test]
async fn a_hook_that_takes_too_long_is_ended_with_everything_it_started() {
    let stage = Stage::one("PreToolUse", slow(0.4));
    let started = Instant::now();
    let answer = stage.ask(bash("ls")).await;
    assert_eq!(words(&answer), "notice took longer than 0.4 s and was stopped. Its answer is ignored.");
    assert!(started.elapsed() < Duration::from_secs(5));
    nothing_is_left(&stage).await;
}

#[tokio::test]
async fn a_hook_that_nobody_waits_for_any_more_is_ended_too() {
    let stage = Stage::one("PreToolUse", slow(60.0));
    let runner = stage.runner();
    let mut asked = runner.run(bash("ls"), stage.scene(), CancellationToken::new());
    tokio::select! {
        _ = &mut asked => panic!("it ends by itself"),
        () = until("the tree is there", || !stage.read("inner").is_empty() && !stage.read("outer").is_empty()) => (),
    }
    drop(asked);
    nothing_is_left(&stage).await;

    let stage = Stage::one("PreToolUse", slow(60.0));
    let cancel = CancellationToken::new();
    let asked = stage.runner().run(bash("ls"), stage.scene(), cancel.clone());
    let (answer, ()) = tokio::join!(asked, async {
        until("the tree is there", || !stage.read("inner").is_empty() && !stage.read("outer").is_empty())
            .await;
        cancel.cancel();
    });
    assert_eq!(words(&answer), "");
    nothing_is_left(&stage).await;
}

#[tokio::test]
async fn what_a_hook_leaves_behind_does_not_hold_it_up_and_is_ended() {
    let handler =
        json!({"type": "command", "command": "sleep 60 & echo $! > inner; echo $$ > outer; echo hello"});
    let stage = Stage::one("UserPromptSubmit", handler);
    let started = Instant::now();
    assert_eq!(words(&stage.ask(prompt("x")).await), "context hello");
    assert!(started.elapsed() < Duration::from_secs(10));
    nothing_is_left(&stage).await;
}

async fn check_failure(event: &str, call: HookCall, handler: serde_json::Value, expected: &str) {
    let seen = words(&Stage::one(event, handler).ask(call).await);
    assert_eq!(seen, expected, "{event}");
}

#[tokio::test]
async fn a_hook_that_fails_blocks_if_it_is_set_to() {
    let crash = json!({"type": "command", "command": "exit 9", "onFailure": "block"});
    let told = "crashed: exit code 9: no output";
    let seen = words(&Stage::one("PreToolUse", crash.clone()).ask(bash("ls")).await);
    assert!(seen.starts_with("deny The PreToolUse hook of settings.json:1") && seen.contains(told), "{seen}");
    assert!(seen.ends_with("Blocked: this hook must succeed."), "{seen}");

    let missing = json!({"type": "command", "command": "./not-there", "onFailure": "block"});
    let seen = words(&Stage::one("UserPromptSubmit", missing).ask(prompt("x")).await);
    assert!(seen.starts_with("block ") && seen.contains("could not be started"), "{seen}");

    let slow = json!({"type": "command", "command": "sleep 30", "onFailure": "block", "timeout": 0.2});
    let seen = words(&Stage::one("PreToolUse", slow).ask(bash("ls")).await);
    assert!(seen.starts_with("deny ") && seen.contains("took longer than 0.2 s"), "{seen}");

    let unreadable = json!({"type": "command", "command": "echo '{\"decision\":1}'", "onFailure": "block"});
    let seen = words(&Stage::one("PreToolUse", unreadable).ask(bash("ls")).await);
    assert!(seen.starts_with("deny ") && seen.contains("cannot be read"), "{seen}");

    // A hook that objects has not failed, and one that works has nothing to block.
    let fine = json!({"type": "command", "command": "exit 0", "onFailure": "block"});
    check_failure("PreToolUse", bash("ls"), fine, "").await;
    // A broken hook does not keep a run going, and what is done is done.
    check_failure("Stop", stop(), crash.clone(), &format!("notice {told}. Its answer is ignored.")).await;
    let lenient = json!({"type": "command", "command": "exit 9", "onFailure": "continue"});
    check_failure("PreToolUse", bash("ls"), lenient, &format!("notice {told}. Its answer is ignored.")).await;
    let done = after("Bash", &json!({}), ToolOutput::text("out"));
    let late = json!({"type": "command", "command": "exit 9"});
    check_failure("PostToolUse", done, late, &format!("notice {told}. Its answer is ignored.")).await;
}

#[tokio::test]
async fn hooks_at_the_end_of_a_session_share_a_short_time() {
    let end = || HookCall::SessionEnd { reason: EndReason::Other };
    let sleeps = |extra: serde_json::Value| {
        let mut handler = json!({"type": "command", "command": "sleep 30"});
        handler.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        handler
    };
    let check = |extra: serde_json::Value, host_ms: Option<u64>, seconds: &'static str| async move {
        let stage = Stage::one("SessionEnd", sleeps(extra));
        let host = HookHost { ending_time: host_ms.map(Duration::from_millis), ..stage.host() };
        let seen = words(&stage.ask_with(&stage.runner_with(host), end()).await);
        assert!(seen.contains(&format!("took longer than {seconds} s")), "{seen}");
    };
    check(json!({}), None, "1.5").await;
    check(json!({"timeout": 0.2}), None, "0.2").await;
    check(json!({"timeout": 2}), None, "2").await;
    check(json!({"timeout": 20}), Some(300), "0.3").await;
}

#[tokio::test]
async fn a_hook_that_cannot_be_confined_is_not_started() {
    let check = async |policy: &str, expected: &str| {
        let handler = json!({"type": "command", "command": "touch made", "onFailure": policy});
        let stage = Stage::one("PreToolUse", handler);
        let runner = stage.runner_with(HookHost { confinement: Confinement::Missing, ..stage.host() });
        let seen = words(&stage.ask_with(&runner, bash("ls")).await);
        assert!(seen.starts_with(expected), "{seen}");
        assert!(seen.contains("could not be started: it belongs into a sandbox"), "{seen}");
        assert!(!stage.path().join("made").exists());
    };
    check("continue", "notice ").await;
    check("block", "deny ").await;
}
