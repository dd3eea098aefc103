//! Whole runs, as a host reads them.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_protocol::{
    Block, CallFacts, CallId, CallKind, Delta, Denial, Failure, FailureClass, MessageId, ModelSpend, Outcome,
    RawValue, Repair, RequestId, SessionSeed, Terminal, ToolOutput, ToolUse, Update, Usage,
};
use windlass_wire::{SessionSetup, TimePoint, Translator, startup_failure};

fn setup(has_partial_messages: bool) -> SessionSetup {
    SessionSetup {
        cwd: "/srv/app".into(),
        model: "claude-test".into(),
        tools: vec!["Bash".into(), "Read".into()],
        permission_mode: "default".into(),
        api_key_source: "ANTHROPIC_API_KEY".into(),
        has_partial_messages,
        ..SessionSetup::default()
    }
}

/// Translates one run; each update comes 10 ms after the one before.
fn lines(setup: SessionSetup, updates: &[Update]) -> String {
    let mut translator = Translator::new(SessionSeed(7), setup);
    let mut out = Vec::new();
    let mut at = TimePoint { wall_ms: 1_794_565_230_000, monotonic_ms: 5_000 };
    translator.begin(at, &mut out);
    for update in updates {
        at.wall_ms += 10;
        at.monotonic_ms += 10;
        translator.update(update, at, &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    check_required(&text);
    text
}

/// The keys a host in Python insists on, and the rules about the first and the last line.
#[track_caller]
fn check_required(text: &str) {
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(text.lines().all(|line| line.len() < 1_048_576), "a line is too long");
    for line in &lines {
        let need = |path: &[&str]| {
            let found = path.iter().try_fold(line, |value, key| value.get(key));
            found.unwrap_or_else(|| panic!("{path:?} is missing in {line}"))
        };
        need(&["uuid"]);
        need(&["session_id"]);
        match need(&["type"]).as_str().unwrap() {
            "system" => drop(need(&["subtype"])),
            "stream_event" => drop(need(&["event", "type"])),
            "user" => check_blocks(need(&["message", "content"])),
            "assistant" => {
                need(&["message", "model"]);
                check_blocks(need(&["message", "content"]));
            }
            "result" => {
                for key in [
                    "subtype",
                    "duration_ms",
                    "duration_api_ms",
                    "is_error",
                    "num_turns",
                    "stop_reason",
                    "total_cost_usd",
                    "usage",
                    "modelUsage",
                    "permission_denials",
                    "terminal_reason",
                ] {
                    need(&[key]);
                }
                for key in ["input_tokens", "service_tier", "iterations", "speed", "output_tokens_details"] {
                    assert!(!need(&["usage", key]).is_null(), "{key} is null");
                }
            }
            "tool_progress" | "tool_use_summary" => {}
            other => panic!("unknown type {other}"),
        }
    }
    let results = lines.iter().filter(|line| line["type"] == "result").count();
    assert_eq!(results, 1, "exactly one result");
    assert_eq!(lines.last().unwrap()["type"], "result", "the result is last");
    let ids: std::collections::BTreeSet<_> = lines.iter().map(|line| line["uuid"].to_string()).collect();
    assert_eq!(ids.len(), lines.len(), "every line has its own uuid");
}

fn check_blocks(content: &Value) {
    for block in content.as_array().expect("content is an array") {
        let keys: &[&str] = match block["type"].as_str().unwrap() {
            "text" => &["text"],
            "thinking" => &["thinking", "signature"],
            "tool_use" => &["id", "name", "input"],
            "tool_result" => &["tool_use_id"],
            _ => &[],
        };
        for key in keys {
            assert!(block.get(key).is_some_and(|value| !value.is_null()), "{key} is missing in {block}");
        }
    }
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

fn outcome(terminal: Terminal) -> Outcome {
    let spend = ModelSpend {
        usage: usage(30, 12),
        cost_usd: Some(0.25),
        window_tokens: 200_000,
        output_tokens_max: 64_000,
    };
    Outcome {
        terminal,
        text: "Done.".into(),
        stop_reason: Some("end_turn".into()),
        iterations: 2,
        warnings: Vec::new(),
        usage: usage(30, 12),
        models: BTreeMap::from([("claude-test".into(), spend)]),
        denials: vec![],
        errors: vec![],
        failure: None,
        duration_ms: 120,
        duration_api_ms: 90,
        structured: None,
        deferred: None,
        prompts: Vec::new(),
    }
}

fn done(outcome: Outcome) -> Update {
    Update::Done(Box::new(outcome))
}

fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.into()).unwrap().into()
}

fn requesting() -> Update {
    Update::Requesting { request: RequestId(1), model: "claude-test".into(), attempt: 1 }
}

fn responding(id: &str) -> Update {
    Update::Responding {
        request: RequestId(1),
        message_id: id.into(),
        model: "claude-test".into(),
        usage: usage(10, 1).into(),
    }
}

fn responded(stop: &str) -> Update {
    Update::Responded { request: RequestId(1), stop_reason: stop.into(), usage: usage(10, 6).into() }
}

fn block(id: u64, index: u32, block: Block) -> Update {
    Update::Block { id: MessageId(id), index, block, is_aborted: false }
}

fn tool_use() -> ToolUse {
    ToolUse { id: "toolu_1".into(), name: "Read".into(), input: raw(r#"{"file_path":"a.txt"}"#).into() }
}

fn tool_started() -> Update {
    Update::ToolStarted {
        call: CallId(1),
        tool_use: tool_use(),
        facts: CallFacts { is_shared: true, target: "a.txt".into(), ..CallFacts::new(CallKind::Read) },
    }
}

fn tool_result(id: u64, outcome: &ToolOutput) -> Update {
    Update::ToolResult {
        id: MessageId(id),
        call: CallId(1),
        name: "Read".into(),
        result: Block::tool_result("toolu_1", &outcome.content, outcome.is_error),
        structured: outcome.structured.clone(),
    }
}

fn failure(class: FailureClass, status: Option<u16>, message: &str) -> Failure {
    Failure { status, request_id: Some("req_1".into()), ..Failure::new(class, message) }
}

fn run_with_a_tool() -> Vec<Update> {
    let thinking = Block::from_json(r#"{"type":"thinking","thinking":"Hm."}"#).unwrap();
    let call = Block::tool_use("toolu_1", "Read", raw(r#"{"file_path":"a.txt"}"#));
    let text = |text: &str| Delta::Text(text.into());
    let input = |json: &str| Delta::InputJson(json.into());
    let delta = |index, delta| Update::Delta { index, delta };
    let started = |index, json: &str| Update::Delta { index, delta: Delta::Start(raw(json)) };
    vec![
        requesting(),
        responding("msg_1"),
        started(0, r#"{"type":"thinking","thinking":"","signature":""}"#),
        delta(0, Delta::Thinking("Hm.".into())),
        delta(0, Delta::Signature("sig".into())),
        block(1, 0, thinking),
        started(1, r#"{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}"#),
        delta(1, input("{\"file_path\":")),
        delta(1, input("\"a.txt\"}")),
        block(2, 1, call),
        tool_started(),
        responded("tool_use"),
        tool_result(3, &ToolOutput::text("hello").with_structured(&serde_json::json!({"type":"text"}))),
        requesting(),
        responding("msg_2"),
        started(0, r#"{"type":"text","text":""}"#),
        delta(0, text("Done\n")),
        delta(0, Delta::Other(r#"{"type":"citations_delta","citation":{}}"#.into())),
        block(4, 0, Block::text("Done.")),
        responded("end_turn"),
        done(outcome(Terminal::Completed)),
    ]
}

#[test]
fn a_run_with_a_tool() {
    let whole = run_with_a_tool();
    let quiet: Vec<Update> =
        whole.into_iter().filter(|update| !matches!(update, Update::Delta { .. })).collect();
    insta::assert_snapshot!(lines(setup(false), &quiet));
}

#[test]
fn a_run_with_partial_messages() {
    insta::assert_snapshot!(lines(setup(true), &run_with_a_tool()));
}

#[test]
fn a_failed_call_ends_as_success_with_an_error() {
    let failed = failure(FailureClass::Auth, Some(401), "The key was refused (401).");
    let overloaded = failure(FailureClass::Overloaded, Some(529), "Overloaded.");
    let updates = [
        requesting(),
        Update::Retrying { attempt: 1, retries_max: 10, delay_ms: 500, failure: Box::new(overloaded) },
        requesting(),
        Update::Failed {
            terminal: Terminal::ApiError,
            text: failed.message.clone(),
            failure: Some(Box::new(failed.clone())),
        },
        done(Outcome {
            text: String::new(),
            stop_reason: None,
            errors: vec![failed.message.clone()],
            failure: Some(failed),
            ..outcome(Terminal::ApiError)
        }),
    ];
    insta::assert_snapshot!(lines(setup(false), &updates));
}

#[test]
fn an_interrupted_run_with_denials_and_repairs() {
    let denial = |is_by_person| Denial {
        call: CallId(1),
        tool_use: tool_use(),
        reason: "Read needs permission.".into(),
        is_by_person,
    };
    let updates = [
        Update::Repaired(vec![Repair::DroppedText]),
        requesting(),
        responding("msg_1"),
        Update::Denied(denial(false)),
        Update::Denied(denial(true)),
        Update::Block { id: MessageId(1), index: 0, block: Block::text("I was go"), is_aborted: true },
        Update::UserText {
            id: MessageId(2),
            blocks: vec![Block::text("[Request interrupted by user]")],
            is_synthetic: true,
            prompts: Vec::new(),
        },
        done(Outcome {
            denials: vec![denial(false)],
            models: BTreeMap::from([("unknown-model".into(), ModelSpend::default())]),
            ..outcome(Terminal::AbortedStreaming)
        }),
    ];
    insta::assert_snapshot!(lines(setup(true), &updates));
}

#[test]
fn a_retracted_answer_is_superseded_or_reported() {
    let retracted = Update::Retracted { messages: vec![MessageId(1)], calls: Vec::new() };
    let replaced = [
        responding("msg_1"),
        block(1, 0, Block::text("Half")),
        retracted.clone(),
        responding("msg_2"),
        block(2, 0, Block::text("Whole")),
        block(3, 1, Block::text("Rest")),
        done(outcome(Terminal::Completed)),
    ];
    let text = lines(setup(false), &replaced);
    let lines_of =
        |text: &str| -> Vec<Value> { text.lines().map(|l| serde_json::from_str(l).unwrap()).collect() };
    let seen = lines_of(&text);
    assert_eq!(seen[2]["supersedes"], serde_json::json!([seen[1]["uuid"]]));
    assert_eq!(seen[3].get("supersedes"), None);

    let refused = [
        responding("msg_1"),
        block(1, 0, Block::text("Half")),
        retracted.clone(),
        done(Outcome {
            text: String::new(),
            stop_reason: Some("refusal".into()),
            ..outcome(Terminal::Refused)
        }),
    ];
    let seen = lines_of(&lines(setup(false), &refused));
    assert_eq!(seen[2]["subtype"], "model_refusal_no_fallback");
    assert_eq!(seen[2]["retracted_message_uuids"], serde_json::json!([seen[1]["uuid"]]));
    assert_eq!(seen[3]["terminal_reason"], "completed");
    assert_eq!(seen[3]["is_error"], false);
}

#[test]
fn a_run_that_cannot_start_still_has_a_result() {
    let mut out = Vec::new();
    startup_failure(SessionSeed(7), &["No key.".into()], &mut out);
    let text = String::from_utf8(out).unwrap();
    check_required(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn cost_and_model_usage_add_up_over_the_runs_of_a_session() {
    let mut translator = Translator::new(SessionSeed(7), setup(false));
    let mut out = Vec::new();
    for _ in 0..2 {
        out.clear();
        translator.begin(TimePoint::default(), &mut out);
        translator.update(&done(outcome(Terminal::Completed)), TimePoint::default(), &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    let result: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(result["total_cost_usd"], 0.5);
    assert_eq!(result["modelUsage"]["claude-test"]["outputTokens"], 24);
    assert_eq!(result["usage"]["output_tokens"], 12);
    assert_eq!(result["result_index"], 1);
}

#[test]
fn huge_messages_are_shortened_and_stay_valid() {
    let size = 3_000_000;
    let long = "\u{1}é\"x".repeat(size / 4);
    let structured = serde_json::json!({ "content": long });
    let input = serde_json::json!({ "file_path": "a", "content": long });
    let call = Block::tool_use("toolu_1", "Write", serde_json::value::to_raw_value(&input).unwrap());
    let picture = Block::image("image/png", &"A".repeat(size));
    let mut updates = run_with_a_tool();
    updates.truncate(2);
    updates.extend([
        Update::Delta { index: 0, delta: Delta::Text(long.clone()) },
        block(1, 0, call),
        tool_result(2, &ToolOutput::text("short").with_structured(&structured)),
        tool_result(3, &ToolOutput::blocks(vec![Block::text("see"), picture])),
        tool_result(4, &ToolOutput::text(&long)),
        done(Outcome { text: long.clone(), ..outcome(Terminal::Completed) }),
    ]);
    let text = lines(setup(true), &updates);
    let seen: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let streamed: String =
        (seen.iter()).filter_map(|line| line.pointer("/event/delta/text")?.as_str()).collect();
    assert_eq!(streamed, long, "the pieces of a large delta make up the whole");
    let of_type = |kind: &str| seen.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of_type("assistant")[0]["message"]["content"][0]["input"]["file_path"], "a");
    let users = of_type("user");
    assert_eq!(users[0]["message"]["content"][0]["content"], "short");
    assert_eq!(users[0].get("tool_use_result"), None);
    assert_eq!(users[1]["message"]["content"][0]["content"][0]["text"], "see");
    for long in [&users[1], &users[2], &of_type("result")[0]] {
        assert!(long.to_string().contains("omitted to keep this line short"));
    }
}

/// Whatever one update holds too much of, its lines stay under what hosts read.
#[test]
fn no_line_is_ever_too_long() {
    let words = |count: usize| "word ".repeat(count);
    let numbers = format!(r#"{{"n":[{}1]}}"#, "1,".repeat(600_000));
    let denial = |input: &str, name: &str| Denial {
        call: CallId(1),
        tool_use: ToolUse { id: name.into(), name: name.into(), input: raw(input).into() },
        reason: name.into(),
        is_by_person: false,
    };
    let user =
        |blocks| Update::UserText { id: MessageId(1), blocks, is_synthetic: false, prompts: Vec::new() };
    let ended = |text: String, denials| Outcome { text, denials, ..outcome(Terminal::Completed) };
    let failed = |errors| Outcome { errors, ..outcome(Terminal::ModelError) };
    let results: Vec<Block> =
        (0..20_000).map(|n| Block::tool_result(&format!("{n}{}", words(100)), &[], true)).collect();
    let server_tool = format!(r#"{{"type":"server_tool_use","id":"s","name":"n","input":{numbers}}}"#);
    let table: Vec<(&str, Update)> = vec![
        ("blocks", user((0..20_000).map(|n| Block::text(&format!("{n} {}", words(12)))).collect())),
        ("empty blocks", user(vec![Block::text(""); 100_000])),
        ("results", user(results)),
        ("ids", block(1, 0, Block::tool_use(&words(300_000), &words(300_000), raw(&numbers)))),
        ("parts", tool_result(1, &ToolOutput::blocks(vec![Block::text("part"); 50_000]))),
        ("server tool", block(1, 0, Block::from_json(&server_tool).unwrap())),
        ("denied", Update::Denied(denial(&numbers, &words(300_000)))),
        ("warnings", done(Outcome { warnings: vec![words(300_000)], ..ended("x".into(), vec![]) })),
        ("text", done(ended(words(300_000), vec![]))),
        ("text and input", done(ended(words(300_000), vec![denial(&numbers, "X")]))),
        ("denials", done(ended(words(300_000), vec![denial("{}", &words(60)); 5_000]))),
        ("errors", done(failed(vec![words(10); 50_000]))),
        ("long errors", done(failed(vec![words(300_000); 3]))),
    ];
    for (what, update) in table {
        let mut translator = Translator::new(SessionSeed(7), setup(true));
        let mut out = Vec::new();
        translator.update(&update, TimePoint::default(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(!text.is_empty(), "{what} says nothing");
        for line in text.lines() {
            assert!(line.len() < 1_048_576, "{what}: {} bytes", line.len());
            let json: Value = serde_json::from_str(line).expect(what);
            json.pointer("/message/content").inspect(|content| check_blocks(content));
        }
        let cut = text.contains("omitted to keep this line short");
        assert!(cut || what == "denials", "{what} does not say that something is missing");
    }
}

#[test]
fn what_is_left_of_a_long_line_is_its_most_useful_part() {
    let first_line = |update: &Update| -> Value {
        let mut out = Vec::new();
        Translator::new(SessionSeed(7), setup(false)).update(update, TimePoint::default(), &mut out);
        serde_json::from_slice(&out).unwrap()
    };
    let numbers = format!(r#"{{"n":[{}1]}}"#, "1,".repeat(600_000));
    let denial = Denial {
        call: CallId(1),
        tool_use: ToolUse { id: "t".into(), name: "X".into(), input: raw(&numbers).into() },
        reason: "r".into(),
        is_by_person: false,
    };
    let ended =
        Outcome { text: "a".repeat(1_200_000), denials: vec![denial], ..outcome(Terminal::Completed) };
    let line = first_line(&done(ended));
    assert!(line["result"].as_str().unwrap().len() > 200_000, "the text is not given up for an input");
    assert_eq!(line["permission_denials"][0]["tool_input"], serde_json::json!({}));

    let blocks = vec![Block::text(&"b".repeat(60)); 20_000];
    let line =
        first_line(&Update::UserText { id: MessageId(1), blocks, is_synthetic: false, prompts: Vec::new() });
    let content = line["message"]["content"].as_array().unwrap();
    assert_eq!(content.len(), 501);
    assert_eq!(content[499]["text"], "b".repeat(60));
    assert_eq!(content[500]["text"], "[19500 more omitted to keep this line short]");
}

#[test]
fn a_run_that_cannot_start_says_why_in_a_line_that_fits() {
    let mut out = Vec::new();
    startup_failure(SessionSeed(7), &vec!["No key. ".repeat(50); 50_000], &mut out);
    check_required(&String::from_utf8(out).unwrap());
}

#[test]
fn a_long_call_gives_signs_of_life() {
    let mut translator = Translator::new(SessionSeed(7), setup(false));
    let mut out = Vec::new();
    let at = |seconds: u64| TimePoint { wall_ms: 0, monotonic_ms: seconds * 1000 };
    translator.begin(at(0), &mut out);
    assert_eq!(translator.next_heartbeat_ms(), None);
    translator.update(&tool_started(), at(1), &mut out);
    assert_eq!(translator.next_heartbeat_ms(), Some(31_000));
    out.clear();
    translator.heartbeat(at(30), &mut out);
    assert_eq!(out, b"");
    translator.heartbeat(at(31), &mut out);
    let line: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(line["type"], "tool_progress");
    assert_eq!(line["tool_use_id"], "toolu_1");
    assert_eq!(line["elapsed_time_seconds"], 30);
    translator.update(&tool_result(1, &ToolOutput::text("x")), at(40), &mut out);
    assert_eq!(translator.next_heartbeat_ms(), None);
}

#[test]
fn a_call_that_is_done_gives_no_signs_of_life_while_its_result_waits() {
    let mut translator = Translator::new(SessionSeed(7), setup(false));
    let mut out = Vec::new();
    translator.update(&tool_started(), TimePoint { wall_ms: 0, monotonic_ms: 1_000 }, &mut out);
    let finished = Update::ToolFinished { call: CallId(1), duration_ms: 500 };
    translator.update(&finished, TimePoint { wall_ms: 0, monotonic_ms: 1_500 }, &mut out);
    assert_eq!((translator.next_heartbeat_ms(), out.len()), (None, 0));
}
