//! What tells a repository apart from others wherever it lies, so that a project that was moved or cloned finds its sessions.
//!
//! What is cheap to know is read from its files: a repository may configure git to run programs, so nothing is run for them. Only
//! the root commits need git itself; they are for a background thread, never for the way to a first request.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use windlass_git::{WorkTree, common_directory, linked_work_trees};

/// A history that takes longer to walk is not worth it.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How often a running git is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// As many are remembered at most.
const ROOTS_MAX: usize = 16;

/// The repository around a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The top of its work tree.
    pub root: PathBuf,
    /// The folder of git for this work tree.
    git: PathBuf,
    /// The folder of git that all work trees share.
    pub common: PathBuf,
    /// Where it came from, without anything that depends on who asks and how.
    pub origin: Option<String>,
    /// The directory, relative to the top; empty for the top itself.
    pub inside: String,
}

/// What is remembered of a repository: the same at every place it is moved or cloned to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Its first commits, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// The directory of the session, relative to the top of the work tree.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inside: String,
}

impl Identity {
    /// Whether both are the same place in the same repository.
    pub fn matches(&self, other: &Self) -> bool {
        let same_origin = self.origin.is_some() && self.origin == other.origin;
        let same_roots = self.roots.iter().any(|root| other.roots.contains(root));
        self.inside == other.inside && (same_origin || same_roots)
    }
}

impl Repository {
    /// Finds the repository around a directory, without running anything.
    pub fn discover(cwd: &Path) -> Option<Self> {
        let cwd = cwd.canonicalize().ok()?;
        let WorkTree { top: root, git_directory, .. } = WorkTree::around(&cwd)?;
        let git = git_directory?.canonicalize().ok().filter(|git| git.join("HEAD").exists())?;
        let common = common_directory(&git).canonicalize().ok()?;
        let origin = windlass_git::origin(&common, &root);
        let inside = cwd.strip_prefix(&root).ok()?.to_string_lossy().into_owned();
        Some(Self { root, git, common, origin, inside })
    }

    /// The branch that is checked out; the beginning of the commit if none is.
    pub fn branch(&self) -> Option<String> {
        windlass_git::branch(&self.git)
    }

    /// The tops of all its work trees, this one included.
    pub fn worktrees(&self) -> Vec<PathBuf> {
        let mut tops = linked_work_trees(&self.common);
        tops.push(self.root.clone());
        tops.sort_unstable();
        tops.dedup();
        tops
    }

    /// What is known without running anything.
    pub fn identity(&self) -> Identity {
        Identity { origin: self.origin.clone(), roots: Vec::new(), inside: self.inside.clone() }
    }

    /// The same with the first commits. This runs git and may take seconds.
    pub fn identity_with_roots(&self, git: &GitProgram) -> Identity {
        Identity { roots: first_commits(self, git).unwrap_or_default(), ..self.identity() }
    }
}

/// A git that may be run, and the whole environment it is run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitProgram {
    path: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl GitProgram {
    /// The first git in the absolute directories of `PATH` in this environment. The caller's environment says whose programs are
    /// trusted and leaves out secrets; variables that change what git does are left out here.
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

/// Asks git for the first commits; `None` if they cannot be known.
fn first_commits(repository: &Repository, git: &GitProgram) -> Option<Vec<String>> {
    // In a shallow copy the history ends anywhere.
    if repository.common.join("shallow").exists() {
        return None;
    }
    let mut child = command(repository, git).spawn().ok()?;
    if !ends_in_time(&mut child) {
        let _ = child.kill();
        let _ = child.wait();
        return None;
    }
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    let mut roots: Vec<String> = text.lines().filter(|line| is_commit(line)).map(str::to_owned).collect();
    roots.sort_unstable();
    roots.truncate(ROOTS_MAX);
    Some(roots)
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
