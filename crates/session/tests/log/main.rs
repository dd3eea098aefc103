//! The lines of a log: what is written comes back, whatever happens to the file.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod copy;
mod damage;
mod foreign;
mod golden;
mod large;
mod round_trip;
mod strategies;
mod support;
