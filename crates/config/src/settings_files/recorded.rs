//! What settings files said when a session was opened, in the form in which its log keeps it: whoever plays the session
//! again decides by the rules of then.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SettingSources;
use super::origin::{Level, Origin, RuleText, Sourced};
use super::typed::{AutoMode, FileSettings, PermissionSettings};

/// The settings that decide about calls and models. Those that a variable can say too are among the variables of a run; see
/// [`FileSettings::plain_variables`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RecordedSettings {
    #[serde(skip_serializing_if = "is_default")]
    allow: Vec<RecordedRules>,
    #[serde(skip_serializing_if = "is_default")]
    ask: Vec<RecordedRules>,
    #[serde(skip_serializing_if = "is_default")]
    deny: Vec<RecordedRules>,
    #[serde(skip_serializing_if = "is_default")]
    directories: Vec<PathBuf>,
    #[serde(skip_serializing_if = "is_default")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    auto_disabled: bool,
    #[serde(skip_serializing_if = "is_default")]
    managed_only: bool,
    #[serde(skip_serializing_if = "is_default")]
    auto_mode: RecordedAutoMode,
    #[serde(skip_serializing_if = "is_default")]
    fallback_models: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    memory_excludes: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    memory_sources: SettingSources,
}

/// Rules that stand in one file, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedRules {
    level: Level,
    #[serde(default, skip_serializing_if = "is_default")]
    file: Option<PathBuf>,
    anchor: PathBuf,
    /// The line of each, and its text.
    rules: Vec<(u32, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RecordedAutoMode {
    environment: Vec<String>,
    allow: Vec<String>,
    soft_deny: Vec<String>,
    hard_deny: Vec<String>,
}

impl RecordedSettings {
    /// What these settings say.
    #[must_use]
    pub fn of(files: &FileSettings) -> Self {
        let permissions = &files.permissions;
        let auto_mode = &files.auto_mode;
        Self {
            allow: recorded_rules(&permissions.allow),
            ask: recorded_rules(&permissions.ask),
            deny: recorded_rules(&permissions.deny),
            directories: values(&permissions.directories),
            mode: permissions.mode.as_ref().map(|mode| mode.value.clone()),
            auto_disabled: permissions.auto_disabled.is_some(),
            managed_only: permissions.managed_only.is_some(),
            auto_mode: RecordedAutoMode {
                environment: values(&auto_mode.environment),
                allow: values(&auto_mode.allow),
                soft_deny: values(&auto_mode.soft_deny),
                hard_deny: values(&auto_mode.hard_deny),
            },
            fallback_models: values(&files.fallback_models),
            memory_excludes: values(&files.memory_excludes),
            memory_sources: files.memory_sources,
        }
    }

    /// The settings as they were. Only rules still know where they stood.
    #[must_use]
    pub fn restore(self) -> FileSettings {
        let auto_mode = self.auto_mode;
        FileSettings {
            permissions: PermissionSettings {
                allow: rule_texts(self.allow),
                ask: rule_texts(self.ask),
                deny: rule_texts(self.deny),
                directories: sourced(self.directories),
                mode: self.mode.map(|value| Sourced { value, origin: the_log() }),
                bypass_disabled: None,
                auto_disabled: self.auto_disabled.then(the_log),
                managed_only: self.managed_only.then(the_log),
            },
            auto_mode: AutoMode {
                environment: sourced(auto_mode.environment),
                allow: sourced(auto_mode.allow),
                soft_deny: sourced(auto_mode.soft_deny),
                hard_deny: sourced(auto_mode.hard_deny),
            },
            fallback_models: sourced(self.fallback_models),
            memory_excludes: sourced(self.memory_excludes),
            memory_sources: self.memory_sources,
            ..FileSettings::default()
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn recorded_rules(rules: &[RuleText]) -> Vec<RecordedRules> {
    let place = |rule: &RuleText| (rule.level, rule.file.clone(), rule.anchor.clone());
    let recorded = |rules: &[RuleText]| {
        let (level, file, anchor) = place(rules.first()?);
        let rules = rules.iter().map(|rule| (rule.line, rule.text.clone())).collect();
        Some(RecordedRules { level, file, anchor, rules })
    };
    rules.chunk_by(|one, next| place(one) == place(next)).filter_map(recorded).collect()
}

fn rule_texts(recorded: Vec<RecordedRules>) -> Vec<RuleText> {
    let rules = |RecordedRules { level, file, anchor, rules }: RecordedRules| {
        rules.into_iter().map(move |(line, text)| RuleText {
            text,
            level,
            file: file.clone(),
            line,
            anchor: anchor.clone(),
        })
    };
    recorded.into_iter().flat_map(rules).collect()
}

fn values<T: Clone>(list: &[Sourced<T>]) -> Vec<T> {
    list.iter().map(|item| item.value.clone()).collect()
}

fn sourced<T>(list: Vec<T>) -> Vec<Sourced<T>> {
    list.into_iter().map(|value| Sourced { value, origin: the_log() }).collect()
}

/// Where values stand whose place in a file is not recorded.
fn the_log() -> Origin {
    let anchor = Arc::from(PathBuf::new());
    Origin { level: Level::Flags, file: None, line: 0, column: 0, anchor, foreign: false }
}
