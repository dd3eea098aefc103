//! What hosts may write to standard input, and how it is answered.

use serde_json::{Value, json};
use windlass_protocol::{Block, Priority, SessionSeed};
use windlass_wire::{InputLine, InputPrompt, control_error, control_success, replay};

/// What a line means, in short.
fn read(line: &str) -> String {
    match InputLine::parse(line) {
        Ok(InputLine::Prompt(prompt)) => {
            let blocks: Vec<&str> = prompt.blocks.iter().map(Block::json).collect();
            let uuid = prompt.uuid.as_deref().unwrap_or("-");
            let InputPrompt { has_answer_due, priority, is_verbatim, .. } = prompt;
            format!("{} {uuid} {has_answer_due} {priority:?} {is_verbatim}", blocks.join("|"))
        }
        Ok(InputLine::Interrupt { request_id, prompt: None }) => format!("interrupt {request_id}"),
        Ok(InputLine::Interrupt { request_id, prompt: Some(prompt) }) => {
            format!("interrupt {request_id} with {:?} {:?}", prompt.text(), prompt.priority)
        }
        Ok(InputLine::Invalid { request_id, problem }) => format!("{request_id} is wrong: {problem}"),
        Ok(InputLine::Unsupported { request_id, subtype }) => format!("{subtype} {request_id}"),
        Ok(InputLine::Ignored) => "ignored".into(),
        Ok(InputLine::Unknown(kind)) => format!("unknown {kind}"),
        Err(problem) => format!("bad: {problem}"),
    }
}

#[test]
fn prompts() {
    let check = |line: Value, expected: &str| assert_eq!(read(&line.to_string()), expected);
    let text = r#"{"type":"text","text":"hi"}"#;
    check(
        json!({"type": "user", "message": {"role": "user", "content": "hi"}}),
        &format!("{text} - true Next false"),
    );
    check(
        json!({"type": "user", "message": {"content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {}}]},
            "uuid": "u1", "parent_tool_use_id": null, "session_id": "default", "shouldQuery": false,
            "priority": "now", "client_composed": true, "timestamp": "x", "origin": {"kind": "human"}}),
        &format!(r#"{text}|{{"type":"image","source":{{}}}} u1 false Now true"#),
    );
    check(
        json!({"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": null, "priority": null, "shouldQuery": null}),
        &format!("{text} - true Next false"),
    );
    assert_eq!(Priority::default(), Priority::Next);
}

#[test]
fn requests_and_signs_of_life() {
    let check = |line: &str, expected: &str| assert_eq!(read(line), expected);
    check(
        r#"{"request_id":"r1","type":"control_request","request":{"subtype":"interrupt"}}"#,
        "interrupt r1",
    );
    check(
        r#"{"request_id":"r1","type":"control_request","request":{"subtype":"interrupt","message":{"role":"user","content":"hi"},"uuid":"u"}}"#,
        r#"interrupt r1 with Some("hi") Now"#,
    );
    check(
        r#"{"request_id":"r1","type":"control_request","request":{"subtype":"interrupt","message":{"content":""}}}"#,
        "r1 is wrong: the prompt is empty",
    );
    check(
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":"mcp_message","message":{"jsonrpc":"2.0"}}}"#,
        "mcp_message r3",
    );
    check(
        r#"{"type":"control_request","request_id":"r2","request":{"subtype":"initialize","hooks":null}}"#,
        "initialize r2",
    );
    for ignored in ["", "  ", r#"{"type":"keep_alive"}"#, r#"{"type":"control_response","response":{}}"#] {
        check(ignored, "ignored");
    }
    check(r#"{"type":"weather"}"#, "unknown weather");
}

#[test]
fn bad_lines_say_what_is_wrong() {
    let check = |line: &str, expected: &str| {
        let seen = read(line);
        assert!(seen.starts_with("bad: ") && seen.contains(expected), "{seen}");
    };
    check("hello", "expected value");
    check("{", "EOF");
    check("{}", "missing field `type`");
    check(r#"{"type":"user"}"#, "missing field `message`");
    check(r#"{"type":"user","message":{"content":5}}"#, "must be a string or a list of blocks");
    for empty in [r#""""#, r#"" \n""#, "[]", r#"[{"type":"text","text":" "}]"#] {
        let line = format!(r#"{{"type":"user","message":{{"content":{empty}}}}}"#);
        check(&line, "the prompt is empty");
    }
    check(r#"{"type":"user","message":{"content":[{"text":"x"}]}}"#, "invalid block in the prompt");
    check(
        r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#,
        "the role of a prompt must be `user`",
    );
    check(r#"{"type":"user","message":{"content":"x"},"priority":"soon"}"#, "unknown variant `soon`");
    check(r#"{"type":"control_request","request":{"subtype":"interrupt"}}"#, "missing field `request_id`");
}

#[test]
fn answers() {
    let mut out = Vec::new();
    control_success("r1", &["u1".into()], &mut out);
    control_error("r2", "initialize is not supported yet.", &mut out);
    replay(SessionSeed(7), "u1", &[Block::text("hi")], 1_794_565_230_000, &mut out);
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}
