//! The built-in tools.

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
mod write;

pub use edit::{Edit, EditInput};
pub use open::{OpenError, OpenFile, open_regular};
pub use paths::{absolute, clean, fact, is_magic, locate, resolve, shown};
pub use read::{Read, ReadInput, ReadLimits};
pub use seen::{SeenBuilder, content_hash, seen_bytes, seen_file};
pub use write::{Write, WriteInput};
