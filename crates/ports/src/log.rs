//! The log of a session, as the driver needs it.

use futures_util::future::BoxFuture;
use windlass_protocol::{Durability, Record};

/// Where the facts of one session go. It has one writer.
///
/// Records that are appended together are one write: after a crash all of them are there, or a beginning of them. The driver
/// waits for an answer before it does anything that stands behind them, and appends nothing else meanwhile.
pub trait SessionLog: Send {
    /// Puts facts behind all others, at least as durable as asked for. The first is what the core heard, the others follow from
    /// it.
    ///
    /// A file that an [`Intended`](windlass_protocol::Intended) call may change is kept before its record is written.
    fn append(&mut self, records: &[Record], durability: Durability) -> Appended;

    /// Whether it is time to restate the facts, so that whoever opens the session need not read from the start: after a boundary,
    /// after much was written, and after a failure left something out.
    fn wants_facts(&self) -> bool;
}

/// What becomes of an append.
pub enum Appended {
    /// It is done, or failed.
    Now(Result<(), LogError>),
    /// It takes a while: a disk is waited for.
    Later(BoxFuture<'static, Result<(), LogError>>),
}

/// The log cannot be written. Nothing of what was to be appended counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LogError(pub String);
