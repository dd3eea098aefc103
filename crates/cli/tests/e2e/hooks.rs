//! What hooks can make of a run, with answers that stand in for them.

use serde_json::{Value, json};
use windlass_testkit::FinishedProcess;

use crate::support::{STREAM, Stage, Told, result};

fn run(stage: &Stage, answers: &Value) -> FinishedProcess {
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

#[test]
fn stop_hooks_that_object_again_and_again_are_overruled() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Done."}], "repeat": 20}]"#);
    let objections = vec![json!({"blocks": ["Again."]}); 20];
    let finished = run(&stage, &json!({ "Stop": objections }));
    let told = Told::new(finished);
    told.completed("Done.");
    assert_eq!(stage.requests(), 9, "eight objections count");
    assert!(
        told.notes().contains("8 times in a row, the limit") && told.notes().contains("Again."),
        "{}",
        told.notes()
    );
}

/// Hook, tokens and error would call each other for ever.
#[test]
fn stop_hooks_never_hear_of_failures() {
    let stage = Stage::new(r#"[{"fault": {"failure": {"class": "auth"}}}, {"blocks": [{"text": "never"}]}]"#);
    let finished =
        run(&stage, &json!({"Stop": [{"blocks": ["Again."]}], "StopFailure": [{"notices": ["Too bad."]}]}));
    let told = Told::new(finished);
    told.ended("success", "api_error", 1);
    assert_eq!(stage.requests(), 1);
}

#[test]
fn a_hook_changes_the_input_of_a_call_and_the_result_says_what_was_done() {
    let stage = Stage::call("Bash", r#"{"command": "touch asked"}"#);
    let changed = json!({"PreToolUse": [{"permission": "allow", "input": {"command": "touch changed"}, "context": ["Told by a hook."]}]});
    assert_eq!(result(&run(&stage, &changed))["result"], "Done.");
    assert!(stage.project.read("changed").is_ok() && stage.project.read("asked").is_err());
    assert!(stage.last_user_text().contains("Told by a hook."), "{}", stage.last_user_text());
}

#[test]
fn a_hook_denies_a_call_and_the_model_hears_why() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let finished = run(&stage, &json!({"PreToolUse": [{"permission": {"deny": "Not on a Friday."}}]}));
    let result = result(&finished);
    assert_eq!((&result["result"], finished.code()), (&json!("Done."), Some(0)));
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    assert!(stage.project.read("made").is_err());
    assert!(stage.last_user_text().contains("Not on a Friday."));
}
