//! A throw-away directory with stubs for programs, in which lines are run by a real bash.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that ran.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) arguments: Vec<String>,
}

pub(crate) struct Jail {
    root: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Jail {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        // So deep that lines with many `cd ..` stay inside.
        let root = temporary.path().join("1/2/3/4/5/6/7/8");
        fs::create_dir_all(&root).unwrap();
        for name in ["bin", "home", "logs"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        // The stub succeeds unless its name says otherwise, so that both ways of `&&` and `||` are gone.
        let stub = "#!/bin/sh\nname=${0##*/}\nprintf '%s\\0' \"$name\" \"$@\" \"\" END >> \"$LOG\"\n[ \"$name\" != no ]\n";
        let path = root.join("stub");
        fs::write(&path, stub).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let jail = Self { root, _temporary: temporary };
        for name in ["looking", "others", "one"] {
            jail.fill(name);
        }
        jail
    }

    /// Something for patterns to find.
    fn fill(&self, name: &str) {
        let dir = self.path(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("sub/deep")).unwrap();
        for name in ["a", "b", "ab", "x1", "é", "f.txt", "sub/a", "sub/deep/b", "-n"] {
            fs::write(dir.join(name), name).unwrap();
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn at_home(&self, text: &str) -> String {
        format!("{}{}", self.path("home").display(), &text[1..])
    }

    pub(crate) fn add_stub(&self, name: &str) {
        let fits = !name.is_empty()
            && !name.contains(['/', '\0'])
            && name.len() < 100
            && name != "."
            && name != "..";
        if fits {
            let _ = fs::hard_link(self.path("stub"), self.path("bin").join(name));
        }
    }

    /// Lets the real program be found under its name; whether there is one.
    pub(crate) fn add_program(&self, name: &str) -> bool {
        let real =
            ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
        real.is_some_and(|real| std::os::unix::fs::symlink(real, self.path("bin").join(name)).is_ok())
    }

    /// Names and contents of everything below a directory.
    pub(crate) fn tree(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut tree = BTreeMap::new();
        let mut pending = vec![self.path(name)];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    pending.push(path.clone());
                }
                tree.insert(path.clone(), fs::read(&path).unwrap_or_default());
            }
        }
        tree
    }

    /// Whether a line changes a file when it runs alone.
    pub(crate) fn changes(&self, line: &str) -> bool {
        self.fill("one");
        let before = self.tree("one");
        self.run("one", std::iter::once(line));
        before != self.tree("one")
    }

    /// Runs lines one after the other in a directory; for each, what ran.
    pub(crate) fn run<'a>(&self, directory: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Vec<Ran>> {
        let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        // Some lines are loops without an end.
        let timeout =
            ["/usr/bin/timeout", "/bin/timeout"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        let mut script = "ulimit -t 2 -u 400 2>/dev/null\n".to_owned();
        let mut logs = Vec::new();
        for (index, line) in lines.enumerate() {
            let log = self.path("logs").join(format!("{directory}{index}"));
            let _ = fs::remove_file(&log);
            // Quoted for the shell that drives: nothing in the line is live.
            let quoted = line.replace('\'', "'\\''");
            let _ = writeln!(
                script,
                "cd {0}; LOG={1} {timeout} 0.3 {bash} --noprofile --norc -c '{quoted}' </dev/null >/dev/null 2>&1",
                self.path(directory).display(),
                log.display(),
            );
            logs.push(log);
        }
        let mut driver = Command::new(bash)
            .args(["--noprofile", "--norc", "-s"])
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("V", "a value -x")
            .env("CODE", "w out")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = driver.stdin.take().unwrap();
        stdin.write_all(script.as_bytes()).unwrap();
        drop(stdin);
        driver.wait().unwrap();
        // What runs in the background may be a moment late.
        std::thread::sleep(std::time::Duration::from_millis(300));
        logs.iter().map(|log| ran(&fs::read(log).unwrap_or_default())).collect()
    }
}

fn ran(log: &[u8]) -> Vec<Ran> {
    let log = String::from_utf8_lossy(log);
    let mut records = Vec::new();
    for record in log.split("\0\0END\0").filter(|record| !record.is_empty()) {
        records.push(Ran { arguments: record.split('\0').map(str::to_owned).collect() });
    }
    records
}
