//! Why something cannot be done, and who must act on it.

use std::path::PathBuf;

use uuid::Uuid;
use windlass_config::{ConfigError, SettingsProblem, SharedFileError};
use windlass_engine::{EngineError, SchemaError};
use windlass_models::{ClientError, ScriptError};
use windlass_ports::LogError;
use windlass_sandbox::SandboxUnavailable;
use windlass_session::{FindError, LeaseError, LoadError, RewindError, TrashError};

use crate::display;

/// Who can do something about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The author of the options, the prompt or the settings files.
    User,
    /// The operator of the machine: disks, directories, permissions, the kernel.
    Operator,
}

/// Why no session can be opened or changed. The text names the next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process stands nowhere.
    #[error("cannot use the current directory: {0}. Change to one that exists and is readable.")]
    CurrentDirectory(std::io::Error),
    /// A flag, a variable or a file has a value that cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The command line that an older log holds cannot be read.
    #[error(transparent)]
    RecordedArguments(Box<dyn std::error::Error + Send + Sync>),
    /// The sources are named twice. Whichever won, the rules of a file might be lost unnoticed.
    #[error("--setting-sources is given more than once. Give it once, with all names separated by commas.")]
    SourcesRepeated,
    /// A settings file is so wrong that nothing may start.
    #[error("{0}")]
    Setting(Box<SettingsProblem>),
    /// The list of trusted projects cannot be read or written.
    #[error(transparent)]
    Trust(SharedFileError),
    /// No provider can be asked.
    #[error(
        "No API key is set. Set ANTHROPIC_API_KEY to a key; for a local server that speaks the Messages API, set \
         ANTHROPIC_BASE_URL, such as to http://localhost:8080; or try `windlass demo`, which needs neither."
    )]
    NoKey,
    /// The script in place of a model cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The client cannot be set up.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A model takes over from itself, or twice.
    #[error("--fallback-model {name} is already {}. Give another model.", if *.is_main { "the model" } else { "among the fallback models" })]
    Fallback {
        /// The name as it was given.
        name: String,
        /// Whether it is the model itself.
        is_main: bool,
    },
    /// The form of the answer is no JSON schema.
    #[error("--json-schema: {0}.")]
    Schema(SchemaError),
    /// The engine refuses the configuration.
    #[error("{0}.")]
    Engine(#[from] EngineError),
    /// A hook that nothing may start without is wrong.
    #[error("{0}.")]
    Hook(Box<windlass_hooks::HookProblem>),
    /// The settings require a sandbox that cannot be had.
    #[error(
        "{0} The settings require the sandbox, so no commands run; set sandbox.failIfUnavailable to false to run \
         them without it."
    )]
    Sandbox(SandboxUnavailable),
    /// The session cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Why a session cannot be found, opened, compacted or rewound.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session is meant, or several are.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A new session has nothing to copy or to cut.
    #[error("{0} needs a session: add --resume ID or --continue.")]
    NeedsSession(&'static str),
    /// Without a place nothing is dropped.
    #[error("--resume-drops-turn needs --resume-session-at.")]
    DropsWithoutPlace,
    /// A session that goes on keeps its id.
    #[error("--session-id is for a new session. With --resume or --continue, add --fork-session.")]
    IdOfOldSession,
    /// More than the given turn would be left out.
    #[error("Resume rejected by --resume-drops-turn: {0}")]
    DropsMore(String),
    /// The log cannot be read or continued.
    #[error("cannot open the session {id}: {problem}.")]
    Unreadable {
        /// Which session.
        id: Uuid,
        /// Why.
        problem: LogProblem,
    },
    /// The log cannot be read from beginning to end.
    #[error("cannot read the session log {}: {error}.", path.display())]
    Log {
        /// Where it is.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There is nothing to replay.
    #[error("this log cannot be replayed: another program wrote it, without the events that a replay needs.")]
    NoEvents,
    /// What the log says about a process makes no engine.
    #[error("cannot build the engine as it was when the session was recorded: {0}")]
    NotRebuilt(Box<Error>),
    /// There is no room for the session.
    #[error(
        "cannot create the directory for sessions: {0}. Free some space or correct its permissions, or run without \
         sessions (--no-session-persistence)."
    )]
    Directory(std::io::Error),
    /// The id that was given is that of another session.
    #[error("the session {0} already exists. Continue it with --resume {0}.")]
    Exists(Uuid),
    /// Another process is about to begin a session with the id that was given.
    #[error("another process (pid {pid}) is starting the session {id}. Choose another id.")]
    Starting {
        /// The id.
        id: Uuid,
        /// The other process.
        pid: u32,
    },
    /// The user has turned compaction off.
    #[error("/compact is turned off by DISABLE_COMPACT. Unset the variable to use it.")]
    CompactOff,
    /// Nothing of this session is on disk.
    #[error("this session is not saved, so it cannot be rewound.")]
    NotSaved,
    /// The request to rewind names something else than the files or the conversation.
    #[error("unknown word {:?}. Usage: /rewind PROMPT [files|conversation|both].", display::line(.0))]
    UnknownScope(String),
    /// The request to rewind says more than where to and what.
    #[error("too many words. Usage: /rewind PROMPT [files|conversation|both].")]
    TooManyWords,
    /// The session has no such prompt.
    #[error("there is no prompt {} in this session. /rewind lists all prompts.", display::line(.0))]
    UnknownPrompt(String),
    /// Another process may be changing the files of the session.
    #[error(
        "another process is using the session {0}, so its files were not rewound. Stop that process first; --dry-run \
         works now."
    )]
    InUse(Uuid),
    /// The files are as they were.
    #[error("{0}.")]
    Files(#[from] RewindError),
    /// The session stays where it is.
    #[error(transparent)]
    Trash(#[from] TrashError),
    /// The prompts of the session cannot be read.
    #[error("cannot read the session: {0}.")]
    Prompts(std::io::Error),
    /// The conversation is as it was.
    #[error("the conversation was not rewound: {0}.")]
    NotRewound(LogProblem),
    /// The conversation goes on from the earlier point, but a crash would forget that.
    #[error("rewound the conversation, but the log has no record of it yet: {0}.")]
    RewindNotLogged(LogError),
}

/// Why a log cannot be read or continued.
#[derive(Debug, thiserror::Error)]
pub enum LogProblem {
    /// It cannot be read so far.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It cannot be locked.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] LogError),
}

impl Error {
    /// Who must act.
    pub fn actor(&self) -> Actor {
        match self {
            Self::CurrentDirectory(_) | Self::Trust(_) | Self::Sandbox(_) => Actor::Operator,
            Self::Session(error) => error.actor(),
            Self::Config(_)
            | Self::RecordedArguments(_)
            | Self::SourcesRepeated
            | Self::Setting(_)
            | Self::NoKey
            | Self::Script(_)
            | Self::Client(_)
            | Self::Fallback { .. }
            | Self::Schema(_)
            | Self::Engine(_)
            | Self::Hook(_) => Actor::User,
        }
    }
}

impl SessionError {
    /// Of a session with this id: why its log cannot be read or continued.
    pub(crate) fn unreadable<E: Into<LogProblem>>(id: Uuid) -> impl FnOnce(E) -> Self {
        move |problem| Self::Unreadable { id, problem: problem.into() }
    }

    /// Who must act.
    pub fn actor(&self) -> Actor {
        match self {
            Self::NotRebuilt(error) => error.actor(),
            Self::Unreadable { problem, .. } | Self::NotRewound(problem) => problem.actor(),
            Self::Find(_)
            | Self::NeedsSession(_)
            | Self::DropsWithoutPlace
            | Self::IdOfOldSession
            | Self::DropsMore(_)
            | Self::Exists(_)
            | Self::Starting { .. }
            | Self::CompactOff
            | Self::NotSaved
            | Self::UnknownScope(_)
            | Self::TooManyWords
            | Self::UnknownPrompt(_)
            | Self::InUse(_)
            | Self::NoEvents
            | Self::Files(RewindError::Unknown(_) | RewindError::NothingToUndo)
            | Self::Trash(
                TrashError::Lease(LeaseError::Busy(_))
                | TrashError::Nothing(..)
                | TrashError::Several { .. }
                | TrashError::Occupied(_),
            ) => Actor::User,
            Self::Log { .. }
            | Self::Files(RewindError::Io { .. })
            | Self::Directory(_)
            | Self::Prompts(_)
            | Self::Trash(TrashError::Lease(LeaseError::Failed(..)) | TrashError::Failed(..))
            | Self::RewindNotLogged(_) => Actor::Operator,
        }
    }
}

impl LogProblem {
    /// Who must act.
    pub fn actor(&self) -> Actor {
        match self {
            Self::Load(LoadError::NoSuchEntry(..)) | Self::Lease(LeaseError::Busy(_)) => Actor::User,
            Self::Load(LoadError::Read(..) | LoadError::Write(..))
            | Self::Lease(LeaseError::Failed(..))
            | Self::Write(_) => Actor::Operator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_who_must_act() {
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let check = |error: Error, expected: Actor| assert_eq!(error.actor(), expected, "{error}");
        check(Error::NoKey, Actor::User);
        check(SessionError::NeedsSession("--fork-session").into(), Actor::User);
        check(SessionError::CompactOff.into(), Actor::User);
        check(Error::CurrentDirectory(full()), Actor::Operator);
        check(SessionError::Directory(full()).into(), Actor::Operator);
        let log = || std::path::PathBuf::from("/log");
        let unreadable = |problem: LoadError| SessionError::unreadable(Uuid::nil())(problem).into();
        check(unreadable(LoadError::NoSuchEntry(log(), Uuid::nil())), Actor::User);
        check(unreadable(LoadError::Read(log(), full())), Actor::Operator);
        check(SessionError::NotRebuilt(Box::new(Error::NoKey)).into(), Actor::User);
        check(SessionError::Log { path: "/log".into(), error: full() }.into(), Actor::Operator);
    }
}
