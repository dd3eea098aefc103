//! What a model does beside a run, and after its end: labels of calls.

use serde_json::{Value, json};
use windlass_testkit::ServerBuilder;

use crate::support::{STREAM, Stage, script};
use crate::talk::Talk;

const BASH: [&str; 2] = ["--allowedTools", "Bash"];
/// The user's own choice of a small model.
const SMALL: (&str, &str) = ("ANTHROPIC_SMALL_FAST_MODEL", "haiku");

fn bash(command: &str) -> Value {
    json!({"blocks": [{"tool": "Bash", "input": {"command": command}}]})
}

fn done_after(delay_ms: u32) -> Value {
    json!({"blocks": [{"text": "Done."}], "delay_ms": delay_ms})
}

/// A small model that always says the same.
fn saying(text: &str, delay_ms: u32) -> impl FnOnce(ServerBuilder) -> ServerBuilder {
    let answer =
        json!([{"model": "claude-haiku-5-5", "blocks": [{"text": text}], "delay_ms": delay_ms, "repeat": 9}]);
    move |server| server.script_for("haiku", script(&answer))
}

fn asks_small(stage: &Stage) -> bool {
    stage.models().iter().any(|model| model.contains("haiku"))
}

#[test]
fn summaries_of_calls_are_shown_while_the_model_answers() {
    let stage = Stage::serving(&json!([bash("seq 3"), done_after(1_500)]), saying("Counted to three", 0));
    let told = stage.told(&BASH, &[SMALL]);
    told.completed("Done.");
    let kinds: Vec<&str> = told.lines.iter().filter_map(|line| line["type"].as_str()).collect();
    let place = kinds.iter().position(|kind| *kind == "tool_use_summary").unwrap();
    assert_eq!(told.lines[place]["summary"], "Counted to three");
    assert!(kinds[place..].contains(&"assistant"), "the answer comes behind it: {kinds:?}");
}

#[test]
fn summaries_of_calls_are_on_where_a_small_model_is_chosen_and_somebody_watches() {
    let check = |flags: &[&str], variables: &[(&str, &str)], expected: bool| {
        let stage = Stage::serving(&json!([bash("seq 3"), done_after(300)]), saying("Counted", 0));
        let command = stage.command(&[&BASH[..], flags].concat());
        let command = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
        assert_eq!(command.run().unwrap().code(), Some(0));
        assert_eq!(asks_small(&stage), expected, "{flags:?} {variables:?}");
    };
    let emits = |value| ("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", value);
    check(&STREAM, &[SMALL], true);
    check(&STREAM, &[], false);
    check(&STREAM, &[SMALL, emits("0")], false);
    check(&STREAM, &[emits("1")], true);
    check(&["-p", "go"], &[SMALL], false);
    check(&["-p", "go", "--output-format", "json"], &[SMALL], false);
    let off = r#"{"toolUseSummariesEnabled": false}"#;
    check(&[&STREAM[..], &["--settings", off]].concat(), &[SMALL], false);
}

#[test]
fn summaries_of_calls_are_dimmed_at_a_terminal() {
    let stage = Stage::serving(&json!([bash("seq 3"), done_after(1_000)]), saying("Counted to three", 0));
    let command = stage.command(&BASH).env("TERM", "xterm").env(SMALL.0, SMALL.1);
    let mut talk = Talk::with(command.into_command());
    talk.sees("> ");
    talk.types("go");
    talk.sees("\x1b[2mCounted to three");
    talk.sees("Done.");
    talk.types("/exit");
    assert_eq!(talk.ends().0, Some(0));
}
