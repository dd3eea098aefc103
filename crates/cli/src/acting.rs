//! What came with a project and would act, told to people: with values and places, and without secrets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use windlass_config::{SettingsFiles, ShownValue};
use windlass_secrets::Redactor;

use crate::display;
use crate::visible::visible;

/// By part, the files it names that are not what they were.
type ChangedFiles = BTreeMap<String, Vec<String>>;

/// The values of a project that would act.
pub(crate) struct Acting {
    values: Vec<ShownValue>,
    start: PathBuf,
}

impl Acting {
    pub(crate) fn of(files: &SettingsFiles) -> Self {
        Self { values: files.acting(), start: files.places().start.clone() }
    }

    /// Every part in a line of its own.
    pub(crate) fn list(&self, files: &SettingsFiles) -> String {
        let parts = files.parts();
        let lines: Vec<String> = parts.list().iter().map(|part| self.part(&part.what)).collect();
        display::listed(&lines, "  ")
    }

    /// What changed, what is new and what is gone, each part once. Of what names files, `files` says which are not what they were.
    pub(crate) fn difference(&self, added: &[String], removed: &[String], files: &ChangedFiles) -> String {
        let (mut new, mut gone, mut changed) = (added.to_vec(), removed.to_vec(), Vec::new());
        for part in added {
            // Where several have the same beginning, nobody knows which became which.
            let (Some(at), Some(before)) = (only(part, &new), only(part, &gone)) else { continue };
            changed.push(self.change(&gone.remove(before), &new.remove(at), files));
        }
        let new: Vec<String> = new.iter().map(|part| self.part(part)).collect();
        let gone: Vec<String> = gone.iter().map(|part| without_secrets(part)).collect();
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
        self.values.iter().find(|value| is_of(value, what))
    }

    fn place(&self, value: &ShownValue) -> String {
        let file = value.file.as_deref().map(|file| display::short_path(file, &self.start));
        file.map(|file| format!(" ({file}:{})", value.line)).unwrap_or_default()
    }
}

/// The beginning of a part that stays when its content changes.
fn name(part: &str) -> &str {
    const MODE: &str = "permission mode";
    let has_name = part.starts_with("hook on ") || part.starts_with("server ");
    match part.find(':') {
        _ if part.starts_with(MODE) => MODE,
        Some(end) if has_name => &part[..=end],
        _ => part,
    }
}

/// Where the one part with this beginning stands, if there is just one.
fn only(part: &str, parts: &[String]) -> Option<usize> {
    let mut same = parts.iter().enumerate().filter(|(_, other)| name(other) == name(part));
    match (same.next(), same.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

/// Whether a part tells of a value.
fn is_of(value: &ShownValue, part: &str) -> bool {
    let content: Value = serde_json::from_str(&value.value_json).unwrap_or_default();
    let key = value.key.split('[').next().unwrap_or_default();
    let begins = match key {
        "permissions.allow" => "allow rule",
        "permissions.additionalDirectories" => "working directory",
        "permissions.defaultMode" => "permission mode",
        _ => key,
    };
    match key.split_once('.') {
        Some(("env", name)) => part.strip_prefix("variable ") == Some(name),
        Some(("hooks", event)) => {
            let runs = part.strip_prefix("hook on ").and_then(|part| part.strip_prefix(event));
            runs.is_some_and(|runs| commands(&content).all(|command| runs.contains(command)))
        }
        _ => {
            let rest = part.strip_prefix(begins).and_then(|rest| rest.strip_prefix(' '));
            rest.is_some_and(|rest| content.as_str().is_none_or(|text| text == rest))
        }
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
        let acting = Acting { values, start: "/app".into() };
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
