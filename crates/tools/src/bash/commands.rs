//! What a command line is about: its two readings, with the paths in them looked up on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use windlass_git::{can_hold_others, dot_git_above, is_git_directory, names_program, names_watcher};
use windlass_ports::ExamineContext;
use windlass_protocol::{
    CallFacts, CallKind, CommandEffect, CommandFacts, CommandPath, CommandRunFacts, CommandWord,
    FoundCommand, NamedPath, PathFact, PathNaming, PlainCommand, WrittenPath,
};
use windlass_shell::{
    Analysis, CommandDirectory, LineEffect, LinePath, ListedNames, LooseCommand, NameEnd, PipedNames,
    SearchFilter, StrictCommand, Word, analyse,
};
use windlass_text::paths::clean;

use super::disk_names::{DiskNames, ENTRIES_MAX, NAMES_MAX};
use super::{changes, piped_names, relinked_paths};
use crate::git_directory::{git_directories, is_guide_of_git};
use crate::paths::{path_fact, resolve};

/// Programs that list names below a directory and show no content.
const LISTERS: [&str; 6] = ["du", "fd", "fdfind", "find", "ls", "tree"];

/// What a call would do that runs a line in this place.
pub(crate) fn line_facts(line: &str, place: &ExamineContext, basis: LineBasis) -> CallFacts {
    let Analysis { plain, found, unseen, has_hidden } = analyse(line);
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let names = DiskNames::new();
    let mut look = LineLookup { place, home: home.as_deref(), names, opens: Vec::new() };
    let shows = plain.as_ref().ok().and_then(|commands| look.shown_file(line, commands));
    let mut plain = plain.map(|commands| look.all_plain(line, &commands));
    let mut found: Vec<FoundCommand> = found.into_iter().map(|command| look.found_command(command)).collect();
    relinked_paths::doubt(&mut plain, &mut found);
    if knows_all(&plain) {
        // What one reading only knows to be unknown, the other names.
        for command in &mut found {
            let is_known = |named: &NamedPath| named.naming != PathNaming::Unknown;
            command.reads.retain(is_known);
            command.writes.retain(is_known);
        }
    }
    if basis == LineBasis::ByRules {
        plain.iter_mut().flatten().for_each(|command| command.effect = CommandEffect::Unknown);
    }
    let opens = look.opens;
    let facts = CommandFacts { line: line.into(), plain, found, unseen, has_hidden };
    let is_read_only = only_looks(&facts);
    CallFacts {
        is_shared: is_read_only && !moves(&facts),
        paths: if is_read_only { looked_at(&facts) } else { Vec::new() },
        changes: if is_read_only { Vec::new() } else { changes::changes(&facts) },
        git_directories: git_directories(changed_paths(&facts)),
        target: super::one_line(line),
        commands: Some(Arc::new(facts)),
        run: Some(Arc::new(CommandRunFacts { starts_in: place.cwd.clone(), opens, shows })),
        ..CallFacts::new(if is_read_only { CallKind::Read } else { CallKind::Execute })
    }
}

pub(super) fn named_now(paths: &[WrittenPath]) -> Vec<PathFact> {
    let mut names = DiskNames::new();
    let found = paths.iter().flat_map(|path| names.find(path.clone()));
    found.filter(|(_, naming)| *naming == PathNaming::Exact).map(|(path, _)| path).collect()
}

/// Whether everything that a line reads and writes is named.
pub(super) fn knows_all(plain: &Result<Vec<PlainCommand>, String>) -> bool {
    let is_known = |command: &PlainCommand| command.effect != CommandEffect::Unknown;
    plain.as_ref().is_ok_and(|commands| commands.iter().all(is_known))
}

fn only_looks(facts: &CommandFacts) -> bool {
    let looks = |command: &PlainCommand| {
        command.effect == CommandEffect::Looks && command.writes.is_empty() && !command.has_network
    };
    facts.plain.as_ref().is_ok_and(|commands| !commands.is_empty() && commands.iter().all(looks))
}

/// Whether a line that only looks also goes somewhere else.
fn moves(facts: &CommandFacts) -> bool {
    const MOVERS: [&str; 3] = ["cd", "pushd", "popd"];
    let mut names = facts.plain.iter().flatten().filter_map(|command| command.words.first());
    names.any(|name| MOVERS.iter().any(|mover| name == mover))
}

fn looked_at(facts: &CommandFacts) -> Vec<PathFact> {
    let reads = facts.plain.iter().flatten().flat_map(|command| &command.reads);
    reads
        .filter(|named| named.naming == PathNaming::Exact)
        .filter_map(|named| named.path.as_known().cloned())
        .collect()
}

/// The paths that a line changes, in either reading.
fn changed_paths(facts: &CommandFacts) -> impl Iterator<Item = &CommandPath> {
    let plain = facts.plain.iter().flatten().flat_map(|command| &command.writes);
    let found = facts.found.iter().flat_map(|command| &command.writes);
    plain.chain(found).map(|named| &named.path)
}

/// What is below a directory of what may not be read.
enum HiddenBelow {
    Nothing,
    /// This, and perhaps more.
    Hidden(PathBuf),
    Unknown,
}

/// What a search opens below a directory, as patterns.
fn searched_paths(root: &CommandPath, patterns: &[String]) -> Vec<NamedPath> {
    let pattern = |text: &String| {
        let below = Path::new("**").join(text);
        let path = match root {
            CommandPath::Known(root) => path_fact(root.lexical.join(below), None).into(),
            CommandPath::Partial(word) => {
                let (end, start) =
                    word.pieces().split_last().map_or(("", &[][..]), |(end, start)| (end, start));
                let end = Path::new(&format!("{end}/")).join(below).to_string_lossy().into_owned();
                CommandPath::Partial(CommandWord::Partial([start, &[end]].concat()))
            }
        };
        plain_path((path, PathNaming::Pattern))
    };
    patterns.iter().map(pattern).collect()
}

/// A path that is neither gone through nor redirected to.
fn plain_path((path, naming): (impl Into<CommandPath>, PathNaming)) -> NamedPath {
    NamedPath { path: path.into(), naming, is_recursive: false, is_redirected: false }
}

/// A path that begins with this text, with something in front of each further text that is only known when the line runs.
fn partial(start: &Path, more: impl IntoIterator<Item = String>) -> NamedPath {
    let start = start.to_string_lossy().into_owned();
    let pieces = std::iter::once(start).chain(more).collect();
    plain_path((CommandPath::Partial(CommandWord::Partial(pieces)), PathNaming::Unknown))
}

/// Whether a path that is not there would be that of a file: `src/a.ts`.
fn is_named_like_file(path: &Path) -> bool {
    let is_plain =
        |end: &str| (1..=5).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
    path.extension().and_then(std::ffi::OsStr::to_str).is_some_and(is_plain)
}

/// What fits one of some patterns, if there are any and all are understood.
fn patterns(texts: &[String]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        set.add(Glob::new(text).ok()?);
    }
    set.build().ok().filter(|set| !set.is_empty())
}

struct LineLookup<'a> {
    place: &'a ExamineContext,
    home: Option<&'a Path>,
    names: DiskNames,
    /// What the commands of the strict reading look at.
    opens: Vec<WrittenPath>,
}

impl LineLookup<'_> {
    /// Git that would only look by itself may do more behind a command that makes or changes what it goes by.
    fn all_plain(&mut self, line: &str, commands: &[StrictCommand]) -> Vec<PlainCommand> {
        let mut plain: Vec<PlainCommand> = commands.iter().map(|command| self.plain(line, command)).collect();
        let is_alone =
            plain.iter().all(|command| command.effect == CommandEffect::Looks && command.writes.is_empty());
        if is_alone || commands.iter().all(|command| command.effect != LineEffect::LooksAtStart) {
            return plain;
        }
        let changes_git =
            plain.iter().flat_map(|command| &command.writes).any(|named| self.can_guide_git(named));
        if changes_git || self.can_watch() {
            for (command, seen) in plain.iter_mut().zip(commands) {
                if seen.effect == LineEffect::LooksAtStart {
                    command.effect = CommandEffect::Unknown;
                }
            }
        }
        plain
    }

    /// Whether a changed path may be something that git goes by: a part of a repository, or its settings, here or above.
    fn can_guide_git(&self, named: &NamedPath) -> bool {
        let path = named.path.lexical();
        let is_guide = path.file_name().is_none_or(is_guide_of_git);
        named.naming != PathNaming::Exact
            || self.place.cwd.starts_with(&path)
            || (is_guide && path.parent().is_none_or(|parent| self.place.cwd.starts_with(parent)))
    }

    /// Whether the repository here names a program that watches for changes: it is silenced only where a whole line looks.
    fn can_watch(&self) -> bool {
        dot_git_above(&self.place.cwd).is_some_and(|git| names_watcher(&git))
    }

    /// The one file that a line shows which is one command and nothing else.
    fn shown_file(&mut self, line: &str, commands: &[StrictCommand]) -> Option<PathBuf> {
        let [command] = commands else { return None };
        let is_whole = line.get(command.source.clone()).is_some_and(|source| source.trim() == line.trim());
        let is_bare = command.words.len() == command.whole.len()
            && ![&command.reads, &command.writes].into_iter().flatten().any(|path| path.is_redirected);
        let shown = self.paths(command.shows.as_ref().filter(|_| is_whole && is_bare)?).pop()?;
        shown.path.as_known().filter(|path| !path.is_directory)?.resolved.clone()
    }

    fn plain(&mut self, line: &str, command: &StrictCommand) -> PlainCommand {
        for read in command.reads.iter().filter(|read| read.text.is_known()) {
            let path = self.full_path(read);
            self.opens.extend(path.map(|path| WrittenPath { path, is_pattern: read.is_pattern }));
        }
        let lists = is_lister(command.words.first().map(Word::text).as_ref());
        // Nobody knows what comes behind its words, so only a star covers it.
        let more = command.has_more_from_input.then(CommandWord::unknown);
        PlainCommand {
            text: line.get(command.source.clone()).unwrap_or_default().trim().to_owned(),
            words: command.words.iter().map(word).chain(more).collect(),
            whole: command.whole.iter().map(word).collect(),
            is_exact_only: command.is_exact_only,
            spelled: if self.can_add_option(command) { Some(command.words.len()) } else { command.spelled },
            effect: match command.effect {
                LineEffect::Looks => CommandEffect::Looks,
                LineEffect::LooksAtStart if self.is_start(&command.directory, enters(&command.words)) => {
                    CommandEffect::Looks
                }
                LineEffect::ChangesFiles => CommandEffect::ChangesFiles,
                LineEffect::LooksAtStart | LineEffect::Unknown => CommandEffect::Unknown,
            },
            reads: self.read_paths(&command.reads, lists),
            writes: [self.written_paths(&command.writes), self.written_through(command)].concat(),
            has_network: command.network.is_some(),
        }
    }

    /// Whether a pattern of names stands for one that a program takes for an option.
    fn can_add_option(&mut self, command: &StrictCommand) -> bool {
        let is_open = |word: &Word| word.is_pattern && word.text().start().starts_with(['*', '?', '[']);
        let options = command.words.iter().take_while(|word| word.text() != "--");
        if !options.into_iter().any(is_open) {
            return false;
        }
        let Some(directory) = self.base(&command.directory) else { return true };
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        // Among too many names there may be one.
        entries.enumerate().any(|(count, entry)| {
            count >= ENTRIES_MAX || entry.file_name().as_encoded_bytes().starts_with(b"-")
        })
    }

    /// Whether a place is the start of the line, in the session's repository: others may make git run things.
    fn is_start(&self, place: &CommandDirectory, can_enter: bool) -> bool {
        let is_here = match place {
            CommandDirectory::Start => true,
            CommandDirectory::Within(place) => self.place(&self.place.cwd, place).is_some_and(|path| {
                clean(path.clone()) == self.place.cwd || resolve(&path) == resolve(&self.place.cwd)
            }),
            CommandDirectory::Unknown => false,
        };
        let root = self.place.roots.first().unwrap_or(&self.place.cwd);
        is_here && is_quiet_repository(&self.place.cwd, root, can_enter)
    }

    fn found_command(&mut self, command: LooseCommand) -> FoundCommand {
        let lists = is_lister(command.words.first());
        let mut reads = self.read_paths(&command.reads, lists);
        reads.extend(self.mentioned_paths(&command.mentions));
        FoundCommand {
            reads,
            writes: self.written_paths(&command.writes),
            removes: self.named_paths(&command.removes),
            words: command.words,
        }
    }

    /// What is read. Whoever reads everything below a directory reads what may not be read only if it is there.
    fn read_paths(&mut self, list: &[LinePath], is_names_only: bool) -> Vec<NamedPath> {
        let mut named = Vec::new();
        for listed in list {
            let mut paths = self.paths(listed);
            for path in paths.iter_mut().filter(|path| path.is_recursive) {
                let below = if is_names_only {
                    HiddenBelow::Nothing
                } else {
                    self.hidden_below(&path.path, listed.only.as_ref())
                };
                path.is_recursive = !matches!(below, HiddenBelow::Nothing);
                // Where nobody can look, what it looks for is still known.
                if let (HiddenBelow::Unknown, Some(only)) = (below, &listed.only)
                    && !only.patterns.is_empty()
                {
                    path.is_recursive = false;
                    named.extend(searched_paths(&path.path, &only.patterns));
                }
            }
            named.extend(paths);
        }
        named.extend(self.piped_paths(list));
        named
    }

    /// What is changed, and what may not be read in a directory that is changed with all that is in it.
    fn written_paths(&mut self, list: &[LinePath]) -> Vec<NamedPath> {
        let mut named = self.named_paths(list);
        let mut inside = Vec::new();
        for path in named.iter().filter(|path| path.is_recursive && path.path.is_directory()) {
            if let HiddenBelow::Hidden(hidden) = self.hidden_below(&path.path, None) {
                inside.push(plain_path(self.names.exact(hidden)));
            }
        }
        named.extend(inside);
        named.extend(self.piped_paths(list));
        named
    }

    /// What is changed through links that are already there where a directory is copied to.
    fn written_through(&mut self, command: &StrictCommand) -> Vec<NamedPath> {
        if command.words.first().is_none_or(|name| name.text() != "cp") {
            return Vec::new();
        }
        let all = PipedNames { listed: ListedNames::All, end: NameEnd::Nul, is_led: true, pattern: None };
        let targets = command.writes.iter().filter(|path| path.is_recursive);
        let handed = |path: &LinePath| LinePath { handed: Some(all.clone()), ..path.clone() };
        self.piped_paths(&targets.map(handed).collect::<Vec<_>>())
    }

    /// What is opened besides by its name if another program hands the names on.
    fn piped_paths(&mut self, list: &[LinePath]) -> Vec<NamedPath> {
        let mut opened = Vec::new();
        for path in list {
            let (Some(handed), Some(base)) = (&path.handed, self.base(&path.from)) else { continue };
            for NamedPath { path: root, .. } in self.paths(path) {
                let Some(root) = root.as_known().and_then(|root| root.resolved.as_ref()) else { continue };
                let list = piped_names::NameList { base: &base, text: path.text.start(), root, handed };
                opened.extend(self.odd_paths(&list));
            }
        }
        opened
    }

    fn odd_paths(&mut self, list: &piped_names::NameList<'_>) -> Vec<NamedPath> {
        let Some(names) = list.odd_names().filter(|names| names.len() <= NAMES_MAX) else {
            return vec![partial(&list.root.join(""), [String::new()])];
        };
        names.into_iter().map(|name| plain_path(self.names.exact(name))).collect()
    }

    /// What texts in code may name. One of several words hardly ever does, and counts only if it may not be read.
    fn mentioned_paths(&mut self, list: &[LinePath]) -> Vec<NamedPath> {
        let mut mentioned = Vec::new();
        for path in list {
            let is_word = !path.text.pieces().iter().any(|piece| piece.contains(char::is_whitespace));
            if !is_word && self.place.hidden.is_empty() {
                continue;
            }
            for mut named in self.paths(path) {
                named.naming = PathNaming::Mentioned;
                if is_word || self.is_hidden(&named.path) {
                    mentioned.push(named);
                }
            }
        }
        mentioned
    }

    fn is_hidden(&self, path: &CommandPath) -> bool {
        let resolved = path.as_known().and_then(|path| path.resolved.as_deref());
        [Some(&*path.lexical()), resolved].into_iter().flatten().any(|name| self.place.hidden.hides(name))
    }

    fn named_paths(&mut self, list: &[LinePath]) -> Vec<NamedPath> {
        list.iter().flat_map(|path| self.paths(path)).collect()
    }

    /// What below a directory may not be read; unknown if there is too much or it cannot be looked into.
    fn hidden_below(&mut self, path: &CommandPath, only: Option<&SearchFilter>) -> HiddenBelow {
        if self.place.hidden.is_empty() {
            return HiddenBelow::Nothing;
        }
        let root = path.as_known().and_then(|path| path.resolved.as_ref());
        let Some(root) = root else { return HiddenBelow::Unknown };
        // What is not there, in a place that is, holds nothing; nor does a file.
        let is_missing = root.symlink_metadata().is_err();
        let is_known = self.place.cwd.is_dir() && root.parent().is_some_and(Path::is_dir);
        if is_missing && (is_known || is_named_like_file(root)) {
            return HiddenBelow::Nothing;
        }
        let meant = only.and_then(|only| patterns(&only.patterns));
        for entry in piped_names::walker(root, only.is_some_and(|only| only.is_only_visible)).build() {
            let (Ok(entry), Some(left)) = (entry, self.names.entries.checked_sub(1)) else {
                return HiddenBelow::Unknown;
            };
            self.names.entries = left;
            let is_file = entry.file_type().is_some_and(|kind| !kind.is_dir());
            let is_meant = !is_file
                || !entry.file_name().is_ascii()
                || meant.as_ref().is_none_or(|meant| meant.is_match(entry.file_name()));
            if is_meant && self.place.hidden.hides(entry.path()) {
                return HiddenBelow::Hidden(entry.into_path());
            }
        }
        HiddenBelow::Nothing
    }

    /// What a path that a command names is, or may be.
    fn paths(&mut self, named: &LinePath) -> Vec<NamedPath> {
        let more = named.text.pieces().iter().skip(1).cloned();
        let paths = match self.full_path(named) {
            Some(path) if named.text.is_known() => {
                let found = self.names.find(WrittenPath { path, is_pattern: named.is_pattern });
                found.into_iter().map(plain_path).collect()
            }
            Some(start) => vec![partial(&start, more)],
            None => {
                let below = format!("/{}", named.text.start());
                vec![partial(&self.place.cwd.join(""), std::iter::once(below).chain(more))]
            }
        };
        let LinePath { is_recursive, is_redirected, .. } = *named;
        paths.into_iter().map(|path| NamedPath { is_recursive, is_redirected, ..path }).collect()
    }

    /// The path from the root on, as far as it is known. One in a place nobody knows may still be absolute.
    fn full_path(&self, named: &LinePath) -> Option<PathBuf> {
        let text = named.text.start();
        // The name of somebody's home goes on.
        if text == "~" && !named.text.is_known() {
            return None;
        }
        let is_absolute = text.starts_with('/') && named.text.is_known();
        let base = if is_absolute { Some(PathBuf::from("/")) } else { self.base(&named.from) };
        self.place(&base?, text)
    }

    fn base(&self, from: &CommandDirectory) -> Option<PathBuf> {
        match from {
            CommandDirectory::Start => Some(self.place.cwd.clone()),
            CommandDirectory::Within(place) => self.place(&self.place.cwd, place),
            CommandDirectory::Unknown => None,
        }
    }

    fn place(&self, base: &Path, text: &str) -> Option<PathBuf> {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Some(self.home?.join(rest.trim_start_matches('/')))
            }
            // The home of somebody, or a directory the shell remembers; and what names another machine elsewhere.
            Some(_) => None,
            None if text.starts_with("\\\\") => None,
            None => Some(base.join(text)),
        }
    }
}

/// Whether git is told to look into repositories inside of another one, whatever its settings say.
fn enters(words: &[Word]) -> bool {
    const OPTIONS: [&str; 5] =
        ["--broken", "--dirty", "--ignore-submodules", "--recurse-submodules", "--submodule"];
    words.iter().any(|word| OPTIONS.iter().any(|option| word.text().start().starts_with(option)))
}

/// Whether git runs nothing of a repository's choice: there is none, or the session's names no programs.
fn is_quiet_repository(directory: &Path, root: &Path, can_enter: bool) -> bool {
    for above in directory.ancestors() {
        let git = above.join(".git");
        if git.symlink_metadata().is_ok() {
            let is_quiet = !names_program(&git);
            return root.starts_with(above) && is_quiet && !(can_enter && can_hold_others(&git));
        }
        // A repository without a work tree, as it lies in the directory itself: it can come with a clone.
        if is_git_directory(above) {
            return false;
        }
    }
    true
}

fn is_lister(name: Option<&CommandWord>) -> bool {
    name.is_some_and(|name| LISTERS.iter().any(|lister| name == lister))
}

/// A word as rules compare it. A pattern of names stands for names nobody wrote, so only a star covers it.
fn word(word: &Word) -> CommandWord {
    let text = word.text();
    if !word.is_pattern {
        return text;
    }
    let pieces = text.pieces().iter().flat_map(|piece| piece.split(['*', '?', '[', ']']));
    CommandWord::Partial(pieces.map(str::to_owned).collect())
}

/// Whether the words of a line decide about it, or only rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineBasis {
    ByWords,
    /// Something beside the words decides what happens.
    ByRules,
}
