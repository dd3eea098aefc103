//! Hooks of settings files at work: real programs, a scripted model, and the moments of a whole session.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Value, json};
use windlass_engine::{Engine, MemoryNote, PermissionMode, Permissions, Session, Terminal, Update};
use windlass_hooks::{HookHost, HookSet, HookSource, SettingsHooks};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_protocol::{EndReason, Outcome, StartSource};
use windlass_tools::Write;

/// An engine in this folder whose settings have these hooks.
fn engine(folder: &Path, hooks: &Value, responses: &str) -> Engine {
    let mut set = HookSet::default();
    let problems = set.read(hooks, &HookSource::settings("settings.json:1"));
    assert!(problems.is_empty(), "{problems:?}");
    let runner = SettingsHooks::new(set, HookHost::new(folder.to_owned()));
    let script = Script::parse(&format!("{{\"responses\": [{responses}]}}")).unwrap();
    let model = Arc::new(ScriptModel::new(script));
    let permissions = Permissions { mode: PermissionMode::BypassPermissions, ..Permissions::default() };
    Engine::builder(model, model_card("scripted"))
        .working_directory(folder.to_owned())
        .tools(vec![Arc::new(Write)])
        .with(|config| config.permissions = permissions)
        .with(|config| {
            config.memory = [MemoryNote { path: folder.join("CLAUDE.md"), text: "be kind".into() }].into();
        })
        .hooks(Arc::new(runner))
        .build()
        .unwrap()
}

fn shell(line: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": line}]}])
}

async fn run(session: &mut Session, prompt: &str) -> (Vec<Update>, Outcome) {
    let mut updates: Vec<Update> = session.run(prompt).collect().await;
    let Some(Update::Done(outcome)) = updates.pop() else { unreachable!("a run ends with its outcome") };
    (updates, *outcome)
}

#[tokio::test]
async fn a_session_tells_its_hooks_what_happens_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let note = "sed 's/.*\"hook_event_name\":\"\\([A-Za-z]*\\)\".*/\\1/' >> \"$CLAUDE_PROJECT_DIR\"/seen";
    let events = ["SessionStart", "InstructionsLoaded", "UserPromptSubmit", "PreToolUse", "PostToolUse"];
    let more = ["PostToolBatch", "Stop", "Notification", "SessionEnd"];
    let hooks: Value = events
        .iter()
        .chain(&more)
        .map(|event| ((*event).to_owned(), shell(note)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let responses = r#"{"blocks": [{"tool": "Write", "input": {"file_path": "a", "content": "x"}}]},
        {"blocks": [{"text": "done"}]}, {"blocks": [{"text": "again"}]}"#;
    let engine = engine(folder.path(), &hooks, responses);
    let mut session = engine.session();
    assert_eq!(run(&mut session, "go").await.1.terminal, Terminal::Completed);
    run(&mut session, "again").await;
    assert_eq!(engine.notify("idle_prompt", "waiting", None).await, Vec::<String>::new());
    assert_eq!(session.end(EndReason::Other).await, Vec::<String>::new());
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    let expected = [
        "SessionStart",
        "InstructionsLoaded",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolBatch",
        "Stop",
        "UserPromptSubmit",
        "Stop",
        "Notification",
        "SessionEnd",
    ];
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn what_a_hook_refuses_has_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = json!({"PreToolUse": shell("test ! -e a || touch too-late; echo not here >&2; exit 2")});
    let responses = r#"{"blocks": [{"tool": "Write", "input": {"file_path": "a", "content": "x"}}]},
        {"blocks": [{"text": "I may not."}], "expect": {"contains": "not here"}}"#;
    let mut session = engine(folder.path(), &hooks, responses).session();
    let (_, outcome) = run(&mut session, "go").await;
    assert_eq!((outcome.terminal, &*outcome.text), (Terminal::Completed, "I may not."));
    assert_eq!(outcome.denials.len(), 1);
    assert!(!folder.path().join("a").exists() && !folder.path().join("too-late").exists());
}

#[tokio::test]
async fn a_prompt_that_is_refused_never_reaches_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = json!({"UserPromptSubmit": shell("grep -q secret && { echo it is secret >&2; exit 2; }; echo be brief")});
    // The script has one answer: a second request would have none.
    let answer = r#"{"blocks": [{"text": "hello"}], "expect": {"contains": "be brief"}}"#;
    let mut session = engine(folder.path(), &hooks, answer).session();
    let (updates, outcome) = run(&mut session, "the secret word").await;
    assert_eq!(outcome.terminal, Terminal::HookStopped);
    assert!(!updates.iter().any(|update| matches!(update, Update::Requesting { .. })));
    let told = |update: &Update| matches!(update, Update::Notice(text) if text.contains("it was not sent: it is secret"));
    assert!(updates.iter().any(told), "{updates:?}");
    let (_, outcome) = run(&mut session, "a plain word").await;
    assert_eq!((outcome.terminal, &*outcome.text), (Terminal::Completed, "hello"));
    assert!(!session.messages().to_json().contains("secret"));
}

#[tokio::test]
async fn hooks_hear_why_a_session_begins() {
    let folder = tempfile::tempdir().unwrap();
    let note = "sed 's/.*\"source\":\"\\([a-z]*\\)\".*/source \\1/'";
    let hooks = json!({"SessionStart": shell(note)});
    let said = async |source: Option<StartSource>| {
        let answer = r#"{"blocks": [{"text": "hello"}]}"#;
        let mut session = engine(folder.path(), &hooks, answer).session();
        if let Some(source) = source {
            session.set_start_source(source);
        }
        run(&mut session, "go").await;
        session.messages().to_json()
    };
    assert!(said(None).await.contains("<system-reminder>source startup</system-reminder>"));
    assert!(said(Some(StartSource::Fork)).await.contains("source fork"));
}

#[tokio::test]
async fn a_secret_that_a_hook_prints_is_hidden_like_that_of_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    let key = ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let hooks = json!({"UserPromptSubmit": shell(&format!("echo the token is {key}"))});
    let mut session = engine(folder.path(), &hooks, r#"{"blocks": [{"text": "hello"}]}"#).session();
    run(&mut session, "go").await;
    let said = session.messages().to_json();
    assert!(said.contains("the token is ") && !said.contains(&key), "{said}");
}
