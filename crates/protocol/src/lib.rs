//! The vocabulary of Windlass as plain data.
//!
//! Messages and their blocks, the words a model client and a tool exchange with the core, and the
//! updates a caller sees. Nothing here decides: construction and (de)serialisation only.
//! Block types and fields this crate does not know survive a round trip byte for byte.

mod block;
mod ids;
mod json;
mod message;
mod model;
mod secret;
mod tool;
mod transcript;
mod update;
mod usage;

pub use block::{Block, BlockError, BlockKind, ToolUse};
pub use ids::{CallId, MessageId, RequestId, SessionSeed, TimerId};
pub use json::{RawObject, replace_lone_surrogates};
pub use message::{Message, Origin, Role};
pub use model::{
    Delta, Failure, FailureClass, ModelCard, ModelEvent, ModelRequest, Price, StopReason, ToolSpec,
};
pub use secret::Secret;
pub use tool::{
    Admission, CallFacts, CallKind, FileSeen, PathFact, RawValueEq, ShownPart, ToolOutcome, ToolProgress,
};
pub use transcript::{Segment, Transcript};
pub use update::{Answer, Denial, ModelSpend, Outcome, Question, Repair, Terminal, Transition, Update};
pub use usage::{CacheCreation, ServerToolUse, Usage};

/// Raw JSON text of one value, kept exactly as it was written.
pub use serde_json::value::RawValue;
