//! Hooks that ask a model.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_hooks::{AskModel, AskModelError, HookHost};
use windlass_ports::BoxFuture;
use windlass_protocol::{HookCall, ToolOutput};

use crate::stage::{Stage, after, bash, prompt, stop, words};

/// A model that says the same each time.
struct Says {
    text: Result<&'static str, &'static str>,
    pause: Duration,
    asked: Mutex<Vec<(Option<String>, String)>>,
}

impl AskModel for Says {
    fn ask(&self, model: Option<&str>, prompt: String) -> BoxFuture<'static, Result<String, AskModelError>> {
        self.asked.lock().unwrap().push((model.map(str::to_owned), prompt));
        let (text, pause) = (self.text, self.pause);
        Box::pin(async move {
            tokio::time::sleep(pause).await;
            text.map(str::to_owned).map_err(|why| AskModelError::Failed(vec![why.to_owned()]))
        })
    }
}

fn says(text: Result<&'static str, &'static str>) -> Arc<Says> {
    Arc::new(Says { text, pause: Duration::ZERO, asked: Mutex::default() })
}

const NO: &str = r#"{"ok": false, "reason": "no tests"}"#;

async fn check(event: &str, call: HookCall, extra: Value, answer: &'static str, expected: &str) {
    let mut handler = json!({"type": "prompt", "prompt": "May it? $ARGUMENTS"});
    handler.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let stage = Stage::one(event, handler);
    let runner = stage.runner_with(HookHost { model: Some(says(Ok(answer))), ..stage.host() });
    let seen = words(&stage.ask_with(&runner, call).await);
    let seen = seen.split(" | notice").next().unwrap_or_default();
    assert_eq!(seen, expected, "{event} {answer}");
}

#[tokio::test]
async fn a_model_that_objects_has_the_effect_of_the_event() {
    let none = || json!({});
    let on = || json!({"continueOnBlock": true});
    let done = || after("Bash", &json!({}), ToolOutput::text("out"));
    let batch = || HookCall::PostToolBatch { calls: Vec::new() };
    check("Stop", stop(), none(), NO, "block no tests").await;
    check("Stop", stop(), none(), r#"{"ok": false, "reason": "r", "impossible": true}"#, "notice objects: r")
        .await;
    check("Stop", stop(), none(), r#"{"ok": true}"#, "").await;
    check("PreToolUse", bash("ls"), none(), NO, "stop no tests | deny no tests").await;
    check("PreToolUse", bash("ls"), on(), NO, "deny no tests").await;
    check("PostToolUse", done(), none(), NO, "stop no tests").await;
    check("PostToolUse", done(), on(), NO, "block no tests").await;
    check("PostToolBatch", batch(), none(), NO, "block no tests").await;
    check("UserPromptSubmit", prompt("x"), none(), NO, "block no tests").await;
    let failed = after("Bash", &json!({}), ToolOutput::error("out"));
    check("PostToolUseFailure", failed, none(), NO, "block no tests").await;
}

#[tokio::test]
async fn the_model_is_asked_about_the_event() {
    let stage = Stage::one("Stop", json!({"type": "prompt", "prompt": "Done? $ARGUMENTS", "model": "small"}));
    let model = says(Ok("{\"ok\": true}"));
    let runner = stage.runner_with(HookHost { model: Some(model.clone()), ..stage.host() });
    stage.ask_with(&runner, stop()).await;
    let asked = model.asked.lock().unwrap();
    let (name, text) = &asked[0];
    assert_eq!(name.as_deref(), Some("small"));
    assert!(text.starts_with("Done? {") && text.contains("\"last_assistant_message\":\"done\""), "{text}");
    assert!(text.contains("{\"ok\": true}"), "{text}");
}

#[tokio::test]
async fn a_model_that_fails_blocks_nothing() {
    let ask = |model: Option<Arc<Says>>| async move {
        let stage = Stage::one("PreToolUse", json!({"type": "prompt", "prompt": "p", "timeout": 0.2}));
        let host = HookHost { model: model.map(|model| model as _), ..stage.host() };
        words(&stage.ask_with(&stage.runner_with(host), bash("ls")).await)
    };
    let no_say = ". Its answer is ignored.";
    let seen = ask(Some(says(Ok("Looks fine to me.")))).await;
    assert_eq!(
        seen,
        format!("notice gave an answer that cannot be read: it is no object with \"ok\"{no_say}")
    );
    let seen = ask(Some(says(Err("overloaded")))).await;
    assert_eq!(seen, format!("notice could not be started: overloaded{no_say}"));
    let seen = ask(None).await;
    assert_eq!(seen, format!("notice could not be started: no model is available{no_say}"));
    let slow = Says { text: Ok(NO), pause: Duration::from_secs(20), asked: Mutex::default() };
    assert_eq!(
        ask(Some(Arc::new(slow))).await,
        format!("notice took longer than 0.2 s and was stopped{no_say}")
    );
}
