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
fn an_answer_that_was_cut_off_or_is_empty_is_noticed() {
    check(
        r#"{"blocks": [{"text": "You must not de"}], "stop_reason": "max_tokens"}"#,
        "You must not de",
        "cut off at the output limit",
    );
    check(
        r#"{"blocks": [{"text": "And th"}], "stop_reason": "model_context_window_exceeded"}"#,
        "And th",
        "context window is full",
    );
    check(r#"{"blocks": [], "stop_reason": "end_turn"}"#, "", "last answer is empty");
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
