//! The Agent-SDK protocol: messages that a host reads on standard output and writes to standard input.
//!
//! A [`Translator`] turns updates into lines. A run begins with `system/init` and ends with exactly one
//! `result`; every line is one JSON object of less than a mebibyte, with every key that readers insist on.

mod context;
mod fit;
mod hooks;
mod input;
mod lines;
mod result;
mod stream;
mod translate;
mod usage;

use windlass_text::time;

pub use hooks::HookLines;
pub use input::{
    InputLine, InputProblem, InputPrompt, LINE_BYTES_MAX, control_error, control_success, replay,
};
pub use lines::Lifecycle;
pub use result::startup_failure;
pub use translate::{SessionSetup, TimePoint, Translator};

/// The version of the protocol's reference that hosts compare with; it must begin with three numbers.
pub const COMPATIBLE_VERSION: &str = "2.1.325";
