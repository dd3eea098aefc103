//! Our directory: sessions are kept there, and nothing is written anywhere else. An Agent SDK that starts us reads the
//! sessions of the directory it knows, so they go there then; the reference's is otherwise only read.

use std::path::{Path, PathBuf};

use crate::{ConfigError, HomeSettings, ProcessContext};

/// Our directory, and who started us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    directory: Option<PathBuf>,
    /// Whether an Agent SDK started this process.
    pub is_started_by_sdk: bool,
    /// Directories with what the user wants everywhere, such as memory: the reference's, then ours. They may not exist.
    pub(crate) user_directories: Vec<PathBuf>,
}

impl Home {
    /// Follows from the environment and from where the user's own home is.
    pub fn new(settings: &HomeSettings, place: &ProcessContext) -> Self {
        let absolute = |path: &PathBuf| place.cwd.join(path);
        let of_user = |name: &str| place.home.as_ref().map(|home| home.join(name));
        let entrypoint = settings.entrypoint.as_deref().unwrap_or_default();
        let is_started_by_sdk = settings.sdk_version.is_some() || entrypoint.starts_with("sdk-");
        let shared = settings.shared.as_ref().map(absolute);
        let reference = shared.clone().or_else(|| of_user(".claude"));
        let directory = if is_started_by_sdk {
            reference.clone()
        } else {
            settings.own.as_ref().map(absolute).or(shared).or_else(|| of_user(".windlass"))
        };
        let mut user_directories: Vec<PathBuf> = reference.into_iter().chain(directory.clone()).collect();
        user_directories.dedup();
        Self { directory, is_started_by_sdk, user_directories }
    }

    /// The directory, if there is one.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The directory, or why there is none to write to.
    pub fn require(&self) -> Result<&Path, ConfigError> {
        self.directory().ok_or(ConfigError::NoHome)
    }
}
