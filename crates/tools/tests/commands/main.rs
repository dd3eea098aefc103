//! Bash and `TaskStop` on real processes, below a supervisor that is this very test program started again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod life;
mod output;
mod place;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use windlass_ports::{AnyTool, ExamineContext, ToolContext};
use windlass_protocol::{CallFacts, RawValue, ToolOutput};
use windlass_sandbox::Launcher;
use windlass_tools::{Bash, BashSettings, TaskStop, Tasks};

fn main() {
    windlass_sandbox::run_if_supervisor();
    start_again_with_secrets();
    let tests = [output::trials(), place::trials(), life::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// What commands must not see: a key of ours, one of the user's, and a function that poses as a program.
const SECRETS: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "hush"),
    ("MY_TOKEN", "hush"),
    ("PASSED_TOKEN", "passed"),
    ("BASH_FUNC_ls%%", "() { echo hush; }"),
];

/// Runs this program again with secrets in its environment.
fn start_again_with_secrets() {
    if std::env::var_os("PASSED_TOKEN").is_none() {
        let error = Command::new("/proc/self/exe")
            .args(std::env::args_os().skip(1))
            .envs(SECRETS.iter().copied())
            .exec();
        panic!("{error}");
    }
}

/// A session with a project directory of its own.
struct Session {
    dir: tempfile::TempDir,
    tasks: Arc<Tasks>,
    settings: BashSettings,
}

impl Session {
    fn new() -> Self {
        let settings = BashSettings::new(Launcher::supervised("/proc/self/exe".into()));
        Self { dir: tempfile::tempdir().unwrap(), tasks: Tasks::new(None), settings }
    }

    fn with(change: impl FnOnce(&mut BashSettings)) -> Self {
        let mut session = Self::new();
        change(&mut session.settings);
        session
    }

    fn project(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn context(&self) -> ToolContext {
        ToolContext::detached(self.project())
    }

    async fn bash(&self, input: Value) -> ToolOutput {
        self.bash_in(input, self.context()).await
    }

    async fn bash_in(&self, input: Value, cx: ToolContext) -> ToolOutput {
        match self.facts(&input, &cx) {
            Ok(facts) => self.bash_decided(input, ToolContext { facts, ..cx }).await,
            Err(error) => ToolOutput::error(&error),
        }
    }

    fn facts(&self, input: &Value, cx: &ToolContext) -> Result<Arc<CallFacts>, String> {
        let tool = Bash::new(self.settings.clone(), Arc::clone(&self.tasks));
        let examine = ExamineContext::new(cx.cwd.clone(), cx.roots.clone());
        tool.examine(&raw(input), &examine).map(Arc::new)
    }

    /// Runs a call whose facts are in its context.
    async fn bash_decided(&self, input: Value, cx: ToolContext) -> ToolOutput {
        let tool = Arc::new(Bash::new(self.settings.clone(), Arc::clone(&self.tasks)));
        AnyTool::run(tool, raw(&input), cx).await
    }

    async fn stop(&self, input: Value) -> ToolOutput {
        AnyTool::run(Arc::new(TaskStop::new(Arc::clone(&self.tasks))), raw(&input), self.context()).await
    }
}

fn raw(value: &Value) -> Arc<RawValue> {
    serde_json::value::to_raw_value(value).unwrap().into()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn text(outcome: &ToolOutput) -> &str {
    outcome.content[0].as_text().unwrap()
}

fn structured(outcome: &ToolOutput) -> Value {
    serde_json::from_str(outcome.structured.as_ref().unwrap().0.get()).unwrap()
}

fn is_alive(pid: &str) -> bool {
    let state = |text: String| text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'));
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(state)
}

async fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|number| number.to_string() + "\n").collect()
}
