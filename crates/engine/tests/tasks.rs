//! The model is told once when a command in the background has ended of itself.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use windlass_engine::{Engine, PermissionMode, Permissions, Session, Update};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::AnyTool;
use windlass_sandbox::Launcher;
use windlass_tools::{Bash, BashSettings, TaskStop, Tasks};

fn session(project: &tempfile::TempDir, script: &str) -> (Session, Arc<Tasks>) {
    let tasks = Tasks::new(None);
    let tools: Vec<Arc<dyn AnyTool>> = vec![
        Arc::new(Bash::new(BashSettings::new(Launcher::direct()), tasks.clone())),
        Arc::new(TaskStop::new(tasks.clone())),
    ];
    let model = ScriptModel::new(Script::parse(script).unwrap());
    let permissions = Permissions { mode: PermissionMode::BypassPermissions, ..Permissions::default() };
    let engine = Engine::builder(Arc::new(model), model_card("scripted"))
        .tools(tools)
        .tasks(tasks.clone())
        .working_directory(project.path().to_owned())
        .with(|config| config.permissions = permissions)
        .build()
        .unwrap();
    (engine.session(), tasks)
}

async fn run(session: &mut Session, prompt: &str) {
    let updates: Vec<Update> = session.run(prompt).collect().await;
    let Some(Update::Done(outcome)) = updates.last() else { unreachable!("every run ends") };
    assert!(outcome.terminal.is_success(), "{outcome:?}");
}

async fn wait_until_none_runs(tasks: &Tasks) {
    let began = Instant::now();
    while !tasks.running().is_empty() {
        assert!(began.elapsed() < Duration::from_mins(1), "the command does not end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_end_of_a_task_reaches_the_running_model() {
    let project = tempfile::tempdir().unwrap();
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Bash", "input": {"command": "exit 3", "run_in_background": true}}]},
        {"blocks": [{"tool": "Bash", "input": {"command": "sleep 1"}}]},
        {"blocks": [{"text": "ok"}], "expect": {"contains": "Background task bash-1 has ended: exit 3"}}
    ]}"#;
    let (mut session, _tasks) = session(&project, script);
    run(&mut session, "go").await;
    let json = session.messages().to_json();
    assert!(json.contains("The command ended with exit code 3.") && json.contains("Output: /"), "{json}");
    assert_eq!(json.matches("<task-notification>").count(), 1);
}

#[tokio::test]
async fn the_end_of_a_task_between_runs_waits_for_the_next() {
    let project = tempfile::tempdir().unwrap();
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Bash", "input": {"command": "sleep 0.3", "run_in_background": true}}]},
        {"blocks": [{"text": "started"}]},
        {"blocks": [{"text": "ok"}], "expect": {"contains": "bash-1 has ended"}},
        {"blocks": [{"text": "again"}]}
    ]}"#;
    let (mut session, tasks) = session(&project, script);
    run(&mut session, "go").await;
    wait_until_none_runs(&tasks).await;
    assert_eq!(session.waiting(), 1);
    run(&mut session, "and now?").await;
    assert_eq!(session.waiting(), 0);
    run(&mut session, "and now?").await;
    assert_eq!(session.messages().to_json().matches("<task-notification>").count(), 1);
}

#[tokio::test]
async fn a_task_that_the_model_stopped_is_not_announced() {
    let project = tempfile::tempdir().unwrap();
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Bash", "input": {"command": "sleep 30", "run_in_background": true}}]},
        {"blocks": [{"tool": "TaskStop", "input": {"task_id": "bash-1"}}]},
        {"blocks": [{"text": "ok"}]}
    ]}"#;
    let (mut session, tasks) = session(&project, script);
    run(&mut session, "go").await;
    wait_until_none_runs(&tasks).await;
    assert_eq!(session.waiting(), 0);
}
