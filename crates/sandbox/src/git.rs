//! What of git repositories must stay as it is, and what must be writable for git to work.
//!
//! Git runs programs that its configuration and hooks name, whoever calls it, outside of every sandbox. So a confined
//! command may change neither, nor where git looks for them. The rest is git's data, which ordinary commands write.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use windlass_git::{core_work_tree, is_repository};

use crate::policy::ProtectedPath;

/// Repositories deeper inside a directory are not looked for.
const DEPTH_MAX: usize = 4;
/// After this many directory entries the search ends.
const ENTRIES_MAX: usize = 20_000;
/// After this many repositories the search ends. Each of them costs every command time to start.
const REPOSITORIES_MAX: usize = 64;

/// What of the repositories in a directory must stay, and what must be writable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitProtection {
    /// Where git keeps the data of repositories whose work tree is elsewhere: for [`SandboxPolicy::writable`](crate::SandboxPolicy).
    pub writable: Vec<PathBuf>,
    /// What git would run, or would find what to run in: for [`SandboxPolicy::protected`](crate::SandboxPolicy).
    pub protected: Vec<ProtectedPath>,
    /// Whether everything was looked through. A directory may be too large.
    pub is_complete: bool,
}

/// Finds the repositories of a directory: its own, the one it is linked to or a submodule of, those inside.
pub fn protect_repositories(root: &Path) -> GitProtection {
    let mut search = Search { entries_left: ENTRIES_MAX, ..Search::default() };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    if fs::symlink_metadata(root.join(".git")).is_err() && !is_repository(&root) {
        // Neither kind of repository can be made of the directory itself.
        search.protected.extend([".git", "HEAD"].map(|name| ProtectedPath::new(root.join(name))));
    }
    let mut waiting = VecDeque::from([(root, 0)]);
    while let Some((directory, depth)) = waiting.pop_front() {
        search.visit(&directory);
        if is_repository(&directory) {
            search.protect(&directory);
            continue;
        }
        if search.is_exhausted() {
            search.is_cut = true;
            break;
        }
        let inside = search.directories(&directory);
        if depth == DEPTH_MAX {
            search.is_cut |= !inside.is_empty();
            continue;
        }
        waiting.extend(inside.into_iter().map(|directory| (directory, depth + 1)));
    }
    GitProtection {
        writable: search.writable.into_iter().collect(),
        protected: search.protected.into_iter().collect(),
        is_complete: !search.is_cut,
    }
}

#[derive(Default)]
struct Search {
    writable: BTreeSet<PathBuf>,
    protected: BTreeSet<ProtectedPath>,
    found_repositories: BTreeSet<PathBuf>,
    entries_left: usize,
    is_cut: bool,
}

impl Search {
    fn is_exhausted(&self) -> bool {
        self.entries_left == 0 || self.found_repositories.len() >= REPOSITORIES_MAX
    }

    /// Looks for the repository that a directory is the work tree of.
    fn visit(&mut self, directory: &Path) {
        let git = directory.join(".git");
        let Ok(found) = fs::symlink_metadata(&git) else { return };
        if found.is_dir() {
            return self.protect(&git);
        }
        self.protected.insert(ProtectedPath::new(&git));
        if found.is_file() {
            self.follow(directory, &git);
        }
    }

    /// Guards one repository, with its submodules and linked work trees.
    fn protect(&mut self, repository: &Path) {
        if !self.found_repositories.insert(repository.to_owned()) {
            return;
        }
        self.protected.extend([
            ProtectedPath::new(repository.join("hooks")),
            ProtectedPath::new(repository.join("config")),
            ProtectedPath::new(repository.join("config.worktree")),
            ProtectedPath::pointer(repository.join("commondir")),
        ]);
        for tree in self.directories(&repository.join("worktrees")) {
            self.protect_linked(&tree);
        }
        let mut waiting = vec![(repository.join("modules"), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            if self.is_exhausted() || depth > DEPTH_MAX {
                self.is_cut = true;
                return;
            }
            for inside in self.directories(&directory) {
                if is_repository(&inside) {
                    self.protect(&inside);
                } else {
                    waiting.push((inside, depth + 1));
                }
            }
        }
    }

    fn protect_linked(&mut self, tree: &Path) {
        self.protected.extend(["commondir", "gitdir"].map(|name| ProtectedPath::pointer(tree.join(name))));
        self.protected.insert(ProtectedPath::new(tree.join("config.worktree")));
    }

    /// Follows a `.git` file. It may lie: to be writable, the repository must name that work tree in turn.
    fn follow(&mut self, work_tree: &Path, file: &Path) {
        let Some(repository) = pointed_to(file, "gitdir: ") else { return };
        let common = pointed_to(&repository.join("commondir"), "");
        // Git reads them in any case, wherever they are.
        if common.is_some() {
            self.protect_linked(&repository);
        }
        [common.as_ref(), Some(&repository)].into_iter().flatten().for_each(|place| {
            if is_repository(place) {
                self.protect(place);
            }
        });
        let is_linked = |common: &Path| {
            let back = pointed_to(&repository.join("gitdir"), "");
            back.as_deref() == Some(file) && repository.parent() == Some(&common.join("worktrees"))
        };
        let owner = match common {
            Some(common) if is_linked(&common) && is_repository(&common) => common,
            None if is_repository(&repository)
                && core_work_tree(&repository).as_deref() == Some(work_tree) =>
            {
                repository
            }
            _ => return,
        };
        self.writable.insert(owner);
    }

    /// The directories in a directory, in order.
    fn directories(&mut self, directory: &Path) -> Vec<PathBuf> {
        let list = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut found = Vec::new();
        for entry in list.take(self.entries_left) {
            self.entries_left -= 1;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && entry.file_name() != ".git" {
                found.push(entry.path());
            }
        }
        found.sort();
        found
    }
}

/// The path that a file names, resolved.
fn pointed_to(file: &Path, prefix: &str) -> Option<PathBuf> {
    windlass_git::named_path(file, prefix)?.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(directory).args(["-c", "protocol.file.allow=always", "-c", "user.name=a"]);
        command.args(["-c", "user.email=a@b"]).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn is_protected(protection: &GitProtection, path: &Path) -> bool {
        protection.protected.iter().any(|protected| protected.path == path)
    }

    #[test]
    fn linked_work_trees_and_nested_repositories_are_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let main = root.join("main");
        git(&root, &["init", "-q", "main"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&main, &["worktree", "add", "-q", "../linked"]);
        git(&root, &["init", "-q", "main/group/nested"]);
        git(&root, &["init", "-q", "--bare", "main/group/bare"]);
        let protection = protect_repositories(&main);
        assert!(protection.is_complete && protection.writable.is_empty(), "{protection:?}");
        for name in [".git/hooks", ".git/config", "group/nested/.git/hooks", "group/bare/config"] {
            assert!(is_protected(&protection, &main.join(name)), "{name}");
        }
        assert!(is_protected(&protection, &main.join(".git/worktrees/linked/commondir")));
        let protection = protect_repositories(&root.join("linked"));
        assert_eq!(protection.writable, [main.join(".git")]);
        assert!(
            is_protected(&protection, &main.join(".git/hooks"))
                && is_protected(&protection, &root.join("linked/.git"))
        );
    }

    #[test]
    fn a_submodule_has_its_repository_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for name in ["main", "other"] {
            git(&root, &["init", "-q", name]);
            git(&root.join(name), &["commit", "-q", "--allow-empty", "-m", "one"]);
        }
        git(&root.join("main"), &["submodule", "--quiet", "add", "../other", "deep/sub"]);
        let modules = root.join("main/.git/modules/deep/sub");
        let protection = protect_repositories(&root.join("main/deep/sub"));
        assert_eq!(protection.writable, std::slice::from_ref(&modules));
        let protection = protect_repositories(&root.join("main"));
        assert!(is_protected(&protection, &modules.join("config")));
    }

    #[test]
    fn a_lie_opens_nothing() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        git(&root, &["init", "-q", "victim"]);
        let check = |text: &str| {
            let liar = root.join("liar");
            fs::create_dir_all(&liar).unwrap();
            fs::write(liar.join(".git"), text).unwrap();
            let protection = protect_repositories(&liar);
            assert!(protection.writable.is_empty(), "{text}");
            assert!(is_protected(&protection, &liar.join(".git")));
        };
        check("gitdir: ../victim/.git\n");
        check("gitdir: /\n");
        check("gitdir: /home\n");
        check("");
        fs::create_dir_all(root.join("liar/fake/worktrees/x")).unwrap();
        fs::write(root.join("liar/fake/worktrees/x/commondir"), "../../../../victim/.git").unwrap();
        fs::write(root.join("liar/fake/worktrees/x/gitdir"), root.join("liar/.git").to_str().unwrap())
            .unwrap();
        check("gitdir: fake/worktrees/x\n");
    }

    /// Deeper than repositories are looked for, and naming no work tree.
    #[test]
    fn what_a_file_points_to_is_protected_wherever_it_is() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let deep = "a/b/c/d/e/f";
        fs::create_dir_all(root.join(deep)).unwrap();
        git(&root, &["init", "-q", "--separate-git-dir", &format!("{deep}/real"), "."]);
        let protection = protect_repositories(&root);
        for name in ["real/config", "real/hooks", "real/commondir"] {
            assert!(is_protected(&protection, &root.join(deep).join(name)), "{name}");
        }
        let (linked, common) = (root.join(deep).join("linked"), root.join(deep).join("real"));
        fs::create_dir_all(&linked).unwrap();
        fs::write(linked.join("HEAD"), "ref: refs/heads/x\n").unwrap();
        fs::write(linked.join("commondir"), "../real\n").unwrap();
        fs::write(root.join(".git"), format!("gitdir: {deep}/linked\n")).unwrap();
        let protection = protect_repositories(&root);
        let expected = [linked.join("commondir"), linked.join("config.worktree"), common.join("hooks")];
        for path in expected {
            assert!(is_protected(&protection, &path), "{}", path.display());
        }
        assert!(protection.writable.is_empty());
    }

    #[test]
    fn a_plain_directory_cannot_become_a_repository() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let protection = protect_repositories(&root);
        assert!(
            is_protected(&protection, &root.join(".git")) && is_protected(&protection, &root.join("HEAD"))
        );
    }
}
