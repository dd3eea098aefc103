//! What the engine learns about a tool call before it runs, and what comes back.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Block, CommandFacts, UrlFact};

/// What a tool says about one input, before anything runs. Rules are functions of these facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// What kind of thing the call does.
    pub kind: CallKind,
    /// Whether it may overlap with other shared calls. A call that is not shared runs alone, in order.
    pub is_shared: bool,
    /// The files and directories it names.
    pub paths: Vec<PathFact>,
    /// The files it may change, resolved, as far as that is known; their content is kept before it starts.
    pub changes: Vec<PathBuf>,
    /// The directories that git keeps a repository in, by whatever name, of which it would change a part.
    pub git_directories: Vec<PathBuf>,
    /// What the call is about, in a few words, for people: a path, a command, a pattern.
    pub target: String,
    /// The command line it runs.
    pub commands: Option<Arc<CommandFacts>>,
    /// The address it fetches.
    pub url: Option<UrlFact>,
    /// What the run of the command line goes by. It is not recorded.
    pub run: Option<Arc<CommandRunFacts>>,
}

impl CallFacts {
    /// A call of this kind that names nothing and runs alone.
    pub fn new(kind: CallKind) -> Self {
        Self { kind, ..Self::default() }
    }
}

/// What the run of a command line goes by: what was found out about it when permission was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRunFacts {
    /// The directory it starts in.
    pub starts_in: PathBuf,
    /// What it opens by name, if all it does is look.
    pub opens: Vec<WrittenPath>,
    /// The one file that it shows, whole or in part, resolved.
    pub shows: Option<PathBuf>,
}

/// A path as a command line has it: absolute, but with the `..` that means what it means to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenPath {
    /// The path.
    pub path: PathBuf,
    /// Whether it stands for all names that fit.
    pub is_pattern: bool,
}

/// What kind of thing a call does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Only looks, at files.
    Read,
    /// Looks at something elsewhere, over the network.
    Fetch,
    /// Changes the files it names, and nothing else.
    Edit,
    /// Runs something that can do anything.
    #[default]
    Execute,
    /// Touches only the session itself, such as stopping a task it started.
    Session,
}

impl CallKind {
    /// Whether the call leaves the world as it is.
    pub fn is_read_only(self) -> bool {
        self == Self::Read
    }
}

/// One path, by both names a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFact {
    /// Absolute, with `.` and `..` removed by name alone.
    pub lexical: PathBuf,
    /// Absolute, with links followed; for a path that does not exist, its deepest existing ancestor is
    /// resolved and the rest appended. `None` if it cannot be resolved (a link to nowhere, a loop).
    pub resolved: Option<PathBuf>,
    /// Whether there is a directory at the resolved path.
    pub is_directory: bool,
}

/// The driver's answer to "what is this call?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The input is good.
    Ready {
        /// The tool's own name; the model may have used a former one.
        tool: Arc<str>,
        /// What the call would do.
        facts: CallFacts,
    },
    /// There is no such tool.
    Unknown,
    /// The input does not fit. The text is for the model and names the field.
    Invalid(String),
}

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<Block>,
    /// Whether it is a failure.
    pub is_error: bool,
    /// The structured form for hooks and SDK hosts.
    pub structured: Option<Arc<RawValueEq>>,
    /// Files whose content the conversation now knows.
    pub seen: Vec<FileSeen>,
    /// The working directory from now on, if the call changed it.
    pub cwd: Option<PathBuf>,
    /// Files of the tool's own making, such as long output, that may be read from now on wherever they lie. Resolved.
    pub readable: Vec<PathBuf>,
}

/// Raw JSON that can be compared, by its text.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RawValueEq(pub Box<RawValue>);

impl PartialEq for RawValueEq {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// What the conversation knows of one file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSeen {
    /// The resolved path.
    pub path: PathBuf,
    /// Hash of the whole content, in bytes.
    pub hash: u64,
    /// A hash per line, to say which lines changed when the content did.
    pub lines: Arc<[u32]>,
    /// Whether the whole file was shown, or only a part.
    pub is_whole: bool,
    /// Which parts of this very content were read, the latest last, so that they need not be shown again.
    pub shown: Vec<ShownPart>,
    /// What the file looked like from outside when it had this content; nothing if that was not recorded. A file that still
    /// looks like this need not be read again to know that it is the same.
    pub stamp: Option<FileStamp>,
}

/// What a file looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Which file it is, by the system's number.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was last changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
}

/// Lines of a file, or cells of a notebook, as they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownPart {
    /// The first, counted from 1.
    pub first: usize,
    /// How many; all that follow if nothing was said.
    pub count: Option<usize>,
}

/// News from a running tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProgress {
    /// What to show: for a command, its latest line of output.
    pub text: String,
}

impl ToolOutput {
    /// A success that is one text.
    pub fn text(text: &str) -> Self {
        Self::blocks(vec![Block::text(text)])
    }

    /// A success of several blocks.
    pub fn blocks(content: Vec<Block>) -> Self {
        Self { content, ..Self::default() }
    }

    /// A failure the model should read.
    pub fn error(text: &str) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// With the structured form. A value that cannot be written as JSON is left out.
    #[must_use]
    pub fn with_structured(self, value: &impl serde::Serialize) -> Self {
        let structured = serde_json::value::to_raw_value(value).ok().map(|raw| Arc::new(RawValueEq(raw)));
        Self { structured, ..self }
    }

    /// With a file the conversation now knows.
    #[must_use]
    pub fn with_seen(mut self, seen: FileSeen) -> Self {
        self.seen.push(seen);
        self
    }
}
