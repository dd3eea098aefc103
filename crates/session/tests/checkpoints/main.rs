//! Files that calls change come back as they were, and nothing else is touched. Real files, real commands.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod crashes;
mod limits;
mod links;
mod random;
mod restores;
mod world;
