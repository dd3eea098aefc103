//! What hooks can make of a run, with answers that stand in for them.

use serde_json::{Value, json};
use windlass_testkit::Finished;

use crate::support::{STREAM, Stage, result};

fn run(stage: &Stage, answers: &Value) -> Finished {
    stage.project.write("hooks.json", answers.to_string()).unwrap();
    let arguments = [&STREAM[..], &["--allowedTools", "Bash"]].concat();
    stage.command(&arguments).env("WINDLASS_SCRIPTED_HOOKS", "hooks.json").run().unwrap()
}

/// How a run ends that calls a tool and then says "Done.": subtype and reason.
#[track_caller]
fn check(answers: &Value, subtype: &str, reason: &str) -> Value {
    let finished = run(&Stage::call("Bash", r#"{"command": "true"}"#), answers);
    let result = result(&finished);
    assert_eq!(
        (&result["subtype"], &result["terminal_reason"]),
        (&json!(subtype), &json!(reason)),
        "{result}"
    );
    result
}

#[test]
fn a_stop_hook_objects_and_the_model_goes_on() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}]"#);
    let finished = run(&stage, &json!({"Stop": [{"blocks": ["Say more."]}]}));
    assert_eq!(result(&finished)["result"], "Two.");
    assert!(stage.last_user_text().contains("Say more."));
}

#[test]
fn hooks_end_runs() {
    check(&json!({"Stop": [{"stop": "Enough."}]}), "success", "stop_hook_prevented");
    check(&json!({"PostToolUse": [{"stop": "Enough."}]}), "success", "hook_stopped");
    check(&json!({"PreToolUse": [{"stop": "Enough."}]}), "success", "hook_stopped");
}

#[test]
fn a_call_is_put_off() {
    let result = check(&json!({"PreToolUse": [{"permission": "defer"}]}), "success", "tool_deferred");
    assert_eq!(result["deferred_tool_use"]["name"], "Bash");
    assert_eq!(result["deferred_tool_use"]["input"], json!({"command": "true"}));
}

#[test]
fn after_the_last_answer_nothing_is_said() {
    check(
        &json!({"Stop": [], "PreToolUse": [{}], "PostToolUse": [{"context": ["x"]}]}),
        "success",
        "completed",
    );
}
