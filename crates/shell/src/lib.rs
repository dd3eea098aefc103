//! Pure analysis of shell command lines.
//!
//! Two questions are answered, both strictly: is a line *one simple command of literal words*, and is that
//! command known to only look. "Yes" is a promise about what bash would run; everything that is not plain to see
//! is answered with "no", never guessed. Nothing here runs a command or touches the file system.

mod read_only;
mod scan;

pub use read_only::{ReadOnlyCommand, read_only_command};
pub use scan::simple_command;
