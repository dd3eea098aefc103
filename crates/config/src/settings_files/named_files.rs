//! The files of a project that a hook names: agreeing to a program means agreeing to its content. A line is not
//! understood but taken apart in every way a name may be written; a piece too many costs one look at a missing file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::locations::{FOLDERS, SettingsPlaces};
use super::parts::hash;
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
pub(super) fn named_files(value: &Value, places: &SettingsPlaces) -> BTreeMap<String, String> {
    let mut search = Search::new(places);
    let mut pieces = PathCandidates::default();
    for text in texts(value) {
        let PathCandidates { mut paths, mut run } = PathCandidates::of(text);
        pieces.paths.append(&mut paths);
        pieces.run.append(&mut run);
    }
    let mut bases = vec![search.start.clone(), search.top.clone()];
    bases.extend(places.home.clone());
    search.look(&pieces.run, &bases);
    let run = std::mem::take(&mut search.directories);
    search.look(&pieces.paths, &bases);
    let directories: Vec<PathBuf> = search.directories.iter().take(DIRECTORIES_MAX).cloned().collect();
    search.look(&pieces.paths, &directories);
    search.walk(&run);
    search.marks()
}

#[derive(Default)]
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
        Self { start, top, ..Self::default() }
    }

    fn look(&mut self, pieces: &BTreeSet<String>, bases: &[PathBuf]) {
        for path in pieces.iter().flat_map(|piece| spellings(piece)) {
            for base in bases {
                self.add(&base.join(&path));
            }
        }
    }

    fn add(&mut self, path: &Path) {
        let Ok(metadata) = path.symlink_metadata() else { return };
        let Ok(real) = path.canonicalize() else { return };
        // The project as a whole is no program.
        if self.start.starts_with(&real) {
            return;
        }
        if !real.starts_with(&self.top) {
            let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
            if let (true, Some(directory), Some(name)) = (metadata.is_symlink(), directory, path.file_name())
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

    fn walk(&mut self, directories: &BTreeSet<PathBuf>) {
        let mut left = ENTRIES_MAX;
        let mut waiting: Vec<PathBuf> = directories.iter().rev().cloned().collect();
        let mut seen = BTreeSet::new();
        while let Some(directory) = waiting.pop() {
            // What git notes there changes with every command.
            if directory.ends_with(".git") || !seen.insert(directory.clone()) {
                continue;
            }
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            let entries: Vec<PathBuf> = entries.map(|entry| entry.path()).take(left + 1).collect();
            if entries.len() > left {
                let mark = metadata_mark(&directory);
                self.others.insert(directory, mark);
                continue;
            }
            left -= entries.len();
            for entry in entries.into_iter().filter(|entry| !is_settings(entry)) {
                let Ok(metadata) = entry.symlink_metadata() else { continue };
                if metadata.is_dir() {
                    waiting.push(entry);
                } else if metadata.is_symlink() {
                    let target = std::fs::read_link(&entry).unwrap_or_default();
                    self.others.insert(entry, format!("link {}", target.display()));
                } else if metadata.is_file() {
                    self.inside.insert(entry);
                }
            }
            waiting.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    fn marks(&self) -> BTreeMap<String, String> {
        let mut marks = BTreeMap::new();
        let (mut bytes_left, mut further) = (BYTES_MAX, String::new());
        let mut add = |position: usize, path: &Path, mark: String| {
            let name = path.strip_prefix(&self.top).unwrap_or(path).to_string_lossy().into_owned();
            if position < FILES_MAX {
                marks.insert(name, mark);
            } else {
                let _ = writeln!(further, "{name} {mark}");
            }
        };
        let files = self.files.iter().chain(self.inside.difference(&self.files));
        for (position, file) in files.enumerate() {
            let fits =
                position < FILES_MAX && file.metadata().is_ok_and(|metadata| metadata.len() <= bytes_left);
            let content = if fits { read::bytes(file, bytes_left).ok().flatten() } else { None };
            bytes_left -= content.as_ref().map_or(0, |content| content.len() as u64);
            let mark = content.map_or_else(|| metadata_mark(file), |content| hash(&content));
            add(position, file, mark);
        }
        for (position, (path, known)) in self.others.iter().enumerate() {
            add(position, path, known.clone());
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
fn metadata_mark(path: &Path) -> String {
    path.metadata()
        .map_or_else(|_| String::new(), |metadata| format!("{} {:?}", metadata.len(), metadata.modified()))
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

/// Texts in quotes may be command lines in turn.
const DEPTH_MAX: usize = 3;

/// As many pieces of one text are looked at.
const PIECES_MAX: usize = 4_000;

/// What ends a word outside of quotes.
const ENDS: &str = ";&|()<>`";

/// What stands for text that only the shell knows.
const UNKNOWN: &str = "$`{}()*?[]";

/// Precede a program that is run, or a directory that says what is run; other arguments may change every day.
const RUNS_NEXT: &str =
    "sh bash dash zsh ksh python python3 node ruby perl php source . -C --directory --prefix";

#[derive(Debug, Default)]
struct PathCandidates {
    /// Every piece that may be a path.
    paths: BTreeSet<String>,
    /// Those of them that, if they are directories, hold what is run.
    run: BTreeSet<String>,
}

impl PathCandidates {
    fn of(text: &str) -> Self {
        let mut pieces = Self { paths: BTreeSet::from([text.to_owned()]), run: BTreeSet::new() };
        pieces.take_apart(text, DEPTH_MAX);
        pieces.paths.remove("");
        pieces
    }

    fn take_apart(&mut self, text: &str, depth: usize) {
        let mut runs_next = false;
        for word in words(text) {
            if self.paths.len() >= PIECES_MAX {
                return;
            }
            let mut found = BTreeSet::from([word.meant.clone()]);
            cut(&word.written, |c| !c.is_alphanumeric() && !"_./-".contains(c), &mut found);
            cut(&word.meant, |_| false, &mut found);
            cut(&word.meant, |c| "=:,@".contains(c), &mut found);
            if runs_next {
                self.run.extend(found.iter().cloned());
            }
            self.paths.append(&mut found);
            runs_next = RUNS_NEXT
                .split(' ')
                .any(|name| word.meant == name || word.meant.ends_with(&format!("/{name}")));
            if depth > 0 && word.meant != text && word.meant.contains([' ', '\t', '\n', '"', '\'', '\\']) {
                self.take_apart(&word.meant, depth - 1);
            }
        }
    }
}

/// The text between unknowns and other ends of a piece; where an unknown begins inside a name, its directory.
fn cut(text: &str, ends: impl Fn(char) -> bool, found: &mut BTreeSet<String>) {
    let mut rest = text;
    loop {
        let end = rest.find(|c| UNKNOWN.contains(c) || ends(c)).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        found.insert(piece.to_owned());
        let mut behind = behind.chars();
        let Some(stop) = behind.next() else { return };
        if let (true, Some((directory, _))) = (UNKNOWN.contains(stop), piece.rsplit_once('/')) {
            found.insert(directory.to_owned());
        }
        rest = behind.as_str();
        if stop == '$' {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        }
    }
}

#[derive(Default)]
struct Word {
    /// With its quotes and backslashes.
    written: String,
    /// Without them.
    meant: String,
}

/// The words of a line, without the files that output goes to: a log that grows is no other program.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_target) = (Word::default(), None, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let ends = quote.is_none() && (c.is_whitespace() || ENDS.contains(c));
        if ends {
            let ended = std::mem::take(&mut word);
            let is_word = !ended.written.is_empty();
            if is_word && !is_target {
                words.push(ended);
            }
            is_target = if c.is_whitespace() { is_target && !is_word } else { c == '>' };
            continue;
        }
        word.written.push(c);
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '\\') => {
                if let Some(next) = chars.next() {
                    word.written.push(next);
                    word.meant.push(next);
                }
            }
            _ => word.meant.push(c),
        }
    }
    if !word.written.is_empty() && !is_target {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_it_is_written() {
        let check = |text: &str, name: &str| {
            let found = PathCandidates::of(text).paths;
            assert!(found.contains(name), "{text}: {name} is not in {found:?}");
        };
        check("tools/a b.sh", "tools/a b.sh");
        check("sh \"tools/a b.sh\" x", "tools/a b.sh");
        check("sh tools/'a b'.sh", "tools/a b.sh");
        check(r"sh tools/a\ b.sh", "tools/a b.sh");
        check("\"$PWD/tools/a b.sh\"", "/tools/a b.sh");
        check("\"$(git rev-parse --show-toplevel)/tools/a b.sh\"", "/tools/a b.sh");
        check("bash -c 'exec \"tools/a b.sh\"'", "tools/a b.sh");
        check("$PWD/tools/h.sh", "/tools/h.sh");
        check("`pwd`/tools/h.sh", "/tools/h.sh");
        check("${DIR:-.}/tools/h.sh", "/tools/h.sh");
        check("X=tools;sh $X/h.sh", "tools");
        check("sh tools/*.sh", "tools");
        check("sh tools/h$X.sh", "tools");
        check("sh --file=tools/h.sh", "tools/h.sh");
        check(r#"python3 -c "exec(open(\"tools/h.py\").read())""#, "tools/h.py");
        check("sh 'tools/a)b.sh'", "tools/a)b.sh");
        check("sh <tools/h.sh 2>&1", "tools/h.sh");
    }

    #[test]
    fn what_a_program_works_on_is_not_what_is_run() {
        let check = |text: &str, name: &str, expected: bool| {
            assert_eq!(PathCandidates::of(text).run.contains(name), expected, "{text}: {name}");
        };
        check("npm test", "test", false);
        check("npx eslint src", "src", false);
        check("npx prettier --write 'src/**/*.ts'", "src", false);
        check("sh tools/*.sh", "tools", true);
        check("/usr/bin/python3 tools/$NAME", "tools", true);
        check("make -C tools", "tools", true);
        check("bash -c 'make -C tools'", "tools", true);
    }

    #[test]
    fn where_output_goes_is_no_program() {
        let check = |text: &str, expected: bool| {
            assert_eq!(PathCandidates::of(text).paths.contains("log"), expected, "{text}");
        };
        check("date >> log", false);
        check("date >log; ls", false);
        check("date > \"log\"", false);
        check("date > log; sh log", true);
        check("date 2>&1 log", true);
        check("sh < log", true);
    }
}
