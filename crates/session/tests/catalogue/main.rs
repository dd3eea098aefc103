//! Finding sessions: real files, real repositories.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking; timings are for whoever reads them"
)]

mod finding;
mod glances;
mod many;
mod repositories;
mod support;
