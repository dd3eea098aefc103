//! What tells a repository apart from others wherever it lies, so that a project that was moved or cloned finds its sessions.
//!
//! The cheap facts are read from its files: a repository may configure git to run programs, so nothing is run for them. Only
//! the root commits need git itself; they are for a background thread, never for the way to a first request.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_git::{WorkTree, common_directory, linked_work_trees};

mod roots;

pub use roots::GitProgram;

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
        let WorkTree { top: root, git_directory, .. } = WorkTree::around(&cwd)?;
        let git = git_directory?.canonicalize().ok().filter(|git| git.join("HEAD").exists())?;
        let common = common_directory(&git).canonicalize().ok()?;
        let origin = windlass_git::origin(&common, &root);
        let inside = cwd.strip_prefix(&root).ok()?.to_string_lossy().into_owned();
        Some(Self { root, git, common, origin, inside })
    }

    /// The branch that is checked out; the beginning of the commit if none is.
    #[must_use]
    pub fn branch(&self) -> Option<String> {
        windlass_git::branch(&self.git)
    }

    /// The tops of all its work trees, this one included.
    #[must_use]
    pub fn worktrees(&self) -> Vec<PathBuf> {
        let mut tops = linked_work_trees(&self.common);
        tops.push(self.root.clone());
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
