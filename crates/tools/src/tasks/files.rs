//! The files that hold the output of commands, and the directory they are in.
//!
//! A directory of our own is deleted with its session. If the session is killed it stays, until a later session makes
//! one: whoever uses a directory holds a lock on it, which the kernel gives back however its holder ends.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::task_id;

/// How the names of our directories begin.
const PREFIX: &str = "windlass-output-";
/// A directory that is not locked and younger than this may be one that somebody is just making.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);
/// Looking for abandoned directories ends after so many names.
const NAMES_MAX: usize = 10_000;
/// Only the user may enter.
const PRIVATE: u32 = 0o700;

/// A file for the output of one command. Its number is also the task's, should the command become one.
#[derive(Debug)]
pub(crate) struct OutputFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

/// The output files of a session.
#[derive(Debug)]
pub(super) struct Files {
    next: u64,
    /// Bytes that may still be written.
    allowance: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A temporary directory, once it is needed.
    Later,
    Temporary {
        directory: TempDir,
        /// Says that somebody uses the directory.
        _lock: File,
    },
    Given(PathBuf),
}

impl Files {
    pub(super) fn new(directory: Option<PathBuf>, allowance: u64) -> Self {
        Self { next: 1, allowance, place: directory.map_or(Place::Later, Place::Given) }
    }

    pub(super) fn grant(&mut self, bytes: u64) -> u64 {
        let granted = bytes.min(self.allowance);
        self.allowance -= granted;
        granted
    }

    pub(super) fn create(&mut self) -> io::Result<OutputFile> {
        let directory = self.directory()?.to_owned();
        loop {
            let number = self.next;
            self.next += 1;
            let path = directory.join(format!("{}.txt", task_id(number)));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(OutputFile { number, path, file }),
                // Left by an earlier session that used the same directory.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn directory(&mut self) -> io::Result<&Path> {
        if let Place::Later = self.place {
            self.place = make_temporary(&std::env::temp_dir())?;
        }
        match &self.place {
            Place::Temporary { directory, .. } => Ok(directory.path()),
            Place::Given(directory) => {
                DirBuilder::new().recursive(true).mode(PRIVATE).create(directory)?;
                Ok(directory)
            }
            Place::Later => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn make_temporary(place: &Path) -> io::Result<Place> {
    let private = Permissions::from_mode(PRIVATE);
    let directory = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(place)?;
    let lock = File::open(directory.path())?;
    // Where nothing can be locked, nobody will take the directory for abandoned either.
    let _ = lock.try_lock();
    remove_abandoned(place, &lock.metadata()?);
    Ok(Place::Temporary { directory, _lock: lock })
}

/// Deletes directories that killed sessions left in `place`; `ours` is what such a directory looks like.
fn remove_abandoned(place: &Path, ours: &Metadata) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten().take(NAMES_MAX) {
        let is_named = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_named && entry.metadata().is_ok_and(|meta| is_like(&meta, ours) && is_old(&meta)) {
            // What cannot be deleted stays.
            let _ = remove_if_unused(&entry.path());
        }
    }
}

fn is_like(meta: &Metadata, ours: &Metadata) -> bool {
    meta.is_dir() && meta.uid() == ours.uid() && meta.mode() == ours.mode()
}

fn is_old(meta: &Metadata) -> bool {
    let age = meta.modified().ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age > ABANDONED_AFTER)
}

/// Deletes output files and, if nothing else is in it, their directory.
fn remove_if_unused(directory: &Path) -> io::Result<()> {
    let lock = File::open(directory)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)?.flatten() {
        if is_output(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(directory)
}

fn is_output(name: &str) -> bool {
    let stem = name.strip_suffix(".txt").or_else(|| name.strip_suffix(".task"));
    let number = stem.and_then(|stem| stem.strip_prefix("bash-")).and_then(|number| number.parse().ok());
    number.is_some_and(|number| stem == Some(&task_id(number)))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::tasks::Tasks;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn output_files_are_private_and_go_with_the_session() {
        let tasks = Tasks::new(None);
        let first = tasks.create_output().unwrap();
        let second = tasks.create_output().unwrap();
        assert_ne!(first.path, second.path);
        let directory = first.path.parent().unwrap().to_owned();
        assert_eq!((mode(&directory), mode(&first.path)), (0o700, 0o600));
        drop(tasks);
        assert!(!directory.exists());
    }

    #[test]
    fn files_in_a_given_directory_stay_and_are_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("made/when/needed");
        let first = Tasks::new(Some(place.clone())).create_output().unwrap();
        let second = Tasks::new(Some(place.clone())).create_output().unwrap();
        assert_ne!(first.path, second.path);
        assert_eq!((mode(&place), mode(&first.path)), (0o700, 0o600));
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
        let place = make_temporary(dir.path()).unwrap();
        assert!(!abandoned.exists());
        for path in &stays {
            assert_eq!(fs::read_dir(path).unwrap().count(), 1, "{}", path.display());
        }
        let Place::Temporary { directory, .. } = &place else { panic!() };
        File::open(directory.path()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let _next = make_temporary(dir.path()).unwrap();
        assert!(directory.path().exists(), "it is in use");
    }
}
