//! What a model does beside a run, and after its end: labels of calls, records of spans, suggestions.

use serde_json::{Value, json};
use windlass_testkit::{Exchange, ReplyEnd, ServerBuilder};

use crate::guard::find;
use crate::host::{Host, LINES, prompt};
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
    // Typed before the run has ended, it would end the run.
    talk.sees("tokens in");
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

fn answers(texts: &[&str], small: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Stage {
    let responses: Vec<Value> = texts.iter().map(|text| json!({"blocks": [{"text": text}]})).collect();
    Stage::serving(&responses.into(), small)
}

#[test]
fn a_host_that_asks_gets_one_suggestion_behind_each_result() {
    let stage = answers(&["One.", "Two."], saying("Run the tests", 0));
    let mut host = Host::start(&stage, &["--prompt-suggestions"]);
    for (text, answer) in [("first", "One."), ("second", "Two.")] {
        host.say(&prompt(text, text));
        let lines = host.hear_until("prompt_suggestion");
        let [.., result, suggestion] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&result["type"], &result["result"]), (&json!("result"), &json!(answer)));
        assert_eq!(suggestion["suggestion"], "Run the tests");
        assert_eq!(suggestion["session_id"], result["session_id"]);
        assert_eq!(lines.iter().filter(|line| line["type"] == "prompt_suggestion").count(), 1);
    }
    host.say(&prompt("/cost", "cost"));
    let lines = host.hear_until("result");
    let report = lines.last().unwrap()["result"].as_str().unwrap();
    assert!(report.contains("claude-haiku-5-5"), "{report}");
    let (rest, status) = host.end();
    assert_eq!((rest.len(), status.code()), (0, Some(0)));
}

#[test]
fn a_suggestion_is_made_behind_the_cached_conversation_where_that_costs_less() {
    let cached = |small: &str| {
        let responses = json!([
            {"when": {"contains": "Predict what the user types next"}, "blocks": [{"text": "Run the tests"}]},
            {"blocks": [{"text": "One."}]},
        ]);
        let stage = Stage::serving(&responses, |server| {
            server.count_tokens().script_for("haiku", script(&responses))
        });
        let flags = ["--prompt-suggestions", "--model", "claude-sonnet-5", "--thinking", "disabled"];
        let command = stage.command(&[&LINES[..], &flags].concat());
        let mut host = Host::spawn(command.env("ANTHROPIC_SMALL_FAST_MODEL", small).into_command());
        host.say(&prompt(&"many words ".repeat(500), "u1"));
        let lines = host.hear_until("prompt_suggestion");
        let id = lines.last().unwrap()["session_id"].clone();
        host.end();
        let spent = spent_by_forks(&stage, &id);
        spent[0]["spend"]["usage"]["cache_read_input_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached("haiku"), 0, "a cheap model reads the end of the conversation alone");
    // The same model at the same price: only the cache makes a difference.
    let read = cached("claude-sonnet-5");
    assert!(read > 3_000, "{read}");
}

#[test]
fn a_suggestion_is_part_of_the_next_report_and_of_the_session() {
    let stage = answers(&["One.", "Two."], saying("Run the tests", 0));
    let mut host = Host::start(&stage, &["--prompt-suggestions"]);
    host.say(&prompt("first", "u1"));
    let lines = host.hear_until("prompt_suggestion");
    let result = &lines[lines.len() - 2];
    let small = |result: &Value| result["modelUsage"].get("claude-haiku-5-5").is_some();
    assert!(!small(result), "it did not wait: {result}");
    host.say(&prompt("second", "u2"));
    let second = host.hear_until("result").pop().unwrap();
    assert!(small(&second), "{second}");
    host.end();
    let spent = spent_by_forks(&stage, &second["session_id"]);
    assert_eq!(spent[0]["model"], "claude-haiku-5-5", "{spent:?}");
    // The log holds what came of it, and can be played again.
    let id = second["session_id"].as_str().unwrap();
    let replayed = stage.run(&["replay", id]);
    assert_eq!(replayed.code(), Some(0), "{replayed:?}");
    let resumed = stage.run(&["-p", "/cost", "--resume", id]);
    assert!(resumed.stdout.contains("claude-haiku-5-5"), "{}", resumed.stdout);
}

#[test]
fn a_suggestion_delays_nothing_and_the_next_prompt_cancels_it() {
    let stage = answers(&["One.", "Two."], saying("too late", 30_000));
    let mut host = Host::start(&stage, &["--prompt-suggestions"]);
    let began = std::time::Instant::now();
    host.say(&prompt("first", "u1"));
    host.hear_until("result");
    while !asks_small(&stage) {
        assert!(began.elapsed().as_secs() < 15, "no suggestion was asked for");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    host.say(&prompt("second", "u2"));
    let lines = host.hear_until("result");
    assert_eq!(lines.last().unwrap()["result"], "Two.");
    let (rest, status) = host.end();
    assert_eq!((rest.len(), status.code()), (0, Some(0)));
    assert!(began.elapsed().as_secs() < 15, "{:?}", began.elapsed());
    let cancelled = stage.server.exchanges().into_iter().find(|exchange| exchange.model().contains("haiku"));
    let end = cancelled.and_then(|exchange| exchange.reply).map(|reply| reply.end);
    assert_eq!(end, Some(ReplyEnd::ClientLeft));
}

#[test]
fn a_suggestion_that_is_cancelled_is_paid_for_as_far_as_it_came() {
    let endless =
        json!([{"model": "claude-haiku-5-5", "blocks": [{"text": "late"}], "block_delay_ms": 30_000}]);
    let stage = answers(&["One.", "Two."], |server| server.script_for("haiku", script(&endless)));
    let mut host = Host::start(&stage, &["--prompt-suggestions"]);
    host.say(&prompt("first", "u1"));
    host.hear_until("result");
    while !asks_small(&stage) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // The response begins at once, and its input is known from then on.
    std::thread::sleep(std::time::Duration::from_millis(500));
    host.say(&prompt("second", "u2"));
    let second = host.hear_until("result").pop().unwrap();
    assert!(second["modelUsage"]["claude-haiku-5-5"]["inputTokens"].as_u64() > Some(0), "{second}");
    host.end();
    let replayed = stage.run(&["replay", second["session_id"].as_str().unwrap()]);
    assert_eq!(replayed.code(), Some(0), "{replayed:?}");
}

#[test]
fn nothing_is_suggested_in_print_mode_or_to_a_host_that_did_not_ask() {
    let check = |flags: &[&str]| {
        let stage = answers(&["One."], saying("Run the tests", 0));
        let on = ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "1");
        let finished = stage.command(flags).env(SMALL.0, SMALL.1).env(on.0, on.1).run().unwrap();
        assert_eq!((finished.code(), asks_small(&stage)), (Some(0), false), "{flags:?}");
    };
    check(&["-p", "go"]);
    check(&["-p", "go", "--output-format", "json"]);
    check(&STREAM);
    let stage = answers(&["One."], saying("Run the tests", 0));
    let refused = stage.run(&["-p", "go", "--prompt-suggestions"]);
    crate::support::check_refused(&refused, &["--prompt-suggestions needs an interactive session"]);
    let mut host = Host::start(&stage, &[]);
    host.say(&prompt("go", "u1"));
    host.hear_until("result");
    std::thread::sleep(std::time::Duration::from_millis(300));
    host.end();
    assert!(!asks_small(&stage));
}

#[test]
fn a_suggestion_stands_dimmed_above_the_prompt() {
    let talk = |variables: &[(&str, &str)]| {
        let stage = answers(&["One."], saying("Run the tests", 300));
        let command = stage.command(&[]).env("TERM", "xterm");
        let command = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
        let mut talk = Talk::with(command.into_command());
        talk.sees("> ");
        talk.types("go");
        talk.sees("One.");
        (stage, talk)
    };
    let (_stage, mut person) = talk(&[SMALL]);
    // What is being typed meanwhile stays where it is.
    person.sees_times("> ", 3);
    person.presses("ru");
    person.sees("\x1b[2mSuggestion: Run the tests");
    person.shows(&["Suggestion: Run the tests", "> ru"]);
    person.presses("\x15");
    person.types("/exit");
    assert_eq!(person.ends().0, Some(0));

    let off = ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "0");
    for variables in [&[][..], &[SMALL, off]] {
        let (stage, mut person) = talk(variables);
        std::thread::sleep(std::time::Duration::from_millis(500));
        person.types("/exit");
        assert_eq!((person.ends().0, asks_small(&stage)), (Some(0), false), "{variables:?}");
    }
}
