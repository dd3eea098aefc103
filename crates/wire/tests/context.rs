//! What hosts read about compactions, other models, prompts and forms of answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_protocol::{
    Block, CallId, Collapse, CompactTrigger, Compaction, Decision, Failure, FailureClass, HookEnding,
    HookEvent, HookRun, Message, MessageId, Origin, Outcome, PrefixPart, RawValue, RawValueEq, RequestId,
    SessionSeed, StopHookSummary, StopHookVerdict, StoredResult, Terminal, ToolUse, Update, Usage,
};
use windlass_wire::{Lifecycle, SessionSetup, TimePoint, Translator};

/// The lines of one run; each update comes 10 ms after the one before.
fn lines(has_partial_messages: bool, updates: &[Update]) -> String {
    let setup = SessionSetup { model: "claude-test".into(), has_partial_messages, ..SessionSetup::default() };
    let mut translator = Translator::new(SessionSeed(7), setup);
    let mut out = Vec::new();
    let mut at = TimePoint { wall_ms: 1_794_565_230_000, monotonic_ms: 5_000 };
    translator.begin(at, &mut out);
    out.clear();
    for update in updates {
        at.wall_ms += 10;
        at.monotonic_ms += 10;
        translator.update(update, at, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn values(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn outcome(terminal: Terminal) -> Outcome {
    Outcome {
        terminal,
        text: "Done.".into(),
        stop_reason: Some("end_turn".into()),
        iterations: 1,
        usage: Usage::default(),
        models: BTreeMap::new(),
        denials: vec![],
        errors: vec![],
        warnings: vec![],
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

fn message(id: u64) -> Arc<Message> {
    Arc::new(Message::user(MessageId(id), Origin::Boundary, vec![Block::text("Summary.")]))
}

fn responding(id: &str) -> Update {
    let (request, model) = (RequestId(1), "claude-test".into());
    Update::Responding { request, message_id: id.into(), model, usage: Usage::default().into() }
}

fn block(id: u64, text: &str) -> Update {
    Update::Block { id: MessageId(id), index: 0, block: Block::text(text), is_aborted: false }
}

fn compacted(trigger: CompactTrigger, tail: Option<u64>) -> Update {
    Update::Decided(Decision::Compacted(Box::new(Compaction {
        trigger,
        boundary: message(9),
        tail: tail.map(MessageId),
        is_unbound: false,
        is_mechanical: false,
        tokens_before: 170_000,
        tokens_after: 12_000,
        duration_ms: 2_500,
    })))
}

#[test]
fn compactions() {
    insta::assert_snapshot!(lines(
        false,
        &[
            responding("msg_1"),
            block(1, "One"),
            block(2, "Two"),
            Update::Compacting(CompactTrigger::Auto),
            compacted(CompactTrigger::Auto, Some(1)),
            Update::Compacting(CompactTrigger::Reactive),
            compacted(CompactTrigger::Reactive, None),
            Update::Compacting(CompactTrigger::Manual),
            Update::CompactionFailed("The summary was empty.".into()),
            compacted(CompactTrigger::Manual, None),
            Update::Compacting(CompactTrigger::Auto),
            done(outcome(Terminal::AbortedStreaming)),
        ]
    ));
}

#[test]
fn what_context_layers_and_providers_do() {
    let collapse = Collapse { first: MessageId(1), last: MessageId(2), summary: message(8) };
    let stored = StoredResult {
        tool_use_id: "toolu_1".into(),
        path: "/tmp/x".into(),
        preview: Block::tool_result("toolu_1", &[], false),
    };
    let decisions = [
        Decision::Stored(vec![stored]),
        Decision::Snipped { messages: vec![MessageId(1)], tokens: 100, unbound_from: None },
        Decision::Cleared {
            results: vec![("toolu_1".into(), Block::tool_result("toolu_1", &[], false))],
            tokens: 200,
            unbound_from: None,
        },
        Decision::Staged(collapse.clone()),
        Decision::Collapsed { spans: vec![collapse], tokens: 300, unbound_from: None },
        Decision::MediaStripped(vec![message(3)]),
        Decision::ThinkingStripped(vec![MessageId(1)]),
    ];
    let mut updates: Vec<Update> = decisions.into_iter().map(Update::Decided).collect();
    let missed = |part| Update::CacheMissed { expected: 1_000, read: 10, part };
    updates.extend([
        Update::ClearedByProvider { tool_results: 3, thinking_turns: 1, tokens: 4_000 },
        missed(None),
        missed(Some(PrefixPart::Tools)),
        missed(Some(PrefixPart::Message { index: 4, id: MessageId(4) })),
        Update::ToolUseSummary { summary: "Read a file.".into(), tool_use_ids: vec!["toolu_1".into()] },
        Update::PromptSuggestion { suggestion: "Run the tests".into() },
        Update::TurnsUsedUp { turns: 3, limit: 3 },
        Update::Notice("A hook crashed.".into()),
        done(outcome(Terminal::Completed)),
    ]);
    insta::assert_snapshot!(lines(false, &updates));
}

#[test]
fn what_was_snipped_names_every_line_that_showed_it() {
    let result = |id: u64| Update::ToolResult {
        id: MessageId(id),
        call: CallId(1),
        name: "Read".into(),
        result: Block::tool_result("toolu_1", &[], false),
        structured: None,
    };
    let messages = vec![MessageId(2), MessageId(4)];
    let text = lines(
        false,
        &[
            responding("msg_1"),
            block(1, "One"),
            block(2, "Two"),
            result(3),
            result(4),
            responding("msg_2"),
            block(5, "Three"),
            Update::Decided(Decision::Snipped { messages, tokens: 900, unbound_from: None }),
            done(outcome(Terminal::Completed)),
        ],
    );
    let seen = values(&text);
    let boundary = &seen[5];
    assert_eq!((&boundary["type"], &boundary["subtype"]), (&json!("system"), &json!("snip_boundary")));
    let shown: Vec<&Value> = seen[..4].iter().map(|line| &line["uuid"]).collect();
    assert_eq!(boundary["snip_metadata"], json!({"removed_uuids": shown, "tokens_freed": 900}));
}

#[test]
fn what_stop_hooks_did() {
    let run = |hook: &str, ending, said: &str| HookRun {
        hook: hook.into(),
        duration_ms: 1_200,
        ending,
        said: said.into(),
    };
    let hooks = vec![
        run("cargo test", HookEnding::Failed, "2 tests fail."),
        run("lint", HookEnding::Worked, ""),
        run("audit", HookEnding::Failed, "audit crashed"),
    ];
    let summary = |verdict, reason: Option<&str>| {
        let reasons = reason.map(str::to_owned).into_iter().collect();
        let (event, hooks) = (HookEvent::Stop, hooks.clone());
        Update::StopHooks(StopHookSummary { event, hooks, verdict, reasons })
    };
    insta::assert_snapshot!(lines(
        false,
        &[
            summary(StopHookVerdict::Blocked, Some("2 tests fail.")),
            summary(StopHookVerdict::Overruled, Some("2 tests fail.")),
            summary(StopHookVerdict::Prevented, Some("Enough.")),
            summary(StopHookVerdict::Passed, None),
            done(outcome(Terminal::Completed)),
        ]
    ));
}

#[test]
fn another_model_takes_over() {
    let failure = Failure::new(FailureClass::Overloaded, "The provider is overloaded (529).");
    let text = lines(
        false,
        &[
            responding("msg_1"),
            block(1, "Half"),
            Update::Retracted { messages: vec![MessageId(1)], calls: vec![] },
            Update::FellBack { from: "claude-a".into(), to: "claude-b".into(), failure: Box::new(failure) },
            responding("msg_2"),
            block(2, "Whole"),
            done(outcome(Terminal::Completed)),
        ],
    );
    let seen = values(&text);
    assert_eq!(seen[1]["subtype"], "informational");
    assert_eq!(seen[1]["content"], "Switched from claude-a to claude-b: The provider is overloaded (529).");
    assert_eq!(seen[2]["supersedes"], json!([seen[0]["uuid"]]));
}

#[test]
fn the_first_reply_and_the_result_name_the_prompts() {
    let ended = Outcome { prompts: vec!["a".into(), "b".into()], ..outcome(Terminal::Completed) };
    let updates = [
        Update::PromptsStarted(vec!["a".into()]),
        responding("msg_1"),
        block(1, "One"),
        block(2, "Two"),
        Update::PromptsStarted(vec!["b".into()]),
        responding("msg_2"),
        block(3, "Three"),
        done(ended),
    ];
    let named = |partial: bool| -> Vec<(String, Value)> {
        let seen = values(&lines(partial, &updates));
        let named = seen.iter().filter(|line| line.get("user_message_uuid").is_some());
        named
            .map(|line| {
                assert_eq!(line["user_message_uuid"], line["user_message_uuids"][0]);
                (line["type"].as_str().unwrap().to_owned(), line["user_message_uuids"].clone())
            })
            .collect()
    };
    let line = |kind: &str, ids: Value| (kind.to_owned(), ids);
    let answers =
        [line("assistant", json!(["a"])), line("assistant", json!(["b"])), line("result", json!(["a", "b"]))];
    assert_eq!(named(false), answers);
    let events = [
        line("stream_event", json!(["a"])),
        line("assistant", json!(["a"])),
        line("stream_event", json!(["b"])),
        line("assistant", json!(["b"])),
        line("result", json!(["a", "b"])),
    ];
    assert_eq!(named(true), events);
}

#[test]
fn a_result_carries_what_was_asked_for() {
    let result = |outcome: Outcome| values(&lines(false, &[done(outcome)])).pop().unwrap();
    let structured = Some(Arc::new(RawValueEq(RawValue::from_string(r#"{"b": 1, "a": 2}"#.into()).unwrap())));
    let seen = result(Outcome { structured, ..outcome(Terminal::Completed) });
    assert_eq!(seen["structured_output"], json!({"b": 1, "a": 2}));
    let call = ToolUse { id: "toolu_1".into(), name: "Bash".into(), input: raw(r#"{"command":"x"}"#).into() };
    let seen = result(Outcome { deferred: Some(call), ..outcome(Terminal::ToolDeferred) });
    assert_eq!(
        seen["deferred_tool_use"],
        json!({"id": "toolu_1", "name": "Bash", "input": {"command": "x"}})
    );
    assert_eq!((&seen["subtype"], &seen["terminal_reason"]), (&json!("success"), &json!("tool_deferred")));
    for key in ["structured_output", "deferred_tool_use", "user_message_uuid", "user_message_uuids"] {
        assert_eq!(result(outcome(Terminal::Completed)).get(key), None, "{key}");
    }
}

#[test]
fn only_success_has_a_text_and_only_a_loop_has_a_reason_to_end() {
    let mut seen = Vec::new();
    for terminal in Terminal::ALL {
        let result = values(&lines(false, &[done(outcome(terminal))])).pop().unwrap();
        let success = result["subtype"] == "success";
        assert_eq!(result.get("result").is_some(), success, "{terminal:?}");
        assert_eq!(result.get("errors").is_some(), !success, "{terminal:?}");
        assert_eq!(result["is_error"], !terminal.is_success(), "{terminal:?}");
        seen.push(result["terminal_reason"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen.len(), 20);
    let local = Outcome { iterations: 0, ..outcome(Terminal::Completed) };
    let result = values(&lines(false, &[done(local)])).pop().unwrap();
    assert_eq!((result["result"].as_str(), result.get("terminal_reason")), (Some("Done."), None));
    let broke = Outcome { iterations: 0, ..outcome(Terminal::MaxBudgetUsd) };
    let result = values(&lines(false, &[done(broke)])).pop().unwrap();
    assert_eq!(result["terminal_reason"], "budget_exhausted");
}

#[test]
fn a_prompt_that_nothing_is_done_about_has_a_result_too() {
    let mut translator = Translator::new(SessionSeed(7), SessionSetup::default());
    let mut out = Vec::new();
    translator.begin(TimePoint::default(), &mut out);
    translator.refuse("That is off.", Some(&"u1".into()), &mut out);
    translator.update(&done(outcome(Terminal::Completed)), TimePoint::default(), &mut out);
    let seen = values(&String::from_utf8(out).unwrap());
    assert_eq!((&seen[1]["command_uuid"], &seen[1]["state"]), (&json!("u1"), &json!("refused")));
    assert_eq!(seen[2]["terminal_reason"], "turn_setup_failed");
    assert_eq!((&seen[2]["errors"], &seen[2]["user_message_uuid"]), (&json!(["That is off."]), &json!("u1")));
    assert_eq!((&seen[2]["result_index"], &seen[3]["result_index"]), (&json!(0), &json!(1)));
    assert_eq!(seen[2]["session_id"], seen[3]["session_id"]);
}

/// The fates of prompts that lines tell, in order.
fn fates(lines: &[Value]) -> Vec<String> {
    let told = lines.iter().filter(|line| line["type"] == "command_lifecycle");
    let words = |line: &Value| {
        assert!(line["uuid"].is_string() && line["session_id"].is_string());
        format!("{} {}", line["command_uuid"].as_str().unwrap(), line["state"].as_str().unwrap())
    };
    told.map(words).collect()
}

#[test]
fn every_prompt_with_an_id_is_started_and_comes_to_one_end() {
    let check = |terminal: Terminal, expected: &[&str]| {
        let prompts = vec!["a".into(), "b".into()];
        let updates = [
            Update::PromptsStarted(vec!["a".into()]),
            Update::PromptsStarted(vec!["b".into()]),
            done(Outcome { prompts, ..outcome(terminal) }),
        ];
        assert_eq!(fates(&values(&lines(false, &updates))), expected);
    };
    check(Terminal::Completed, &["a started", "b started", "a completed", "b completed"]);
    check(Terminal::AbortedTools, &["a started", "b started", "a cancelled", "b cancelled"]);
    check(Terminal::ApiError, &["a started", "b started", "a cancelled", "b cancelled"]);
    let left = vec![("a".into(), Lifecycle::Cancelled), ("b".into(), Lifecycle::Queued)];
    let mut translator = Translator::new(SessionSeed(7), SessionSetup::default()).with_left_prompts(left);
    let mut out = Vec::new();
    translator.begin(TimePoint::default(), &mut out);
    translator.begin(TimePoint::default(), &mut out);
    let seen = values(&String::from_utf8(out).unwrap());
    assert_eq!(
        (&seen[0]["subtype"], fates(&seen)),
        (&json!("init"), vec!["a cancelled".into(), "b queued".into()])
    );
}
