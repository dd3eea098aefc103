//! Sessions with a log: what waits for it, what happens when it fails, and the way back from it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod batches;
mod failing;
mod resumed;
mod snapshots;
mod stage;
mod waiting;
