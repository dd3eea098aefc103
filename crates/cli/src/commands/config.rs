//! `windlass config`: what holds and where it comes from, and the schema for editors.

mod show;

use std::ffi::OsString;

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use windlass_config::{setting_names, settings_page, settings_schema};
use windlass_text::nearest::closest;

use crate::arguments::Request;
use crate::arguments::command_tree;
use crate::arguments::help;
use crate::show_text;

/// Show the settings in force with file and line; list all settings
#[derive(Debug, Parser)]
#[command(name = "windlass config", disable_help_subcommand = true, args_override_self = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show each value in force, with its file and line
    Show(ShowArguments),
    /// Print the JSON schema of settings files, for editors
    Schema,
    /// List every setting with its meaning
    List {
        /// Only the settings whose names begin so, such as sandbox
        key: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Show only values whose names begin with this, such as permissions
    key: Option<String>,
    /// Additional settings: a file, or a JSON object
    #[arg(long, value_name = "FILE-OR-JSON")]
    settings: Vec<String>,
    /// Settings to read: user, project, local
    #[arg(long, value_name = "SOURCES")]
    setting_sources: Vec<String>,
    /// Treat the project as trusted
    #[arg(long)]
    trust_project: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What can be said behind `windlass config`.
pub(crate) fn command() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

/// Reads what stands behind `windlass config`. Each error is for the user.
pub(crate) fn parse(rest: &[OsString]) -> anyhow::Result<Request> {
    command_tree::read(rest, |Arguments { command }| Request::Config(command))
}

/// Does it and gives the exit code.
pub(crate) fn run(command: &Command) -> anyhow::Result<i32> {
    match command {
        Command::Show(wanted) => {
            let (text, code) = show::show_values(wanted)?;
            Ok(code.max(show_text(&text)))
        }
        Command::Schema => Ok(show_text(&settings_schema())),
        Command::List { key } => Ok(show_text(&list(key.as_deref())?)),
    }
}

fn list(key: Option<&str>) -> anyhow::Result<String> {
    if let Some(page) = settings_page(key.unwrap_or_default()) {
        return Ok(help::page(&page));
    }
    let key = key.unwrap_or_default();
    let names: Vec<&str> = setting_names().collect();
    let meant = closest(key, &names).map(|meant| format!("Did you mean {meant}?"));
    let next = meant.unwrap_or_else(|| "`windlass config list` lists all there are.".to_owned());
    Err(anyhow!("there is no setting {key}. {next}"))
}
