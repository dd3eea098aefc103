//! Where a command starts, and where the next one will.

use std::path::{Path, PathBuf};

/// The working directory, or the project's when that is gone, and what to say of that.
pub(crate) fn start(cwd: &Path, roots: &[PathBuf]) -> Result<(PathBuf, Option<String>), String> {
    if cwd.is_dir() {
        return Ok((cwd.to_owned(), None));
    }
    match roots.first() {
        Some(root) if root.is_dir() => {
            let (gone, now) = (cwd.display(), root.display());
            let notice = format!("The working directory {gone} no longer exists; the command ran in {now}.");
            Ok((root.clone(), Some(notice)))
        }
        _ => Err(format!(
            "The working directory {} no longer exists, and neither does the project's. Make one of them again.",
            cwd.display()
        )),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NextDirectory {
    /// From now on, if it is another one.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) notice: Option<String>,
}

/// The directory a command started in, and what holds for it.
pub(crate) struct DirectoryRules<'a> {
    /// What the session takes for its working directory.
    pub(crate) session: &'a Path,
    pub(crate) started: &'a Path,
    pub(crate) roots: &'a [PathBuf],
    /// Every command starts in the project's directory.
    pub(crate) should_keep_project: bool,
}

impl DirectoryRules<'_> {
    /// After a command that ended in `end`, if known: it may claim anything, so the path is resolved first.
    pub(crate) fn next_directory(&self, end: Option<&Path>, script: &str) -> NextDirectory {
        let Some(end) = end else {
            let notice = mentions_cd(script).then(|| {
                format!(
                    "Where the command ended is not known; the next one starts in {}.",
                    self.started.display()
                )
            });
            return NextDirectory { notice, ..self.stay() };
        };
        if canonical(end) == canonical(self.started) {
            return self.stay();
        }
        let inside = |end: &PathBuf| self.roots.iter().any(|root| end.starts_with(root)) && end.is_dir();
        let end = end.canonicalize().ok().filter(inside);
        if let Some(end) = end.filter(|_| !self.should_keep_project) {
            let notice = format!("The working directory is now {}", end.display());
            return NextDirectory { cwd: self.if_changed(&end), notice: Some(notice) };
        }
        let project = self.roots.first().map_or(self.started, PathBuf::as_path);
        let notice = format!("Shell cwd was reset to {}", project.display());
        NextDirectory { cwd: self.if_changed(project), notice: Some(notice) }
    }

    /// After a command that leaves the next one where it started itself.
    pub(crate) fn stay(&self) -> NextDirectory {
        NextDirectory { cwd: self.if_changed(self.started), notice: None }
    }

    fn if_changed(&self, to: &Path) -> Option<PathBuf> {
        (to != self.session).then(|| to.to_owned())
    }
}

/// What to say of a command that goes on in the background.
pub(crate) fn background_hint(script: &str) -> Option<String> {
    mentions_cd(script).then(|| "A `cd` in a background command has no effect on later commands.".to_owned())
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn mentions_cd(script: &str) -> bool {
    let word = |word: &str| matches!(word, "cd" | "pushd" | "popd");
    script.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))).any(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_directory() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["app/src", "app2", "lib"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("../app2", base.join("app/way-out")).unwrap();
        std::os::unix::fs::symlink("../lib", base.join("app/way-in")).unwrap();
        std::fs::write(base.join("app/file"), "").unwrap();
        let roots = [base.join("app"), base.join("lib")];
        let check =
            |from: &str, end: Option<&str>, should_keep_project: bool, cwd: Option<&str>, notice: &str| {
                let from = base.join(from);
                let rules =
                    DirectoryRules { session: &from, started: &from, roots: &roots, should_keep_project };
                let next = rules.next_directory(end.map(|end| base.join(end)).as_deref(), "cd somewhere");
                assert_eq!(next.cwd, cwd.map(|cwd| base.join(cwd)), "{end:?}");
                let expected = notice.replace("BASE", base.to_str().unwrap());
                assert_eq!(next.notice.unwrap_or_default(), expected, "{end:?}");
            };
        check("app", Some("app"), false, None, "");
        check("app", Some("app/src"), false, Some("app/src"), "The working directory is now BASE/app/src");
        check("app/src", Some("app"), false, Some("app"), "The working directory is now BASE/app");
        check("app", Some("lib"), false, Some("lib"), "The working directory is now BASE/lib");
        check("app", Some("app2"), false, None, "Shell cwd was reset to BASE/app");
        check("app/src", Some("app2"), false, Some("app"), "Shell cwd was reset to BASE/app");
        check("app", Some(""), false, None, "Shell cwd was reset to BASE/app");
        check("app", Some("app/src"), true, None, "Shell cwd was reset to BASE/app");
        check("app/src", Some("app/gone"), false, Some("app"), "Shell cwd was reset to BASE/app");
        check("app", Some("app/../app2"), false, None, "Shell cwd was reset to BASE/app");
        check("app", Some("app/src/.."), false, None, "");
        check("app", Some("app/way-out"), false, None, "Shell cwd was reset to BASE/app");
        check("app", Some("app/way-in"), false, Some("lib"), "The working directory is now BASE/lib");
        check("app", Some("app/file"), false, None, "Shell cwd was reset to BASE/app");
        check(
            "app",
            None,
            false,
            None,
            "Where the command ended is not known; the next one starts in BASE/app.",
        );
    }

    #[test]
    fn a_directory_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let (cwd, notice) = start(&root.join("gone"), std::slice::from_ref(&root)).unwrap();
        assert_eq!(cwd, root);
        assert!(notice.unwrap().contains("gone no longer exists; the command ran in"));
        assert!(
            start(&root.join("gone"), &[root.join("too")])
                .unwrap_err()
                .contains("neither does the project's")
        );
        let rules = DirectoryRules {
            session: &root.join("gone"),
            started: &root,
            roots: std::slice::from_ref(&root),
            should_keep_project: false,
        };
        assert_eq!(rules.next_directory(Some(&root.canonicalize().unwrap()), "ls").cwd, Some(root.clone()));
    }

    #[test]
    fn only_the_word_itself_changes_directory() {
        let check = |script: &str, expected: bool| assert_eq!(mentions_cd(script), expected, "{script}");
        check("cd a", true);
        check("a && cd b", true);
        check("(pushd x)", true);
        check("echo abcd", false);
        check("./cd", false);
        check("cat cd.txt", false);
    }
}
