//! The files that hold the output of commands.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use windlass_text::folders::SessionFolder;

use super::task_id;

/// A file for the output of one command. Its number is also the task's, should the command become one.
#[derive(Debug)]
pub(crate) struct OutputFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

#[derive(Debug)]
pub(super) struct OutputFiles {
    next: u64,
    /// Bytes that may still be written.
    allowance: u64,
    folder: SessionFolder,
}

impl OutputFiles {
    pub(super) fn new(directory: Option<PathBuf>, allowance: u64) -> Self {
        Self { next: 1, allowance, folder: SessionFolder::new(directory, "windlass-output-", is_output) }
    }

    pub(super) fn grant(&mut self, bytes: u64) -> u64 {
        let granted = bytes.min(self.allowance);
        self.allowance -= granted;
        granted
    }

    pub(super) fn create(&mut self) -> io::Result<OutputFile> {
        let directory = self.folder.path()?.to_owned();
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
}

fn is_output(name: &str) -> bool {
    let stem = name.strip_suffix(".txt").or_else(|| name.strip_suffix(".task"));
    let number = stem.and_then(|stem| stem.strip_prefix("bash-")).and_then(|number| number.parse().ok());
    number.is_some_and(|number| stem == Some(&task_id(number)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;
    use crate::tasks::Tasks;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_output_files_are_ours() {
        let check = |name: &str, expected: bool| assert_eq!(is_output(name), expected, "{name}");
        check("bash-1.txt", true);
        check("bash-12.task", true);
        check("bash-01.txt", false);
        check("notes.txt", false);
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
}
