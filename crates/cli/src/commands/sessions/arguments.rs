//! What can be said behind `windlass sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// List, show, search, export and remove sessions
#[derive(Debug, Args)]
#[command(
    after_help = "A SESSION is an id, its first characters (at least 4), a title, or words of the first \
                        prompt; rm and restore take ids only. To continue one: `windlass -p --resume \
                        SESSION \"your prompt\"`."
)]
pub(crate) struct SessionsArguments {
    #[command(subcommand)]
    pub(super) command: Option<SessionsCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List the sessions of this project, latest first
    List(ListWanted),
    /// Show a session: its facts, last prompt and last answer
    Show {
        /// Session to show
        session: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the conversations for words
    Search(SearchWanted),
    /// Export a whole session as text, Markdown or JSON, with secrets redacted
    Export(ExportWanted),
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
pub(crate) struct ListWanted {
    /// List the sessions of all projects
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show at most N sessions [default: 50; with --json all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchWanted {
    /// Words to find, in this order; case does not matter
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Search the sessions of all projects
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show at most N matches [default: 50; with --json all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportWanted {
    /// Session to export
    pub(crate) session: String,
    /// Output format [default: from the file extension, else text]
    #[arg(long, value_parser = ["text", "markdown", "json"])]
    pub(crate) format: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}
