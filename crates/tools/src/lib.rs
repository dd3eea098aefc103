//! The built-in tools.

mod open;
mod paths;
mod seen;

pub use open::{OpenError, OpenFile, open_regular};
pub use paths::{absolute, clean, fact, is_magic, locate, resolve, shown};
pub use seen::{SeenBuilder, content_hash, describe_change, seen_bytes, seen_file};
