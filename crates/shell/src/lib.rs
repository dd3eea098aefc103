//! Pure analysis of shell command lines.
//!
//! Three questions are answered strictly: is a line *one simple command of literal words*, is that command known
//! to only look, and which single file does it show. "Yes" is a promise about what bash would run; everything that is not plain to see
//! is answered with "no", never guessed. A fourth is answered as well as the text allows: which files a line may change.
//! Nothing here runs a command or touches the file system.

mod changes;
mod read_only;
mod scan;
mod view;

pub use changes::{ChangedPath, changed_paths};
pub use read_only::{ReadOnlyCommand, read_only_command};
pub use scan::simple_command;
pub use view::viewed_file;
