//! The Agent-SDK protocol: the messages a host reads on standard output.
//!
//! A [`Translator`] turns the updates of a run into lines of JSON. Three things always hold: a run begins
//! with `system/init` and ends with exactly one `result`; every line is one complete JSON object of less
//! than a mebibyte; every key that the readers insist on is there.

mod failure;
mod fit;
mod lines;
mod result;
mod stream;
mod time;
mod translate;
mod usage;

pub use result::startup_failure;
pub use translate::{At, Setup, Translator};

/// The version of the protocol's reference that hosts compare with; it must begin with three numbers.
pub const COMPATIBLE_VERSION: &str = "2.1.325";
