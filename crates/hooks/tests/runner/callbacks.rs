//! Hooks that are functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_hooks::{CallbackHook, CallbackInput, HookCallback};
use windlass_ports::{BoxFuture, CancellationToken};
use windlass_protocol::HookEvent;

use crate::stage::{Stage, bash, before, prompt, stop, words};

/// Answers as it is told, after a while.
struct Answers {
    said: Result<Value, String>,
    pause: Duration,
    cancelled: Arc<AtomicBool>,
}

impl HookCallback for Answers {
    fn call(
        &self,
        input: CallbackInput,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Value, String>> {
        let (said, pause, cancelled) = (self.said.clone(), self.pause, self.cancelled.clone());
        let json: Value = serde_json::from_str(&input.json).unwrap();
        assert_eq!(json["hook_event_name"], input.event.name());
        assert_eq!(input.tool_use_id.is_some(), input.event == HookEvent::PreToolUse);
        tokio::spawn(async move {
            cancel.cancelled().await;
            cancelled.store(true, Ordering::SeqCst);
        });
        Box::pin(async move {
            tokio::time::sleep(pause).await;
            said
        })
    }
}

fn answers(said: Result<Value, String>) -> Arc<Answers> {
    Arc::new(Answers { said, pause: Duration::ZERO, cancelled: Arc::default() })
}

fn stage(hook: CallbackHook) -> Stage {
    let mut stage = Stage::new();
    stage.set.callback(hook).unwrap();
    stage
}

#[tokio::test]
async fn a_function_answers_like_a_program() {
    let deny = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"
    }});
    let hook = CallbackHook {
        matcher: "Bash".into(),
        ..CallbackHook::new(HookEvent::PreToolUse, "the host", answers(Ok(deny)))
    };
    let stage = stage(hook);
    let answer = stage.ask(bash("ls")).await;
    assert_eq!(words(&answer), "deny no | notice The PreToolUse hook of the host objects: no");
    assert_eq!(words(&stage.ask(before("Read", &json!({}))).await), "");
    let bad = CallbackHook {
        matcher: "Bash(".into(),
        ..CallbackHook::new(HookEvent::PreToolUse, "the host", answers(Ok(json!({}))))
    };
    assert!(Stage::new().set.callback(bad).unwrap_err().to_string().contains("not a regular expression"));
}

/// Panics when it is asked.
struct Panics;

impl HookCallback for Panics {
    fn call(&self, _: CallbackInput, _: CancellationToken) -> BoxFuture<'static, Result<Value, String>> {
        panic!("a bug in the function")
    }
}

#[tokio::test]
async fn a_function_that_panics_takes_no_other_with_it() {
    let deny = json!({"decision": "block", "reason": "no"});
    let panics = CallbackHook::new(HookEvent::PreToolUse, "the host", Arc::new(Panics));
    let mut others = stage(CallbackHook { should_block_on_failure: true, ..panics.clone() });
    let told = "The PreToolUse hook of the host crashed: it panicked";
    assert!(words(&others.ask(bash("ls")).await).contains(told));
    others = stage(panics);
    others.set.callback(CallbackHook::new(HookEvent::PreToolUse, "another", answers(Ok(deny)))).unwrap();
    let said = words(&others.ask(bash("ls")).await);
    assert!(said.contains(told) && said.contains("deny no"), "{said}");
}

#[tokio::test]
async fn a_function_that_fails_has_no_say_unless_it_is_set_to_block() {
    let fails = || answers(Err("the channel is closed".into()));
    let told = "The PreToolUse hook of the host crashed: the channel is closed";
    let lenient = stage(CallbackHook::new(HookEvent::PreToolUse, "the host", fails()));
    assert_eq!(words(&lenient.ask(bash("ls")).await), format!("notice {told}. Its answer is ignored."));
    let strict = CallbackHook {
        should_block_on_failure: true,
        ..CallbackHook::new(HookEvent::PreToolUse, "the host", fails())
    };
    let seen = words(&stage(strict).ask(bash("ls")).await);
    assert!(seen.starts_with(&format!("deny {told}. Blocked: this hook must succeed.")), "{seen}");
    let misspeaks = stage(CallbackHook::new(HookEvent::Stop, "the host", answers(Ok(json!([1])))));
    assert!(words(&misspeaks.ask(stop()).await).contains("cannot be read: it is not an object"));
}

#[tokio::test]
async fn a_host_that_does_not_answer_in_time_blocks_calls_and_prompts() {
    let slow = |event: HookEvent| {
        let said = Ok(json!({}));
        let answers = Arc::new(Answers { said, pause: Duration::from_mins(1), cancelled: Arc::default() });
        let hook = CallbackHook::new(event, "the host", answers.clone());
        (stage(CallbackHook { timeout: Some(Duration::from_millis(50)), ..hook }), answers)
    };
    let (stage, answers) = slow(HookEvent::PreToolUse);
    let seen = words(&stage.ask(bash("ls")).await);
    assert!(seen.starts_with("deny ") && seen.contains("took longer than 0.05 s"), "{seen}");
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(answers.cancelled.load(Ordering::SeqCst));
    let seen = words(&slow(HookEvent::UserPromptSubmit).0.ask(prompt("x")).await);
    assert!(seen.starts_with("block "), "{seen}");
    let seen = words(&slow(HookEvent::Stop).0.ask(stop()).await);
    assert!(seen.starts_with("notice ") && seen.ends_with("Its answer is ignored."), "{seen}");
}
