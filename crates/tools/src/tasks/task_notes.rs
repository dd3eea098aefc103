//! Notes about the tasks that run, beside their output. A session that is resumed learns from them which tasks its former process
//! took along: they ended with it, and nobody was told.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::task_id;

/// How the names of notes end.
const SUFFIX: &str = "task";

/// A task that ran when its session was left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OrphanedTask {
    pub(super) number: u64,
    pub(super) command: String,
    pub(super) output_file: PathBuf,
}

/// Notes that a task runs. Where that cannot be noted, it runs all the same.
pub(super) fn note(output_file: &Path, command: &str) {
    let path = output_file.with_extension(SUFFIX);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let _ = file.and_then(|mut file| file.write_all(command.as_bytes()));
}

/// The task is over, and that is known.
pub(super) fn forget(output_file: &Path) {
    // What cannot be deleted is told once more.
    let _ = fs::remove_file(output_file.with_extension(SUFFIX));
}

/// The tasks that were left in a directory, oldest first.
pub(super) fn find(directory: &Path) -> Vec<OrphanedTask> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut left: Vec<OrphanedTask> = entries.filter_map(|entry| read(&entry.path())).collect();
    left.sort_by_key(|task| task.number);
    left
}

fn read(note: &Path) -> Option<OrphanedTask> {
    let name = note.file_name()?.to_str()?.strip_suffix(SUFFIX)?.strip_suffix('.')?;
    let number: u64 = name.strip_prefix("bash-")?.parse().ok()?;
    let output_file = note.with_extension("txt");
    let command = String::from_utf8_lossy(&fs::read(note).ok()?).into_owned();
    (name == task_id(number)).then_some(OrphanedTask { number, command, output_file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_found_until_they_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let output = |number: u64| dir.path().join(format!("{}.txt", task_id(number)));
        note(&output(10), "sleep 10");
        note(&output(2), "sleep 2");
        fs::write(dir.path().join("bash-x.task"), "no").unwrap();
        fs::write(dir.path().join("other.task"), "no").unwrap();
        let numbers = || find(dir.path()).iter().map(|task| task.number).collect::<Vec<_>>();
        assert_eq!(numbers(), [2, 10]);
        assert_eq!(
            find(dir.path())[0],
            OrphanedTask { number: 2, command: "sleep 2".into(), output_file: output(2) }
        );
        forget(&output(2));
        assert_eq!(numbers(), [10]);
        assert_eq!(find(Path::new("/nowhere/at/all")), []);
    }
}
