//! What a session remembers: its state from its records, what is restated of it, what it cost, and what it knows of files.

pub(crate) mod files;
pub(crate) mod ledger;
pub(crate) mod recall;
pub(crate) mod snapshot;

pub use recall::{Recall, RecalledSession};
