//! `windlass sessions`: what there is, and what can be done with it besides going on.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use windlass_config::{Home, Place, Settings};
use windlass_session::{Catalogue, GitProgram, Layout, Scope, SessionInfo, Wanted};

use crate::{complain, guard};

mod arguments;
mod export;
mod list;
mod remove;
mod search;
mod show;

pub(crate) use arguments::{Command, command, parse};
pub(crate) use export::{redactor, to_file};
pub(crate) use list::summary;

/// Where the command looks.
pub(crate) struct Ground {
    pub(crate) settings: Settings,
    layout: Layout,
    git: Option<GitProgram>,
    cwd: PathBuf,
}

impl Ground {
    pub(crate) fn new() -> Result<Self, String> {
        let settings = Settings::from_environment(std::env::vars_os()).map_err(|error| error.to_string())?;
        let cwd = std::env::current_dir().map_err(|error| {
            format!("cannot use the current directory: {error}. Change to one that exists.")
        })?;
        let place = Place {
            cwd: cwd.clone(),
            is_root: false,
            home: std::env::home_dir(),
            managed: guard::MANAGED.into(),
        };
        let home = Home::new(&settings.home, &place);
        let home = home.required().map_err(|error| error.to_string())?;
        Ok(Self { layout: Layout::new(home), git: guard::git::if_trusted(&place), settings, cwd })
    }

    fn catalogue(&self) -> Catalogue {
        Catalogue::new(self.layout.clone()).with_git(self.git.clone())
    }

    /// The sessions of this project, or all.
    fn sessions(&self, all: bool) -> Vec<SessionInfo> {
        let scope = if all { Scope::Everywhere } else { Scope::Project(&self.cwd) };
        self.catalogue().list(scope)
    }

    /// The newest session of this directory, whoever started it.
    pub(crate) fn newest(&self) -> Option<SessionInfo> {
        self.catalogue().newest(&self.cwd, Wanted::Any)
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub(crate) fn find(&self, query: &str) -> Result<SessionInfo, String> {
        self.catalogue().find(&self.cwd, query).map_err(|error| error.to_string())
    }
}

/// Does what was asked for. Returns the exit code.
pub(crate) fn run(command: &Command) -> i32 {
    let done = Ground::new().and_then(|ground| match command {
        Command::List(wanted) => list::run(&ground, wanted),
        Command::Show { session, json } => show::run(&ground, session, *json),
        Command::Search(wanted) => search::run(&ground, wanted),
        Command::Export(wanted) => export::run(&ground, wanted),
        Command::Rm { sessions } => remove::remove(&ground, sessions),
        Command::Restore { sessions } => remove::restore(&ground, sessions),
    });
    match done {
        Ok(()) => 0,
        Err(error) => {
            complain(&error);
            1
        }
    }
}

/// Prints a text that is ready for the terminal.
pub(crate) fn print(text: &str) -> Result<(), String> {
    written(std::io::stdout().write_all(text.as_bytes()))
}

/// A reader that has read enough is no failure.
fn written(result: std::io::Result<()>) -> Result<(), String> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}."))
        }
        _ => Ok(()),
    }
}

/// The beginning of an id: enough to be told apart by people, and to be given back to us.
pub(crate) fn short(session: &SessionInfo) -> String {
    const CHARS: usize = 8;
    session.id.to_string().chars().take(CHARS).collect()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
