//! `windlass config`: what holds and where it comes from, and the schema for editors.

use std::ffi::OsString;
use std::io::Write as _;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use serde_json::{Value, json};
use windlass_config::{ShownValue, settings_list, settings_schema, show};

use crate::arguments::Request;
use crate::guard::{self, Said};
use crate::{complain, display, help};

/// Shows the settings that hold, and what settings there are
#[derive(Debug, Parser)]
#[command(name = "windlass config", disable_help_subcommand = true, args_override_self = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show each value that holds here, with the file and the line it comes from
    Show(Wanted),
    /// Print the JSON schema of settings files, for editors
    Schema,
    /// List every setting with its meaning
    List,
}

#[derive(Debug, Args)]
pub(crate) struct Wanted {
    /// Only the values whose names begin so, such as permissions
    key: Option<String>,
    /// With these settings besides: a file, or a JSON object
    #[arg(long, value_name = "FILE-OR-JSON")]
    settings: Option<String>,
    /// Only the settings of these: user, project, local
    #[arg(long, value_name = "SOURCES")]
    setting_sources: Option<String>,
    /// As if the project were trusted
    #[arg(long)]
    trust_project: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `windlass help config` says.
pub(crate) fn help() -> String {
    Arguments::command().render_help().to_string()
}

/// Reads what stands behind `windlass config`. Each error is for the user.
pub(crate) fn parse(rest: &[OsString]) -> Result<Request, String> {
    let line = std::iter::once(OsString::from("windlass config")).chain(rest.iter().cloned());
    match Arguments::try_parse_from(line) {
        Ok(Arguments { command }) => Ok(Request::Config(command)),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            Ok(Request::Show(help::page(&error.render().to_string())))
        }
        Err(error) => Err(crate::usage::of_command(&error, &Arguments::command(), rest)),
    }
}

/// Does it and gives the exit code.
pub(crate) fn run(command: &Command) -> i32 {
    let text = match command {
        Command::Show(wanted) => show_values(wanted),
        Command::Schema => Ok(settings_schema()),
        Command::List => Ok(settings_list()),
    };
    match text {
        Ok(text) => i32::from(std::io::stdout().write_all(text.as_bytes()).is_err()),
        Err(error) => {
            complain(&error);
            1
        }
    }
}

fn show_values(wanted: &Wanted) -> Result<String, String> {
    let said = Said {
        settings: wanted.settings.as_deref(),
        sources: wanted.setting_sources.as_deref(),
        trust: wanted.trust_project,
        headless: true,
    };
    let held = guard::load(said, &guard::place()?, |_| false)?;
    held.notices.iter().for_each(|notice| complain(notice));
    let is_wanted = |value: &ShownValue| {
        let rest = wanted.key.as_deref().map_or(Some(""), |key| value.key.strip_prefix(key));
        rest.is_some_and(|rest| rest.is_empty() || wanted.key.is_none() || rest.starts_with(['.', '[']))
    };
    let values: Vec<ShownValue> = show(&held.effective).into_iter().filter(is_wanted).collect();
    if wanted.json {
        let list: Vec<Value> = values.iter().map(as_json).collect();
        return Ok(format!("{}\n", display::escaped(&Value::Array(list).to_string())));
    }
    if values.is_empty() {
        return Ok("No settings file sets anything here.\n".to_owned());
    }
    Ok(values.iter().map(as_line).collect())
}

fn as_json(value: &ShownValue) -> Value {
    let plain: Value = serde_json::from_str(&value.value_json).unwrap_or_default();
    json!({
        "key": value.key,
        "value": plain,
        "level": value.level.name(),
        "file": value.file.as_ref().map(|file| file.to_string_lossy()),
        "line": value.line,
    })
}

fn as_line(value: &ShownValue) -> String {
    let place = match &value.file {
        Some(file) => format!("{}:{}", file.display(), value.line),
        None => "--settings".to_owned(),
    };
    let line = format!("{} = {}  ({}, {place})", value.key, value.value_json, value.level.name());
    display::line(&line) + "\n"
}
