//! A dropped run takes its processes with it, wherever it is dropped.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use windlass_engine::{Engine, PermissionMode, Permissions, Session};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::AnyTool;
use windlass_sandbox::Launcher;
use windlass_tools::{Bash, BashSettings, Tasks};

/// One command that goes on, and one in the background that a finished command left behind.
const SCRIPT: &str = r#"{"then": "repeat", "responses": [
    {"blocks": [{"text": "Two commands."},
                {"tool": "Bash", "input": {"command": "sleep 30 & echo started"}},
                {"tool": "Bash", "input": {"command": "sleep 30"}}], "delta_delay_ms": 1}
]}"#;

fn session(project: &Path) -> Session {
    let model = ScriptModel::new(Script::parse(SCRIPT).unwrap());
    let bash: Arc<dyn AnyTool> = Arc::new(Bash::new(BashSettings::new(Launcher::direct()), Tasks::new(None)));
    let mode = PermissionMode::BypassPermissions;
    Engine::builder(Arc::new(model), model_card("scripted"))
        .tools(vec![bash])
        .working_directory(project.to_owned())
        .permissions(Permissions { mode, ..Permissions::default() })
        .build()
        .unwrap()
        .session()
}

/// How many processes have this working directory: no other process has a reason to.
fn processes_in(project: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let directories = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    directories.filter(|cwd| cwd == project).count()
}

#[tokio::test]
async fn dropping_a_run_and_its_session_leaves_no_process() {
    for milliseconds in [0, 2, 5, 10, 20, 40, 80] {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        let mut session = session(&project);
        let mut run = session.run("go");
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(milliseconds) {
            if run.next().now_or_never().is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        drop(run);
        drop(session);
        let began = Instant::now();
        while processes_in(&project) > 0 && began.elapsed() < Duration::from_secs(20) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(processes_in(&project), 0, "dropped after {milliseconds} ms");
    }
}
