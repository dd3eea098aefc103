//! What changed around a run while it went on.

use std::path::PathBuf;
use std::sync::Arc;

/// What was found when the engine looked around between two requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmbientChanges {
    /// Files that are not any more what the conversation knows.
    pub changed: Vec<FileChange>,
    /// The task list as it is now, if there is one: lines for the model.
    pub tasks: Option<Arc<str>>,
    /// The background tasks that are running, if there are any: lines for the model.
    pub background: Option<Arc<str>>,
    /// The present text of files that were asked for, as far as they can be read, cut to what was asked for.
    pub shown: Vec<(PathBuf, Arc<str>)>,
}

/// A file that somebody else changed after it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file, resolved.
    pub path: PathBuf,
    /// The hash of the content it has now, 0 if it is gone: a change is told once.
    pub hash: u64,
    /// What changed, for the model: which lines, or that it is gone.
    pub note: String,
}

/// Something remembered that may help with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNote {
    /// Where it is kept, resolved.
    pub path: PathBuf,
    /// What it says.
    pub text: Arc<str>,
}
