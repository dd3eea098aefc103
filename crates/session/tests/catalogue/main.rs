//! Finding sessions: real files, real repositories.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking; timings are for whoever reads them"
)]

mod exports;
mod finding;
mod glances;
mod many;
mod removing;
mod repositories;
mod searching;
mod support;
