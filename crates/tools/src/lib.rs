//! The built-in tools: what a model can do to files and with commands. A tool acts on the object its facts named only,
//! answers every call, failures included, with text the model can act on, and holds no more in memory than it shows.

mod address;
mod bash;
mod change;
mod change_watcher;
mod content;
mod describe;
mod edit;
mod file;
mod fingerprint;
#[cfg(test)]
#[path = "tests/fixture.rs"]
mod fixture;
mod git_directory;
mod glob;
mod grep;
mod lenient;
mod open;
mod patch;
mod paths;
mod read;
mod save;
mod search;
mod search_files;
mod search_lines;
#[cfg(test)]
#[path = "tests/specs.rs"]
mod specs;
mod task_stop;
mod tasks;
mod text_encoding;
mod write;

pub use address::{redirect_target, url_fact};
pub use bash::{Bash, BashInput, BashSettings};
pub use change_watcher::FileChangeWatcher;
pub use describe::describe;
pub use edit::{Edit, EditInput};
pub use file::facts as file_facts;
pub use glob::{Glob, GlobInput, GlobSettings};
pub use grep::{Grep, GrepInput, OutputMode};
pub use read::{Read, ReadInput, ReadLimits};
pub use task_stop::{TaskStop, TaskStopInput};
pub use tasks::{TaskInfo, Tasks};
pub use write::{Write, WriteInput};

use std::sync::Arc;

use windlass_ports::AnyTool;

/// The built-in tools of a session with these background tasks, in the order the model sees them.
pub fn built_in(
    bash: BashSettings,
    glob: GlobSettings,
    read: ReadLimits,
    tasks: &Arc<Tasks>,
) -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(Bash::new(bash, tasks.clone())),
        Arc::new(Edit),
        Arc::new(Glob::new(glob)),
        Arc::new(Grep::default()),
        Arc::new(Read::new(read)),
        Arc::new(TaskStop::new(tasks.clone())),
        Arc::new(Write),
    ]
}
