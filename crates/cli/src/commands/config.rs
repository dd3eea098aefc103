//! `windlass config`: what holds and where it comes from, and the schema for editors.

mod show;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use windlass_config::{setting_names, settings_page, settings_schema};
use windlass_text::nearest::closest;

use crate::arguments::SettingsArguments;
use crate::arguments::help;
use crate::show_text;

/// Show the settings in force with file and line; list all settings
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
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
    #[command(flatten)]
    settings: SettingsArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does it and gives the exit code.
pub(crate) fn run(command: &ConfigCommand) -> anyhow::Result<i32> {
    match command {
        ConfigCommand::Show(wanted) => {
            let (text, code) = show::show_values(wanted)?;
            Ok(code.max(show_text(&text)))
        }
        ConfigCommand::Schema => Ok(show_text(&settings_schema())),
        ConfigCommand::List { key } => Ok(show_text(&list(key.as_deref())?)),
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
