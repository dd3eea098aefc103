//! The first commits of a repository: the same in every copy.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Repository;

/// A history that takes longer to walk is not worth it.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How often a running git is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// As many are remembered at most.
const ROOTS_MAX: usize = 16;

/// A git that may be run, and the whole environment it is run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitProgram {
    path: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl GitProgram {
    /// The first git in the absolute directories of `PATH` in this environment. Whoever makes the environment says whose programs are
    /// trusted and leaves out secrets; variables that change what git does are left out here.
    #[must_use]
    pub fn find(mut environment: Vec<(OsString, OsString)>) -> Option<Self> {
        environment.retain(|(name, _)| !name.as_encoded_bytes().starts_with(b"GIT_"));
        let (_, paths) = environment.iter().find(|(name, _)| name == "PATH")?;
        let mut places = std::env::split_paths(paths).filter(|place| place.is_absolute());
        let path = places.find_map(|place| Some(place.join("git")).filter(|path| is_program(path)))?;
        Some(Self { path, environment })
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Asks git for the first commits. None, if they cannot be known.
pub(super) fn commits(repository: &Repository, git: &GitProgram) -> Vec<String> {
    // In a shallow copy the history ends anywhere.
    if repository.common.join("shallow").exists() {
        return Vec::new();
    }
    let Ok(mut child) = command(repository, git).spawn() else { return Vec::new() };
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
fn command(repository: &Repository, git: &GitProgram) -> Command {
    let mut command = Command::new(&git.path);
    command
        .env_clear()
        .envs(git.environment.iter().map(|(name, value)| (name, value)))
        .args([
            "--no-pager",
            "--no-replace-objects",
            "-c",
            "core.fsmonitor=",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(["rev-list", "--max-parents=0", "--max-count=16", "HEAD", "--"])
        // What is missing is not fetched: the repository says by which program.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
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
