//! Files that get their name once they are complete: whoever looks for it finds all of it or nothing.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

/// A private file without its name; gone when it is dropped.
pub(crate) struct DraftFile {
    pub(crate) file: File,
    path: PathBuf,
    is_named: bool,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl DraftFile {
    /// Makes a file at the first path that is free; each is made of another number.
    pub(crate) fn create(path: impl Fn(String) -> PathBuf) -> io::Result<Self> {
        loop {
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            let path = path(format!("{}-{number}", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return Ok(Self { file: opened?, path, is_named: false }),
            }
        }
    }

    /// Takes the place of whatever has this name.
    pub(crate) fn replace(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.is_named = true;
        Ok(())
    }

    /// Gets a name that must not belong to another.
    pub(crate) fn take_free_name(mut self, target: &Path) -> io::Result<()> {
        match rustix::fs::renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => self.is_named = true,
            // The file has both names until the draft is dropped.
            Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(&self.path, target)?,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        if !self.is_named {
            // Nothing more can be done about a file that cannot be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}
