//! The files of tasks: outputs, and notes by which a resumed session learns which tasks were cut off.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use windlass_text::folders::SessionFolder;

use super::TaskInfo;

/// How the names of output files and of notes end.
const OUTPUT: &str = "txt";
const NOTE: &str = "task";

/// A file for the output of one command. Its number is also the task's, should the command become one.
#[derive(Debug)]
pub(crate) struct OutputFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Bytes of the output in it.
    pub(crate) bytes: u64,
    /// It holds only the beginning.
    pub(crate) is_cut: bool,
}

#[derive(Debug)]
pub(crate) struct OutputFiles {
    next: u64,
    /// Bytes that may still be written.
    allowance: u64,
    folder: SessionFolder,
}

impl OutputFiles {
    pub(super) fn new(directory: Option<PathBuf>, allowance: u64) -> Self {
        Self { next: 1, allowance, folder: SessionFolder::new(directory, "windlass-output-", is_output) }
    }

    /// Leave to write so many bytes to output files, or as many as are still allowed.
    pub(crate) fn reserve(&mut self, bytes: u64) -> u64 {
        let reserved = bytes.min(self.allowance);
        self.allowance -= reserved;
        reserved
    }

    /// A new, empty file that only this user can read.
    pub(crate) fn create(&mut self) -> io::Result<OutputFile> {
        let directory = self.folder.path()?.to_owned();
        loop {
            let number = self.next;
            self.next += 1;
            let path = directory.join(task_id(number)).with_extension(OUTPUT);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    return Ok(OutputFile { number, path, file: file.into(), bytes: 0, is_cut: false });
                }
                // Left by an earlier session that used the same directory.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

pub(crate) fn task_id(number: u64) -> String {
    format!("bash-{number}")
}

/// The task that a file of this name belongs to, if its name ends so.
fn task_number(name: &str, suffix: &str) -> Option<u64> {
    let id = name.strip_suffix(suffix)?.strip_suffix('.')?;
    id.strip_prefix("bash-")?.parse().ok().filter(|number| task_id(*number) == id)
}

fn is_output(name: &str) -> bool {
    [OUTPUT, NOTE].iter().any(|suffix| task_number(name, suffix).is_some())
}

/// Notes that a task runs. Where that cannot be noted, it runs all the same.
pub(super) fn note(output_file: &Path, command: &str) {
    let path = output_file.with_extension(NOTE);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let _ = file.and_then(|mut file| file.write_all(command.as_bytes()));
}

/// The task is over, and that is known.
pub(super) fn forget_note(output_file: &Path) {
    // What cannot be deleted is told once more.
    let _ = fs::remove_file(output_file.with_extension(NOTE));
}

/// The tasks that ran when a session was left, by their number.
pub(super) fn noted_tasks(directory: &Path) -> BTreeMap<u64, TaskInfo> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let tasks = entries.filter_map(|entry| {
        let number = task_number(entry.file_name().to_str()?, NOTE)?;
        let command = String::from_utf8_lossy(&fs::read(entry.path()).ok()?).into_owned();
        let output_file = entry.path().with_extension(OUTPUT);
        Some((number, TaskInfo { id: task_id(number), command, output_file }))
    });
    tasks.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
        let first = tasks.files().create().unwrap();
        let second = tasks.files().create().unwrap();
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
        let first = Tasks::new(Some(place.clone())).files().create().unwrap();
        let second = Tasks::new(Some(place.clone())).files().create().unwrap();
        assert_ne!(first.path, second.path);
        assert_eq!((mode(&place), mode(&first.path)), (0o700, 0o600));
    }

    #[test]
    fn notes_are_found_until_they_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let output = |number: u64| dir.path().join(format!("{}.txt", task_id(number)));
        note(&output(10), "sleep 10");
        note(&output(2), "sleep 2");
        fs::write(dir.path().join("bash-x.task"), "no").unwrap();
        fs::write(dir.path().join("other.task"), "no").unwrap();
        let numbers = || noted_tasks(dir.path()).into_keys().collect::<Vec<_>>();
        assert_eq!(numbers(), [2, 10]);
        let expected = TaskInfo { id: "bash-2".into(), command: "sleep 2".into(), output_file: output(2) };
        assert_eq!(noted_tasks(dir.path())[&2], expected);
        forget_note(&output(2));
        assert_eq!(numbers(), [10]);
        assert!(noted_tasks(Path::new("/nowhere/at/all")).is_empty());
    }
}
