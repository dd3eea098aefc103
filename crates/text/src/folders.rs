//! Folders that only the user may enter.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

const PRIVATE: u32 = 0o700;
/// A folder that is not locked and younger than this may be one that another process is just making.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);
/// Looking for abandoned folders ends after so many names.
const NAMES_MAX: usize = 10_000;

/// Makes a folder, and those above it that are missing.
pub fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(folder)
}

/// Makes a temporary folder whose name begins so. It is deleted when it is dropped.
pub fn create_temporary(prefix: &str) -> io::Result<TempDir> {
    create_temporary_in(&std::env::temp_dir(), prefix)
}

fn create_temporary_in(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(PRIVATE)).tempdir_in(parent)
}

/// A session's folder, made when first needed: one that was named and stays, or a temporary one, deleted with its
/// session. After a kill a later session deletes it: users of a folder hold a lock, which the kernel gives back however
/// they end.
#[derive(Debug)]
pub struct SessionFolder {
    prefix: &'static str,
    is_ours: fn(&str) -> bool,
    state: FolderState,
}

#[derive(Debug)]
enum FolderState {
    Named(PathBuf),
    NotMade,
    Temporary { folder: TempDir, _lock: File },
}

impl SessionFolder {
    /// The named folder, or a temporary one whose name begins with `prefix`; `is_ours` knows the files that may be in it.
    pub fn new(named: Option<PathBuf>, prefix: &'static str, is_ours: fn(&str) -> bool) -> Self {
        Self { prefix, is_ours, state: named.map_or(FolderState::NotMade, FolderState::Named) }
    }

    /// Makes the folder if it is not there.
    pub fn path(&mut self) -> io::Result<&Path> {
        if matches!(self.state, FolderState::NotMade) {
            self.state = self.make_temporary(&std::env::temp_dir())?;
        }
        match &self.state {
            FolderState::Temporary { folder, .. } => Ok(folder.path()),
            FolderState::Named(folder) => create_private(folder).map(|()| folder.as_path()),
            FolderState::NotMade => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn make_temporary(&self, parent: &Path) -> io::Result<FolderState> {
        let folder = create_temporary_in(parent, self.prefix)?;
        let lock = File::open(folder.path())?;
        // Where nothing can be locked, nobody will take the folder for abandoned either.
        let _ = lock.try_lock();
        self.remove_abandoned(parent, &lock.metadata()?);
        Ok(FolderState::Temporary { folder, _lock: lock })
    }

    /// Deletes what killed sessions left; `new` is what such a folder looks like.
    fn remove_abandoned(&self, parent: &Path, new: &Metadata) {
        let Ok(entries) = fs::read_dir(parent) else { return };
        let is_like = |meta: &Metadata| meta.is_dir() && meta.uid() == new.uid() && meta.mode() == new.mode();
        let is_old = |meta: &Metadata| {
            let age = meta.modified().ok().and_then(|modified| modified.elapsed().ok());
            age.is_some_and(|age| age > ABANDONED_AFTER)
        };
        for entry in entries.flatten().take(NAMES_MAX) {
            let is_named = entry.file_name().as_encoded_bytes().starts_with(self.prefix.as_bytes());
            if is_named && entry.metadata().is_ok_and(|meta| is_like(&meta) && is_old(&meta)) {
                // What cannot be deleted stays.
                let _ = self.remove_if_unused(&entry.path());
            }
        }
    }

    /// Deletes our files and, if nothing else is in it, their folder.
    fn remove_if_unused(&self, folder: &Path) -> io::Result<()> {
        let lock = File::open(folder)?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        for entry in fs::read_dir(folder)?.flatten() {
            if (self.is_ours)(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_dir(folder)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    fn folder(named: Option<PathBuf>) -> SessionFolder {
        SessionFolder::new(named, "windlass-output-", |name| name.starts_with("bash-"))
    }

    #[test]
    fn folders_are_private_and_temporary_ones_go_with_their_session() {
        let mut temporary = folder(None);
        let path = temporary.path().unwrap().to_owned();
        assert_eq!((mode(&path), temporary.path().unwrap()), (0o700, &*path));
        drop(temporary);
        assert!(!path.exists());
        let dir = tempfile::tempdir().unwrap();
        let named = dir.path().join("made/when/needed");
        assert_eq!(folder(Some(named.clone())).path().unwrap(), named);
        assert_eq!(mode(&named), 0o700);
        fs::write(named.join("file"), "").unwrap();
        assert!(folder(Some(named.join("file/below"))).path().is_err());
    }

    #[test]
    fn what_a_killed_session_left_is_deleted_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32, file: &str, is_old: bool| {
            let path = dir.path().join(name);
            DirBuilder::new().mode(mode).create(&path).unwrap();
            fs::write(path.join(file), "x").unwrap();
            if is_old {
                let past = SystemTime::now() - 2 * ABANDONED_AFTER;
                File::open(&path).unwrap().set_modified(past).unwrap();
            }
            path
        };
        let abandoned = make("windlass-output-a", 0o700, "bash-1.txt", true);
        let stays = [
            make("windlass-output-new", 0o700, "bash-1.txt", false),
            make("windlass-output-open", 0o755, "bash-1.txt", true),
            make("windlass-notes", 0o700, "bash-1.txt", true),
            make("windlass-output-mine", 0o700, "notes.txt", true),
            make("windlass-output-used", 0o700, "bash-1.txt", true),
        ];
        std::os::unix::fs::symlink(&stays[2], dir.path().join("windlass-output-link")).unwrap();
        let lock = File::open(&stays[4]).unwrap();
        lock.try_lock().unwrap();
        let state = folder(None).make_temporary(dir.path()).unwrap();
        assert!(!abandoned.exists());
        for path in &stays {
            assert_eq!(fs::read_dir(path).unwrap().count(), 1, "{}", path.display());
        }
        let FolderState::Temporary { folder: used, .. } = &state else { panic!() };
        File::open(used.path()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let _next = folder(None).make_temporary(dir.path()).unwrap();
        assert!(used.path().exists(), "it is in use");
    }
}
