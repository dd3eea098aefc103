//! Why a command does not do what it was asked for, and who must act on it.

use windlass_config::{ConfigError, SharedFileError};

/// Why a command ends without its result. The text names the next step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The user must change the command line, a file or a session.
    #[error("{0}")]
    Usage(String),
    /// The operator of the machine must act: a disk, a directory or a stream does not work.
    #[error("{0}")]
    Machine(String),
    /// The application cannot do it; it knows who must act.
    #[error(transparent)]
    Application(#[from] windlass::Error),
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Self::Usage(text)
    }
}

impl From<&str> for CommandError {
    fn from(text: &str) -> Self {
        Self::Usage(text.to_owned())
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::Application(error.into())
    }
}

impl From<SharedFileError> for CommandError {
    fn from(error: SharedFileError) -> Self {
        Self::Application(windlass::Error::Trust(error))
    }
}

impl From<windlass::SessionError> for CommandError {
    fn from(error: windlass::SessionError) -> Self {
        Self::Application(error.into())
    }
}
