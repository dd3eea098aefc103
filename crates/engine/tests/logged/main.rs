//! Sessions with a log: what waits for it, what happens when it fails, and the way back from it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod batches;
mod facts;
mod failing;
mod resumed;
mod stage;
mod waiting;
