//! What is known about a command line and about an address before anything runs.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::PathFact;

/// Stands in a word for text, perhaps several words, that is only known when the line runs. No line can hold it.
pub const UNKNOWN_TEXT: char = '\0';

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
    pub hidden: bool,
}

/// One command of a line in the strict reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainCommand {
    /// The command as it is written in the line.
    pub text: String,
    /// Its words without the wrappers in front of it; see [`UNKNOWN_TEXT`].
    pub words: Vec<String>,
    /// Its words with the wrappers.
    pub whole: Vec<String>,
    /// Only a rule for these very words may allow it: it runs other commands that a pattern would let through unseen.
    pub exact_only: bool,
    /// A rule with a star must spell so many of its words: they name another program that is run.
    pub spelled: Option<usize>,
    /// What it does.
    pub effect: CommandEffect,
    /// What it looks at.
    pub reads: Vec<NamedPath>,
    /// What it changes.
    pub writes: Vec<NamedPath>,
    /// Whether its redirections use the network.
    pub network: bool,
}

/// What a command does, as far as its words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Its words; see [`UNKNOWN_TEXT`].
    pub words: Vec<String>,
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
    /// The path. What is not known of it is [`UNKNOWN_TEXT`] in its lexical name.
    pub path: PathFact,
    /// How it was named.
    pub naming: PathNaming,
    /// Whether everything below it is meant too.
    pub recursive: bool,
    /// Whether a redirection names it.
    pub redirected: bool,
}

/// How a command names a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNaming {
    /// By its name.
    Exact,
    /// By a pattern of names; what it stands for at the moment is listed beside it.
    Pattern,
    /// By something that is only known when the line runs.
    Unknown,
    /// Perhaps: by a text in code, of which nobody knows what it is used for.
    Mentioned,
}

/// An address, parsed once: what is decided on is what is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlFact {
    /// The address as it is fetched.
    pub text: String,
    /// Whether the connection is encrypted.
    pub secure: bool,
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
