//! What came with a project and would act, told to people: with values and places, and without secrets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use windlass_config::{SettingsFiles, ShownValue, TrustState};
use windlass_secrets::Redactor;

use crate::display;
use crate::views::visible::visible;

/// What a person is asked before anything of a project acts.
pub(crate) fn question(files: &SettingsFiles, state: &TrustState) -> String {
    let root = files.places().root().display().to_string();
    let root = display::line(&root);
    let acting = ActingSettings::of(files);
    match state {
        TrustState::Changed { added, removed, files } => format!(
            "The project in {root} has changed since you trusted it.\n{}",
            acting.difference(added, removed, files)
        ),
        TrustState::NeverAsked | TrustState::Trusted => {
            format!(
                "The project in {root} brings its own settings, which would take effect:\n{}",
                acting.list(files)
            )
        }
    }
}

/// By part, the files it names that are not what they were.
type ChangedFiles = BTreeMap<String, Vec<String>>;

/// The values of a project that would act. There may be very many, so most are found by their part.
pub(crate) struct ActingSettings {
    /// The first value of each part that is known from the value alone.
    by_part: BTreeMap<String, ShownValue>,
    /// The others.
    values: Vec<ShownValue>,
    start: PathBuf,
}

impl ActingSettings {
    pub(crate) fn of(files: &SettingsFiles) -> Self {
        Self::new(files.acting(), files.places().start.clone())
    }

    fn new(all: Vec<ShownValue>, start: PathBuf) -> Self {
        let (mut by_part, mut values) = (BTreeMap::new(), Vec::new());
        for value in all {
            match part_of(&value) {
                Some(part) => _ = by_part.entry(part).or_insert(value),
                None => values.push(value),
            }
        }
        Self { by_part, values, start }
    }

    /// Every part in a line of its own.
    pub(crate) fn list(&self, files: &SettingsFiles) -> String {
        let parts = files.parts();
        let lines: Vec<String> = parts.list().iter().map(|part| self.part(&part.what)).collect();
        display::listed(&lines, "  ")
    }

    /// What changed, what is new and what is gone, each part once. Of what names files, `files` says which are not what they were.
    pub(crate) fn difference(&self, added: &[String], removed: &[String], files: &ChangedFiles) -> String {
        let (now, before) = (by_name(added), by_name(removed));
        // Where several have the same beginning, nobody knows which became which.
        let both = |part: &str| match (now.get(name(part))?.as_slice(), before.get(name(part))?.as_slice()) {
            ([now], [before]) => Some((*before, *now)),
            _ => None,
        };
        let pairs = added.iter().filter_map(|part| both(part));
        let changed: Vec<String> = pairs.map(|(before, now)| self.change(before, now, files)).collect();
        let new = added.iter().filter(|part| both(part).is_none());
        let gone = removed.iter().filter(|part| both(part).is_none());
        let new: Vec<String> = new.map(|part| self.part(part)).collect();
        let gone: Vec<String> = gone.map(|part| without_secrets(part)).collect();
        let sections = [("Changed:", &changed), ("New:", &new), ("Gone:", &gone)];
        let sections = sections.into_iter().filter(|(_, parts)| !parts.is_empty());
        let texts: Vec<String> =
            sections.map(|(title, parts)| format!("{title}\n{}", display::listed(parts, "  "))).collect();
        texts.concat()
    }

    /// A part as it was and as it is. Of what a variable was, only a hash is kept.
    fn change(&self, before: &str, now: &str, files: &ChangedFiles) -> String {
        let (value, name) = (self.value(now), name(now));
        let place = value.map(|value| self.place(value)).unwrap_or_default();
        let told = match value {
            Some(value) if name.starts_with("variable ") => format!("{now} (now {})", text(value)),
            _ if before == now => {
                let files = files.get(now).map(|files| format!("; {}", files.join(", ")));
                format!("{now}{}", files.unwrap_or_default())
            }
            _ => {
                let rest = |part: &str| part.get(name.len()..).unwrap_or_default().trim().to_owned();
                format!("{name} {} → {}", rest(before), rest(now))
            }
        };
        without_secrets(&format!("{told}{place}"))
    }

    /// A part with its value and where it stands.
    fn part(&self, what: &str) -> String {
        let Some(value) = self.value(what) else { return without_secrets(what) };
        let place = self.place(value);
        let is_variable = what.starts_with("variable ");
        let told = if is_variable { format!("{what} = {}", text(value)) } else { what.to_owned() };
        without_secrets(&format!("{told}{place}"))
    }

    fn value(&self, what: &str) -> Option<&ShownValue> {
        self.by_part.get(what).or_else(|| self.values.iter().find(|value| is_of(value, what)))
    }

    fn place(&self, value: &ShownValue) -> String {
        let file = value.file.as_deref().map(|file| display::short_path(file, &self.start));
        file.map(|file| format!(" ({file}:{})", value.line)).unwrap_or_default()
    }
}

/// The beginning of a part that stays when its content changes.
fn name(part: &str) -> &str {
    const MODE: &str = "permission mode";
    let has_name = part.starts_with("hook on ");
    match part.find(':') {
        _ if part.starts_with(MODE) => MODE,
        Some(end) if has_name => &part[..=end],
        _ => part,
    }
}

/// Parts by the beginning that stays.
fn by_name(parts: &[String]) -> BTreeMap<&str, Vec<&str>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for part in parts {
        names.entry(name(part)).or_default().push(part);
    }
    names
}

/// The key of a value without its place in a list.
fn key(value: &ShownValue) -> &str {
    value.key.split('[').next().unwrap_or_default()
}

/// How the part of a value begins.
fn begins(key: &str) -> &str {
    match key {
        "permissions.allow" => "allow rule",
        "permissions.additionalDirectories" => "working directory",
        "permissions.defaultMode" => "permission mode",
        _ => key,
    }
}

/// The part that tells of a value, if it is known from the value alone.
fn part_of(value: &ShownValue) -> Option<String> {
    let key = key(value);
    match key.split_once('.') {
        Some(("env", name)) => Some(format!("variable {name}")),
        Some(("hooks", _)) => None,
        _ => {
            let text: String = serde_json::from_str(&value.value_json).ok()?;
            Some(format!("{} {text}", begins(key)))
        }
    }
}

/// Whether a part tells of a value that is not known by its text: a group of hooks, or an object.
fn is_of(value: &ShownValue, part: &str) -> bool {
    let key = key(value);
    match key.split_once('.') {
        Some(("hooks", event)) => {
            let content: Value = serde_json::from_str(&value.value_json).unwrap_or_default();
            let runs = part.strip_prefix("hook on ").and_then(|part| part.strip_prefix(event));
            runs.is_some_and(|runs| commands(&content).all(|command| runs.contains(command)))
        }
        _ => part.strip_prefix(begins(key)).is_some_and(|rest| rest.starts_with(' ')),
    }
}

/// What a group of hooks runs.
fn commands(group: &Value) -> impl Iterator<Item = &str> {
    let hooks = group["hooks"].as_array().into_iter().flatten();
    hooks.filter_map(|hook| hook["command"].as_str().or_else(|| hook["url"].as_str()))
}

/// A value as it is shown; every character of it can be seen.
fn text(value: &ShownValue) -> String {
    visible(&value.value_json)
}

fn without_secrets(text: &str) -> String {
    Redactor::default().redact(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_told_once() {
        let value = |key: &str, json: &str, line| ShownValue {
            key: key.into(),
            value_json: json.into(),
            level: windlass_config::Level::Project,
            file: Some("/app/.claude/settings.json".into()),
            line,
        };
        let values = vec![
            value("env.MODE", "\"full\"", 2),
            value("hooks.Stop[0]", r#"{"hooks": [{"type": "command", "command": "new"}]}"#, 3),
            value("permissions.allow[0]", "\"Bash(a)\"", 4),
            value("permissions.allow[1]", "\"Bash(b)\"", 5),
        ];
        let acting = ActingSettings::new(values, "/app".into());
        let check = |added: &[&str], removed: &[&str], expected: &str| {
            let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            let files =
                ChangedFiles::from([("hook on Stop: new".to_owned(), texts(&["a changed", "b is new"]))]);
            assert_eq!(acting.difference(&texts(added), &texts(removed), &files), expected);
        };
        let at = "(.claude/settings.json";
        check(
            &["variable MODE"],
            &["variable MODE"],
            &format!("Changed:\n  variable MODE (now \"full\") {at}:2)\n"),
        );
        check(&["variable MODE"], &[], &format!("New:\n  variable MODE = \"full\" {at}:2)\n"));
        check(&[], &["variable MODE"], "Gone:\n  variable MODE\n");
        check(
            &["hook on Stop: new"],
            &["hook on Stop: old"],
            &format!("Changed:\n  hook on Stop: old → new {at}:3)\n"),
        );
        check(
            &["hook on Stop: new"],
            &["hook on Stop: new"],
            &format!("Changed:\n  hook on Stop: new; a changed, b is new {at}:3)\n"),
        );
        check(
            &["permission mode plan"],
            &["permission mode auto"],
            "Changed:\n  permission mode auto → plan\n",
        );
        check(
            &["allow rule Bash(a)", "allow rule Bash(b)"],
            &["allow rule Bash(c)"],
            &format!(
                "New:\n  allow rule Bash(a) {at}:4)\n  allow rule Bash(b) {at}:5)\nGone:\n  allow rule Bash(c)\n"
            ),
        );
    }
}
