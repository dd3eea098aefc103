//! The background tasks of a session, and the files that hold the output of commands. Dropping [`Tasks`] ends all that
//! a session left running, and deletes the files it made in a place of its own.

mod files;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio_util::sync::CancellationToken;
use windlass_ports::{EndedTask, TaskWatch};

use self::files::OutputFiles;
pub(crate) use self::files::{OutputFile, task_id};

const RUNNING_MAX: usize = 32;
/// As many ended tasks are remembered, so that stopping one of them can be answered well.
const ENDED_MAX: usize = 64;
/// All output files of a session together hold this many bytes.
pub(crate) const SAVED_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// How a task ended whose process is gone.
const ENDED_WITH_PROCESS: &str = "It ended with the process that ran it; how far it got is unknown.";

/// The background tasks of one session. Dropping it ends them.
#[derive(Debug)]
pub struct Tasks {
    table: Mutex<Table>,
    files: Mutex<OutputFiles>,
    /// Fires when the session ends.
    pub(crate) session_end: CancellationToken,
}

#[derive(Debug, Default)]
struct Table {
    tasks: BTreeMap<u64, Task>,
    /// Who wants to know when a task ends.
    watcher: Option<Waker>,
}

#[derive(Debug)]
struct Task {
    info: TaskInfo,
    state: TaskState,
    /// Its end is known to whoever asked for it, or was told.
    is_told: bool,
}

#[derive(Debug)]
enum TaskState {
    Running(TaskSignals),
    Ended(String),
}

impl Task {
    fn is_running(&self) -> bool {
        matches!(self.state, TaskState::Running(_))
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
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskSignals {
    pub(crate) stop: CancellationToken,
    pub(crate) done: CancellationToken,
}

impl Tasks {
    /// No tasks yet. Output goes to `output_dir` and stays, or to a temporary directory that goes with this.
    pub fn new(output_dir: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            files: Mutex::new(OutputFiles::new(output_dir, SAVED_BYTES_MAX)),
            session_end: CancellationToken::new(),
        })
    }

    /// The tasks of a session that is resumed: those that its former process left running ended with it, which is told now.
    pub fn resumed(output_dir: PathBuf) -> Arc<Self> {
        let left = files::noted_tasks(&output_dir);
        let tasks = Self::new(Some(output_dir));
        let ended = |info| Task { info, state: TaskState::Ended(ENDED_WITH_PROCESS.into()), is_told: false };
        tasks.table().tasks.extend(left.into_iter().map(|(number, info)| (number, ended(info))));
        tasks
    }

    /// The tasks that are running, oldest first.
    pub fn running(&self) -> Vec<TaskInfo> {
        let table = self.table();
        table.tasks.values().filter(|task| task.is_running()).map(|task| task.info.clone()).collect()
    }

    /// The files that hold the output of commands.
    pub(crate) fn files(&self) -> MutexGuard<'_, OutputFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a command whose output goes to this file as a running task. `None` when too many are running.
    pub(crate) fn begin(&self, number: u64, command: String, output_file: PathBuf) -> Option<TaskSignals> {
        let mut table = self.table();
        if table.tasks.values().filter(|task| task.is_running()).count() >= RUNNING_MAX {
            return None;
        }
        files::note(&output_file, &command);
        let signals = TaskSignals { stop: self.session_end.child_token(), ..TaskSignals::default() };
        let info = TaskInfo { id: task_id(number), command, output_file };
        let state = TaskState::Running(signals.clone());
        table.tasks.insert(number, Task { info, state, is_told: false });
        Some(signals)
    }

    pub(crate) fn end(&self, number: u64, how: String) {
        let mut table = self.table();
        if let Some(task) = table.tasks.get_mut(&number) {
            task.state = TaskState::Ended(how);
            if task.is_told {
                files::forget_note(&task.info.output_file);
            }
        }
        let watcher = table.watcher.take();
        let ended = table.tasks.iter().filter(|(_, task)| !task.is_running());
        if ended.clone().count() > ENDED_MAX {
            // One that nobody was told about yet goes last.
            let oldest =
                ended.min_by_key(|(number, task)| (!task.is_told, **number)).map(|(&number, _)| number);
            oldest.map(|number| table.tasks.remove(&number));
        }
        drop(table);
        if let Some(watcher) = watcher {
            watcher.wake();
        }
    }

    /// Asks a task to stop, and says what tells when it has. An error is for the model and says what is running.
    pub(crate) fn stop(&self, id: &str) -> Result<(TaskInfo, CancellationToken), String> {
        let mut table = self.table();
        let why = match table.tasks.values_mut().find(|task| task.info.id == id) {
            Some(Task { state: TaskState::Running(TaskSignals { stop, done }), info, is_told }) => {
                *is_told = true;
                stop.cancel();
                return Ok((info.clone(), done.clone()));
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
        let list: Vec<_> = running.iter().map(|task| format!("- {}: {}", task.id, task.command)).collect();
        format!("Running:\n{}", list.join("\n"))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskWatch for Tasks {
    fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<EndedTask> {
        let mut table = self.table();
        for task in table.tasks.values_mut().filter(|task| !task.is_told) {
            if let TaskState::Ended(how) = &task.state {
                task.is_told = true;
                files::forget_note(&task.info.output_file);
                let TaskInfo { id, command, output_file } = task.info.clone();
                return Poll::Ready(EndedTask { id, command, how: how.clone(), output_file });
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
        self.session_end.cancel();
    }
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
        let (stopping, _) = tasks.stop("bash-3").unwrap();
        assert_eq!((stopping.id.as_str(), stopping.command.as_str()), ("bash-3", "sleep 3"));
    }
}
