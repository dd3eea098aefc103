//! The traits of the outside world, and their argument types.
//!
//! Whoever writes a tool or a model client depends on this crate and `windlass-protocol` alone.
//! Nothing here knows an implementation.

mod model;
mod tool;

pub use futures_util::future::BoxFuture;
pub use futures_util::stream::BoxStream;
pub use model::ModelClient;
pub use schemars::{self, JsonSchema};
pub use tokio_util::sync::CancellationToken;
pub use tool::{
    AnyTool, ExamineContext, ProgressReceiver, ProgressSender, Tool, ToolContext, progress_channel,
};
