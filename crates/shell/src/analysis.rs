//! What is known about a command line, and how its two readings are put together.

use std::ops::Range;

use windlass_protocol::CommandWord;

use crate::expansion::is_unusual_text;
use crate::names::has_name;
use crate::{all_commands, strict, visible};

/// Longer lines are never plain.
pub(crate) const BYTES_MAX: usize = 10_000;
/// Deeper nesting is never plain.
pub(crate) const DEPTH_MAX: usize = 64;

/// Stands in the texts of words for what is only known at run time, within this crate. No command line can hold it.
pub(crate) const UNKNOWN: &str = "\0";

/// Two readings of a command line that fail in opposite directions: grants go by `plain`, refusals by `found`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// All that bash would run, in the order of the text, inner ones first; or why that is not known, for people.
    pub plain: Result<Vec<StrictCommand>, String>,
    /// Every command that can be found anywhere in the text, whether it would run or not.
    pub found: Vec<LooseCommand>,
    /// Why something may run that is not among the commands found.
    pub unseen: Option<String>,
    /// The text holds something that a person cannot see. Nothing should be remembered for it.
    pub has_hidden: bool,
}

/// One simple command that bash would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrictCommand {
    /// Where in the line it stands, with its redirections.
    pub source: Range<usize>,
    /// The arguments without harmless assignments and wrappers; none for redirections of a group of commands.
    pub words: Vec<Word>,
    /// The arguments with the wrappers.
    pub whole: Vec<Word>,
    /// It gets further arguments from its input: a bare `xargs` is among the wrappers.
    pub has_more_from_input: bool,
    /// No rule with a prefix may allow it, since what it runs is in its arguments.
    pub is_exact_only: bool,
    /// A rule with a star may allow it only if so many of its words stand in the rule itself: they name another program that is run.
    pub spelled: Option<usize>,
    /// What the program does. What redirections do is in [`StrictCommand::writes`] and [`StrictCommand::reads`] only.
    pub effect: LineEffect,
    /// What the command is known to read: all of it if the effect is known, else what redirections name.
    pub reads: Vec<LinePath>,
    /// What the command is known to write: all of it if the effect is known, else what redirections name.
    pub writes: Vec<LinePath>,
    /// The one file whose content it shows, whole or in part.
    pub shows: Option<LinePath>,
    /// Where it runs.
    pub directory: CommandDirectory,
    /// It opens a connection by a redirection; the address.
    pub network: Option<String>,
}

/// What a program does to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEffect {
    /// It only looks, and everything it looks at is named.
    Looks,
    /// It only looks, at what is named, where the line starts: another directory may configure it to do more.
    LooksAtStart,
    /// It makes, changes, moves or removes files, and nothing else; all of them are named.
    ChangesFiles,
    /// Anything.
    #[default]
    Unknown,
}

/// One argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// See [`Word::text`]; [`UNKNOWN`] stands for what is only known at run time.
    pub(crate) text: String,
    /// Bash replaces it by the names that fit: `*`, `?` and `[…]` outside quotes.
    pub is_pattern: bool,
    /// It may become several words, or none.
    pub is_split: bool,
    /// Its unknown part comes from the line itself, in ways that are not followed: printed text, a variable.
    pub is_arbitrary: bool,
    /// It begins with the home directory.
    pub is_home: bool,
    /// The paths that its unknown part may make it: `$f` in `for f in a b; do cat "$f"; done`.
    pub choices: Vec<LinePath>,
}

impl Word {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The text as the program gets it. A home directory is written `~`.
    pub fn text(&self) -> CommandWord {
        CommandWord::from_marked(&self.text, UNKNOWN)
    }

    /// Whether a part of it is only known at run time.
    pub fn is_unknown(&self) -> bool {
        self.text.contains(UNKNOWN)
    }
}

/// A path that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePath {
    /// The path without quotes. `~` in front is the home directory; a file of that name is written `./~`.
    pub text: CommandWord,
    /// What a relative path is relative to.
    pub from: CommandDirectory,
    /// It stands for all names that fit.
    pub is_pattern: bool,
    /// Everything below is meant as well.
    pub is_recursive: bool,
    /// A redirection names it, not the program.
    pub is_redirected: bool,
    /// Of what is below, only these files are meant.
    pub only: Option<SearchFilter>,
    /// Another program lists what is below, and this one opens what it is told.
    pub handed: Option<PipedNames>,
}

/// Which files below a directory a search opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Those that are neither hidden nor ignored.
    pub is_only_visible: bool,
    /// Those whose names fit one of these patterns; all if there is none.
    pub patterns: Vec<String>,
}

impl SearchFilter {
    /// What a search leaves out by its options, if that is known to be anything.
    pub(crate) fn of_search<'a>(
        program: &str,
        options: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<Self> {
        let mut only = Self { is_only_visible: program == "rg", patterns: Vec::new() };
        for (name, value) in options {
            let is_whole = has_name("u uu uuu unrestricted . hidden follow L", name);
            only.is_only_visible &= !is_whole && !name.starts_with("no-ignore");
            if name == "include" && program != "rg" {
                only.patterns.push(value.to_owned());
            }
        }
        // If one of them may fit anything, all of them together may.
        if only.patterns.iter().any(|pattern| is_unusual_text(pattern)) {
            only.patterns.clear();
        }
        (only.is_only_visible || !only.patterns.is_empty()).then_some(only)
    }
}

/// How names get from the program that lists them to the one that opens them: as text that may fall apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipedNames {
    /// Which names are listed.
    pub listed: ListedNames,
    /// Where a name ends for the one that opens it.
    pub end: NameEnd,
    /// Every name begins with that of the path, so that none begins with a dash unless the path does.
    pub is_led: bool,
    /// A pattern that the last part of every name fits.
    pub pattern: Option<String>,
}

/// Which names a program lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedNames {
    /// All of them.
    All,
    /// Those of regular files.
    Files,
    /// Those of regular files, without the ones that are hidden or that `rg` is told to ignore.
    NotIgnored,
    /// Those that git tracks.
    Tracked,
}

/// Where a name ends in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameEnd {
    /// At a blank, unless it is quoted.
    Blank,
    /// At a blank; and where it is a pattern, other names take its place.
    Word,
    /// At the end of a line.
    Line,
    /// There too, and the blanks around it do not belong to it.
    Trimmed,
    /// At a NUL, which is in no name.
    Nul,
}

impl LinePath {
    /// Its text as that of a word.
    pub(crate) fn marked(&self) -> String {
        self.text.marked(UNKNOWN).into_owned()
    }
}

/// A directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommandDirectory {
    /// Where the line starts.
    #[default]
    Start,
    /// Relative to where the line starts, or absolute, or in the home directory if it begins with `~`.
    Within(String),
    /// Only known at run time.
    Unknown,
}

/// A command that was found somewhere in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LooseCommand {
    /// Its arguments.
    pub words: Vec<CommandWord>,
    /// What it may read. The same path is there once for each directory it may be relative to.
    pub reads: Vec<LinePath>,
    /// What it may write.
    pub writes: Vec<LinePath>,
    /// What it may remove; also the directory itself where the name of something in it may turn out to be empty.
    pub removes: Vec<LinePath>,
    /// Paths that its code may name, and its words if it is not known what it does with them.
    pub mentions: Vec<LinePath>,
}

/// Reads a line as `bash --noprofile --norc -c` would, in both ways: pure, in linear time, without a panic.
///
/// ```
/// # use windlass_shell::{analyse, LineEffect};
/// let commands = analyse("cargo check 2>&1 | head -5").plain.unwrap();
/// assert_eq!(commands[0].words[0].text(), "cargo");
/// assert_eq!(commands[0].effect, LineEffect::Unknown);
/// assert_eq!(commands[1].effect, LineEffect::Looks);
/// assert!(analyse("echo `date`").plain.is_err());
/// assert_eq!(analyse("sudo sh -c 'rm -rf x'").found.last().unwrap().words, ["rm", "-rf", "x"]);
/// ```
pub fn analyse(line: &str) -> Analysis {
    let has_hidden = visible::hides_something(line);
    let mut found = all_commands::walk(line);
    let mut plain = strict::read(line);
    if let Ok(commands) = &plain
        && let Err(difference) = found.agrees_with(commands)
    {
        found.unseen.get_or_insert(difference);
        plain = Err("two analyses of it differ".to_owned());
    }
    Analysis { plain, found: found.commands, unseen: found.unseen, has_hidden }
}
