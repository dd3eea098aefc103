//! What tells a repository apart from others wherever it lies, so that a project that was moved or cloned finds its sessions.
//!
//! The cheap facts are read from its files: a repository may configure git to run programs, so nothing is run for them. Only
//! the root commits need git itself; they are for a background thread, never for the way to a first request.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

mod address;
mod roots;

pub use roots::GitProgram;

/// A file of git that is larger than this is not read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

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
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        let same_origin = self.origin.is_some() && self.origin == other.origin;
        let same_roots = self.roots.iter().any(|root| other.roots.contains(root));
        self.inside == other.inside && (same_origin || same_roots)
    }
}

impl Repository {
    /// Finds the repository around a directory, without running anything.
    #[must_use]
    pub fn discover(cwd: &Path) -> Option<Self> {
        let cwd = cwd.canonicalize().ok()?;
        let root = cwd.ancestors().find(|directory| directory.join(".git").exists())?;
        let git = git_folder(root)?;
        let common = match read(&git.join("commondir")) {
            Some(relative) => git.join(relative.trim()).canonicalize().ok()?,
            None => git.clone(),
        };
        let origin = read(&common.join("config")).and_then(|config| address::origin(&config, root));
        let inside = cwd.strip_prefix(root).ok()?.to_string_lossy().into_owned();
        Some(Self { root: root.to_owned(), git, common, origin, inside })
    }

    /// The branch that is checked out; the beginning of the commit if none is.
    #[must_use]
    pub fn branch(&self) -> Option<String> {
        const SHORT: usize = 12;
        let head = read(&self.git.join("HEAD"))?;
        let head = head.trim();
        Some(match head.strip_prefix("ref:") {
            Some(name) => name.trim().strip_prefix("refs/heads/").unwrap_or(name.trim()).to_owned(),
            None => head.get(..SHORT)?.to_owned(),
        })
    }

    /// The tops of all its work trees, this one included.
    #[must_use]
    pub fn worktrees(&self) -> Vec<PathBuf> {
        let mut tops = vec![self.root.clone()];
        if self.common.file_name().is_some_and(|name| name == ".git") {
            tops.extend(self.common.parent().map(Path::to_owned));
        }
        let linked = std::fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        tops.extend(linked.filter_map(|entry| {
            let named = read(&entry.path().join("gitdir"))?;
            Some(cleaned(&entry.path().join(named.trim())).parent()?.to_owned())
        }));
        tops.sort_unstable();
        tops.dedup();
        tops
    }

    /// What is known without running anything.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { origin: self.origin.clone(), roots: Vec::new(), inside: self.inside.clone() }
    }

    /// The same with the first commits. This runs git and may take seconds.
    #[must_use]
    pub fn identity_with_roots(&self, git: &GitProgram) -> Identity {
        Identity { roots: roots::commits(self, git), ..self.identity() }
    }
}

/// The folder of git that belongs to a work tree.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let entry = root.join(".git");
    let git = match read(&entry) {
        Some(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
        None => entry,
    };
    let git = git.canonicalize().ok()?;
    git.join("HEAD").exists().then_some(git)
}

/// A small text file, if it is one.
fn read(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// A path without `.` and `..`, whether or not it exists.
fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}
