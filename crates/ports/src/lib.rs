//! The traits of the outside world, and their argument types.
//!
//! Whoever writes a tool, a model client or a runner of hooks depends on this crate and `windlass-protocol` alone.
//! Nothing here knows an implementation.

mod hooks;
mod log;
mod model;
mod surroundings;
mod tool;

pub use futures_util::future::BoxFuture;
pub use futures_util::stream::BoxStream;
pub use hooks::HookRunner;
pub use log::{AppendProgress, LogError, SessionLog};
pub use model::ModelClient;
pub use schemars::{self, JsonSchema};
pub use surroundings::{ChangeWatcher, EndedTask, MemoryPrefetch, TaskWatch};
pub use tokio_util::sync::CancellationToken;
pub use tool::{
    AnyTool, ExamineContext, HiddenPaths, ProgressReceiver, ProgressSender, Tool, ToolContext,
    progress_channel,
};
