//! The real binary against a scripted server: what users and hosts can rely on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod bad_input;
mod demo;
mod endings;
mod environment;
mod failures;
mod formats;
mod permissions;
mod prompts;
mod provider;
mod signals;
mod support;
mod terminal;
