//! A cache of what the ends of session files say, one file per project. It decides nothing: which sessions there are is asked of
//! the folder each time, and a row counts only while its file has not changed. It may be deleted at any time.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::layout::create_private;
use crate::preview::{SessionPreview, preview};

/// Changes whenever rows mean something else; files of other versions are made anew.
const VERSION: u32 = 1;

/// A cache that is larger than this was not written by us.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Default, Serialize, Deserialize)]
struct Rows {
    version: u32,
    sessions: BTreeMap<String, CachedPreview>,
}

/// What was seen, and of which state of the file.
#[derive(Serialize, Deserialize)]
struct CachedPreview {
    size: u64,
    modified: (i64, i64),
    inode: u64,
    preview: SessionPreview,
}

/// The cache of one folder while a list is made.
pub(crate) struct PreviewCache {
    path: Option<PathBuf>,
    known: BTreeMap<String, CachedPreview>,
    current: BTreeMap<String, CachedPreview>,
    has_changed: bool,
}

impl PreviewCache {
    /// Opens a cache. One that cannot be used counts as empty.
    pub(crate) fn open(path: Option<PathBuf>) -> Self {
        let known = path.as_deref().and_then(read).unwrap_or_default();
        Self { path, known, current: BTreeMap::new(), has_changed: false }
    }

    /// What the ends of a file say; it is looked at only if it has changed.
    pub(crate) fn preview(&mut self, file: &Path, found: &Metadata) -> io::Result<SessionPreview> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let modified = (found.mtime(), found.mtime_nsec());
        let known = self
            .known
            .remove(&*name)
            .filter(|row| (row.size, row.modified, row.inode) == (found.len(), modified, found.ino()));
        let row = if let Some(row) = known {
            row
        } else {
            self.has_changed = true;
            CachedPreview { size: found.len(), modified, inode: found.ino(), preview: preview(file)? }
        };
        let preview = row.preview.clone();
        self.current.insert(name.into_owned(), row);
        Ok(preview)
    }

    /// Keeps what was learnt. A list is as good without it, so a failure is of no interest.
    pub(crate) fn save(self) {
        let is_new = self.has_changed || !self.known.is_empty();
        if let Some(path) = self.path.filter(|_| is_new) {
            let _ = write(&path, &Rows { version: VERSION, sessions: self.current });
        }
    }
}

fn read(path: &Path) -> Option<BTreeMap<String, CachedPreview>> {
    if std::fs::metadata(path).ok()?.len() > BYTES_MAX {
        return None;
    }
    let rows: Rows = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    (rows.version == VERSION).then_some(rows.sessions)
}

/// Writes beside the file and renames, so that whoever reads or writes at the same time sees one version or the other.
fn write(path: &Path, rows: &Rows) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    create_private(folder)?;
    let mut draft = NamedTempFile::new_in(folder)?;
    draft.write_all(&serde_json::to_vec(rows)?)?;
    draft.persist(path)?;
    Ok(())
}
