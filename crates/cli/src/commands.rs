//! What the command can be asked to do, a file for each; `print` runs prompts, with what it shares beside it.

pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod permissions;
pub(crate) mod print;
pub(crate) mod process;
pub(crate) mod prompt;
pub(crate) mod replay;
pub(crate) mod rewind;
pub(crate) mod sandbox;
pub(crate) mod sessions;
pub(crate) mod trace;
pub(crate) mod trust;
