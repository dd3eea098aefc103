//! The built-in tools: what a model can do to files and with commands.
//!
//! A tool acts on the object its facts named and on nothing else; it answers every call, failures included, with
//! text the model can act on; and it holds no more in memory than it shows.

mod address;
mod bash;
mod change;
mod content;
mod describe;
mod edit;
mod file;
mod fingerprint;
#[cfg(test)]
#[path = "tests/fixture.rs"]
mod fixture;
mod git_directory;
mod glob;
mod grep;
mod lenient;
mod lookout;
mod open;
mod patch;
mod paths;
mod plurals;
mod read;
mod save;
mod search;
mod search_files;
mod search_lines;
#[cfg(test)]
mod specs;
mod task_stop;
mod tasks;
mod text_encoding;
mod write;

pub use address::{redirected, url_fact};
pub use bash::{Bash, BashInput, BashSettings};
pub use describe::describe;
pub use edit::{Edit, EditInput};
pub use fingerprint::content_hash;
pub use glob::{Glob, GlobInput, GlobSettings};
pub use grep::{Grep, GrepInput, OutputMode};
pub use lookout::Lookout;
pub use read::{Read, ReadInput, ReadLimits};
pub use task_stop::{TaskStop, TaskStopInput};
pub use tasks::{TaskInfo, Tasks};
pub use write::{Write, WriteInput};
