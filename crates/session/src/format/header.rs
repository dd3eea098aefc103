//! What a process says when it opens a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::to_raw_value;
use windlass_protocol::{RawValueEq, SessionSeed};

use super::field_forms::object;

/// Among the settings: whether somebody keeps what calls change.
const FILE_CHECKPOINTS: &str = "file_checkpoints";

/// The line `opened`: a process about itself. It does not name the session, so that a copy can take it as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// What the ids of new messages follow from.
    pub seed: SessionSeed,
    /// The version of the engine.
    pub engine: Arc<str>,
    /// The working directory.
    pub cwd: PathBuf,
    /// When it was opened: milliseconds since 1970.
    pub wall_ms: u64,
    /// How it was started: a word that other programs know, such as `cli` or `sdk-py`.
    pub entrypoint: Arc<str>,
    /// The branch that is checked out, if there is a repository.
    pub git_branch: Option<Arc<str>>,
    /// The arguments of the process.
    pub arguments: Vec<String>,
    /// The variables that it heeds.
    pub variables: BTreeMap<String, String>,
    /// The settings in force, by name.
    pub settings: BTreeMap<String, Arc<RawValueEq>>,
}

object!(Header { seed, engine, cwd, wall_ms, entrypoint, git_branch, arguments, variables, settings });

impl Header {
    /// A header that says only what every session has.
    pub fn new(seed: SessionSeed, cwd: &Path, wall_ms: u64) -> Self {
        Self {
            seed,
            engine: env!("CARGO_PKG_VERSION").into(),
            cwd: cwd.to_owned(),
            wall_ms,
            entrypoint: "cli".into(),
            git_branch: None,
            arguments: Vec::new(),
            variables: BTreeMap::new(),
            settings: BTreeMap::new(),
        }
    }

    /// Notes that what calls change is kept.
    pub(crate) fn note_pre_images(&mut self) {
        if let Ok(raw) = to_raw_value(&true) {
            self.settings.insert(FILE_CHECKPOINTS.to_owned(), Arc::new(RawValueEq(raw)));
        }
    }

    /// Whether what calls change is kept.
    pub(crate) fn has_pre_images(&self) -> bool {
        self.settings.get(FILE_CHECKPOINTS).is_some_and(|raw| raw.0.get() == "true")
    }
}
