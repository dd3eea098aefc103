//! The background tasks of a session, and the files that hold the output of commands.
//!
//! Everything a session started and left running hangs on its [`Tasks`]: when that is dropped, the processes end and
//! the files it made in a place of its own are deleted.

mod files;
mod task_notes;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio_util::sync::CancellationToken;
use windlass_ports::{EndedTask, TaskWatch};

pub(crate) use self::files::OutputFile;
use self::files::OutputFiles;

const RUNNING_MAX: usize = 32;
/// As many ended tasks are remembered, so that stopping one of them can be answered well.
const ENDED_MAX: usize = 64;
/// All output files of a session together hold this many bytes.
const SAVED_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// How a task ended whose process is gone.
const ENDED_WITH_PROCESS: &str = "It ended with the process that ran it; how far it got is unknown.";

/// The background tasks of one session. Dropping it ends them.
#[derive(Debug)]
pub struct Tasks {
    table: Mutex<Table>,
    files: Mutex<OutputFiles>,
    end: CancellationToken,
}

#[derive(Debug, Default)]
struct Table {
    tasks: BTreeMap<u64, Task>,
    /// Who wants to know when a task ends.
    watcher: Option<Waker>,
}

#[derive(Debug)]
struct Task {
    command: String,
    output_file: PathBuf,
    state: TaskState,
    /// Its end is known to whoever asked for it, or was told.
    told: bool,
}

#[derive(Debug)]
enum TaskState {
    Running { stop: CancellationToken, done: CancellationToken },
    Ended(String),
}

impl Task {
    fn is_running(&self) -> bool {
        matches!(self.state, TaskState::Running { .. })
    }
}

/// A background task that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// What `TaskStop` takes.
    pub id: String,
    /// What it runs.
    pub command: String,
    /// Where its output goes.
    pub output_file: PathBuf,
}

/// What a task that has begun listens to and says when it is over.
#[derive(Debug)]
pub(crate) struct TaskSignals {
    pub(crate) stop: CancellationToken,
    pub(crate) done: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct StoppedTask {
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) done: CancellationToken,
}

impl Tasks {
    /// No tasks yet. Output files go to `output_dir` and stay there; without one, to a private temporary directory
    /// that is made when it is needed and deleted with this object.
    #[must_use]
    pub fn new(output_dir: Option<PathBuf>) -> Arc<Self> {
        Self::with_allowance(output_dir, SAVED_BYTES_MAX)
    }

    /// The tasks of a session that is resumed: those that its former process left running ended with it, which is told now.
    #[must_use]
    pub fn resumed(output_dir: PathBuf) -> Arc<Self> {
        let left = task_notes::find(&output_dir);
        let tasks = Self::new(Some(output_dir));
        for task_notes::OrphanedTask { number, command, output_file } in left {
            let state = TaskState::Ended(ENDED_WITH_PROCESS.into());
            tasks.table().tasks.insert(number, Task { command, output_file, state, told: false });
        }
        tasks
    }

    /// No tasks yet; all their files together may hold `saved_bytes_max`.
    pub(crate) fn with_allowance(output_dir: Option<PathBuf>, saved_bytes_max: u64) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            files: Mutex::new(OutputFiles::new(output_dir, saved_bytes_max)),
            end: CancellationToken::new(),
        })
    }

    /// The tasks that are running, oldest first.
    #[must_use]
    pub fn running(&self) -> Vec<TaskInfo> {
        let table = self.table();
        let running = table.tasks.iter().filter(|(_, task)| task.is_running());
        running
            .map(|(&number, task)| TaskInfo {
                id: task_id(number),
                command: task.command.clone(),
                output_file: task.output_file.clone(),
            })
            .collect()
    }

    pub(crate) fn session_end(&self) -> CancellationToken {
        self.end.clone()
    }

    /// A new, empty file that only this user can read.
    pub(crate) fn create_output(&self) -> io::Result<OutputFile> {
        self.files().create()
    }

    /// Leave to write so many bytes to output files, or as many as are still allowed.
    pub(crate) fn grant(&self, bytes: u64) -> u64 {
        self.files().grant(bytes)
    }

    fn files(&self) -> MutexGuard<'_, OutputFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a command whose output goes to this file as a running task. `None` when too many are running.
    pub(crate) fn begin(&self, number: u64, command: String, output_file: PathBuf) -> Option<TaskSignals> {
        let mut table = self.table();
        if table.tasks.values().filter(|task| task.is_running()).count() >= RUNNING_MAX {
            return None;
        }
        task_notes::note(&output_file, &command);
        let stop = self.end.child_token();
        let done = CancellationToken::new();
        let state = TaskState::Running { stop: stop.clone(), done: done.clone() };
        table.tasks.insert(number, Task { command, output_file, state, told: false });
        Some(TaskSignals { stop, done })
    }

    pub(crate) fn end(&self, number: u64, how: String) {
        let mut table = self.table();
        if let Some(task) = table.tasks.get_mut(&number) {
            task.state = TaskState::Ended(how);
            if task.told {
                task_notes::forget(&task.output_file);
            }
        }
        let watcher = table.watcher.take();
        let ended = table.tasks.iter().filter(|(_, task)| !task.is_running());
        if ended.clone().count() > ENDED_MAX {
            // One that nobody was told about yet goes last.
            let oldest = ended.min_by_key(|(number, task)| (!task.told, **number)).map(|(&number, _)| number);
            oldest.map(|number| table.tasks.remove(&number));
        }
        drop(table);
        if let Some(watcher) = watcher {
            watcher.wake();
        }
    }

    /// Asks a task to stop. An error is for the model and says what is running.
    pub(crate) fn stop(&self, id: &str) -> Result<StoppedTask, String> {
        let mut table = self.table();
        let task = table.tasks.iter_mut().find(|(number, _)| task_id(**number) == id).map(|(_, task)| task);
        let why = match task {
            Some(Task { state: TaskState::Running { stop, done }, command, told, .. }) => {
                *told = true;
                stop.cancel();
                return Ok(StoppedTask { id: id.to_owned(), command: command.clone(), done: done.clone() });
            }
            Some(Task { state: TaskState::Ended(how), .. }) => format!("Task {id} has already ended: {how}"),
            None => format!("There is no background task {id:?}."),
        };
        drop(table);
        Err(format!("{why} {}", self.describe_running()))
    }

    fn describe_running(&self) -> String {
        let running = self.running();
        if running.is_empty() {
            return "No background task is running.".to_owned();
        }
        let list: Vec<String> =
            running.iter().map(|task| format!("- {}: {}", task.id, task.command)).collect();
        format!("Running:\n{}", list.join("\n"))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskWatch for Tasks {
    fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<EndedTask> {
        let mut table = self.table();
        for (&number, task) in table.tasks.iter_mut().filter(|(_, task)| !task.told) {
            if let TaskState::Ended(how) = &task.state {
                task.told = true;
                task_notes::forget(&task.output_file);
                return Poll::Ready(EndedTask {
                    id: task_id(number),
                    command: task.command.clone(),
                    how: how.clone(),
                    output_file: task.output_file.clone(),
                });
            }
        }
        match &mut table.watcher {
            Some(watcher) => watcher.clone_from(cx.waker()),
            None => table.watcher = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

pub(crate) fn task_id(number: u64) -> String {
    format!("bash-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_tasks_are_remembered_up_to_a_bound() {
        let tasks = Tasks::new(None);
        for number in 0..500 {
            tasks.begin(number, "true".into(), "/f".into()).unwrap();
            tasks.end(number, "It exited with code 0.".into());
        }
        assert_eq!(tasks.table().tasks.len(), ENDED_MAX);
        let error = tasks.stop("bash-499").unwrap_err();
        assert_eq!(
            error,
            "Task bash-499 has already ended: It exited with code 0. No background task is running."
        );
        let error = tasks.stop("bash-0").unwrap_err();
        assert!(error.starts_with("There is no background task \"bash-0\"."), "{error}");
    }

    #[test]
    fn each_end_is_told_once_unless_it_was_asked_for() {
        let tasks = Tasks::new(None);
        let begin = |number| drop(tasks.begin(number, format!("sleep {number}"), "/f".into()).unwrap());
        let ended = || match tasks.poll_ended(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(task) => Some(task.id),
            Poll::Pending => None,
        };
        (1..=3).for_each(begin);
        assert_eq!(ended(), None);
        tasks.stop("bash-2").unwrap();
        for number in [3, 2, 1] {
            tasks.end(number, "It exited with code 0.".into());
        }
        assert_eq!([ended(), ended(), ended()], [Some("bash-1".into()), Some("bash-3".into()), None]);
    }

    #[test]
    fn tasks_that_a_process_left_are_told_to_have_ended_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let output = |number: u64| dir.path().join(format!("{}.txt", task_id(number)));
        let first = Tasks::new(Some(dir.path().to_owned()));
        for number in 1..=3 {
            first.begin(number, format!("sleep {number}"), output(number)).unwrap();
        }
        first.end(1, "It exited with code 0.".into());
        let told = |tasks: &Tasks| match tasks.poll_ended(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(task) => Some((task.id, task.how)),
            Poll::Pending => None,
        };
        assert!(told(&first).is_some());
        let second = Tasks::resumed(dir.path().to_owned());
        let ended = |id: &str| Some((id.to_owned(), ENDED_WITH_PROCESS.to_owned()));
        assert_eq!([told(&second), told(&second), told(&second)], [ended("bash-2"), ended("bash-3"), None]);
        assert!(second.stop("bash-2").unwrap_err().contains("has already ended"));
        assert_eq!(told(&Tasks::resumed(dir.path().to_owned())), None);
    }

    #[test]
    fn only_so_many_run_at_once() {
        let tasks = Tasks::new(None);
        let begin = |number| tasks.begin(number, format!("sleep {number}"), "/f".into());
        assert!((0..32).all(|number| begin(number).is_some()));
        assert!(begin(32).is_none());
        let error = tasks.stop("x").unwrap_err();
        assert!(error.contains("Running:\n- bash-0: sleep 0\n- bash-1: sleep 1"), "{error}");
        let stopping = tasks.stop("bash-3").unwrap();
        assert_eq!((stopping.id.as_str(), stopping.command.as_str()), ("bash-3", "sleep 3"));
    }
}
