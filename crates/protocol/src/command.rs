//! What is known about a command line and about an address before anything runs.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::PathFact;

/// A word of a command line, as far as the line tells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandWord {
    /// Its whole text.
    Known(String),
    /// The known texts around parts that are only known when the line runs; each part may be empty or several words.
    Partial(Vec<String>),
}

impl CommandWord {
    /// A word of which nothing is known.
    pub fn unknown() -> Self {
        Self::Partial(vec![String::new(), String::new()])
    }

    /// Reads a text in which a mark stands for each unknown part.
    pub fn from_marked(text: &str, mark: &str) -> Self {
        if text.contains(mark) {
            Self::Partial(text.split(mark).map(str::to_owned).collect())
        } else {
            Self::Known(text.to_owned())
        }
    }

    /// Its text, with a mark for each unknown part.
    pub fn marked(&self, mark: &str) -> Cow<'_, str> {
        match self {
            Self::Known(text) => text.into(),
            Self::Partial(pieces) => pieces.join(mark).into(),
        }
    }

    /// Whether the line tells all of it.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// Its text, if the line tells all of it.
    pub fn as_known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::Partial(_) => None,
        }
    }

    /// What is known of it: an unknown part stands between each two pieces.
    pub fn pieces(&self) -> &[String] {
        match self {
            Self::Known(text) => std::slice::from_ref(text),
            Self::Partial(pieces) => pieces,
        }
    }

    /// Its known text up to the first unknown part.
    pub fn start(&self) -> &str {
        self.pieces().first().map_or("", String::as_str)
    }

    /// Its known text behind the last unknown part.
    pub fn end(&self) -> &str {
        self.pieces().last().map_or("", String::as_str)
    }

    /// The last name in it as a path, if the line tells that.
    pub fn base_name(&self) -> Option<&str> {
        self.end().rsplit_once('/').map(|(_, name)| name).or_else(|| self.as_known())
    }

    /// Its characters, `None` for an unknown part.
    pub fn letters(&self) -> impl Iterator<Item = Option<char>> {
        self.pieces().iter().enumerate().flat_map(|(at, piece)| {
            let before = (at > 0).then_some(None);
            before.into_iter().chain(piece.chars().map(Some))
        })
    }
}

/// As people read it: `$…` stands for what is not known.
impl std::fmt::Display for CommandWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.marked("$…"))
    }
}

impl<T: Into<String>> From<T> for CommandWord {
    fn from(text: T) -> Self {
        Self::Known(text.into())
    }
}

impl PartialEq<str> for CommandWord {
    fn eq(&self, text: &str) -> bool {
        self.as_known() == Some(text)
    }
}

impl PartialEq<&str> for CommandWord {
    fn eq(&self, text: &&str) -> bool {
        self.as_known() == Some(*text)
    }
}

/// A command line, read twice: strictly for what allows it, generously for what forbids it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFacts {
    /// The line, exactly as it would run.
    pub line: Arc<str>,
    /// Every command the line would run, or why that cannot be said with certainty.
    pub plain: Result<Vec<PlainCommand>, String>,
    /// Every command that can be found in the line, wherever it hides.
    pub found: Vec<FoundCommand>,
    /// Why something may run that was not found.
    pub unseen: Option<String>,
    /// The line holds something a person cannot see.
    pub has_hidden: bool,
}

/// One command of a line in the strict reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainCommand {
    /// The command as it is written in the line.
    pub text: String,
    /// Its words without the wrappers in front of it.
    pub words: Vec<CommandWord>,
    /// Its words with the wrappers.
    pub whole: Vec<CommandWord>,
    /// Only a rule for these very words may allow it: it runs other commands that a pattern would let through unseen.
    pub is_exact_only: bool,
    /// A rule with a star must spell so many of its words: they name another program that is run.
    pub spelled: Option<usize>,
    /// What it does.
    pub effect: CommandEffect,
    /// What it looks at.
    pub reads: Vec<NamedPath>,
    /// What it changes.
    pub writes: Vec<NamedPath>,
    /// Whether its redirections use the network.
    pub has_network: bool,
}

/// What a command does, as far as its words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEffect {
    /// It only looks, at the paths it reads.
    Looks,
    /// It changes the paths it writes, and nothing else.
    ChangesFiles,
    /// Anything.
    Unknown,
}

/// One command of a line in the generous reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCommand {
    /// Its words.
    pub words: Vec<CommandWord>,
    /// What it may look at.
    pub reads: Vec<NamedPath>,
    /// What it may change.
    pub writes: Vec<NamedPath>,
    /// What it removes.
    pub removes: Vec<NamedPath>,
}

/// A path that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// Where it leads.
    pub path: CommandPath,
    /// How it was named.
    pub naming: PathNaming,
    /// Whether everything below it is meant too.
    pub is_recursive: bool,
    /// Whether a redirection names it.
    pub is_redirected: bool,
}

/// Where a path leads that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandPath {
    /// To a file or directory that was looked up.
    Known(PathFact),
    /// To an absolute path of which parts are only known when the line runs.
    Partial(CommandWord),
}

impl CommandPath {
    /// What was looked up, if all of the path is known.
    pub fn as_known(&self) -> Option<&PathFact> {
        match self {
            Self::Known(path) => Some(path),
            Self::Partial(_) => None,
        }
    }

    /// The path by its name, as people read it: `$…` stands for what is not known.
    pub fn lexical(&self) -> Cow<'_, Path> {
        match self {
            Self::Known(path) => Cow::Borrowed(&path.lexical),
            Self::Partial(word) => Cow::Owned(word.to_string().into()),
        }
    }

    /// Whether it is a directory that is there.
    pub fn is_directory(&self) -> bool {
        self.as_known().is_some_and(|path| path.is_directory)
    }
}

impl From<PathFact> for CommandPath {
    fn from(path: PathFact) -> Self {
        Self::Known(path)
    }
}

/// How a command names a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathNaming {
    /// By its name.
    Exact,
    /// By a pattern of names; what it stands for at the moment is listed beside it.
    Pattern,
    /// By something that is only known when the line runs.
    Unknown,
    /// Perhaps: by a text in code whose use is unknown.
    Mentioned,
}

/// An address, parsed once: what is decided on is what is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlFact {
    /// The address as it is fetched.
    pub text: String,
    /// Whether the connection is encrypted.
    pub is_secure: bool,
    /// Where it leads.
    pub host: HostFact,
    /// The port.
    pub port: u16,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFact {
    /// By name: lower case, in the ASCII form, without a dot at the end.
    Name(String),
    /// By number.
    V4(Ipv4Addr),
    /// By number.
    V6(Ipv6Addr),
}

impl std::fmt::Display for HostFact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_is_known_of_it() {
        let check = |text: &str, start: &str, end: &str, base: Option<&str>| {
            let word = CommandWord::from_marked(text, "$");
            assert_eq!((word.start(), word.end(), word.base_name()), (start, end, base), "{text}");
            assert_eq!(word.marked("$"), text);
            let letters: String = word.letters().map(|letter| letter.unwrap_or('$')).collect();
            assert_eq!(letters, text);
            assert_eq!(word == text, !text.contains('$'), "{text}");
        };
        check("", "", "", Some(""));
        check("rm", "rm", "rm", Some("rm"));
        check("/bin/rm", "/bin/rm", "/bin/rm", Some("rm"));
        check("$", "", "", None);
        check("a$b", "a", "b", None);
        check("a$/b", "a", "/b", Some("b"));
        check("a/b$$", "a/b", "", None);
    }
}
