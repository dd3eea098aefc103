//! Another model takes over: what was shown is taken back, what has acted stands, and nothing acts twice.

use serde_json::{Value, json};

use crate::support::{Stage, script};

const FLAGS: [&str; 4] = ["--allowedTools", "Bash", "--fallback-model", "sonnet"];

fn stage(first: &Value, other: &Value) -> Stage {
    Stage::serving(first, |server| server.script_for("sonnet", script(other)).bind_thinking())
}

fn models(stage: &Stage) -> Vec<String> {
    let name = |model: &String| model.trim_start_matches("claude-").trim_end_matches("-5-5").to_owned();
    stage.models().iter().map(name).collect()
}

#[test]
fn half_an_answer_is_taken_back_and_its_calls_do_not_act() {
    let read = json!({"tool": "Read", "input": {"file_path": "a.txt"}});
    let stage = stage(
        &json!([{"blocks": [{"text": "Half an answer."}, read, {"text": "and more"}], "fault": {"cut": {"after_events": 8}}}]),
        &json!([{"model": "claude-sonnet-5-5", "blocks": [{"text": "A whole one."}]}]),
    );
    stage.project.write("a.txt", "hi").unwrap();
    let told = stage.told(&FLAGS, &[]);
    told.completed("A whole one.");
    assert_eq!(models(&stage), ["opus", "sonnet"]);
    assert_eq!(told.text(), "A whole one.", "{}", told.finished.stdout);
    let standing = told.of("assistant").into_iter().find(|line| line.get("supersedes").is_some()).unwrap();
    assert_eq!(standing["message"]["model"], "claude-sonnet-5-5");
    let exchanges = stage.server.exchanges();
    assert_eq!(exchanges[0].prompt(), exchanges[1].prompt(), "nothing of it goes to the other model");
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn what_has_acted_stands_and_the_other_model_goes_on_from_there() {
    let act = json!({"tool": "Bash", "input": {"command": "echo x >> made"}});
    let stage = stage(
        &json!([{"blocks": [{"thinking": "Hm."}, {"text": "First."}, act, {"text": "a long story", "delay_ms": 1_000}],
                 "fault": {"cut": {"after_events": 12}}}]),
        &json!([{"model": "claude-sonnet-5-5", "blocks": [{"text": "Done."}]}]),
    );
    let told = stage.told(&FLAGS, &[]);
    told.completed("Done.");
    assert_eq!(stage.project.read("made").unwrap(), "x\n", "once");
    assert_eq!(models(&stage), ["opus", "sonnet"]);
    let second = stage.server.exchanges()[1].prompt();
    assert!(second.contains("First.") && second.contains("tool_result"), "{second}");
    assert!(!second.contains("signature"), "{second}");
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn overloads_lead_to_the_other_model_and_without_one_to_an_error() {
    let overloaded = json!([{"fault": {"failure": {"class": "overloaded"}}, "repeat": 20}]);
    let stage = stage(&overloaded, &json!([{"blocks": [{"text": "Done."}]}]));
    let told = stage.told(&FLAGS, &[]);
    told.completed("Done.");
    assert_eq!(models(&stage), ["opus", "opus", "opus", "sonnet"]);

    let stage = self::stage(&overloaded, &overloaded);
    let told = stage.told(&FLAGS, &[("CLAUDE_CODE_MAX_RETRIES", "4")]);
    told.ended("success", "api_error", 1);
    told.says(&["Try again later."]);
    assert_eq!(models(&stage)[..4], ["opus", "opus", "opus", "sonnet"]);
}

#[test]
fn a_model_that_does_not_exist_gives_way_and_a_bad_key_does_not() {
    let check = |class: &str, expected: &[&str], code: i32| {
        let stage = stage(
            &json!([{"fault": {"failure": {"class": class}}, "repeat": 9}]),
            &json!([{"blocks": [{"text": "Done."}]}]),
        );
        let told = stage.told(&FLAGS, &[]);
        assert_eq!(told.finished.code(), Some(code), "{}", told.result);
        assert_eq!(models(&stage), expected);
    };
    check("not_found", &["opus", "sonnet"], 0);
    check("auth", &["opus"], 1);
    check("bad_request", &["opus"], 1);
}

/// Only the model that was paused takes its own answer as the last word of a request.
#[test]
fn the_other_model_is_asked_to_go_on_with_a_paused_answer() {
    let stage = stage(
        &json!([
            {"blocks": [{"text": "Searching. "}], "stop_reason": "pause_turn"},
            {"fault": {"failure": {"class": "overloaded"}}, "repeat": 3},
        ]),
        &json!([{"model": "claude-sonnet-5-5", "blocks": [{"text": "Found."}]}]),
    );
    let told = stage.told(&FLAGS, &[]);
    told.completed("Searching. Found.");
    assert_eq!(models(&stage), ["opus", "opus", "opus", "opus", "sonnet"]);
    assert!(stage.newest(4).contains("Continue exactly where it stopped"), "{}", stage.newest(4));
    assert_eq!(stage.server.refusals(), [""; 0]);
}
