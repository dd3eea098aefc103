//! Memory files: what the user and the project want every run to know. Read once, at the start: the administrator's,
//! the user's, then each directory from the root down to the project's, as far as `--setting-sources` allows
//! (`CLAUDE.local.md` is local). A file may import others (`@path`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use windlass_protocol::MemoryNote;

use crate::config::read_text;
use crate::{MemorySettings, ProcessContext, SettingSources};

/// A larger file is left out.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A file with more text than this is worth a warning: it is paid for again and again.
const TEXT_CHARS_MAX: usize = 40_000;

/// Files that name files that name files end here.
const IMPORT_DEPTH_MAX: u32 = 4;

#[derive(Debug, Default)]
pub(crate) struct MemoryFiles {
    pub(crate) notes: Vec<MemoryNote>,
    pub(crate) warnings: Vec<String>,
    /// Resolved paths of what was read: nothing is read twice.
    seen: BTreeSet<PathBuf>,
    excluded: GlobSet,
}

/// Reads every memory file. What cannot be read is left out with a warning.
pub(crate) fn load(
    memory: &MemorySettings,
    place: &ProcessContext,
    user_directories: &[PathBuf],
) -> MemoryFiles {
    let mut found = MemoryFiles::default();
    if memory.is_off {
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

/// The files of a directory that the sources allow. Below the home, a project meets the user's own too.
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
                let imports = imports(&content).into_iter().filter_map(|name| {
                    let named = resolve(name, &path, home)?;
                    self.can_import(&path, &named, project).then_some((named, depth + 1))
                });
                // The first one named is the next to be read.
                let mut imports: Vec<_> = imports.collect();
                imports.reverse();
                open.extend(imports);
            }
            let text = without_comments(&content);
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
        match read_text(&resolved, FILE_BYTES_MAX, "4 MiB", ToString::to_string) {
            Ok(text) => Some((resolved, text)),
            Err(problem) => {
                self.warnings.push(format!("skipped the memory file {}: {problem}.", path.display()));
                None
            }
        }
    }

    fn can_import(&mut self, from: &Path, named: &Path, project: Option<&Path>) -> bool {
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

fn resolve(name: &str, from: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match name.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(from.parent()?.join(name)),
    }
}

/// The text without comments that stand on lines of their own. Code keeps what looks like one.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut fence = Fence::default();
    let mut in_comment = false;
    for line in text.split_inclusive('\n') {
        if !in_comment && (fence.passes(line) || !line.trim_start().starts_with("<!--")) {
            kept.push_str(line);
            continue;
        }
        let behind = line.split_once("-->").map(|(_, rest)| rest);
        in_comment = behind.is_none();
        kept.push_str(behind.filter(|rest| !rest.trim().is_empty()).unwrap_or_default());
    }
    kept
}

/// The files that a text names as `@path`, in order; not those in code.
fn imports(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut fence = Fence::default();
    for line in text.lines().filter(|line| !fence.passes(line)) {
        // Every second piece between back-ticks is code.
        for piece in line.split('`').step_by(2) {
            let words = piece.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            let words = words.map(|word| word.trim_end_matches([',', '.', ';', ':', ')', '!', '?']));
            names.extend(words.filter(|word| !word.is_empty()));
        }
    }
    names
}

/// Whether lines stand between the marks of a block of code.
#[derive(Default)]
struct Fence {
    mark: Option<&'static str>,
}

impl Fence {
    /// Takes the next line and says whether it is code or a mark.
    fn passes(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        match (self.mark, mark) {
            (None, None) => return false,
            (None, Some(_)) => self.mark = mark,
            (Some(open), Some(close)) if open == close => self.mark = None,
            (Some(_), _) => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_code_stays() {
        let check = |text: &str, expected: &str| assert_eq!(without_comments(text), expected);
        check("a\n<!-- x -->\nb\n", "a\nb\n");
        check("a\n<!-- x\ny\n--> z\nb", "a\n z\nb");
        check("a <!-- x --> b\n", "a <!-- x --> b\n");
        check("```\n<!-- x -->\n```\n<!-- y -->\n", "```\n<!-- x -->\n```\n");
        check("a\n<!-- never closed\nb", "a\n");
    }

    #[test]
    fn imports_are_words_outside_of_code() {
        let check = |text: &str, expected: &[&str]| assert_eq!(imports(text), expected, "{text}");
        check("See @README.md and @docs/a.md.\n- @~/mine.md", &["README.md", "docs/a.md", "~/mine.md"]);
        check("mail a@b.c, `@code.md`, @", &[]);
        check("```\n@in-code.md\n```\n~~~\n```\n@too.md\n~~~\n@out.md", &["out.md"]);
    }
}
