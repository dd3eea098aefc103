use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use windlass_protocol::{AmbientChanges, FileSeen, MemoryNote};

/// Finds out what changed around a run while it went on.
pub trait ChangeWatcher: Send + Sync + 'static {
    /// Says which of the `known` files are different now, and shows the present text of the files in `show`, each cut to
    /// so many characters. The next request waits for it, so it must be quick and must not keep the thread.
    fn look(&self, known: Vec<FileSeen>, show: Vec<(PathBuf, usize)>) -> BoxFuture<'static, AmbientChanges>;
}

/// Looks for memory that may help with a prompt.
pub trait MemoryPrefetch: Send + Sync + 'static {
    /// The run does not wait for it: what it finds goes in with the next results, and it is dropped with the run.
    fn prefetch(&self, prompt: Arc<str>) -> BoxFuture<'static, Vec<MemoryNote>>;
}

/// The background tasks of a session, as the session watches them.
pub trait TaskWatch: Send + Sync + 'static {
    /// A task that has ended of itself, each once. One that was stopped on request is not among them. `Pending` if there is
    /// none; the waker is called when one ends. Only the last waker is kept.
    fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<EndedTask>;
}

/// A background task that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTask {
    /// Its id.
    pub id: String,
    /// What it ran.
    pub command: String,
    /// How it ended: a sentence.
    pub how: String,
    /// Where its output is.
    pub output_file: PathBuf,
}
