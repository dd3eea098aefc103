//! Finding sessions: real files, real repositories.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exports;
mod finding;
mod glances;
mod many;
mod removing;
mod repositories;
mod searching;
mod support;
