//! A dropped run takes its processes with it, wherever it is dropped. The supervisor is this very test program started
//! again.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use libtest_mimic::{Arguments, Trial};
use windlass_engine::{Engine, PermissionMode, Permissions, Run, Session};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::AnyTool;
use windlass_sandbox::Launcher;
use windlass_tools::{Bash, BashSettings, Tasks};

fn main() {
    windlass_sandbox::run_if_supervisor();
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let tests = vec![
        trial("dropping_a_run_at_any_poll_leaves_no_process", dropping_a_run_at_any_poll),
        trial("dropping_a_run_and_its_session_leaves_no_process", dropping_a_run_and_its_session),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn session(project: &Path, launcher: Launcher, script: &str) -> Session {
    let model = ScriptModel::new(Script::parse(script).unwrap());
    let bash: Arc<dyn AnyTool> = Arc::new(Bash::new(BashSettings::new(launcher), Tasks::new(None)));
    let mode = PermissionMode::BypassPermissions;
    Engine::builder(Arc::new(model), model_card("scripted"))
        .tools(vec![bash])
        .working_directory(project.to_owned())
        .with(|config| config.permissions = Permissions { mode, ..Permissions::default() })
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

async fn wait_until_none_in(project: &Path, limit: Duration, when: &str) {
    let began = Instant::now();
    while processes_in(project) > 0 {
        assert!(began.elapsed() < limit, "{} processes are left, {when}", processes_in(project));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn poll_once(run: &mut Run<'_>) {
    if run.next().now_or_never().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A command that ends, and one that goes on with a child of its own.
const GOES_ON: &str = r#"{"responses": [
    {"blocks": [{"text": "Two commands."},
                {"tool": "Bash", "input": {"command": "echo started"}},
                {"tool": "Bash", "input": {"command": "sleep 30 & sleep 30"}}], "delta_delay_ms": 1}
]}"#;

/// Asked to end, then killed after two seconds; the rest is for a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(4);
/// A run is dropped one poll later each time, until so many of the drops had processes to end.
const DROPS_WITH_PROCESSES: usize = 12;
const POLLS_MAX: usize = 500;

fn dropping_a_run_at_any_poll() {
    block_on(async {
        let mut drops_with_processes = 0;
        let mut polls = 0;
        while drops_with_processes < DROPS_WITH_PROCESSES {
            assert!(polls < POLLS_MAX, "only {drops_with_processes} drops had a process to end");
            let folder = tempfile::tempdir().unwrap();
            let project = folder.path().canonicalize().unwrap();
            let supervised = Launcher::supervised("/proc/self/exe".into());
            let mut session = session(&project, supervised, GOES_ON);
            let mut run = session.run("go");
            for _ in 0..polls {
                poll_once(&mut run).await;
            }
            drops_with_processes += usize::from(processes_in(&project) > 0);
            drop(run);
            wait_until_none_in(&project, GONE_WITHIN, &format!("dropped after {polls} polls")).await;
            drop(session);
            polls += 1;
        }
    });
}

/// One command that goes on, and one in the background that a finished command left behind.
const LEAVES_A_CHILD: &str = r#"{"responses": [
    {"blocks": [{"text": "Two commands."},
                {"tool": "Bash", "input": {"command": "sleep 30 & echo started"}},
                {"tool": "Bash", "input": {"command": "sleep 30"}}], "delta_delay_ms": 1}
]}"#;

/// What a finished command left behind belongs to the session; without a supervisor it ends with it all the same.
fn dropping_a_run_and_its_session() {
    block_on(async {
        let mut seen = 0;
        for milliseconds in [0, 2, 5, 10, 20, 40, 80, 160] {
            let folder = tempfile::tempdir().unwrap();
            let project = folder.path().canonicalize().unwrap();
            let mut session = session(&project, Launcher::direct(), LEAVES_A_CHILD);
            let mut run = session.run("go");
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(milliseconds) {
                poll_once(&mut run).await;
            }
            seen += processes_in(&project);
            drop(run);
            drop(session);
            let limit = Duration::from_secs(20);
            wait_until_none_in(&project, limit, &format!("dropped after {milliseconds} ms")).await;
        }
        assert!(seen > 0, "no drop had a process to end");
    });
}
