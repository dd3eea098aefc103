//! The context layers at work, driven through `step`. After each step the transcript is derived again from what was said
//! and what was decided.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests say what went wrong by panicking")]

mod collapse;
mod compaction;
mod forks;
mod fullness;
mod results;
mod world;
