//! The built-in tools.

mod bash;
mod content;
mod edit;
mod encoding;
mod file;
#[cfg(test)]
mod fixture;
mod lenient;
mod open;
mod patch;
mod paths;
mod read;
mod save;
mod seen;
mod task_stop;
mod tasks;
mod write;

pub use bash::{Bash, BashInput, BashSettings};
pub use edit::{Edit, EditInput};
pub use open::{OpenError, OpenFile, open_regular};
pub use paths::{absolute, clean, fact, is_magic, locate, resolve, shown};
pub use read::{Read, ReadInput, ReadLimits};
pub use seen::{SeenBuilder, content_hash, seen_bytes, seen_file};
pub use task_stop::{TaskStop, TaskStopInput};
pub use tasks::{TaskInfo, Tasks};
pub use write::{Write, WriteInput};
