//! The Agent-SDK protocol: the messages a host reads on standard output, and those it writes to standard
//! input.
//!
//! A [`Translator`] turns the updates of a run into lines of JSON. Three things always hold: a run begins
//! with `system/init` and ends with exactly one `result`; every line is one complete JSON object of less
//! than a mebibyte; every key that the readers insist on is there.

mod context;
mod failure;
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
    InputLine, InputPriority, InputProblem, InputPrompt, LINE_BYTES_MAX, control_error, control_success,
    replay,
};
pub use lines::Lifecycle;
pub use result::startup_failure;
pub use translate::{SessionSetup, TimePoint, Translator};

/// The version of the protocol's reference that hosts compare with; it must begin with three numbers.
pub const COMPATIBLE_VERSION: &str = "2.1.325";
