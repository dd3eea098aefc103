//! What a model does beside a run, and after its end: labels of calls, records of spans.

use serde_json::{Value, json};
use windlass_testkit::{Exchange, ServerBuilder};

use crate::guard::find;
use crate::support::{STREAM, Stage, grew, script};
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

/// What the forks of a session took, in order, by its log.
fn spent_by_forks(stage: &Stage, session: &Value) -> Vec<Value> {
    let log = find(&stage.project.home(), &format!("{}.jsonl", session.as_str().unwrap())).unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["of"].clone()).filter(|of| of["by_fork"] == true).collect()
}

#[test]
fn a_span_is_summarised_behind_the_cached_conversation_where_that_costs_less() {
    let record = json!({"when": {"contains": "Write a record of the part"}, "blocks": [{"text": "They counted."}], "repeat": 9});
    let mut responses = vec![record];
    responses.extend((1..=14).map(|n| bash(&format!("seq {n}0000 {n}0550"))));
    responses.push(json!({"blocks": [{"text": "Done."}], "delay_ms": 500}));
    let responses = Value::from(responses);
    let variables = [
        ("WINDLASS_STAGE_PERCENT", "1"),
        ("WINDLASS_SPAN_TOKENS", "15000"),
        ("WINDLASS_ROUNDS_KEPT", "1"),
        ("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "0"),
    ];
    let run = |small: &str| {
        let stage = Stage::serving(&responses, |server| {
            server.count_tokens().script_for("haiku", script(&responses))
        });
        let told = stage.told(&BASH, &[&variables[..], &[("ANTHROPIC_SMALL_FAST_MODEL", small)]].concat());
        told.completed("Done.");
        assert_eq!(stage.server.refusals(), [""; 0]);
        let spent = spent_by_forks(&stage, &told.result["session_id"]);
        let spent = spent.first().unwrap().clone();
        (stage, spent)
    };
    // The same model at the same price: only the cache makes a difference.
    let (stage, spent) = run("opus");
    let tokens = |name: &str| spent["spend"]["usage"][name].as_u64().unwrap();
    let (read, written) = (tokens("cache_read_input_tokens"), tokens("cache_creation_input_tokens"));
    assert!(read > 9_000 && read > 5 * written, "{spent}");
    let exchanges = stage.server.exchanges();
    let is_record = |exchange: &Exchange| exchange.prompt().contains("Write a record of the part");
    let fork = exchanges.iter().position(is_record).unwrap();
    let cached = exchanges[..fork].iter().filter(|exchange| grew(exchange, &exchanges[fork])).count();
    assert!(cached > 0, "it begins with an earlier request");

    let (stage, spent) = run("haiku");
    assert!(asks_small(&stage), "a cheap model reads the span alone");
    assert_eq!(spent["spend"]["usage"]["cache_read_input_tokens"], 0, "{spent}");
}
