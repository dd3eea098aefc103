//! A command that showed one file lets the conversation know that file.

use std::path::Path;

use windlass_protocol::FileSeen;

use crate::seen::{content_hash, seen_file};

/// Larger files are not read again only to be remembered.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What the conversation now knows of the file at `resolved`, of which a command printed `printed`. The file counts as
/// seen whole only if that is exactly its content, and text.
pub(crate) fn seen_by_command(resolved: &Path, printed: Option<&[u8]>) -> Option<FileSeen> {
    if resolved.metadata().ok()?.len() > BYTES_MAX {
        return None;
    }
    let mut seen = seen_file(resolved, false).ok()?;
    seen.whole = printed
        .is_some_and(|printed| content_hash(printed) == seen.hash && std::str::from_utf8(printed).is_ok());
    Some(seen)
}
