//! What can be said behind `windlass sessions`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use crate::arguments::Request;
use crate::{display, help, usage};

/// Lists, shows, searches, exports and removes sessions
#[derive(Debug, Parser)]
#[command(name = "windlass sessions", disable_help_subcommand = true, args_override_self = true)]
#[command(
    after_help = "A SESSION is an id, the beginning of one (from 4 characters), a title, or words of the first \
                        prompt; rm and restore take ids only. To go on with one: `windlass -p --resume SESSION \"your prompt\"`."
)]
struct Sessions {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the sessions of this project, the latest first
    List(ListWanted),
    /// Show what is known about a session, with its last prompt and answer
    Show {
        /// Which one
        session: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find words in what was said
    Search(SearchWanted),
    /// Write a whole session as text, Markdown or JSON, without secrets
    Export(ExportWanted),
    /// Move sessions to the trash
    Rm {
        /// Which ones, by id
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
    },
    /// Bring sessions back from the trash
    Restore {
        /// Which ones, by id
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct ListWanted {
    /// Those of all projects
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// At most so many [default: 50; with --json all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchWanted {
    /// The words, in this order; upper and lower case are the same
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// In the sessions of all projects
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// At most so many places [default: 50; with --json all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportWanted {
    /// Which one
    pub(crate) session: String,
    /// The form [default: by the ending of the file, else text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Form>,
    /// Write to a file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Text,
    Markdown,
    Json,
}

/// Reads what stands behind `windlass sessions`. Each error is for the user.
pub(crate) fn parse(rest: &[OsString]) -> Result<Request, String> {
    let line = std::iter::once(OsString::from("windlass sessions")).chain(rest.iter().cloned());
    match Sessions::try_parse_from(line) {
        Ok(Sessions { command }) => {
            Ok(Request::Sessions(command.unwrap_or_else(|| Command::List(ListWanted::default()))))
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            Ok(Request::Show(help::page(&error.render().to_string())))
        }
        Err(error) => Err(format!("{} `windlass sessions --help` shows what there is.", wrong(&error))),
    }
}

/// What `windlass help sessions` says.
pub(crate) fn help() -> String {
    Sessions::command().render_help().to_string()
}

/// What is wrong with a line, in a sentence.
pub(crate) fn wrong(error: &clap::Error) -> String {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => display::line(text),
        Some(ContextValue::Strings(texts)) => display::line(&texts.join(" ")),
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::UnknownArgument => format!("{} does not belong here.", named(ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => {
            format!("there is no command `windlass sessions {}`.", named(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => format!("{} is missing.", named(ContextKind::InvalidArg)),
        _ => usage::explain(error),
    }
}
