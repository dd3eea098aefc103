//! The user's list of files that git ignores everywhere.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// A longer list is not one.
const BYTES_MAX: u64 = 1024 * 1024;

/// Adds lines that are not there; says whether there were any. Several processes may do so at once.
pub(crate) fn add(file: &Path, lines: &[String]) -> io::Result<bool> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).create(folder)?;
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(rustix::fs::open(file, flags, Mode::from_raw_mode(0o644))?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // Closing the file gives the lock back.
    while let Err(error) = rustix::fs::flock(&file, FlockOperation::LockExclusive) {
        if error != Errno::INTR {
            return Err(error.into());
        }
    }
    let mut bytes = Vec::new();
    (&mut file).take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("it is too large"));
    }
    let is_there =
        |line: &str| bytes.split(|byte| *byte == b'\n').any(|there| there.trim_ascii() == line.as_bytes());
    let missing: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !is_there(line)).collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let joint = if bytes.is_empty() || bytes.ends_with(b"\n") { "" } else { "\n" };
    file.write_all(format!("{joint}{}\n", missing.join("\n")).as_bytes())?;
    Ok(true)
}
