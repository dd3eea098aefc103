//! A home with sessions, projects beside it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use uuid::Uuid;
use windlass_session::{Catalogue, GitProgram, ListScope, SessionInfo, SessionLayout};

pub(crate) struct World {
    folder: tempfile::TempDir,
}

/// The git of this machine.
pub(crate) fn git_program() -> GitProgram {
    GitProgram::find(std::env::vars_os().collect()).unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn layout(&self) -> SessionLayout {
        SessionLayout::new(self.path("home"))
    }

    pub(crate) fn catalogue(&self) -> Catalogue {
        Catalogue::new(self.layout()).with_git(Some(git_program()))
    }

    /// Makes a directory.
    pub(crate) fn project(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Writes a session of a project; its lines are given.
    pub(crate) fn session(&self, cwd: &Path, number: u128, lines: &[Value]) -> PathBuf {
        let paths = self.layout().session(cwd, id(number));
        paths.create().unwrap();
        let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
        std::fs::write(paths.file(), text).unwrap();
        let time = SystemTime::UNIX_EPOCH
            + Duration::from_secs(1_700_000_000 + u64::try_from(number % 1_000_000).unwrap());
        std::fs::File::options().append(true).open(paths.file()).unwrap().set_modified(time).unwrap();
        paths.file().to_owned()
    }

    /// Writes a session with one prompt.
    pub(crate) fn said(&self, cwd: &Path, number: u128, prompt: &str) -> PathBuf {
        self.session(cwd, number, &[user(cwd, prompt)])
    }

    pub(crate) fn list(&self, cwd: &Path) -> Vec<SessionInfo> {
        self.catalogue().list(ListScope::Project(cwd))
    }
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x1111_0000_0000_4000_8000_0000_0000_0000 + number)
}

pub(crate) fn user(cwd: &Path, prompt: &str) -> Value {
    json!({
        "type": "user", "uuid": Uuid::from_u128(1).to_string(), "parentUuid": null, "sessionId": "s",
        "timestamp": "2026-11-13T10:20:30.123Z", "cwd": cwd, "gitBranch": "main", "entrypoint": "cli",
        "isSidechain": false, "message": {"role": "user", "content": prompt},
    })
}

/// The numbers of sessions, in order.
pub(crate) fn numbers(sessions: &[SessionInfo]) -> Vec<u128> {
    sessions.iter().map(|session| session.id.as_u128() - id(0).as_u128()).collect()
}

/// Runs git in a directory, without the settings of whoever runs the test.
pub(crate) fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(directory)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "git {arguments:?}");
}

/// Makes a repository with one commit.
pub(crate) fn repository(directory: &Path) {
    git(directory, &["init", "-q"]);
    std::fs::write(directory.join("first.txt"), directory.display().to_string()).unwrap();
    git(directory, &["add", "."]);
    git(directory, &["commit", "-qm", "first"]);
}
