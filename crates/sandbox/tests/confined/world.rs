//! A small world for each test: a project that can be written, things outside of it, and a home with credentials.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::io::AsyncReadExt;
use windlass_sandbox::{
    BackendChoice, CommandStatus, Exit, Launcher, Network, ProtectedPath, Sandbox, SandboxPolicy,
    ShellCommand, ShellProcess,
};

pub(crate) struct World {
    _root: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) policy: SandboxPolicy,
}

impl World {
    pub(crate) fn new(backend: BackendChoice) -> Self {
        let dir = tempfile::Builder::new().prefix("world-").tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["project/src", "outside/below", "home/.ssh", "temp"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, text) in [
            ("project/src/file", "mine\n"),
            ("outside/file", "theirs\n"),
            ("outside/below/file", "theirs\n"),
            ("home/.ssh/key", "the key\n"),
            ("home/notes", "notes\n"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let mut policy = SandboxPolicy::new(vec![root.join("project")], &root.join("home"));
        policy.temp = Some(root.join("temp"));
        policy.backend = backend;
        Self { _root: dir, root, policy }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn protect(&mut self, protected: &[ProtectedPath]) {
        let project = self.path("project");
        let inside =
            protected.iter().map(|item| ProtectedPath { path: project.join(&item.path), ..item.clone() });
        self.policy.protected.extend(inside);
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox::prepare(&self.policy).unwrap()
    }

    pub(crate) fn job(&self, script: &str) -> ShellCommand {
        let mut environment: Vec<_> = std::env::vars_os().filter(|(name, _)| name != "HOME").collect();
        environment.push(("HOME".into(), self.path("home").into()));
        environment.push(("ROOT".into(), self.root.clone().into()));
        environment.push(("OUT".into(), self.path("outside").into()));
        ShellCommand {
            script: script.to_owned(),
            cwd: self.path("project"),
            environment,
            should_track_cwd: false,
            source: None,
            sandbox: Some(self.sandbox()),
        }
    }

    /// What the command printed, and how it ended.
    pub(crate) fn run(&self, script: &str) -> (String, Exit) {
        run(&self.job(script))
    }

    /// The command succeeds and prints this.
    #[track_caller]
    pub(crate) fn check(&self, script: &str, expected: &str) {
        let (output, exit) = self.run(script);
        assert_eq!((output.as_str(), exit.status), (expected, CommandStatus::Code(0)), "{script}\n{exit:?}");
    }

    /// No line of the script succeeds, each alone, and nothing outside of the project is changed by any.
    #[track_caller]
    pub(crate) fn check_refused(&self, lines: &[&str]) {
        let before = self.elsewhere();
        let mut tried = String::new();
        for (number, line) in lines.iter().enumerate() {
            writeln!(tried, "if ( {line} ) >/dev/null 2>&1; then echo done {number}; fi").unwrap();
        }
        let (output, exit) = self.run(&tried);
        let succeeded: Vec<&str> = output
            .lines()
            .filter_map(|line| lines.get(line.strip_prefix("done ")?.parse::<usize>().ok()?).copied())
            .collect();
        assert!(succeeded.is_empty() && output.is_empty(), "succeeded: {succeeded:?}\n{output}");
        assert_eq!(exit.status, CommandStatus::Code(0), "{exit:?}");
        assert_eq!(self.elsewhere(), before);
    }

    /// Everything outside of the project and of the place for temporary files, with what is in it.
    pub(crate) fn elsewhere(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for name in ["outside", "home"] {
            collect(&self.path(name), &mut found);
        }
        found
    }

    pub(crate) fn git(&self, directory: &str, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(self.path(directory)).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let output = command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn proxied(&mut self, arbiter: windlass_sandbox::Arbiter) {
        self.policy.network = Network::Proxied(arbiter);
    }
}

fn collect(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let about = fs::symlink_metadata(path).unwrap();
    if about.is_dir() {
        found.insert(path.to_owned(), "directory".to_owned());
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), found);
        }
    } else if about.is_symlink() {
        found.insert(path.to_owned(), format!("link to {}", fs::read_link(path).unwrap().display()));
    } else {
        found.insert(path.to_owned(), fs::read_to_string(path).unwrap());
    }
}

pub(crate) fn supervised() -> Launcher {
    Launcher::supervised("/proc/self/exe".into())
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn run(job: &ShellCommand) -> (String, Exit) {
    block_on(async { finish(supervised().start(job).unwrap()).await })
}

pub(crate) async fn finish(process: ShellProcess) -> (String, Exit) {
    let ShellProcess { mut output, mut exit, tree } = process;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes).await.unwrap();
    let exit = exit.recv().await;
    tree.stop().await;
    (String::from_utf8_lossy(&bytes).into_owned(), exit)
}
