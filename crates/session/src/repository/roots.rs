//! The first commits of a repository: the same in every copy.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Repository;

/// A history that takes longer to walk is not worth it.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How often a running git is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// As many are remembered at most.
const ROOTS_MAX: usize = 16;

/// Asks git for the first commits. None, if they cannot be known.
pub(super) fn commits(repository: &Repository) -> Vec<String> {
    // In a shallow copy the history ends anywhere.
    if repository.common.join("shallow").exists() {
        return Vec::new();
    }
    let Ok(mut child) = command(repository).spawn() else { return Vec::new() };
    if !ends_in_time(&mut child) {
        let _ = child.kill();
        let _ = child.wait();
        return Vec::new();
    }
    let mut text = String::new();
    let read = child.stdout.take().map(|mut output| output.read_to_string(&mut text));
    if !matches!(read, Some(Ok(_))) {
        return Vec::new();
    }
    let mut roots: Vec<String> = text.lines().filter(|line| is_commit(line)).map(str::to_owned).collect();
    roots.sort_unstable();
    roots.truncate(ROOTS_MAX);
    roots
}

/// git, kept from running what the repository configures.
fn command(repository: &Repository) -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .args([
            "--no-pager",
            "--no-replace-objects",
            "-c",
            "core.fsmonitor=",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(["rev-list", "--max-parents=0", "--max-count=16", "HEAD", "--"])
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .current_dir(&repository.root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Waits for the end; at most sixteen lines wait in the pipe meanwhile, so it cannot be full.
fn ends_in_time(child: &mut Child) -> bool {
    let end = Instant::now() + TIME_MAX;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < end => std::thread::sleep(LOOK_EVERY),
            _ => return false,
        }
    }
}

fn is_commit(line: &str) -> bool {
    line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit())
}
