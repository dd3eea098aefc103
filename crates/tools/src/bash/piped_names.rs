//! Names that one program lists and another opens: what they may turn into on the way.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};
use ignore::WalkBuilder;
use windlass_git::tracked_files;
use windlass_shell::{ListedNames, NameEnd, PipedNames};

const NAMES_MAX: usize = 100_000;

#[derive(Clone, Copy)]
pub(super) struct NameList<'a> {
    /// Where both programs run.
    pub(super) base: &'a Path,
    /// What the directory is called that everything in the list is below.
    pub(super) text: &'a str,
    /// That directory.
    pub(super) root: &'a Path,
    pub(super) handed: &'a PipedNames,
}

impl NameList<'_> {
    /// What may be elsewhere: links in the list, and pieces of names that fall apart. `None`: unknown.
    pub(super) fn odd_names(&self) -> Option<Vec<PathBuf>> {
        let pattern = match &self.handed.pattern {
            Some(pattern) => Glob::new(pattern).ok().map(|glob| glob.compile_matcher()),
            None => None,
        };
        let mut odd = Vec::new();
        if self.handed.listed == ListedNames::Tracked
            && let Some(entries) = tracked_files(self.root)
        {
            for (path, is_link) in entries {
                odd.extend(self.odd(&path, is_link, pattern.as_ref())?);
            }
            return Some(odd);
        }
        let skips_ignored = self.handed.listed == ListedNames::NotIgnored;
        for (count, entry) in walker(self.root, skips_ignored).build().enumerate() {
            if count > NAMES_MAX {
                return None;
            }
            // What cannot be looked at is not listed either.
            let Ok(entry) = entry else { continue };
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_directory && self.handed.listed != ListedNames::All {
                continue;
            }
            odd.extend(self.odd(entry.path(), entry.path_is_symlink(), pattern.as_ref())?);
        }
        Some(odd)
    }

    fn odd(&self, path: &Path, is_link: bool, pattern: Option<&GlobMatcher>) -> Option<Vec<PathBuf>> {
        let mut odd = Vec::new();
        let Ok(below) = path.strip_prefix(self.root) else { return Some(odd) };
        let name = path.file_name().unwrap_or(OsStr::new(""));
        // What fits letters of several bytes depends on the locale.
        if name.is_ascii() && pattern.is_some_and(|pattern| !pattern.is_match(name)) {
            return Some(odd);
        }
        if is_link && matches!(self.handed.listed, ListedNames::All | ListedNames::Tracked) {
            odd.push(path.to_owned());
        }
        let name = below.to_string_lossy();
        let text = self.text.strip_suffix('/').unwrap_or(self.text);
        let name = if text == "." { name.into_owned() } else { format!("{text}/{name}") };
        odd.extend(pieces(&name, self.handed.end)?.into_iter().map(|piece| self.base.join(piece)));
        Some(odd)
    }
}

/// Walks through a tree as ripgrep does, or through all that is in it.
pub(super) fn walker(root: &Path, is_ignored_skipped: bool) -> WalkBuilder {
    let mut walker = WalkBuilder::new(root);
    walker.standard_filters(is_ignored_skipped);
    if is_ignored_skipped {
        walker.add_custom_ignore_filename(".rgignore");
    }
    walker
}

/// What a name falls apart into, if it does. Nothing if a piece may be something else than a path.
fn pieces(name: &str, end: NameEnd) -> Option<Vec<&str>> {
    let ends: &[char] = match end {
        NameEnd::Blank | NameEnd::Word => &[' ', '\t', '\n'],
        NameEnd::Line | NameEnd::Trimmed => &['\n'],
        NameEnd::Nul => &[],
    };
    let is_read_otherwise = match end {
        NameEnd::Blank => name.contains(['\'', '"', '\\']),
        NameEnd::Word => name.contains(['*', '?', '[', '\\']),
        NameEnd::Trimmed => name.trim() != name,
        NameEnd::Line | NameEnd::Nul => false,
    };
    if name.starts_with('-') || is_read_otherwise {
        return None;
    }
    if !name.contains(ends) {
        return Some(Vec::new());
    }
    let pieces: Vec<&str> = name.split(ends).filter(|piece| !piece.is_empty()).collect();
    (!pieces.iter().any(|piece| piece.starts_with('-'))).then_some(pieces)
}

#[cfg(test)]
mod tests {
    use windlass_protocol::PathNaming;

    use windlass_ports::ExamineContext;

    use super::super::commands::{LineBasis, line_facts};
    use super::*;

    #[test]
    fn names_fall_apart_where_they_end() {
        let check = |name: &str, end: NameEnd, expected: Option<&[&str]>| {
            assert_eq!(pieces(name, end).as_deref(), expected, "{name:?} {end:?}");
        };
        check("src/a.rs", NameEnd::Blank, Some(&[]));
        check("my notes.md", NameEnd::Blank, Some(&["my", "notes.md"]));
        check("my notes.md", NameEnd::Line, Some(&[]));
        check("d /etc/passwd", NameEnd::Blank, Some(&["d", "/etc/passwd"]));
        check("a\n/etc/passwd", NameEnd::Line, Some(&["a", "/etc/passwd"]));
        check("a\n/etc/passwd", NameEnd::Nul, Some(&[]));
        check("a -f", NameEnd::Blank, None);
        check("a -f", NameEnd::Line, Some(&[]));
        check("-f", NameEnd::Nul, None);
        check("it's", NameEnd::Blank, None);
        check("it's", NameEnd::Line, Some(&[]));
        check("it's", NameEnd::Word, Some(&[]));
        check("l*/a", NameEnd::Word, None);
        check("a\\b", NameEnd::Word, None);
        check("l*/a", NameEnd::Blank, Some(&[]));
        check("link ", NameEnd::Trimmed, None);
        check("link ", NameEnd::Line, Some(&[]));
        check("link ", NameEnd::Nul, Some(&[]));
    }

    /// Which paths outside of the directory a line reads; nothing if nobody can say.
    fn read_outside(cwd: &Path, line: &str) -> Option<Vec<PathBuf>> {
        let place = ExamineContext::new(cwd.to_owned(), [cwd.to_owned()].into());
        let facts = line_facts(line, &place, LineBasis::ByWords).commands.unwrap();
        let reads: Vec<_> = facts.plain.as_ref().unwrap().iter().flat_map(|command| &command.reads).collect();
        let is_known = reads.iter().all(|named| named.naming == PathNaming::Exact);
        let paths = reads.iter().filter_map(|named| named.path.as_known()?.resolved.clone());
        is_known.then(|| paths.filter(|path| !path.starts_with(cwd)).collect())
    }

    fn git(cwd: &Path, arguments: &[&str]) {
        let done = std::process::Command::new("git").args(arguments).current_dir(cwd).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn copies_go_through_links_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(cwd.join("from")).unwrap();
        std::fs::create_dir_all(cwd.join("to/from")).unwrap();
        let check = |line: &str, expected: bool| {
            let place = ExamineContext::new(cwd.clone(), [cwd.clone()].into());
            let facts = line_facts(line, &place, LineBasis::ByWords).commands.unwrap();
            let mut writes = facts.plain.as_ref().unwrap().iter().flat_map(|command| &command.writes);
            let leads_out = writes.any(|named| {
                named
                    .path
                    .as_known()
                    .and_then(|path| path.resolved.as_ref())
                    .is_some_and(|path| !path.starts_with(&cwd))
            });
            assert_eq!(leads_out, expected, "{line}");
        };
        check("cp -r from to", false);
        std::os::unix::fs::symlink("/etc/hostname", cwd.join("to/from/link")).unwrap();
        check("cp -r from to", true);
        check("cp -a from/. to", true);
        check("cp -r to from", false);
        check("rm -r to", false);
    }

    /// Whether a letter of several bytes is one letter depends on the locale.
    #[test]
    fn what_fits_letters_beyond_ascii_is_not_known() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        let check = |line: &str, expected: PathNaming| {
            let place = ExamineContext::new(cwd.clone(), [cwd.clone()].into());
            let facts = line_facts(line, &place, LineBasis::ByWords).commands.unwrap();
            assert_eq!(facts.plain.as_ref().unwrap()[0].reads[0].naming, expected, "{line}");
        };
        let lines = ["cat ?link", "cat ??link", "cat [!x]link", "cat [a-z]link"];
        for line in lines {
            check(line, PathNaming::Pattern);
        }
        std::os::unix::fs::symlink("/etc/hostname", cwd.join("élink")).unwrap();
        for line in lines {
            check(line, PathNaming::Unknown);
        }
        check("cat *link", PathNaming::Pattern);
        assert_eq!(
            read_outside(&cwd, "find . -name '?link' | xargs cat"),
            Some(vec!["/etc/hostname".into()])
        );
        assert_eq!(
            read_outside(&cwd, "find . -name '[[:lower:]]*' | xargs cat"),
            Some(vec!["/etc/hostname".into()])
        );
        // A pattern that is none to us may be one to bash.
        check("cat [z-a]*", PathNaming::Unknown);
    }

    #[test]
    fn names_that_are_handed_on_may_lead_outside() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        let check = |line: &str, expected: Option<&[&str]>| {
            let expected = expected.map(|paths| paths.iter().map(PathBuf::from).collect());
            assert_eq!(read_outside(&cwd, line), expected, "{line}");
        };
        let make = |path: &str| {
            let path = cwd.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        git(&cwd, &["init", "-q"]);
        make("src/a.rs");
        make("my notes.md");
        std::os::unix::fs::symlink("src/a.rs", cwd.join("inside")).unwrap();
        git(&cwd, &["add", "."]);
        let lines = [
            "find . | xargs cat",
            "find . | sort | head -5 | xargs -n 1 wc -l",
            "find . -type f | while read -r f; do cat \"$f\"; done",
            "git ls-files | xargs grep x",
            "rg -l x | xargs head",
            "grep -rl x . | xargs cat",
            "wc -l $(git ls-files '*.rs')",
            "for f in $(git ls-files); do head -5 $f; done",
        ];
        for line in lines {
            check(line, Some(&[]));
        }

        std::os::unix::fs::symlink("/etc/hostname", cwd.join("link.txt")).unwrap();
        check("find . | xargs cat", Some(&["/etc/hostname"]));
        check("find . -print0 | xargs -0 cat", Some(&["/etc/hostname"]));
        check("find . | while read -r f; do cat \"$f\"; done", Some(&["/etc/hostname"]));
        check("find . -name '*.txt' | xargs cat", Some(&["/etc/hostname"]));
        check("find . -name '*.rs' | xargs cat", Some(&[]));
        check("find . -name '*.rs' -o -name '*.md' | xargs cat", Some(&["/etc/hostname"]));
        check("find . -exec cat {} +", Some(&["/etc/hostname"]));
        check("find . -type f -exec cat {} +", Some(&[]));
        check("find . -type f -exec cat {} + | xargs cat", None);
        check("git diff --name-only | xargs cat", Some(&["/etc/hostname"]));
        check("diff . src", Some(&["/etc/hostname"]));
        check("cat $(find . | sort)", Some(&["/etc/hostname"]));
        check("for f in $(find .); do cat $f; done", Some(&["/etc/hostname"]));
        check("cat $(find . ; echo /etc/hosts)", None);
        check("cat $(find .)s", None);
        check("find src | xargs cat", Some(&[]));
        check("find . -type f -print0 | xargs -0 cat", Some(&[]));
        check("grep -rl x . | xargs cat", Some(&[]));
        // Only what git tracks is listed by it.
        check("git ls-files | xargs cat", Some(&[]));
        check("git -C src ls-files | xargs cat", None);
        check("git ls-files -o | xargs cat", Some(&["/etc/hostname"]));
        git(&cwd, &["add", "link.txt"]);
        check("git ls-files | xargs cat", Some(&["/etc/hostname"]));
        std::fs::remove_file(cwd.join("link.txt")).unwrap();
        git(&cwd, &["add", "-A"]);

        make("d /etc/hosts");
        check("find . | xargs cat", Some(&["/etc", "/etc/hosts"]));
        check("rg -l x | xargs cat", Some(&["/etc/hosts"]));
        check("find . -print0 | xargs -0 cat", Some(&[]));
        check("find . | xargs -d '\\n' cat", Some(&[]));
        // A directory whose name ends with a blank is another one to a shell.
        check("find . | while read -r f; do cat \"$f\"; done", None);
        check("find . -type f | while read -r f; do cat \"$f\"; done", Some(&[]));
        check("find . | while read -r f; do cat $f; done", Some(&["/etc", "/etc/hosts"]));
        check("git ls-files | xargs cat", Some(&[]));
        git(&cwd, &["add", "."]);
        check("git ls-files | xargs cat", Some(&["/etc/hosts"]));
        make("a -f");
        check("find . | xargs grep x", None);
        check("find src | xargs grep x", Some(&[]));
    }
}
