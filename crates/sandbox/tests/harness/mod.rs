//! What tests of real commands share. Each is a program without the usual harness, since it is its own supervisor.

use std::fs;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use windlass_sandbox::{Launcher, ShellCommand};

pub(crate) fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

pub(crate) fn supervised() -> Launcher {
    Launcher::supervised("/proc/self/exe".into())
}

pub(crate) fn job(script: &str) -> ShellCommand {
    ShellCommand {
        script: script.to_owned(),
        cwd: std::env::temp_dir().canonicalize().unwrap(),
        environment: std::env::vars_os().collect(),
        should_track_cwd: false,
        source: None,
        sandbox: None,
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn is_alive(pid: i32) -> bool {
    let state = |text: String| text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'));
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(state)
}

#[track_caller]
pub(crate) fn wait_until_dead(pids: &[i32], limit: Duration) {
    let start = Instant::now();
    while pids.iter().any(|&pid| is_alive(pid)) {
        assert!(start.elapsed() < limit, "still alive: {pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
