//! Ends that look like success and are less.

use crate::support::{STREAM, Stage, result};

/// An answer that is not what it seems: said on standard error, and as a line of its own to hosts.
#[track_caller]
fn check(response: &str, text: &str, warning: &str) {
    let finished = Stage::new(&format!("[{response}]")).run(&["-p", "go"]);
    assert_eq!((finished.code(), finished.stdout.trim_end()), (Some(0), text));
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);

    let finished = Stage::new(&format!("[{response}]")).run(&STREAM);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
    let lines = finished.json_lines().unwrap();
    let said = lines.iter().any(|line| {
        line["subtype"] == "informational"
            && line["content"].as_str().is_some_and(|text| text.contains(warning))
    });
    assert!(said, "{}", finished.stdout);
}

#[test]
fn an_answer_that_stays_cut_off_is_an_error() {
    let cut = r#"[{"blocks": [{"text": "You must not de"}], "stop_reason": "max_tokens", "repeat": 9}]"#;
    let stage = Stage::new(cut);
    let finished = stage.run(&STREAM);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""));
    assert_eq!(result(&finished)["terminal_reason"], "max_output_tokens");
    let caps: Vec<_> = (0..5).map(|n| stage.request(n)["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(caps[..2], [8_000, 64_000], "a larger cap first, then the request to go on");
    assert_eq!(stage.server.exchanges().len(), 5);
}

#[test]
fn an_answer_that_fills_the_window_and_cannot_be_helped_is_an_error() {
    let full = r#"[{"blocks": [{"text": "And th"}], "stop_reason": "model_context_window_exceeded"}]"#;
    let finished = Stage::new(full).run(&STREAM);
    assert_eq!(
        (finished.code(), &result(&finished)["terminal_reason"]),
        (Some(1), &"prompt_too_long".into())
    );
    let text = Stage::new(full).run(&["-p", "go"]);
    assert_eq!(text.code(), Some(1));
    assert!(text.stdout.lines().count() == 2, "the answer, and what went wrong: {}", text.stdout);
}

#[test]
fn an_empty_answer_is_noticed() {
    check(r#"{"blocks": [], "stop_reason": "end_turn"}"#, "", "last answer of the model is empty");
}

#[test]
fn a_refusal_says_so_in_every_format() {
    let refusal = r#"[{"blocks": [{"text": "I"}], "stop_reason": "refusal"}]"#;
    let text = Stage::new(refusal).run(&["-p", "go"]);
    assert!(text.stdout.contains("declined"), "{}", text.stdout);
    let json = result(&Stage::new(refusal).run(&["-p", "go", "--output-format", "json"]));
    assert!(json["result"].as_str().unwrap().contains("declined"), "{json}");
    assert_eq!(json["stop_reason"], "refusal");
}

#[test]
fn a_run_without_an_answer_costs_nothing() {
    let refusal = r#"[{"fault": {"status": {"code": 401, "message": "no"}}}]"#;
    let json = Stage::new(refusal).run(&["-p", "go", "--output-format", "json"]);
    assert!(json.stdout.contains(r#""total_cost_usd":0.0"#), "{}", json.stdout);
}
