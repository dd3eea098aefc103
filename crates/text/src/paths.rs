//! Paths by their names alone.

use std::path::{Component, Path, PathBuf};

/// The path without `.`, `..` and doubled separators, whether or not it exists. `..` at the root stays at the root.
pub fn clean(path: impl AsRef<Path>) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for part in path.as_ref().components() {
        match part {
            Component::ParentDir => drop(cleaned.pop()),
            Component::CurDir => {}
            part => cleaned.push(part),
        }
    }
    cleaned
}
