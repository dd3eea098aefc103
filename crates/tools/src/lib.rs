//! The built-in tools: what a model can do to files and with commands. A tool acts on the object its facts named only,
//! answers every call, failures included, with text the model can act on, and holds no more in memory than it shows.

mod address;
mod bash;
mod change;
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
mod lookout;
mod open;
mod patch;
mod paths;
mod read;
mod save;
mod search;
mod search_files;
mod search_lines;
mod specs;
mod task_stop;
mod tasks;
mod text_encoding;
mod write;

pub use address::{redirected, url_fact};
pub use bash::{Bash, BashInput, BashSettings};
pub use describe::describe;
pub use edit::{Edit, EditInput};
pub use file::facts as file_facts;
pub use glob::{Glob, GlobInput, GlobSettings};
pub use grep::{Grep, GrepInput, OutputMode};
pub use lookout::Lookout;
pub use read::{Read, ReadInput, ReadLimits};
pub use task_stop::{TaskStop, TaskStopInput};
pub use tasks::{TaskInfo, Tasks};
pub use write::{Write, WriteInput};

use std::sync::Arc;

use windlass_ports::AnyTool;

/// What a session's settings say about the built-in tools.
#[derive(Clone, Debug)]
pub struct ToolSettings {
    /// How command lines are run.
    pub bash: BashSettings,
    /// How files are searched for by name.
    pub glob: GlobSettings,
    /// How much of a file is shown.
    pub read: ReadLimits,
    /// The session's background tasks.
    pub tasks: Arc<Tasks>,
}

specs::built_in_tools! {
    Bash: |settings| Bash::new(settings.bash, settings.tasks);
    Edit: |_| Edit;
    Glob: |settings| Glob::new(settings.glob);
    Grep: |_| Grep::default();
    Read: |settings| Read::new(settings.read);
    TaskStop: |settings| TaskStop::new(settings.tasks);
    Write: |_| Write;
}
