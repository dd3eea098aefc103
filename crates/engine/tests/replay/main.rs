//! Sessions recorded in real logs and played again: equal to the last record, and no change goes unnoticed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod broken;
mod changes;
mod runs;
mod stage;
