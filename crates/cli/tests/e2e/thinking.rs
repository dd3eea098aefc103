//! Thinking and effort as each model takes them, and thinking that is bound to what stood before it.

use serde_json::{Value, json};

use crate::host::{Host, prompt};
use crate::support::{Stage, grew, script};

const SUMMARY: &str = "replaced by what you write now";
const BINDING: &str = "thinking-binding-controls-2026-08-01";

/// What the first request says about thinking and effort with these flags.
#[track_caller]
fn check(model: &str, flags: &[&str], thinking: &Value, effort: &Value) {
    let stage = Stage::serving(&json!([{"blocks": [{"text": "Hello."}]}]), |server| server);
    let told = stage.told(&[&["--model", model], flags].concat(), &[]);
    assert_eq!(told.finished.code(), Some(0), "{model} {flags:?} {}", told.result);
    let body = stage.request(0);
    let mut seen = body["thinking"].clone();
    if let Some(fields) = seen.as_object_mut() {
        fields.remove("block_binding");
    }
    assert_eq!((&seen, &body["output_config"]["effort"]), (thinking, effort), "{model} {flags:?}");
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn each_model_is_asked_in_the_way_it_takes() {
    let (adaptive, off, none) = (json!({"type": "adaptive"}), json!({"type": "disabled"}), Value::Null);
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    check("opus", &[], &adaptive, &none);
    check("opus", &["--effort", "xhigh"], &adaptive, &json!("xhigh"));
    check("opus", &["--thinking", "disabled"], &none, &none);
    check("opus", &["--max-thinking-tokens", "5000"], &adaptive, &none);
    check(
        "opus",
        &["--thinking-display", "omitted"],
        &json!({"type": "adaptive", "display": "omitted"}),
        &none,
    );
    check("haiku", &["--thinking", "disabled"], &off, &none);
    check("haiku", &["--thinking", "disabled", "--effort", "high"], &off, &json!("high"));
    check("haiku", &["--thinking", "disabled", "--effort", "max"], &none, &json!("max"));
    check("claude-opus-4-6", &["--effort", "xhigh"], &adaptive, &json!("high"));
    check("claude-opus-4-6", &["--max-thinking-tokens", "5000"], &budget(5_000), &none);
    check("claude-opus-4-5", &["--effort", "max"], &budget(4_000), &json!("high"));
    check("claude-sonnet-4-5", &["--effort", "max"], &budget(4_000), &none);
    check("claude-haiku-4-5", &[], &budget(4_000), &none);
    check("claude-haiku-4-5", &["--thinking", "adaptive"], &budget(4_000), &none);
    check("claude-haiku-4-5", &["--thinking", "disabled"], &off, &none);
    check("claude-sonnet-4-5", &["--max-thinking-tokens", "50000"], &budget(7_999), &none);
    check("claude-sonnet-4-5", &["--max-thinking-tokens", "0"], &off, &none);
    check("claude-3-5-haiku", &["--effort", "max", "--max-thinking-tokens", "5000"], &none, &none);
}

/// A model that needs a number thinks within the cap, in every request by the same number.
#[test]
fn a_default_budget_for_thinking_stays_below_the_cap_and_the_same() {
    let check = |cap: Option<&str>, expected: &Value| {
        let thought = if expected.is_null() { json!({"text": "Well,"}) } else { json!({"thinking": "Hm."}) };
        let call = json!({"blocks": [thought, {"tool": "Bash", "input": {"command": "echo 1"}}]});
        let cut = json!({"blocks": [thought], "stop_reason": "max_tokens"});
        let resumed = json!({"blocks": [{"text": "Done."}]});
        let stage = Stage::serving(&json!([call, cut, resumed]), |server| server);
        let variables: Vec<_> = cap.map(|cap| ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", cap)).into_iter().collect();
        let told = stage.told(&["--model", "claude-sonnet-4-5", "--allowedTools", "Bash"], &variables);
        assert!(told.result["result"].as_str().unwrap().ends_with("Done."), "{}", told.result);
        let seen: Vec<Value> =
            (0..stage.requests()).map(|at| stage.request(at)["thinking"].clone()).collect();
        assert_eq!((seen.len(), seen.iter().all(|thinking| thinking == expected)), (3, true), "{seen:?}");
        assert_eq!(stage.server.refusals(), [""; 0]);
    };
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    check(None, &budget(4_000));
    check(Some("32000"), &budget(16_000));
    check(Some("1500"), &budget(1_024));
    check(Some("1024"), &Value::Null);
}

/// A conversation whose every answer thinks, with as many results of this size.
fn thoughtful(calls: u32, size: u32) -> Vec<Value> {
    let call = |n: u32| {
        let command = format!("seq {n}0000 {}", n * 10_000 + size);
        json!({"blocks": [{"thinking": format!("Thought {n}.")}, {"tool": "Bash", "input": {"command": command}}]})
    };
    (1..=calls).map(call).collect()
}

fn bound(responses: Vec<Value>) -> Stage {
    let summary = json!({"when": {"contains": SUMMARY}, "blocks": [{"thinking": "Hm."}, {"text": "They counted."}], "repeat": 99});
    let small = json!([{"blocks": [{"text": "They counted."}], "repeat": 99}]);
    let responses = [vec![summary], responses].concat();
    Stage::serving(&Value::from(responses), |server| {
        server.bind_thinking().count_tokens().script_for("haiku", script(&small))
    })
}

/// Runs to "Done." without one refusal.
#[track_caller]
fn is_never_refused(stage: &Stage, flags: &[&str], variables: &[(&str, &str)]) {
    let told = stage.told(&[&["--allowedTools", "Bash"], flags].concat(), variables);
    told.completed("Done.");
    assert_eq!(stage.server.refusals(), [""; 0]);
}

fn done() -> Value {
    json!({"blocks": [{"thinking": "At last."}, {"text": "Done."}]})
}

#[test]
fn bound_thinking_goes_back_unchanged() {
    let stage = bound([thoughtful(3, 10), vec![done()]].concat());
    is_never_refused(&stage, &[], &[]);
    let last = stage.server.exchanges().last().unwrap().prompt();
    assert_eq!(last.matches("bound.").count(), 3, "{last}");
}

#[test]
fn bound_thinking_survives_compactions() {
    let stage = bound([thoughtful(30, 2_000), vec![done()]].concat());
    let variables = [("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "60000"), ("WINDLASS_COLLAPSE", "0")];
    is_never_refused(&stage, &[], &variables);
    let compactions = stage.server.exchanges().iter().filter(|one| one.prompt().contains(SUMMARY)).count();
    assert!(compactions > 0, "there was none");
}

#[test]
fn bound_thinking_survives_collapses() {
    let stage = bound([thoughtful(20, 2_000), vec![done()]].concat());
    let variables = [
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "60000"),
        ("WINDLASS_WARNING_MARGIN_TOKENS", "25000"),
        ("WINDLASS_STAGE_PERCENT", "10"),
        ("WINDLASS_SPAN_TOKENS", "2000"),
        ("WINDLASS_ROUNDS_KEPT", "2"),
    ];
    is_never_refused(&stage, &[], &variables);
    let last = stage.server.exchanges().last().unwrap().prompt();
    assert!(last.contains("Summary of an earlier part of this conversation"), "no span was replaced");
}

const CLEARING: [(&str, &str); 5] = [
    ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "60000"),
    ("WINDLASS_WARNING_MARGIN_TOKENS", "30000"),
    ("WINDLASS_CLEAR_AT_LEAST_TOKENS", "1000"),
    ("WINDLASS_RESULTS_KEPT", "1"),
    ("WINDLASS_COLLAPSE", "0"),
];

/// Models that bind thinking are asked to clear old results themselves, which changes no prefix.
#[test]
fn bound_thinking_survives_cleared_results() {
    let stage = bound([thoughtful(12, 1_500), vec![done()]].concat());
    let told = stage.told(&["--allowedTools", "Bash"], &CLEARING);
    told.completed("Done.");
    assert_eq!(stage.server.refusals(), [""; 0]);
    assert!(told.notes().contains("The provider cleared"), "{}", told.notes());
    let exchanges = stage.server.exchanges();
    assert!(exchanges.windows(2).all(|pair| grew(&pair[0], &pair[1])));
}

/// Behind a gateway that cannot do that, the conversation is compacted in time.
#[test]
fn bound_thinking_survives_a_gateway_that_clears_nothing() {
    let summary = json!({"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}], "repeat": 99});
    let responses = Value::from([vec![summary], thoughtful(30, 1_500), vec![done()]].concat());
    let edits = "context-management-2025-06-27";
    let stage = Stage::serving(&responses, |server| server.bind_thinking().count_tokens().refuse_beta(edits));
    let told = stage.told(&["--allowedTools", "Bash"], &CLEARING);
    told.completed("Done.");
    assert_eq!(stage.server.refusals().len(), 1, "learnt at once: {:?}", stage.server.refusals());
    assert!(!told.of("compact_boundary").is_empty());
}

/// A model that cannot clear results has it done, and says the same until the next time.
#[test]
fn old_results_are_cleared_where_the_model_cannot() {
    let stage = bound([thoughtful(12, 1_500), vec![done()]].concat());
    let told = stage.told(&["--allowedTools", "Bash", "--model", "local-7b"], &CLEARING);
    assert_eq!((told.finished.code(), &told.result["result"]), (Some(0), &json!("Done.")));
    let cleared = told.notes().matches("Cleared ").count();
    assert!(cleared > 0, "{}", told.notes());
    let exchanges = stage.server.exchanges();
    let rewritten = exchanges.windows(2).filter(|pair| !grew(&pair[0], &pair[1])).count();
    assert_eq!(rewritten, cleared, "the prefix changes with a decision and at no other time");
}

#[test]
fn bound_thinking_crosses_to_no_other_model_and_back() {
    let first = json!([
        {"blocks": [{"thinking": "One."}, {"tool": "Bash", "input": {"command": "echo 1"}}]},
        {"fault": {"failure": {"class": "overloaded", "retry_after_ms": 5}}, "repeat": 3},
        {"blocks": [{"thinking": "Back."}, {"text": "Done."}]},
    ]);
    let other = json!([
        {"model": "claude-sonnet-5-5", "blocks": [{"thinking": "Two."}, {"tool": "Bash", "input": {"command": "echo 2"}}]},
        {"model": "claude-sonnet-5-5", "blocks": [{"thinking": "Three."}, {"text": "First part."}]},
    ]);
    let stage = Stage::serving(&first, |server| server.bind_thinking().script_for("sonnet", script(&other)));
    let mut host = Host::start(&stage, &["--allowedTools", "Bash", "--fallback-model", "sonnet"]);
    for (text, answer) in [("go", "First part."), ("go on", "Done.")] {
        host.say(&prompt(text, text));
        assert_eq!(host.hear_until("result").pop().unwrap()["result"], answer);
    }
    assert_eq!(host.end().1.code(), Some(0));
    assert_eq!(stage.server.refusals(), [""; 0]);
    let models = stage.models();
    assert_eq!(models.last().unwrap(), "claude-opus-5-5", "the first model has its chance again: {models:?}");
    assert_eq!(models[4..6], ["claude-sonnet-5-5"; 2]);
}

/// Whatever changed the prefix, the refusal never reaches the user.
#[test]
fn refused_thinking_is_taken_out_once() {
    let responses = json!([
        {"blocks": [{"thinking": "One."}, {"tool": "Bash", "input": {"command": "echo 1"}}]},
        {"fault": {"failure": {"class": "binding", "culprit": [1, 0]}}},
        {"blocks": [{"text": "Done."}]},
    ]);
    let stage = Stage::serving(&responses, |server| server);
    let told = stage.told(&["--allowedTools", "Bash"], &[]);
    told.completed("Done.");
    assert!(stage.request(1).to_string().contains("signature"));
    assert!(!stage.request(2).to_string().contains("signature"));
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn the_control_of_bindings_is_asked_for_with_its_beta() {
    let stage = bound([thoughtful(1, 10), vec![done()]].concat());
    is_never_refused(&stage, &[], &[]);
    let exchange = &stage.server.exchanges()[1];
    assert_eq!(exchange.json()["thinking"]["block_binding"]["prefix_mismatch_behavior"], "drop_block");
    assert!(exchange.betas().contains(&BINDING), "{:?}", exchange.betas());
}
