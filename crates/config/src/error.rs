//! What can be wrong with a configuration.

use std::path::PathBuf;

/// A setting that cannot be used. The text says which, what is wrong and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An environment variable has a value that is not understood.
    #[error("{name}={value} is not understood: it must be {accepts}. Correct or unset the variable.")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value; for a secret, a placeholder.
        value: String,
        /// What is accepted.
        accepts: &'static str,
    },
    /// A variable that a settings file sets has a value that is not understood.
    #[error("{origin}: {name}={value} is not understood: it must be {accepts}. Correct or remove it there.")]
    FileVariable {
        /// The file and the line.
        origin: String,
        /// The variable.
        name: &'static str,
        /// Its value; for a secret, a placeholder.
        value: String,
        /// What is accepted.
        accepts: &'static str,
    },
    /// An environment variable is set without the one it needs.
    #[error("{name} is set but {needs} is not. Set both or none.")]
    Incomplete {
        /// The variable.
        name: &'static str,
        /// The one it needs.
        needs: &'static str,
    },
    /// A flag has a value that is not understood.
    #[error("{flag} {value} is not understood: {accepts}.")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
        /// What is accepted.
        accepts: String,
    },
    /// A model that may not be chosen.
    #[error(
        "the model {name} may not be chosen here: {choice}. The setting `availableModels` says so; `windlass config show` tells where it stands."
    )]
    Model {
        /// The model.
        name: String,
        /// What may be chosen.
        choice: String,
    },
    /// A file that a flag names cannot be used.
    #[error("{flag} {}: {problem}. Give the path of a readable text file.", .path.display())]
    PromptFile {
        /// The flag.
        flag: &'static str,
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The file with answers that stand in for hooks cannot be used.
    #[error("WINDLASS_SCRIPTED_HOOKS={}: {problem}. `docs/environment.md` shows the format.", .path.display())]
    ScriptedHooks {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A directory that a flag names cannot be used.
    #[error("--add-dir {}: {problem}. Give the path of an existing directory.", .path.display())]
    Directory {
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Two flags say opposite things about thinking.
    #[error("--thinking {thinking} contradicts --max-thinking-tokens {tokens}. Give only one of the two.")]
    Thinking {
        /// What one says.
        thinking: String,
        /// What the other says.
        tokens: String,
    },
    /// Two flags ask for different modes.
    #[error("--dangerously-skip-permissions contradicts --permission-mode {mode}. Give only one of the two.")]
    Contradiction {
        /// The other mode.
        mode: String,
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
    /// Everything would be allowed to somebody who may do everything.
    #[error(
        "{flag} is refused for the root user: every command would run unasked with full rights. \
         Use another user, another --permission-mode, or set IS_SANDBOX=1 inside a sandbox."
    )]
    BypassAsRoot {
        /// What asked for it.
        flag: String,
    },
    /// The mode was switched off.
    #[error("the permission mode {mode} is switched off in {origin}. Use another --permission-mode.")]
    ModeDisabled {
        /// The mode.
        mode: &'static str,
        /// Where it was switched off.
        origin: String,
    },
}

impl ConfigError {
    /// A flag has a value that is not understood. An empty one is shown as two quotes.
    pub(crate) fn flag(flag: &'static str, value: &str, accepts: impl Into<String>) -> Self {
        let value = if value.is_empty() { "''" } else { value }.to_owned();
        Self::Flag { flag, value, accepts: accepts.into() }
    }
}
