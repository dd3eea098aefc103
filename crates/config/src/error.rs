//! What can be wrong with a configuration.

use std::path::PathBuf;

/// A setting that cannot be used. The text says which, what is wrong and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A variable, a flag, or what it names; or a model or a mode that may not be chosen here.
    #[error("{0}")]
    Unusable(String),
    /// A directory that a flag names cannot be used.
    #[error("--add-dir {}: {problem}. Give the path of an existing directory.", .path.display())]
    Directory {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Something has to be kept, and there is no place for it.
    #[error(
        "there is no home directory to keep sessions in. Set WINDLASS_HOME to a directory, \
         or use --no-session-persistence to keep nothing."
    )]
    NoHome,
    /// A rule cannot be read.
    #[error("{0}.")]
    Rule(#[from] windlass_permission::RuleError),
}

impl ConfigError {
    /// A flag has a value that is not understood. An empty one is shown as two quotes.
    pub(crate) fn flag(flag: &str, value: &str, accepts: &str) -> Self {
        let value = if value.is_empty() { "''" } else { value };
        Self::Unusable(format!("{flag} {value} is not understood: {accepts}."))
    }
}
