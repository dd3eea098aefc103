use std::sync::Arc;

use super::*;
use windlass_protocol::{
    CallFacts, CallKind, CompactTrigger, Effort, EndReason, Failure, FailureClass, LoadReason, MessageId,
    PromptId, SessionSeed, StartSource, Terminal, ToolOutput, ToolProfile, ToolUse,
};

fn scene() -> HookScene {
    HookScene {
        cwd: Arc::new("/project/sub".into()),
        mode: "default",
        effort: Some(Effort::High),
        prompt: None,
        agent: None,
    }
}

fn identity() -> SessionIdentity {
    SessionIdentity {
        key: Some(SessionKey::from(SessionSeed(7))),
        transcript: Some("/home/me/log.jsonl".into()),
        home: Some("/home/me".into()),
    }
}

fn used(name: &str, json: &str) -> (Arc<str>, ToolUse) {
    let input = RawValue::from_string(json.to_owned()).unwrap().into();
    (name.into(), ToolUse { id: "t1".into(), name: name.into(), input })
}

fn examined(name: &str, json: &str) -> ExaminedCall {
    let ((tool, tool_use), facts) = (used(name, json), Arc::new(CallFacts::new(CallKind::Execute)));
    ExaminedCall { tool, profile: ToolProfile::named(name), tool_use, facts }
}

/// What is said besides what every hook reads.
fn own_fields(call: &HookCall) -> Vec<String> {
    let common = ["session_id", "transcript_path", "cwd", "hook_event_name", "permission_mode", "effort"];
    let told = questions(call, &scene(), &identity());
    let strip = |json: &String| {
        let fields: serde_json::Map<String, Value> = serde_json::from_str(json).unwrap();
        let own = fields.into_iter().filter(|(name, _)| !common.contains(&name.as_str()));
        Value::Object(own.collect()).to_string()
    };
    told.iter().map(strip).collect()
}

#[track_caller]
fn check(call: &HookCall, expected: &str) {
    assert_eq!(own_fields(call), [expected]);
}

#[test]
fn every_hook_knows_where_it_is_asked() {
    let prompt = Some(PromptId { message: MessageId(3), prompts: Vec::new() });
    let scene = HookScene { prompt, agent: Some("reviewer".into()), ..scene() };
    let call = HookCall::PreToolUse(examined("Bash", r#"{"command":"ls"}"#));
    let told = questions(&call, &scene, &identity());
    let fields: Value = serde_json::from_str(&told[0]).unwrap();
    let key = SessionKey::from(SessionSeed(7));
    assert_eq!(fields["session_id"], key.id.to_string());
    assert_eq!(fields["transcript_path"], "/home/me/log.jsonl");
    assert_eq!(fields["cwd"], "/project/sub");
    assert_eq!(fields["hook_event_name"], "PreToolUse");
    assert_eq!(fields["permission_mode"], "default");
    assert_eq!(fields["prompt_id"], key.seed.message_uuid(MessageId(3)).to_string());
    assert_eq!(fields["effort"]["level"], "high");
    assert_eq!(fields["agent_type"], "reviewer");
    assert!(!told[0].contains('\n'));
    // Where no call is made, nobody tries hard.
    let told =
        questions(&HookCall::SessionEnd { reason: EndReason::Other }, &scene, &SessionIdentity::default());
    let fields: Value = serde_json::from_str(&told[0]).unwrap();
    assert!(fields.get("effort").is_none() && fields["session_id"] == "");
}

#[test]
fn a_call_is_told_as_it_was_made_with_its_file_in_full() {
    let before = |name: &str, json: &str| HookCall::PreToolUse(examined(name, json));
    check(
        &before("Bash", r#"{"command":"ls","timeout":1.0}"#),
        r#"{"tool_name":"Bash","tool_input":{"command":"ls","timeout":1.0},"tool_use_id":"t1"}"#,
    );
    for (path, whole) in [("a.rs", "/project/sub/a.rs"), ("../a.rs", "/project/a.rs"), ("/x/./y", "/x/y")] {
        check(
            &before("Edit", &format!(r#"{{"file_path":"{path}","old_string":"a"}}"#)),
            &format!(
                r#"{{"tool_name":"Edit","tool_input":{{"file_path":"{whole}","old_string":"a"}},"tool_use_id":"t1"}}"#
            ),
        );
    }
    let suggestions = vec![Arc::from(RawValue::from_string(r#"{"type":"setMode"}"#.into()).unwrap())];
    check(
        &HookCall::PermissionRequest { call: examined("Bash", "{}"), suggestions },
        r#"{"tool_name":"Bash","tool_input":{},"permission_suggestions":[{"type":"setMode"}]}"#,
    );
}

#[test]
fn what_came_of_a_call_is_told_in_its_structured_form() {
    let after =
        |output: ToolOutput| HookCall::PostToolUse { call: examined("Bash", "{}"), output, duration_ms: 12 };
    let structured = ToolOutput::text("out").with_structured(&serde_json::json!({"stdout": "out"}));
    check(
        &after(structured),
        r#"{"tool_name":"Bash","tool_input":{},"tool_use_id":"t1","tool_response":{"stdout":"out"},"duration_ms":12}"#,
    );
    check(
        &after(ToolOutput::text("out")),
        r#"{"tool_name":"Bash","tool_input":{},"tool_use_id":"t1","tool_response":"out","duration_ms":12}"#,
    );
    check(
        &after(ToolOutput::error("Exit code 1")),
        r#"{"tool_name":"Bash","tool_input":{},"tool_use_id":"t1","error":"Exit code 1","duration_ms":12}"#,
    );
    let long = after(ToolOutput::error(&"x".repeat(20_000)));
    assert!(own_fields(&long)[0].len() < 11_000 && own_fields(&long)[0].contains("10000 characters omitted"));
}

#[test]
fn each_event_has_its_own_fields() {
    let stop = HookCall::Stop { is_active: true, text: "done".into() };
    check(&stop, r#"{"stop_hook_active":true,"last_assistant_message":"done"}"#);
    let failure = Failure::new(FailureClass::RateLimited, "slow down");
    check(
        &HookCall::StopFailure { terminal: Terminal::ApiError, failure: Some(Box::new(failure)) },
        r#"{"error":"rate_limit","error_details":"slow down","last_assistant_message":"slow down"}"#,
    );
    check(
        &HookCall::StopFailure { terminal: Terminal::MaxOutputTokens, failure: None },
        r#"{"error":"max_output_tokens"}"#,
    );
    let lost = Failure::new(FailureClass::Connect, "no answer");
    check(
        &HookCall::StopFailure { terminal: Terminal::ModelError, failure: Some(Box::new(lost)) },
        r#"{"error":"unknown","error_details":"no answer","last_assistant_message":"no answer"}"#,
    );
    check(
        &HookCall::StopFailure { terminal: Terminal::PromptTooLong, failure: None },
        r#"{"error":"invalid_request"}"#,
    );
    check(
        &HookCall::SessionStart { source: StartSource::Resume, model: "m".into() },
        r#"{"source":"resume","model":"m"}"#,
    );
    check(&HookCall::UserPromptSubmit { prompt: "a\nb".into() }, r#"{"prompt":"a\nb"}"#);
    check(
        &HookCall::PreCompact { trigger: CompactTrigger::Reactive, instructions: "".into() },
        r#"{"trigger":"auto","custom_instructions":""}"#,
    );
    check(
        &HookCall::PostCompact { trigger: CompactTrigger::Manual, summary: "s".into() },
        r#"{"trigger":"manual","compact_summary":"s"}"#,
    );
    check(&HookCall::SessionEnd { reason: EndReason::Clear }, r#"{"reason":"clear"}"#);
    check(
        &HookCall::Notification { kind: "idle_prompt".into(), message: "m".into(), title: None },
        r#"{"message":"m","notification_type":"idle_prompt"}"#,
    );
    check(&HookCall::CwdChanged { from: "/a".into(), to: "/b".into() }, r#"{"old_cwd":"/a","new_cwd":"/b"}"#);
    check(
        &HookCall::SubagentStart { id: "a1".into(), kind: "explorer".into() },
        r#"{"agent_id":"a1","agent_type":"explorer"}"#,
    );
    let (tool, tool_use) = used("Bash", "{}");
    let calls = vec![BatchCall { tool, tool_use, content: vec![Block::text("out")] }];
    check(
        &HookCall::PostToolBatch { calls },
        r#"{"tool_calls":[{"tool_name":"Bash","tool_input":{},"tool_use_id":"t1","tool_response":"out"}]}"#,
    );
}

#[test]
fn each_memory_file_is_told_by_itself() {
    let files =
        ["/home/me/.claude/CLAUDE.md", "/project/CLAUDE.md", "/project/CLAUDE.local.md", "/etc/x/CLAUDE.md"];
    let call = HookCall::InstructionsLoaded {
        files: files.iter().map(PathBuf::from).collect(),
        reason: LoadReason::SessionStart,
    };
    let expected = ["User", "Project", "Local", "Managed"];
    let expected: Vec<String> = files
        .iter()
        .zip(expected)
        .map(|(file, kind)| {
            format!(r#"{{"file_path":"{file}","memory_type":"{kind}","load_reason":"session_start"}}"#)
        })
        .collect();
    assert_eq!(own_fields(&call), expected);
}

#[test]
fn an_input_of_several_lines_is_told_in_one() {
    let call = HookCall::PreToolUse(examined("Bash", "{\n  \"command\": \"ls\"\n}"));
    let told = questions(&call, &scene(), &identity());
    assert!(!told[0].contains('\n'), "{}", told[0]);
}
