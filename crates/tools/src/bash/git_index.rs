//! The list of files that a repository tracks, as it stands in its index.

use std::fs;
use std::path::{Path, PathBuf};

use super::git_config;

/// A larger index is not looked through.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What stands in front of the name of an entry: times, numbers, the mode, the object and the flags.
const MODE_AT: usize = 24;
const FLAGS_AT: usize = 60;
const NAME_AT: usize = 62;
/// The length of the checksum at the end, of the usual kind and of the other one.
const CHECKSUM: usize = 20;
const LONG_CHECKSUM: usize = 32;

/// A file that git tracks.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) is_link: bool,
}

/// The files that the repository around a directory tracks; none if there is no repository. Nothing if its index is of a kind that
/// is not known.
pub(super) fn tracked(directory: &Path) -> Option<Vec<Entry>> {
    let Some(top) = directory.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok()) else {
        return Some(Vec::new());
    };
    let dot_git = top.join(".git");
    if git_config::has_other_objects(&dot_git) {
        return None;
    }
    let index = git_config::directory(&dot_git)?.join("index");
    match fs::metadata(&index) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
        Ok(found) if found.len() <= BYTES_MAX => entries(&fs::read(&index).ok()?, top),
        _ => None,
    }
}

fn entries(index: &[u8], top: &Path) -> Option<Vec<Entry>> {
    let rest = index.strip_prefix(b"DIRC")?;
    let (version, count) = (number(rest, 0)?, number(rest, 4)?);
    let mut rest = rest.get(8..)?;
    let mut entries = Vec::new();
    // Names of the fourth version are told by how they differ from the one before.
    if !matches!(version, 2 | 3) {
        return None;
    }
    for _ in 0..count {
        let is_extended = u16::from_be_bytes([*rest.get(FLAGS_AT)?, *rest.get(FLAGS_AT + 1)?]) & 0x4000 != 0;
        let start = if is_extended { NAME_AT + 2 } else { NAME_AT };
        let length = memchr::memchr(0, rest.get(start..)?)?;
        let name = std::str::from_utf8(&rest[start..start + length]).ok()?;
        let kind = number(rest, MODE_AT)? & 0o170_000;
        entries.push(Entry { path: top.join(name), is_link: kind == 0o120_000 });
        // Every entry is filled up to a multiple of eight with one to eight NULs.
        rest = rest.get((start + length) / 8 * 8 + 8..)?;
    }
    (!is_split(index)).then_some(entries)
}

/// Whether the rest of an index is elsewhere: behind its entries it has the extension `link`, and from there on one extension
/// follows the other to the end. In the name of a file these letters are followed by something else.
pub(super) fn is_split(index: &[u8]) -> bool {
    memchr::memmem::find_iter(index, b"link").any(|at| {
        // It begins with the checksum of the other file.
        let length = number(index, at + 4).and_then(|length| usize::try_from(length).ok());
        let Some(length) = length.filter(|length| *length >= CHECKSUM) else { return false };
        ends_in_extensions(index, at + 8 + length)
    })
}

/// Whether nothing but extensions and the checksum stands behind a place. Git knows some and skips what begins with a capital letter.
fn ends_in_extensions(index: &[u8], mut at: usize) -> bool {
    loop {
        let Some(rest) = index.get(at..).filter(|rest| rest.len() >= CHECKSUM) else { return false };
        if rest.len() < CHECKSUM + 8 {
            return true;
        }
        let is_known = rest[0].is_ascii_uppercase() || rest.starts_with(b"link") || rest.starts_with(b"sdir");
        match number(rest, 4).and_then(|length| usize::try_from(length).ok()) {
            Some(length) if is_known && length < rest.len() => at += 8 + length,
            // Git stops there and complains of nothing.
            _ => return is_known || rest.len() == LONG_CHECKSUM,
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}
