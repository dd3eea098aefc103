//! `windlass config`: what holds and where it comes from, and the schema for editors.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use windlass::config::{Flags, ShownValue, setting_names, settings_page, settings_schema, show};
use windlass::invalid_rules::InvalidRule;
use windlass::settings::{self, LoadedSettings};
use windlass::{Options, Redactor};
use windlass_text::nearest::closest;

use crate::arguments::{SettingsArguments, help};
use crate::views::layout;
use crate::{complain, complain_of_settings, display, show_text};

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
            let (text, code) = show_values(wanted)?;
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
    Err(anyhow!("unknown setting `{key}`. {next}"))
}

/// A line with its origin behind it is not longer than this.
const COLUMNS_MAX: usize = 80;

/// The names of values that are not understood, and why.
type Problems = BTreeMap<String, String>;

/// What holds, and the exit code: 1 if a run could not start with it.
fn show_values(wanted: &ShowArguments) -> anyhow::Result<(String, i32)> {
    let options = wanted.settings.options();
    let held = settings::load(&options, settings::process_context()?)?;
    complain_of_settings(&held.notices);
    let invalid = held.invalid_rules().into_iter();
    let problems: Problems = invalid.map(|invalid| (invalid.key, invalid.problem)).collect();
    tell_waiting(&options, &held)?;
    let values = show(&held.effective).into_iter().filter(|value| is_wanted(value, wanted.key.as_deref()));
    let values: Vec<ShownValue> = values.map(without_secrets).collect();
    let start = held.places.start.clone();
    let text = if wanted.json {
        let list: Vec<Value> = values.iter().map(|value| as_json(value, &problems)).collect();
        format!("{}\n", display::escape_json(&Value::Array(list).to_string()))
    } else if values.is_empty() {
        nothing(wanted.key.as_deref(), &held)
    } else {
        values.iter().flat_map(hooks_apart).map(|value| as_lines(&value, &problems, &start)).collect()
    };
    Ok((text, could_start(&held)))
}

/// Secrets have shapes, whatever the name says.
fn without_secrets(value: ShownValue) -> ShownValue {
    let value_json = Redactor::default().redact_json(&value.value_json).into_owned();
    ShownValue { value_json, ..value }
}

fn is_wanted(value: &ShownValue, key: Option<&str>) -> bool {
    let Some(key) = key else { return true };
    value.key.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// What a run would say about the settings as a whole.
fn could_start(held: &LoadedSettings) -> i32 {
    match held.config(&Flags::default()) {
        Ok(config) => {
            // Rules that are not understood are marked where they stand.
            config.warnings.iter().for_each(complain);
            0
        }
        Err(error) => {
            complain(&format!("runs cannot start: {error}"));
            1
        }
    }
}

/// Rules of a project that wait for trust are looked at too: whoever agrees later wants to know now.
fn tell_waiting(options: &Options, held: &LoadedSettings) -> anyhow::Result<()> {
    for InvalidRule { rule, problem, .. } in held.invalid_waiting_rules(options)? {
        let start = &held.places.start;
        let file = rule.origin.file.as_deref().map(|file| display::short_path(file, start));
        let file = file.unwrap_or_else(|| "--settings".to_owned());
        complain(&format!(
            "{file}:{}: invalid allow rule `{}` (waiting for trust): {problem}. Correct or remove it.",
            rule.origin.line, rule.value
        ));
    }
    Ok(())
}

/// What to say where nothing is set.
fn nothing(key: Option<&str>, held: &LoadedSettings) -> String {
    let Some(key) = key else { return "No settings are set here.\n".to_owned() };
    let set: Vec<String> = show(&held.effective).into_iter().map(|value| value.key).collect();
    let known: Vec<&str> = setting_names().collect();
    let mut names: Vec<&str> = set.iter().flat_map(|key| beginnings(key)).chain(known).collect();
    names.sort_unstable();
    names.dedup();
    let shown = display::line(key);
    if names.contains(&key) {
        return format!("{shown} is not set here. `windlass config list {shown}` explains it.\n");
    }
    let meant = closest(key, &names).map(|meant| format!(" Did you mean {meant}?"));
    let next = meant.unwrap_or_else(|| " `windlass config show` lists all values.".to_owned());
    format!("No value is set whose name begins with {shown}.{next}\n")
}

/// `a.b[0]` begins with `a` and with `a.b`.
fn beginnings(key: &str) -> impl Iterator<Item = &str> {
    let name = key.split('[').next().unwrap_or(key);
    name.match_indices('.').map(|(end, _)| &name[..end]).chain(std::iter::once(name))
}

fn as_json(value: &ShownValue, problems: &Problems) -> Value {
    let plain: Value = serde_json::from_str(&value.value_json).unwrap_or_default();
    let mut shown = json!({
        "key": value.key,
        "value": plain,
        "level": value.level.name(),
        "file": value.file.as_ref().map(|file| file.to_string_lossy()),
        "line": value.line,
    });
    if let Some(problem) = problems.get(&value.key) {
        shown["problem"] = problem.as_str().into();
    }
    shown
}

/// A group of hooks as one value for each hook, and one for what they are for.
fn hooks_apart(value: &ShownValue) -> Vec<ShownValue> {
    let group: Value = serde_json::from_str(&value.value_json).unwrap_or_default();
    let (true, Some(hooks)) = (value.key.starts_with("hooks."), group["hooks"].as_array()) else {
        return vec![value.clone()];
    };
    let part = |name: String, part: &Value| ShownValue {
        key: format!("{}.{name}", value.key),
        value_json: part.to_string(),
        ..value.clone()
    };
    let matcher = group.get("matcher").map(|matcher| part("matcher".to_owned(), matcher));
    let hooks = hooks.iter().enumerate().map(|(position, hook)| part(format!("hooks[{position}]"), hook));
    matcher.into_iter().chain(hooks).collect()
}

fn as_lines(value: &ShownValue, problems: &Problems, start: &Path) -> String {
    let place = match &value.file {
        Some(file) => format!("{}:{}", display::short_path(file, start), value.line),
        None => "--settings".to_owned(),
    };
    let problem = problems.get(&value.key).map(|problem| format!(" is invalid: {problem}"));
    let text = format!("{} = {}{}", value.key, value.value_json, problem.unwrap_or_default());
    let (text, origin) = (display::line(&text), format!("({}, {place})", value.level.name()));
    if layout::width(&text) + 2 + layout::width(&origin) <= COLUMNS_MAX {
        return format!("{text}  {origin}\n");
    }
    format!("{text}\n    {origin}\n")
}
