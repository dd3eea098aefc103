//! The work tree around a directory, and the main one that a linked one belongs to.

use std::path::{Path, PathBuf};

use crate::directory::{git_directory, named_path};
use crate::index::index_names;

/// The work tree of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// Its top.
    pub top: PathBuf,
    /// The directory of git for this work tree; none if it cannot be found.
    pub git_directory: Option<PathBuf>,
    /// For a linked work tree: the main one.
    pub main: Option<MainWorkTree>,
}

/// The work tree that others are linked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainWorkTree {
    /// Its top.
    pub top: PathBuf,
    /// The directory of git that all of them share.
    pub git_directory: PathBuf,
}

impl WorkTree {
    /// Finds the repository around a resolved directory.
    pub fn around(directory: &Path) -> Option<Self> {
        directory.ancestors().find_map(Self::at)
    }

    fn at(top: &Path) -> Option<Self> {
        let entry = top.join(".git");
        if std::fs::metadata(&entry).ok()?.is_dir() {
            // git itself looks further up if it finds no repository in there.
            let directory = entry.join("HEAD").exists().then_some(entry)?;
            return Some(Self { top: top.to_owned(), git_directory: Some(directory), main: None });
        }
        let directory = git_directory(&entry).and_then(|named| named.canonicalize().ok());
        let main = directory.as_deref().and_then(|directory| main(&entry, directory));
        Some(Self { top: top.to_owned(), git_directory: directory, main })
    }

    /// Whether git keeps a file of the work tree. What cannot be known counts as kept.
    pub fn tracks(&self, file: &Path) -> bool {
        let (top, directory) = match &self.main {
            Some(main) if !file.starts_with(&self.top) && file.starts_with(&main.top) => {
                (&main.top, Some(&main.git_directory))
            }
            _ => (&self.top, self.git_directory.as_ref()),
        };
        let inside = file.strip_prefix(top).ok().and_then(Path::to_str);
        match (directory, inside) {
            (Some(directory), Some(inside)) => index_names(directory, inside).unwrap_or(true),
            _ => true,
        }
    }
}

/// The main work tree of a linked one, if it knows of the link: else any folder could claim to belong to it.
fn main(entry: &Path, directory: &Path) -> Option<MainWorkTree> {
    let resolved = |name: &str| named_path(&directory.join(name), "")?.canonicalize().ok();
    let (common, back) = (resolved("commondir")?, resolved("gitdir")?);
    let is_known = back == entry.canonicalize().ok()? && directory.starts_with(common.join("worktrees"));
    let top = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git"))?;
    is_known.then(|| MainWorkTree { top: top.to_owned(), git_directory: common.clone() })
}
