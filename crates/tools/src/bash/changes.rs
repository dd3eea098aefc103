//! The files a command may change, found on disk as far as its text tells.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use windlass_shell::{ChangedPath, changed_paths};

use crate::paths::resolve;

/// No more files are named.
const CHANGES_MAX: usize = 64;
/// Entries of directories that patterns are compared with.
const ENTRIES_MAX: usize = 5_000;
/// Nothing below these is a file whose content could be kept.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The files and directories that a command started in `cwd` may change, resolved.
pub(super) fn changes(command: &str, cwd: &Path) -> Vec<PathBuf> {
    let mut search = Search { found: Vec::new(), entries: ENTRIES_MAX };
    for changed in changed_paths(command) {
        let Some(directory) = directory(&changed.directory, cwd) else { continue };
        if changed.is_pattern {
            search.expand(&directory, &changed);
        } else {
            search.add(&directory.join(&changed.path), changed.inside.as_deref());
        }
    }
    search.found
}

fn directory(written: &str, cwd: &Path) -> Option<PathBuf> {
    let Some(rest) = written.strip_prefix('~') else { return Some(cwd.join(written)) };
    let home = std::env::home_dir().filter(|home| home.is_absolute())?;
    Some(home.join(rest.trim_start_matches('/')))
}

struct Search {
    found: Vec<PathBuf>,
    /// Entries that may still be compared with patterns.
    entries: usize,
}

impl Search {
    fn add(&mut self, path: &Path, inside: Option<&str>) {
        let path = match inside {
            Some(name) if path.is_dir() => path.join(name),
            _ => path.to_owned(),
        };
        // A link may be changed itself, or what it leads to.
        if path.is_symlink()
            && let (Some(parent), Some(name)) = (path.parent().and_then(resolve), path.file_name())
        {
            self.add_resolved(parent.join(name));
        }
        if let Some(resolved) = resolve(&path) {
            self.add_resolved(resolved);
        }
    }

    fn add_resolved(&mut self, path: PathBuf) {
        let of_system = SYSTEM.iter().any(|system| path.starts_with(system));
        if !of_system && self.found.len() < CHANGES_MAX && !self.found.contains(&path) {
            self.found.push(path);
        }
    }

    /// All paths that a pattern matches, as the shell would find them.
    fn expand(&mut self, directory: &Path, changed: &ChangedPath) {
        let mut reached = vec![directory.to_owned()];
        for component in Path::new(&changed.path).components() {
            let name = match component {
                Component::Normal(name) => name.to_string_lossy().into_owned(),
                Component::RootDir => {
                    reached = vec![PathBuf::from("/")];
                    continue;
                }
                Component::ParentDir => "..".to_owned(),
                Component::CurDir | Component::Prefix(_) => continue,
            };
            reached = self.matching(&reached, &name);
        }
        for path in reached {
            self.add(&path, changed.inside.as_deref());
        }
    }

    /// What one part of a pattern matches in these directories.
    fn matching(&mut self, directories: &[PathBuf], part: &str) -> Vec<PathBuf> {
        if !part.contains(['*', '?', '[']) {
            return directories.iter().map(|directory| directory.join(plain(part))).collect();
        }
        let Ok(glob) = GlobBuilder::new(part).literal_separator(true).backslash_escape(true).build() else {
            return Vec::new();
        };
        let matcher = glob.compile_matcher();
        let mut found = Vec::new();
        for directory in directories {
            found.extend(self.matching_in(directory, &matcher, part.starts_with('.')));
        }
        found
    }

    fn matching_in(&mut self, directory: &Path, matcher: &GlobMatcher, hidden: bool) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in entries.take(self.entries).flatten() {
            self.entries -= 1;
            let name = entry.file_name();
            if is_hidden(&name) == hidden && matcher.is_match(&name) {
                found.push(entry.path());
            }
        }
        found.sort();
        found.truncate(CHANGES_MAX);
        found
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

/// A part of a pattern that is none: escapes are taken off.
fn plain(part: &str) -> String {
    let mut text = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::fixture::Fixture;

    fn check(fixture: &Fixture, command: &str, expected: &[&str]) {
        let found = changes(command, &fixture.root);
        let expected: Vec<PathBuf> = expected.iter().map(|path| fixture.root.join(path)).collect();
        assert_eq!(found, expected, "{command}");
    }

    #[test]
    fn what_a_command_may_change_is_found_on_disk() {
        let fixture = Fixture::new(&[("a.txt", b""), ("b.txt", b""), ("d/c.txt", b""), (".hidden.txt", b"")]);
        check(&fixture, "rm a.txt missing", &["a.txt", "missing"]);
        check(&fixture, "cd d && rm c.txt; touch ../n", &["d/c.txt", "n"]);
        check(&fixture, "cp a.txt d", &["d/a.txt"]);
        check(&fixture, "cp a.txt new", &["new"]);
        check(&fixture, "mv a.txt b.txt d", &["a.txt", "b.txt", "d/a.txt", "d/b.txt"]);
        check(&fixture, "rm *.txt", &["a.txt", "b.txt"]);
        check(&fixture, "rm .*.txt */c*", &[".hidden.txt", "d/c.txt"]);
        check(&fixture, "rm '*.txt' x\\*", &["*.txt", "x*"]);
        check(&fixture, "make > /dev/null 2> log", &["log"]);
        check(&fixture, "rm a.txt; rm ./a.txt", &["a.txt"]);
        check(&fixture, "make", &[]);
    }

    #[test]
    fn a_link_and_what_it_leads_to_are_both_named() {
        let fixture = Fixture::one("a.txt", b"");
        symlink("a.txt", fixture.path("link")).unwrap();
        symlink("nowhere", fixture.path("lost")).unwrap();
        check(&fixture, "echo > link", &["link", "a.txt"]);
        check(&fixture, "echo > lost", &["lost"]);
    }

    #[test]
    fn there_is_an_end_to_it() {
        let fixture = Fixture::new(&[]);
        for n in 0..200 {
            std::fs::write(fixture.path(format!("f{n:03}")), "").unwrap();
        }
        assert_eq!(changes("rm *", &fixture.root).len(), CHANGES_MAX);
        assert!(changes(&format!("rm {}", "f{1,2,3,4}".repeat(9)), &fixture.root).len() <= CHANGES_MAX);
    }
}
