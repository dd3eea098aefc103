//! Flags and variables about models, thinking and limits change what is asked and how a run ends.

use serde_json::{Value, json};

use crate::support::{STREAM, Stage, result};

/// What a part of the first request says with these flags and variables.
#[track_caller]
fn asks(flags: &[&str], variables: &[(&str, &str)], pointer: &str, expected: &Value) {
    let stage = Stage::hello();
    let command = stage.command(&[&["-p", "go"][..], flags].concat());
    let finished =
        variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run().unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let request = stage.request(0);
    assert_eq!(request.pointer(pointer).unwrap_or(&Value::Null), expected, "{flags:?} {variables:?}");
}

/// Why a run ends with these flags and variables, and how many requests it took.
#[track_caller]
fn ends(responses: &str, flags: &[&str], variables: &[(&str, &str)], expected: (&str, usize)) {
    let stage = Stage::new(responses);
    stage.project.write("hooks.json", r#"{"Stop": [{"blocks": ["No."]}, {"blocks": ["No."]}]}"#).unwrap();
    let command = stage.command(&[&STREAM[..], &["--allowedTools", "Bash"], flags].concat());
    let finished =
        variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run().unwrap();
    let reason = result(&finished)["terminal_reason"].as_str().unwrap().to_owned();
    assert_eq!((reason.as_str(), stage.server.exchanges().len()), expected, "{}", finished.stdout);
}

#[test]
fn effort_and_thinking_are_asked_for() {
    let effort = "/output_config/effort";
    asks(&["--effort", "low"], &[], effort, &json!("low"));
    asks(&[], &[("CLAUDE_CODE_EFFORT_LEVEL", "max")], effort, &json!("max"));
    asks(&["--effort=low"], &[("CLAUDE_CODE_EFFORT_LEVEL", "max")], effort, &json!("low"));
    asks(&["--thinking", "adaptive"], &[], "/thinking/type", &json!("adaptive"));
    asks(&["--thinking-display", "summarized"], &[], "/thinking/display", &json!("summarized"));
    let budgeted = ["--model", "claude-sonnet-4-5", "--max-thinking-tokens", "2000"];
    asks(&budgeted, &[], "/thinking/budget_tokens", &json!(2000));
    asks(
        &["--model", "claude-sonnet-4-5"],
        &[("MAX_THINKING_TOKENS", "3000")],
        "/thinking/budget_tokens",
        &json!(3000),
    );
}

#[test]
fn limits_end_runs() {
    const CALLS: &str = r#"[{"blocks": [{"tool": "Bash", "input": {"command": "true"}}], "repeat": 20}]"#;
    const CUT: &str = r#"[{"blocks": [{"text": "An"}], "stop_reason": "max_tokens", "repeat": 20}]"#;
    const ANSWERS: &str = r#"[{"blocks": [{"text": "Yes."}], "repeat": 20}]"#;
    ends(CALLS, &["--max-budget-usd", "0.0000001"], &[], ("budget_exhausted", 1));
    ends(CALLS, &[], &[("WINDLASS_REPEATS_END", "2")], ("repeated_call", 3));
    ends(CUT, &[], &[("WINDLASS_OUTPUT_RECOVERIES", "0")], ("max_output_tokens", 2));
    ends(CUT, &[], &[("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "50")], ("max_output_tokens", 4));
    ends(
        ANSWERS,
        &[],
        &[("WINDLASS_TOKEN_BUDGET", "50"), ("WINDLASS_BUDGET_CONTINUATIONS", "0")],
        ("completed", 3),
    );
    let hooks = ("WINDLASS_SCRIPTED_HOOKS", "hooks.json");
    ends(ANSWERS, &[], &[hooks], ("completed", 3));
    ends(ANSWERS, &[], &[hooks, ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1")], ("completed", 2));
}

#[test]
fn another_model_takes_over_when_the_first_is_overloaded() {
    let stage = Stage::new(
        r#"[{"fault": {"status": {"code": 529, "message": "Overloaded"}}}, {"blocks": [{"text": "Hello."}]}]"#,
    );
    let command = stage.command(&[&STREAM[..], &["--fallback-model", "sonnet"]].concat());
    let finished = command.env("WINDLASS_OVERLOADS", "1").run().unwrap();
    assert_eq!(result(&finished)["result"], "Hello.");
    assert_eq!(stage.request(1)["model"], "claude-sonnet-5-5");
    assert!(
        finished.stdout.contains("Switched from claude-opus-5-5 to claude-sonnet-5-5"),
        "{}",
        finished.stdout
    );
}
