//! `windlass sessions`: what there is, and what can be done with it besides going on.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::Value;
use windlass::SessionStore;
use windlass::session_store::SessionInfo;
use windlass_text::time::now_ms;

use crate::display;
use crate::views::layout;

mod export;
mod list;
mod search;
mod show;

pub(crate) use export::to_file;
pub(crate) use list::summary;

/// List, show, search, export and remove sessions
#[derive(Debug, Args)]
#[command(
    after_help = "A SESSION is an id, its first characters (at least 4), a title, or words of the first \
                        prompt; rm and restore take ids only. To continue one: `windlass -p --resume \
                        SESSION \"your prompt\"`."
)]
pub(crate) struct SessionsArguments {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List the sessions of this project, latest first
    List(ListArguments),
    /// Show a session: its facts, last prompt and last answer
    Show {
        /// Session to show
        session: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the conversations for words
    Search(SearchArguments),
    /// Export a whole session as text, Markdown or JSON, with secrets redacted
    Export(ExportArguments),
    /// Move sessions to the trash
    Rm {
        /// Session ids
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
    },
    /// Restore sessions from the trash
    Restore {
        /// Session ids
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
    },
}

#[derive(Debug, Default, Args)]
struct ListArguments {
    /// Include the sessions of all projects
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show at most N [default: 50; with --json all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Args)]
struct SearchArguments {
    /// Words to find, in this order; case does not matter
    #[arg(required = true)]
    words: Vec<String>,
    #[command(flatten)]
    list: ListArguments,
}

#[derive(Debug, Args)]
struct ExportArguments {
    /// Session to export
    session: String,
    /// Output format [default: from the file extension, else text]
    #[arg(long, value_parser = ["text", "markdown", "json"])]
    format: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Does what was asked for. Returns the exit code.
pub(crate) fn run(wanted: &SessionsArguments) -> anyhow::Result<i32> {
    let store = SessionStore::open()?;
    match &wanted.command {
        None => list::run(&store, &ListArguments::default()),
        Some(SessionsCommand::List(wanted)) => list::run(&store, wanted),
        Some(SessionsCommand::Show { session, json }) => show::run(&store, session, *json),
        Some(SessionsCommand::Search(wanted)) => search::run(&store, wanted),
        Some(SessionsCommand::Export(wanted)) => export::run(&store, wanted),
        Some(SessionsCommand::Rm { sessions }) => remove(&store, sessions),
        Some(SessionsCommand::Restore { sessions }) => restore(&store, sessions),
    }?;
    Ok(0)
}

/// Prints a text that is ready for the terminal.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    check_written(std::io::stdout().write_all(text.as_bytes()))
}

/// A reader that has read enough is no failure.
fn check_written(result: std::io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow!("cannot write to standard output: {error}."))
        }
        _ => Ok(()),
    }
}

/// As many rows are shown if no number is given.
const ROWS_MAX: usize = 50;

impl ListArguments {
    fn sessions(&self, store: &SessionStore) -> Vec<SessionInfo> {
        if self.all { store.all_sessions() } else { store.project_sessions() }
    }

    fn limit(&self) -> usize {
        self.limit.unwrap_or(if self.json { usize::MAX } else { ROWS_MAX })
    }
}

/// The room for a line on standard output.
fn columns() -> usize {
    let stdout = std::io::stdout();
    if stdout.is_terminal() { layout::columns(&stdout) } else { usize::MAX }
}

/// A list as JSON, with a line for each item.
fn json_list(items: impl Iterator<Item = Value>) -> String {
    let rows: Vec<String> = items.map(|item| display::json(&item)).collect();
    if rows.is_empty() { "[]\n".into() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
}

/// The beginning of an id: enough to be told apart by people, and to be given back to us.
pub(crate) fn short(session: &SessionInfo) -> String {
    const CHARS: usize = 8;
    session.id.to_string().chars().take(CHARS).collect()
}

/// As much of what a session is about is shown: it leaves room for the rest of a line.
const SUMMARY_COLUMNS: usize = 45;

/// Which session goes on, for people.
pub(crate) fn resumed_notice(session: &SessionInfo) -> String {
    let summary = layout::cut(&summary(session), SUMMARY_COLUMNS);
    let ago = display::ago(session.modified_ms, now_ms());
    format!("Resumed \"{summary}\" (last change {ago}).")
}

/// Moves sessions to the trash. All of them are looked up first: a wrong id moves none.
fn remove(store: &SessionStore, queries: &[String]) -> anyhow::Result<()> {
    let find = |query: &String| store.find_id(query);
    let sessions: Vec<SessionInfo> = queries.iter().map(find).collect::<Result<_, _>>()?;
    let mut failures = Vec::new();
    let mut text = String::new();
    for session in &sessions {
        match store.move_to_trash(session) {
            Ok(_) => {
                let _ = writeln!(text, "Moved to the trash: {} ({})", session.id, summary(session));
            }
            Err(error) => failures.push(format!("{}: {error}", session.id)),
        }
    }
    if !text.is_empty() {
        text.push_str("Undo with `windlass sessions restore ID`.\n");
    }
    finish(&text, &failures)
}

/// Brings sessions back.
fn restore(store: &SessionStore, queries: &[String]) -> anyhow::Result<()> {
    let mut failures = Vec::new();
    let mut text = String::new();
    for query in queries {
        match store.restore(query) {
            Ok(path) => {
                let _ = writeln!(text, "Restored {}", display::home_as_tilde(&path));
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    finish(&text, &failures)
}

fn finish(text: &str, failures: &[String]) -> anyhow::Result<()> {
    print(text)?;
    if failures.is_empty() { Ok(()) } else { Err(anyhow!(failures.join(" "))) }
}
