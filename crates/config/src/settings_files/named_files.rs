//! The files of a project that a hook names: who agrees to a program agrees to what it is now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::locations::{FOLDERS, SettingsPlaces};
use super::parts::hash;
use super::pieces::PathCandidates;
use super::read;

/// As many files are told apart by their content; further ones by name, size and time.
const FILES_MAX: usize = 200;

/// As much is read of them.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// As many entries of directories are looked at.
const ENTRIES_MAX: usize = 5_000;

/// Names are also looked for in as many of the directories that are named beside them.
const DIRECTORIES_MAX: usize = 16;

/// The name under which files stand that are too many to be told one by one.
const FURTHER: &str = "further files";

/// The files that texts name and those in directories from which they run something, each with a mark of its content.
pub(super) fn named(value: &Value, places: &SettingsPlaces) -> BTreeMap<String, String> {
    let mut search = Search::new(places);
    let mut pieces = PathCandidates::default();
    for text in texts(value) {
        let PathCandidates { mut paths, mut run } = PathCandidates::of(text);
        pieces.paths.append(&mut paths);
        pieces.run.append(&mut run);
    }
    let bases: Vec<PathBuf> = [Some(search.start.clone()), Some(search.top.clone()), places.home.clone()]
        .into_iter()
        .flatten()
        .collect();
    search.look(&pieces.run, &bases);
    let run = std::mem::take(&mut search.directories);
    search.look(&pieces.paths, &bases);
    let directories: Vec<PathBuf> = search.directories.iter().take(DIRECTORIES_MAX).cloned().collect();
    search.look(&pieces.paths, &directories);
    search.walk(&run);
    search.marks()
}

struct Search {
    start: PathBuf,
    /// Nothing outside of it is looked at.
    top: PathBuf,
    files: BTreeSet<PathBuf>,
    /// Files in directories from which something is run.
    inside: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    /// Links that lead out of the project, and directories with too much in them: each with all that is known of it.
    others: BTreeMap<PathBuf, String>,
}

impl Search {
    fn new(places: &SettingsPlaces) -> Self {
        let start = places.start.canonicalize().unwrap_or_else(|_| places.start.clone());
        let top = places.root();
        let top = if places.is_home(top) { &start } else { top }.to_owned();
        Self {
            start,
            top,
            files: BTreeSet::new(),
            inside: BTreeSet::new(),
            directories: BTreeSet::new(),
            others: BTreeMap::new(),
        }
    }

    fn look(&mut self, pieces: &BTreeSet<String>, bases: &[PathBuf]) {
        for path in pieces.iter().flat_map(|piece| spellings(piece)) {
            for base in bases {
                self.add(&base.join(&path));
            }
        }
    }

    fn add(&mut self, path: &Path) {
        let Ok(facts) = path.symlink_metadata() else { return };
        let Ok(real) = path.canonicalize() else { return };
        // The project as a whole is no program.
        if self.start.starts_with(&real) {
            return;
        }
        if !real.starts_with(&self.top) {
            let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
            if let (true, Some(directory), Some(name)) = (facts.is_symlink(), directory, path.file_name())
                && directory.starts_with(&self.top)
            {
                self.others.insert(directory.join(name), format!("link {}", real.display()));
            }
        } else if real.is_dir() {
            self.directories.insert(real);
        } else if real.is_file() {
            self.files.insert(real);
        }
    }

    /// Finds what lies in these directories.
    fn walk(&mut self, directories: &BTreeSet<PathBuf>) {
        let mut left = ENTRIES_MAX;
        let mut waiting: Vec<PathBuf> = directories.iter().rev().cloned().collect();
        let mut seen = BTreeSet::new();
        while let Some(directory) = waiting.pop() {
            // What git notes there changes with every command.
            if directory.ends_with(".git") || !seen.insert(directory.clone()) {
                continue;
            }
            let entries: Vec<PathBuf> = std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .take(left + 1)
                .collect();
            if entries.len() > left {
                let facts = facts(&directory);
                self.others.insert(directory, facts);
                continue;
            }
            left -= entries.len();
            for entry in entries.into_iter().filter(|entry| !is_settings(entry)) {
                let Ok(facts) = entry.symlink_metadata() else { continue };
                if facts.is_dir() {
                    waiting.push(entry);
                } else if facts.is_symlink() {
                    let target = std::fs::read_link(&entry).unwrap_or_default();
                    self.others.insert(entry, format!("link {}", target.display()));
                } else if facts.is_file() {
                    self.inside.insert(entry);
                }
            }
            waiting.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    fn marks(&self) -> BTreeMap<String, String> {
        let mut marks = BTreeMap::new();
        let (mut bytes_left, mut further) = (BYTES_MAX, String::new());
        let name = |path: &Path| path.strip_prefix(&self.top).unwrap_or(path).to_string_lossy().into_owned();
        let files = self.files.iter().chain(self.inside.difference(&self.files));
        for (position, file) in files.enumerate() {
            let fits = position < FILES_MAX && file.metadata().is_ok_and(|facts| facts.len() <= bytes_left);
            let content = if fits { read::bytes(file, bytes_left).ok().flatten() } else { None };
            if let Some(content) = content {
                bytes_left -= content.len() as u64;
                marks.insert(name(file), hash(&content));
            } else if position < FILES_MAX {
                marks.insert(name(file), facts(file));
            } else {
                let _ = writeln!(further, "{} {}", name(file), facts(file));
            }
        }
        for (position, (path, known)) in self.others.iter().enumerate() {
            if position < FILES_MAX {
                marks.insert(name(path), known.clone());
            } else {
                let _ = writeln!(further, "{} {known}", name(path));
            }
        }
        if !further.is_empty() {
            marks.insert(FURTHER.to_owned(), hash(further.as_bytes()));
        }
        marks
    }
}

/// The paths that a piece may stand for: what follows something unknown starts in the project, and modules are named with dots.
fn spellings(piece: &str) -> Vec<String> {
    let mut paths = vec![piece.to_owned()];
    let inner = piece.trim_start_matches('/');
    if inner.len() < piece.len() && !inner.is_empty() {
        paths.push(inner.to_owned());
    }
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if piece.split('.').all(is_name) {
        let path = piece.replace('.', "/");
        paths.extend([format!("{path}.py"), path]);
    }
    paths
}

/// What settings files say is a matter of its own, and they change with every answer that is kept.
fn is_settings(file: &Path) -> bool {
    let is_named =
        file.file_name().is_some_and(|name| name == "settings.json" || name == "settings.local.json");
    is_named && FOLDERS.iter().any(|folder| file.parent().is_some_and(|parent| parent.ends_with(folder)))
}

/// What tells a file apart that is not read.
fn facts(path: &Path) -> String {
    path.metadata().map_or_else(|_| String::new(), |facts| format!("{} {:?}", facts.len(), facts.modified()))
}

/// Every text that may be run, or be given to what is.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != "type" && *name != "matcher");
            members.flat_map(|(_, value)| texts(value)).collect()
        }
        _ => Vec::new(),
    }
}
