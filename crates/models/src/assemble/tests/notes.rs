//! What a provider says about a request beside its answer.

use super::{START, STOP, line, run};

/// The notes of a response whose start and end say this besides.
fn check_notes(start: &str, delta: &str, end: &str, expected: &[&str]) {
    let start = format!(r#"{{"type":"message_start","message":{{"id":"m1","model":"x"{start}}}}}"#);
    let end = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"{delta}}}{end},"usage":{{}}}}"#
    );
    let seen: Vec<_> = run(&[&start, &end, STOP]).iter().map(line).collect();
    assert!(seen[0].starts_with("started") && seen.last().unwrap().starts_with("ended"), "{seen:?}");
    assert_eq!(seen[1..seen.len() - 1], *expected, "{start} {end}");
}

#[test]
fn what_the_provider_cleared_is_told() {
    let edits = |list: &str| format!(r#","context_management":{{"applied_edits":{list}}}"#);
    let both = r#"[{"type":"clear_thinking_20251015","cleared_thinking_turns":3,"cleared_input_tokens":100},
        {"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":50000}]"#;
    let told = "note Cleared { tool_results: 8, thinking_turns: 3, tokens: 50100 }";
    check_notes("", "", &edits(both), &[told]);
    check_notes("", "", &edits("[]"), &[]);
    check_notes("", "", &edits(r#"[{"type":"x","cleared_tool_uses":0}]"#), &[]);
    check_notes("", "", r#","context_management":null"#, &[]);
    check_notes("", "", r#","context_management":{"applied_edits":7}"#, &[]);
}

#[test]
fn thinking_that_the_provider_dropped_is_told() {
    let list = r#"[{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"},
        {"type":"thinking_mismatch_allowed","path":"messages.3.content.0","reason":"prefix_binding_mismatch"},
        {"type":"thinking_dropped","path":"messages.5.content.0","reason":"model_binding_mismatch"},
        {"type":"thinking_dropped","path":"messages.7.content.0","reason":"prefix_binding_mismatch"}]"#;
    let field = format!(r#","input_transformations":{list}"#);
    let told = [
        r#"note ThinkingDropped { blocks: 2, reason: "prefix_binding_mismatch" }"#,
        r#"note ThinkingDropped { blocks: 1, reason: "model_binding_mismatch" }"#,
    ];
    check_notes(&field, "", "", &told);
    check_notes("", "", &field, &told);
    check_notes(r#","input_transformations":[]"#, "", "", &[]);
    check_notes(r#","input_transformations":"new""#, "", "", &[]);
}

#[test]
fn a_refusal_says_why_if_the_provider_does() {
    let check = |details: &str, expected: &[&str]| {
        let delta = format!(r#","stop_reason":"refusal","stop_details":{details}"#);
        let end = format!(r#"{{"type":"message_delta","delta":{{{}}}}}"#, &delta[1..]);
        let seen: Vec<_> = run(&[START, &end, STOP]).iter().map(line).collect();
        assert_eq!(seen[1..seen.len() - 1], *expected);
    };
    check(
        r#"{"type":"refusal","category":"cyber","explanation":"No."}"#,
        &[r#"note Refusal { category: Some("cyber"), explanation: Some("No.") }"#],
    );
    check(r#"{"category":null,"explanation":null}"#, &[]);
    check("null", &[]);
    check_notes("", r#","stop_details":{"category":"x"}"#, "", &[]);
}
