//! A temporary project to run the real binary in, with nothing of the developer's own environment.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{FinishedProcess, Server, TestProcess};

/// Longer than any single run of a test takes, shorter than patience.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A temporary folder with a project, a home and a place for temporary files. It is removed when this is dropped.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
}

/// One run of the binary in a [`Project`].
#[derive(Debug)]
pub struct WindlassCommand {
    command: Command,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
}

impl Project {
    /// An empty project.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("windlass-test-").tempdir()?;
        for name in ["project", "home", "tmp"] {
            std::fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder })
    }

    /// The project's directory.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The home directory.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Writes a file of the project, and the folders above it.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, content)?;
        Ok(path)
    }

    /// Reads a file of the project.
    pub fn read(&self, name: impl AsRef<Path>) -> io::Result<String> {
        std::fs::read_to_string(self.path().join(name))
    }

    /// A run of `binary` in this project, with a clean environment.
    #[must_use]
    pub fn command(&self, binary: impl AsRef<OsStr>) -> WindlassCommand {
        let mut command = Command::new(binary);
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        command
            .current_dir(self.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env("LANG", "C.UTF-8");
        WindlassCommand { command, stdin: None, timeout: TIMEOUT }
    }
}

impl WindlassCommand {
    /// Talks to this server, with a key.
    #[must_use]
    pub fn server(self, server: &Server) -> Self {
        self.env("ANTHROPIC_BASE_URL", server.url()).env("ANTHROPIC_API_KEY", "test-key")
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes a variable out of the environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs in another directory.
    #[must_use]
    pub fn current_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Gives it this on stdin; without it, stdin is at its end.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Waits at most so long for what is waited for.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The plain command, for a caller with a clock and pipes of its own.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command
    }

    /// Starts it.
    pub fn start(mut self) -> io::Result<TestProcess> {
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pipe = child.stdin.take();
        let running = TestProcess::new(child, self.timeout)?;
        if let (Some(mut pipe), Some(text)) = (pipe, self.stdin) {
            // A process that ends without reading its input closes the pipe, which is its right.
            match pipe.write_all(&text) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(running)
    }

    /// Runs it to its end.
    pub fn run(self) -> io::Result<FinishedProcess> {
        self.start()?.finish()
    }
}
