//! Memory files: what the user and the project want every run to know.
//!
//! Read once, at the start, in this order: what the administrator keeps for everybody, the user's, then each directory
//! from the root of the file system down to the project's. A file may name others to be read with it (`@path`).
//! `--setting-sources` says whose files count: user, project, and `CLAUDE.local.md` as local.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use windlass_protocol::MemoryNote;

use crate::{MemorySettings, ProcessContext, SettingSources};

mod text;

/// A larger file is left out.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A file with more text than this is worth a warning: it is paid for again and again.
const TEXT_CHARS_MAX: usize = 40_000;

/// Files that name files that name files end here.
const IMPORT_DEPTH_MAX: u32 = 4;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct MemoryFiles {
    pub(crate) notes: Vec<MemoryNote>,
    pub(crate) warnings: Vec<String>,
    /// Resolved paths of what was read: nothing is read twice.
    seen: BTreeSet<PathBuf>,
    /// What is not to be read.
    excluded: GlobSet,
}

/// Reads every memory file. What cannot be read is left out with a warning.
pub(crate) fn load(
    memory: &MemorySettings,
    place: &ProcessContext,
    user_directories: &[PathBuf],
) -> MemoryFiles {
    let mut found = MemoryFiles::default();
    if memory.no_files {
        return found;
    }
    let home = place.home.as_deref();
    found.read(&place.managed.join("CLAUDE.md"), None, home);
    found.exclude(&memory.excludes);
    if memory.sources.user {
        for directory in user_directories {
            found.read(&directory.join("CLAUDE.md"), None, home);
        }
    }
    let cwd = place.cwd.canonicalize().unwrap_or_else(|_| place.cwd.clone());
    let mut directories: Vec<&Path> = cwd.ancestors().collect();
    directories.reverse();
    let users = user_directories.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    let users: Vec<PathBuf> = users.collect();
    let before = found.seen.len();
    for name in ["CLAUDE", "AGENTS"] {
        // Files for agents in general stand in where there are none for this kind.
        if found.seen.len() == before {
            for directory in &directories {
                for path in in_directory(directory, name, memory.sources, &users) {
                    found.read(&path, Some(&cwd), home);
                }
            }
        }
    }
    found
}

/// The files of a directory that the setting sources let us read. A project below the home of its user finds the user's directories
/// among its own on the way down.
fn in_directory(directory: &Path, name: &str, sources: SettingSources, users: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in [directory.to_owned(), directory.join(".claude")] {
        if if users.contains(&folder) { sources.user } else { sources.project } {
            paths.push(folder.join(format!("{name}.md")));
        }
    }
    if sources.local && name == "CLAUDE" {
        paths.push(directory.join("CLAUDE.local.md"));
    }
    paths
}

impl MemoryFiles {
    /// Leaves out files that fit a pattern from here on.
    fn exclude(&mut self, patterns: &[String]) {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            match GlobBuilder::new(pattern).literal_separator(true).build() {
                Ok(glob) => drop(set.add(glob)),
                Err(error) => self.warnings.push(format!(
                    "invalid pattern {pattern} in claudeMdExcludes, ignored: {}. Correct or remove it.",
                    error.kind()
                )),
            }
        }
        match set.build() {
            Ok(set) => self.excluded = set,
            Err(error) => {
                self.warnings.push(format!("claudeMdExcludes ignored: {error}. Use fewer patterns."));
            }
        }
    }

    /// Reads a file and what it names, if it is there. A file of a project must not make us read what lies outside of it.
    fn read(&mut self, path: &Path, project: Option<&Path>, home: Option<&Path>) {
        let mut open = vec![(path.to_owned(), 0)];
        while let Some((path, depth)) = open.pop() {
            let Some((path, content)) = self.take(&path) else { continue };
            if depth < IMPORT_DEPTH_MAX {
                let imports = text::imports(&content).into_iter().filter_map(|name| {
                    let named = resolve(name, &path, home)?;
                    self.may_import(&path, &named, project).then_some((named, depth + 1))
                });
                // The first one named is the next to be read.
                let mut imports: Vec<_> = imports.collect();
                imports.reverse();
                open.extend(imports);
            }
            let text = text::without_comments(&content);
            self.warn_if_long(&path, &text);
            if !text.trim().is_empty() {
                self.notes.push(MemoryNote { path, text: text.into() });
            }
        }
    }

    fn warn_if_long(&mut self, path: &Path, text: &str) {
        let chars = text.chars().count();
        if chars > TEXT_CHARS_MAX {
            self.warnings.push(format!(
                "the memory file {} has {chars} characters (more than {TEXT_CHARS_MAX}), and every \
                 conversation starts with it. Shorten it, or move rarely needed parts into other files.",
                path.display()
            ));
        }
    }

    /// The resolved path and content of a file that was not read yet.
    fn take(&mut self, path: &Path) -> Option<(PathBuf, String)> {
        // Most of the files that are looked for are not there: one question is enough to know that.
        if !path.is_file() {
            return None;
        }
        let resolved = path.canonicalize().ok()?;
        if self.excluded.is_match(path) || self.excluded.is_match(&resolved) {
            return None;
        }
        if !self.seen.insert(resolved.clone()) {
            return None;
        }
        match read_text(&resolved) {
            Ok(text) => Some((resolved, text)),
            Err(problem) => {
                self.warnings.push(format!("skipped the memory file {}: {problem}.", path.display()));
                None
            }
        }
    }

    fn may_import(&mut self, from: &Path, named: &Path, project: Option<&Path>) -> bool {
        let Some(project) = project else { return true };
        let Ok(resolved) = named.canonicalize() else { return false };
        let inside = resolved.starts_with(project);
        if !inside && resolved.is_file() {
            self.warnings.push(format!(
                "{} imports {}, which is outside the working directory; skipped. To use it, start in a directory above \
                 it, or import it in your user memory file.",
                from.display(),
                named.display()
            ));
        }
        inside
    }
}

/// The file that an import means.
fn resolve(name: &str, from: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match name.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(from.parent()?.join(name)),
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("it is larger than 4 MiB".into());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
