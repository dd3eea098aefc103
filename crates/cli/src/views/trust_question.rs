//! What came with a project and would act, told to people: with values and places, and without secrets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use windlass::Redactor;
use windlass::config::{HookFileChange, PartChanges, PartContent, SettingsFiles, ShownValue, TrustState};

use crate::display;
use crate::views::visible::visible;

/// What a person is asked before anything of a project acts.
pub(crate) fn question(files: &SettingsFiles, state: &TrustState) -> String {
    let root = files.places.root().display().to_string();
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
                acting.list()
            )
        }
    }
}

/// By part, the files it names that are not what they were.
type ChangedFiles = BTreeMap<PartContent, Vec<HookFileChange>>;

/// The settings of a project that would act, each with its value and where it stands.
pub(crate) struct ActingSettings {
    parts: Vec<PartContent>,
    values: BTreeMap<PartContent, ShownValue>,
    start: PathBuf,
}

impl ActingSettings {
    pub(crate) fn of(files: &SettingsFiles) -> Self {
        let parts = files.parts();
        let parts = parts.list.iter().map(|part| (part.content.clone(), part.shown.clone()));
        Self::new(parts, files.places.start.clone())
    }

    fn new(all: impl Iterator<Item = (PartContent, Option<ShownValue>)>, start: PathBuf) -> Self {
        let (mut parts, mut values) = (Vec::new(), BTreeMap::new());
        for (part, value) in all {
            if let Some(value) = value {
                values.entry(part.clone()).or_insert(value);
            }
            parts.push(part);
        }
        Self { parts, values, start }
    }

    /// Every part in a line of its own.
    pub(crate) fn list(&self) -> String {
        let lines: Vec<String> = self.parts.iter().map(|part| self.part(part)).collect();
        display::list(&lines, "  ")
    }

    /// What changed, what is new and what is gone, each part once. Of what names files, `files` says which are not what they were.
    pub(crate) fn difference(
        &self,
        added: &[PartContent],
        removed: &[PartContent],
        files: &ChangedFiles,
    ) -> String {
        let PartChanges { changed, new, gone } = PartChanges::between(removed, added);
        let changed: Vec<String> =
            changed.into_iter().map(|(before, now)| self.change(before, now, files)).collect();
        let new: Vec<String> = new.into_iter().map(|part| self.part(part)).collect();
        let gone: Vec<String> = gone.into_iter().map(display::project_part).collect();
        let sections = [("Changed:", &changed), ("New:", &new), ("Gone:", &gone)];
        let sections = sections.into_iter().filter(|(_, parts)| !parts.is_empty());
        let texts: Vec<String> =
            sections.map(|(title, parts)| format!("{title}\n{}", display::list(parts, "  "))).collect();
        texts.concat()
    }

    /// A part as it was and as it is. Of what a variable was, only a hash is kept.
    fn change(&self, before: &PartContent, now: &PartContent, files: &ChangedFiles) -> String {
        let told = match (before, now, self.values.get(now)) {
            (_, PartContent::Variable(_), Some(value)) => {
                format!("{} (now {})", display::project_part(now), visible(&value.value_json))
            }
            (
                PartContent::Hook { matcher: for_calls, handlers: was, .. },
                PartContent::Hook { event, matcher, handlers },
                _,
            ) if (for_calls, was) != (matcher, handlers) => {
                let was = display::hook_group(for_calls, was);
                format!("hook on {event}: {was} → {}", display::hook_group(matcher, handlers))
            }
            (PartContent::PermissionMode(was), PartContent::PermissionMode(mode), _) if was != mode => {
                format!("permission mode {} → {}", was.trim(), mode.trim())
            }
            _ => {
                let files: Vec<String> = files.get(now).into_iter().flatten().map(file_change).collect();
                let now = display::project_part(now);
                if files.is_empty() { now } else { format!("{now}; {}", files.join(", ")) }
            }
        };
        without_secrets(&format!("{told}{}", self.place(now)))
    }

    /// A part with its value and where it stands.
    fn part(&self, part: &PartContent) -> String {
        let value = match (part, self.values.get(part)) {
            (PartContent::Variable(_), Some(value)) => format!(" = {}", visible(&value.value_json)),
            _ => String::new(),
        };
        without_secrets(&format!("{}{value}{}", display::project_part(part), self.place(part)))
    }

    /// Where a part stands.
    fn place(&self, part: &PartContent) -> String {
        let value = self.values.get(part);
        let place = value.and_then(|value| Some((value.file.as_deref()?, value.line)));
        let place = place.map(|(file, line)| format!(" ({}:{line})", display::short_path(file, &self.start)));
        place.unwrap_or_default()
    }
}

fn file_change(change: &HookFileChange) -> String {
    match change {
        HookFileChange::Edited(name) => format!("{name} changed"),
        HookFileChange::Added(name) => format!("{name} is new"),
        HookFileChange::Removed(name) => format!("{name} is gone"),
    }
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
            level: windlass::config::SettingsLevel::Project,
            file: Some("/app/.claude/settings.json".into()),
            line,
        };
        let content = |sentence: &str| match sentence.split_once(' ').unwrap() {
            ("variable", name) => PartContent::Variable(name.into()),
            ("mode", mode) => PartContent::PermissionMode(mode.into()),
            ("rule", rule) => PartContent::AllowRule(rule.into()),
            (event, handler) => PartContent::Hook {
                event: event.into(),
                matcher: String::new(),
                handlers: vec![handler.into()],
            },
        };
        let parts = [
            ("variable MODE", value("env.MODE", "\"full\"", 2)),
            ("Stop new", value("hooks.Stop", "{}", 3)),
            ("rule Bash(a)", value("permissions.allow", "\"Bash(a)\"", 4)),
            ("rule Bash(b)", value("permissions.allow", "\"Bash(b)\"", 5)),
        ];
        let parts = parts.into_iter().map(|(sentence, value)| (content(sentence), Some(value)));
        let acting = ActingSettings::new(parts, "/app".into());
        let check = |added: &[&str], removed: &[&str], expected: &str| {
            let contents = |list: &[&str]| list.iter().map(|text| content(text)).collect::<Vec<_>>();
            let changed = vec![HookFileChange::Edited("a".into()), HookFileChange::Added("b".into())];
            let files = ChangedFiles::from([(content("Stop new"), changed)]);
            assert_eq!(acting.difference(&contents(added), &contents(removed), &files), expected);
        };
        let at = "(.claude/settings.json";
        check(
            &["variable MODE"],
            &["variable MODE"],
            &format!("Changed:\n  variable MODE (now \"full\") {at}:2)\n"),
        );
        check(&["variable MODE"], &[], &format!("New:\n  variable MODE = \"full\" {at}:2)\n"));
        check(&[], &["variable MODE"], "Gone:\n  variable MODE\n");
        check(&["Stop new"], &["Stop old"], &format!("Changed:\n  hook on Stop: old → new {at}:3)\n"));
        check(
            &["Stop new"],
            &["Stop new"],
            &format!("Changed:\n  hook on Stop: new; a changed, b is new {at}:3)\n"),
        );
        check(&["mode plan"], &["mode auto"], "Changed:\n  permission mode auto → plan\n");
        check(
            &["rule Bash(a)", "rule Bash(b)"],
            &["rule Bash(c)"],
            &format!(
                "New:\n  allow rule Bash(a) {at}:4)\n  allow rule Bash(b) {at}:5)\nGone:\n  allow rule Bash(c)\n"
            ),
        );
    }
}
