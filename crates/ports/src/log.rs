//! The log of a session, as the driver needs it.

use futures_util::future::BoxFuture;
use windlass_protocol::{Durability, Record};

/// Where the records of one session go. It has one writer.
///
/// Records that are appended together are one write: after a crash all of them are there, or a beginning of them. The driver
/// waits for an answer before it does anything that stands behind them, and appends nothing else meanwhile. Only when a run is
/// dropped does the engine stop waiting: whatever becomes of that append, the next stands behind it.
pub trait SessionLog: Send {
    /// Takes the checkpoints that these records call for: files that an [intended](windlass_protocol::CallIntent) call may change
    /// are kept, and what a call that is over has changed is noted. The driver does this before it appends the records, so a call
    /// whose files cannot be kept is neither recorded nor started.
    ///
    /// A log that keeps no files has nothing to do.
    fn take_checkpoints(&mut self, _records: &[Record], _durability: Durability) -> AppendProgress {
        AppendProgress::Now(Ok(()))
    }

    /// Puts records behind all others, at least as durable as asked for. What the core heard stands before what follows from it.
    /// Answers that the log of a resumed session lacks, and snapshots, follow from nothing.
    fn append(&mut self, records: &[Record], durability: Durability) -> AppendProgress;

    /// Whether it is time to write a snapshot, so that opening the session need not read from the start: after a boundary,
    /// after much was written, and after a failure left something out. Not right after they were.
    fn wants_snapshot(&self) -> bool;
}

/// What becomes of an append, or of the checkpoints before it.
pub enum AppendProgress {
    /// It is done, or failed.
    Now(Result<(), LogError>),
    /// It takes a while: a disk is waited for.
    Later(BoxFuture<'static, Result<(), LogError>>),
}

/// The log cannot be written. Nothing of what was to be appended counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LogError(pub String);
