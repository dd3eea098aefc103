//! Every reason for which the loop goes round again, seen from outside: what the server is asked next, and what the
//! host is told.

use serde_json::{Value, json};

use crate::support::{Stage, Told, grew, script};

const BASH: [&str; 2] = ["--allowedTools", "Bash"];

/// A server that must find every request valid.
fn stage(responses: &Value) -> Stage {
    Stage::serving(responses, |server| server)
}

#[test]
fn next_turn_sends_the_results_behind_what_was_said() {
    let stage = stage(&json!([
        {"blocks": [{"text": "Looking."}, {"tool": "Bash", "input": {"command": "echo one"}}]},
        {"blocks": [{"tool": "Bash", "input": {"command": "echo two"}}]},
        {"blocks": [{"text": "Done."}]},
    ]));
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    assert_eq!((&told.result["num_turns"], stage.requests()), (&json!(3), 3));
    assert_eq!(stage.server.refusals(), [""; 0]);
    let exchanges = stage.server.exchanges();
    for pair in exchanges.windows(2) {
        assert!(grew(&pair[0], &pair[1]), "{}\n{}", pair[0].prompt(), pair[1].prompt());
    }
    for (index, exchange) in exchanges.iter().enumerate() {
        let body = exchange.json();
        assert!(exchange.is_streamed);
        assert_eq!((&body["max_tokens"], &body["model"]), (&json!(8_000), &json!("claude-opus-5-5")));
        assert!(index == 0 || stage.newest(index).contains("tool_result"), "{}", stage.newest(index));
    }
}

#[test]
fn collapse_drain_retry_puts_every_summary_in_its_place() {
    let read = json!({"tool": "Read", "input": {"file_path": "long.txt"}});
    let small = script(&json!([{"blocks": [{"text": "They read a long file."}], "repeat": 99}]));
    let responses = json!([
        {"blocks": [read], "usage": {"input_tokens": 20_000}},
        {"blocks": [{"tool": "Grep", "input": {"pattern": "a"}}], "usage": {"input_tokens": 20_000}},
        {"blocks": [{"tool": "Bash", "input": {"command": "sleep 1"}}], "usage": {"input_tokens": 20_000}},
        {"fault": {"failure": {"class": "overflow", "needed": 210_000, "limit": 200_000}}},
        {"blocks": [{"text": "Done."}]},
    ]);
    let stage = Stage::serving(&responses, |server| server.script_for("haiku", small));
    stage.project.write("long.txt", "a line of text\n".repeat(800)).unwrap();
    let told = stage.told(
        &BASH,
        &[("WINDLASS_STAGE_PERCENT", "1"), ("WINDLASS_SPAN_TOKENS", "1000"), ("WINDLASS_ROUNDS_KEPT", "1")],
    );
    told.completed("Done.");
    assert!(told.notes().contains("by a summary"), "{}", told.notes());
    assert_eq!(told.of("compact_boundary").len(), 0, "no compaction was needed");
    let last = stage.server.exchanges().last().unwrap().prompt();
    assert!(last.contains("They read a long file.") && !last.contains("a line of text"), "{last}");
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn reactive_compact_retry_sends_the_summary_instead_of_the_past() {
    let stage = stage(&json!([
        {"when": {"contains": "replaced by what you write now"}, "blocks": [{"text": "They read a long file."}]},
        {"blocks": [{"tool": "Read", "input": {"file_path": "long.txt"}}]},
        {"fault": {"failure": {"class": "overflow", "needed": 210_000, "limit": 200_000}}},
        {"blocks": [{"text": "Done."}]},
    ]));
    stage.project.write("long.txt", "a line of text\n".repeat(800)).unwrap();
    let told = stage.told(&[], &[("WINDLASS_FILES_ATTACHED", "0")]);
    told.completed("Done.");
    assert_eq!(told.of("compact_boundary")[0]["compact_metadata"]["trigger"], "auto");
    told.showed_no_failure();
    assert_eq!(stage.requests(), 4, "the call, the refusal, the summary, the answer");
    let last = stage.server.exchanges()[3].prompt();
    assert!(last.contains("They read a long file.") && !last.contains("a line of text"), "{last}");
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn max_output_tokens_escalate_sends_the_same_with_a_larger_cap() {
    let stage = stage(&json!([
        {"blocks": [{"text": "The answer is cut he"}], "stop_reason": "max_tokens"},
        {"blocks": [{"text": "The whole answer."}]},
    ]));
    let told = stage.told(&[], &[]);
    told.completed("The whole answer.");
    let exchanges = stage.server.exchanges();
    assert_eq!(exchanges[0].prompt(), exchanges[1].prompt(), "no word is added");
    let caps = [0, 1].map(|index| stage.request(index)["max_tokens"].clone());
    assert_eq!(caps, [json!(8_000), json!(64_000)]);
    assert_eq!(told.text(), "The whole answer.", "what was cut is taken back: {}", told.finished.stdout);
}

#[test]
fn max_output_tokens_recovery_asks_to_go_on_in_mid_sentence() {
    let stage = stage(&json!([
        {"blocks": [{"text": "Once upon"}], "stop_reason": "max_tokens", "repeat": 2},
        {"blocks": [{"text": " a time."}]},
        {"blocks": [{"text": "never asked for"}]},
    ]));
    let told = stage.told(&[], &[]);
    told.ended("success", "completed", 0);
    assert_eq!(told.text(), "Once upon a time.");
    assert_eq!(stage.requests(), 3);
    let messages = stage.request(2)["messages"].clone();
    assert_eq!(messages[1]["content"][0]["text"], "Once upon");
    assert!(stage.newest(2).contains("Continue exactly where it stopped"), "{}", stage.newest(2));
    assert_eq!(stage.request(2)["max_tokens"], 64_000, "the rest of a long answer is long");
    let hidden = told.of("user");
    assert!(hidden.iter().all(|line| line["isSynthetic"] == true), "{}", told.finished.stdout);
}

#[test]
fn stop_hook_blocking_tells_the_model_what_the_hook_said() {
    let stage = stage(&json!([{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}]));
    stage.project.write("hooks.json", r#"{"Stop": [{"blocks": ["Run the tests."]}]}"#).unwrap();
    let told = stage.told(&[], &[("WINDLASS_SCRIPTED_HOOKS", "hooks.json")]);
    told.completed("Two.");
    assert!(
        stage.newest(1).contains("A stop hook wants you to continue:\\nRun the tests."),
        "{}",
        stage.newest(1)
    );
    let exchanges = stage.server.exchanges();
    assert!(grew(&exchanges[0], &exchanges[1]));
}

#[test]
fn token_budget_continuation_says_how_much_is_used() {
    let spent = json!({"output_tokens": 1_000});
    let stage = stage(&json!([
        {"blocks": [{"text": "One."}], "usage": spent},
        {"blocks": [{"text": "Two."}], "usage": spent},
    ]));
    let finished =
        stage.command(&["-p", "go +2k", "--output-format", "stream-json", "--verbose"]).run().unwrap();
    let told = Told::new(finished);
    told.completed("Two.");
    assert!(
        stage.newest(1).contains("You have used 1000 of 2000 output tokens (50 %)"),
        "{}",
        stage.newest(1)
    );
    assert_eq!(stage.requests(), 2);
}

#[test]
fn structured_output_retry_says_what_is_wrong() {
    let stage =
        stage(&json!([{"blocks": [{"text": "{\"n\": \"one\"}"}]}, {"blocks": [{"text": "{\"n\": 1}"}]}]));
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let told = stage.told(&["--json-schema", schema], &[]);
    told.completed("{\"n\": 1}");
    assert_eq!(told.result["structured_output"], json!({"n": 1}));
    let newest = stage.newest(1);
    assert!(newest.contains("does not match the schema") && newest.contains("integer"), "{newest}");
}

#[test]
fn pause_turn_resume_continues_the_same_request() {
    let paused = json!({"raw": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}});
    let stage = stage(&json!([
        {"blocks": [{"text": "Searching."}, paused], "stop_reason": "pause_turn"},
        {"blocks": [{"text": "Found."}]},
    ]));
    let told = stage.told(&[], &[]);
    told.completed("Searching.Found.");
    let exchanges = stage.server.exchanges();
    assert!(grew(&exchanges[0], &exchanges[1]));
    assert!(stage.newest(1).contains("server_tool_use"), "the paused answer is last: {}", stage.newest(1));
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn empty_answer_nudge_asks_once() {
    let call = json!({"blocks": [{"tool": "Bash", "input": {"command": "true"}}]});
    let stage = stage(&json!([call, {"blocks": []}, {"blocks": [{"text": "Done."}]}]));
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    assert!(stage.newest(2).contains("You said nothing after the last results"), "{}", stage.newest(2));
    let exchanges = stage.server.exchanges();
    assert!(grew(&exchanges[1], &exchanges[2]));

    let stage = self::stage(&json!([call, {"blocks": [], "repeat": 9}]));
    let told = stage.told(&BASH, &[]);
    told.completed("");
    assert_eq!(stage.requests(), 3, "it is asked once");
    assert!(told.notes().contains("last answer of the model is empty"), "{}", told.notes());
}

#[test]
fn model_fallback_asks_the_other_model_the_same() {
    let stage = stage(&json!([
        {"blocks": [{"thinking": "Hm."}, {"tool": "Bash", "input": {"command": "true"}}]},
        {"fault": {"failure": {"class": "overloaded"}}, "repeat": 3},
        {"expect": {"model": "sonnet"}, "model": "claude-sonnet-5-5", "blocks": [{"text": "Done."}]},
    ]));
    let told = stage.told(&["--fallback-model", "sonnet", "--allowedTools", "Bash"], &[]);
    told.completed("Done.");
    let models = stage.models();
    let (first, other) = ("claude-opus-5-5", "claude-sonnet-5-5");
    assert_eq!(models, [first, first, first, first, other]);
    assert_eq!(told.of("api_retry").len(), 2);
    assert!(told.notes().contains("Switched from claude-opus-5-5 to claude-sonnet-5-5"), "{}", told.notes());
    assert!(
        !stage.server.exchanges()[4].prompt().contains("signature"),
        "no signature crosses to another model"
    );
    assert!(told.result["modelUsage"].get(other).is_some(), "{}", told.result);
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn a_turn_that_is_paused_too_often_ends_with_a_warning() {
    let stage =
        stage(&json!([{"blocks": [{"text": "Still at it. "}], "stop_reason": "pause_turn", "repeat": 30}]));
    let told = stage.told(&[], &[]);
    told.ended("success", "completed", 0);
    assert_eq!(stage.requests(), 11, "ten resumptions");
    assert!(told.notes().contains("the provider paused it too often"), "{}", told.notes());
    assert_eq!(stage.server.refusals(), [""; 0]);
}
