//! The files that the paths and patterns of a command line stand for, looked up on disk.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use windlass_protocol::{PathFact, PathNaming, WrittenPath};
use windlass_text::paths::clean;

use crate::paths::{PathLookup, path_fact};

/// As many names a pattern may stand for; of more, nobody can say what they are.
pub(super) const NAMES_MAX: usize = 256;
/// Entries of directories that patterns are compared with.
pub(super) const ENTRIES_MAX: usize = 5_000;

/// Looks up what a line names, with a limit on what it takes.
pub(super) struct DiskNames {
    /// Entries that may still be compared with patterns.
    pub(super) entries: usize,
    /// Whether a pattern may stand for other names than those it was found to stand for.
    is_unsure: bool,
    lookup: PathLookup,
}

impl DiskNames {
    pub(super) fn new() -> Self {
        Self { entries: ENTRIES_MAX, is_unsure: false, lookup: PathLookup::default() }
    }

    pub(super) fn find(&mut self, written: WrittenPath) -> Vec<(PathFact, PathNaming)> {
        if written.is_pattern { self.expand(written.path) } else { vec![self.exact(written.path)] }
    }

    /// The shell hands its words to the kernel as they are, so `..` means the parent of what was reached.
    pub(super) fn exact(&mut self, path: PathBuf) -> (PathFact, PathNaming) {
        let fact = self.lookup.fact(path);
        // What leads nobody knows where may be anything.
        let naming = if fact.resolved.is_some() { PathNaming::Exact } else { PathNaming::Unknown };
        (fact, naming)
    }

    /// The pattern itself, and what it stands for now; if that is nothing, it stands for itself.
    fn expand(&mut self, pattern: PathBuf) -> Vec<(PathFact, PathNaming)> {
        self.is_unsure = false;
        let mut reached = vec![PathBuf::from("/")];
        for component in pattern.components() {
            let part = match component {
                Component::Normal(name) => name.to_string_lossy().into_owned(),
                Component::ParentDir => "..".to_owned(),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            };
            reached = self.matching(&reached, &part);
        }
        let is_unsure = self.is_unsure || self.entries == 0 || reached.len() > NAMES_MAX;
        let naming = if is_unsure { PathNaming::Unknown } else { PathNaming::Pattern };
        let lexical = clean(pattern.clone());
        let mut all = vec![(path_fact(lexical, None), naming)];
        if reached.is_empty() {
            all.push(self.exact(pattern));
        } else {
            all.extend(reached.into_iter().take(NAMES_MAX).map(|path| self.exact(path)));
        }
        all
    }

    /// What one part of a pattern matches in these directories.
    fn matching(&mut self, directories: &[PathBuf], part: &str) -> Vec<PathBuf> {
        if !part.contains(['*', '?', '[']) {
            return directories.iter().map(|directory| directory.join(part)).collect();
        }
        let Ok(glob) = GlobBuilder::new(part).literal_separator(true).build() else {
            self.is_unsure = true;
            return Vec::new();
        };
        let matcher = glob.compile_matcher();
        directories.iter().flat_map(|directory| self.matching_in(directory, &matcher, part)).collect()
    }

    fn matching_in(&mut self, directory: &Path, matcher: &GlobMatcher, part: &str) -> Vec<PathBuf> {
        let hidden = part.starts_with('.');
        // Whether a letter of several bytes is one to bash depends on the locale.
        let counts_letters = part.contains(['?', '[']);
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Some(left) = self.entries.checked_sub(1) else { break };
            self.entries = left;
            let name = entry.file_name();
            self.is_unsure |= counts_letters && !name.is_ascii();
            if name.as_encoded_bytes().starts_with(b".") == hidden && matcher.is_match(&name) {
                found.push(entry.path());
            }
        }
        found.sort();
        found
    }
}
