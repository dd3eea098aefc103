//! Runs against a server that does what it likes, from seeds: whatever comes, there is one result, every request is valid,
//! and nothing acts twice.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_testkit::Exchange;

use crate::support::{PNG, STREAM, Stage, Told, script};

/// A few seeds; `CHAOS=200..400` tries others.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// A sequence of numbers that look as if by chance.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let place = self.roll(words.len() as u64);
        words[usize::try_from(place).unwrap()]
    }
}

const FAILURES: [&str; 7] =
    ["overflow", "media", "rate_limited", "overloaded", "server", "binding", "overloaded"];
const STOPS: [&str; 4] = ["max_tokens", "pause_turn", "end_turn", "model_context_window_exceeded"];

/// One response. `number` is the mark that its side-effecting call leaves behind.
fn response(dice: &mut Dice, number: usize) -> Value {
    let mut blocks = Vec::new();
    if dice.one_in(2) {
        blocks.push(json!({"thinking": format!("Thought {number}.")}));
    }
    if dice.one_in(2) {
        blocks.push(json!({"text": format!("Text {number}.")}));
    }
    let size = dice.roll(3_000);
    match dice.roll(6) {
        0..=2 => blocks.push(
            json!({"tool": "Bash", "input": {"command": format!("echo {number} >> made; seq {size}")}}),
        ),
        3 => blocks
            .push(json!({"tool": "Read", "input": {"file_path": dice.pick(&["dot.png", "none", "made"])}})),
        4 => blocks.push(json!({"tool": "Bash", "input_json": "{\"command\": \"echo cut"})),
        _ => {}
    }
    let mut response = json!({ "blocks": blocks });
    let events = dice.roll(12);
    match dice.roll(14) {
        0 => response["fault"] = json!({"cut": {"after_events": events}}),
        1 => response["fault"] = json!({"stall": {"after_events": events}}),
        2 => {
            response["fault"] = json!({"error": {"type": "overloaded_error", "message": "Overloaded", "after_events": events}});
        }
        3 => response["fault"] = json!({"malformed": {"after_events": events}}),
        4..=5 => {
            let class = dice.pick(&FAILURES);
            response = json!({"fault": {"failure": {"class": class, "retry_after_ms": 1}}, "repeat": 1 + dice.roll(3)});
        }
        _ => {}
    }
    // A fault may lie behind the end, and nobody knows then whether a pause was heard of.
    if dice.one_in(5) && response["fault"].is_null() {
        response["stop_reason"] = dice.pick(&STOPS).into();
    }
    response
}

fn responses(dice: &mut Dice, count: usize) -> Value {
    let mut list: Vec<Value> = (0..count).map(|number| response(dice, number)).collect();
    list.push(json!({"blocks": [{"text": "{\"n\": 1}"}], "usage": {"output_tokens": 600}, "repeat": 9_999}));
    list.into()
}

/// The requests of a run: model, how the answer ended, and the roles of the last two messages.
fn asked(stage: &Stage) -> String {
    let line = |exchange: &Exchange| {
        let body = exchange.json();
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let roles: Vec<&Value> = messages.iter().rev().take(2).map(|message| &message["role"]).collect();
        let status = exchange.reply.as_ref().and_then(|reply| reply.status);
        format!(
            "{} {} messages, {roles:?}, {status:?} {:?}",
            exchange.model(),
            messages.len(),
            exchange.refusal
        )
    };
    stage.server.exchanges().iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A server that has a window and binds thinking, and a project to work on.
fn stage(dice: &mut Dice) -> Stage {
    let main = responses(dice, 25);
    let other = json!([{"model": "claude-sonnet-5-5", "blocks": [{"thinking": "Mine."}, {"text": "{\"n\": 2}"}], "repeat": 9_999}]);
    let small = json!([{"blocks": [{"text": "In short."}], "repeat": 9_999}]);
    let window = 30_000 + dice.roll(40_000);
    let stage = Stage::serving(&main, |server| {
        let server = server.script_for("sonnet", script(&other)).script_for("haiku", script(&small));
        server.bind_thinking().window_tokens(window)
    });
    let hooks = json!({"Stop": [{"blocks": ["Go on."]}, {}, {"blocks": ["Go on."]}], "PostToolUse": [{"context": ["Noted."]}]});
    stage.project.write("dot.png", PNG).unwrap();
    stage.project.write("hooks.json", hooks.to_string()).unwrap();
    stage
}

fn flags(dice: &mut Dice) -> Vec<&'static str> {
    let choices: [(&[&str], u64); 5] = [
        (&["--fallback-model", "sonnet"], 2),
        (&["--json-schema", r#"{"type": "object", "required": ["n"]}"#], 3),
        (&["--max-turns", "9"], 4),
        (&["--model", "local-7b"], 5),
        (&["--include-partial-messages"], 3),
    ];
    let chosen = choices.into_iter().filter(|(_, chance)| dice.one_in(*chance));
    ["--allowedTools", "Bash"]
        .into_iter()
        .chain(chosen.flat_map(|(flags, _)| flags.iter().copied()))
        .collect()
}

fn variables(dice: &mut Dice) -> Vec<(&'static str, String)> {
    let believed = (20_000 + dice.roll(80_000)).to_string();
    let choices = [
        ("WINDLASS_SCRIPTED_HOOKS", "hooks.json", 3),
        ("WINDLASS_TOKEN_BUDGET", "3000", 4),
        ("WINDLASS_STAGE_PERCENT", "10", 2),
        ("WINDLASS_SPAN_TOKENS", "1000", 2),
        ("WINDLASS_ROUNDS_KEPT", "1", 2),
        ("WINDLASS_MESSAGE_RESULT_CHARS", "3000", 4),
        ("WINDLASS_EARLY_START", "off", 4),
        ("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "1", 4),
    ];
    let chosen = choices.into_iter().filter(|(_, _, chance)| dice.one_in(*chance));
    let always = [
        ("WINDLASS_BACKOFF_MS", "1".to_owned()),
        ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "150".to_owned()),
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", believed),
    ];
    always.into_iter().chain(chosen.map(|(name, value, _)| (name, value.to_owned()))).collect()
}

/// One run; what is wrong with it is told with its seed.
fn run(seed: u64) {
    let mut dice = Dice(seed);
    let stage = stage(&mut dice);
    let (flags, variables) = (flags(&mut dice), variables(&mut dice));
    let command = stage.command(&[&STREAM[..], &flags].concat());
    let command = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
    let finished = command.run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let requests = asked(&stage);
    let context =
        format!("seed {seed} {flags:?} {variables:?}\n{requests}\n{}\n{}", finished.stdout, finished.stderr);
    let told = Told::new(finished);
    let code = told.finished.code();
    assert_eq!(code, Some(i32::from(told.result["is_error"] == true)), "{context}");
    let mut refusals = stage.server.refusals();
    refusals.retain(|refusal| !refusal.contains("prompt is too long"));
    assert!(refusals.is_empty(), "{refusals:?}\n{context}");
    let made = stage.project.read("made").unwrap_or_default();
    let marks: BTreeSet<&str> = made.lines().collect();
    assert_eq!(marks.len(), made.lines().count(), "{made}\n{context}");
}

#[test]
fn whatever_comes_there_is_one_result_and_nothing_acts_twice() {
    let Ok(range) = std::env::var("CHAOS") else { return SEEDS.into_iter().for_each(run) };
    let (from, to) = range.split_once("..").unwrap();
    (from.parse().unwrap()..to.parse().unwrap()).for_each(run);
}
