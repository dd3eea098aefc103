//! The runner with real programs, real requests over loopback and scripted models.

#![expect(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise, and reads best with literals"
)]

mod background;
mod callbacks;
mod commands;
mod documented;
mod ends;
mod env_files;
mod prompts;
mod stage;
mod together;
mod web;
