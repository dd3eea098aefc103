//! `windlass permissions`: what would become of a call, and why. Nothing is run.

mod batch;
mod explain;

use clap::{Args, Subcommand};

use crate::arguments::SettingsArguments;
use crate::show_text;

/// What stands below the flags.
const AFTER: &str = include_str!("../arguments/help/permissions.txt");

/// Explain whether tool calls would be allowed, by which rule and why; nothing runs
#[derive(Debug, Subcommand)]
#[command(after_help = AFTER)]
pub(crate) enum PermissionsCommand {
    /// Explain whether a tool call would be allowed with the settings of this directory
    #[command(after_help = AFTER)]
    Explain(ExplainArguments),
}

/// The call that is to be explained.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Name of the tool
    #[arg(long, required_unless_present = "batch")]
    pub(crate) tool: Option<String>,
    /// Its input, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) input: String,
    /// Permission mode, instead of the settings: default (or manual), acceptEdits, plan, dontAsk, auto or bypassPermissions
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Additional rules that allow
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1..)]
    pub(crate) allowed_tools: Vec<String>,
    /// Additional rules that deny
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1..)]
    pub(crate) disallowed_tools: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: SettingsArguments,
    /// Additional working directories
    #[arg(long, value_name = "DIRS", num_args = 1..)]
    pub(crate) add_dir: Vec<std::path::PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Read cases as JSON lines from standard input, and answer each with a line
    #[arg(long, conflicts_with_all = ["tool", "permission_mode", "settings", "setting_sources", "trust_project"])]
    pub(crate) batch: bool,
}

/// Does it and gives the exit code.
pub(crate) fn run(command: &PermissionsCommand) -> anyhow::Result<i32> {
    let PermissionsCommand::Explain(wanted) = command;
    if wanted.batch { Ok(batch::run()) } else { Ok(show_text(&explain::explain(wanted)?)) }
}
