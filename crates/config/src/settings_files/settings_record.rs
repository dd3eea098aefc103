//! The settings files of a session as its log keeps them: a replay decides by the rules of then.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_permission::Classifier;

use super::SettingSources;
use super::file_settings::{FileSettings, PermissionSettings};
use super::origin::{SettingOrigin, SettingsLevel, SourcedValue};

/// The settings that decide about calls and models, beside those of [`FileSettings::plain_variables`].
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
    auto_mode: Classifier,
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
    level: SettingsLevel,
    #[serde(default, skip_serializing_if = "is_default")]
    file: Option<Arc<Path>>,
    anchor: Arc<Path>,
    /// The line of each, and its text.
    rules: Vec<(u32, String)>,
}

impl RecordedSettings {
    /// What these settings say.
    pub fn of(files: &FileSettings) -> Self {
        let permissions = &files.permissions;
        Self {
            allow: recorded_rules(&permissions.allow),
            ask: recorded_rules(&permissions.ask),
            deny: recorded_rules(&permissions.deny),
            directories: values(&permissions.directories),
            mode: permissions.mode.as_ref().map(|mode| mode.value.clone()),
            auto_disabled: permissions.auto_disabled.is_some(),
            managed_only: permissions.managed_only.is_some(),
            auto_mode: files.auto_mode.clone(),
            fallback_models: values(&files.fallback_models),
            memory_excludes: files.memory_excludes.clone(),
            memory_sources: files.memory_sources,
        }
    }

    /// The settings as they were. Only rules still know where they stood.
    pub fn restore(self) -> FileSettings {
        FileSettings {
            permissions: PermissionSettings {
                allow: rule_texts(self.allow),
                ask: rule_texts(self.ask),
                deny: rule_texts(self.deny),
                directories: with_log_origin(self.directories),
                mode: self.mode.map(|value| SourcedValue { value, origin: the_log() }),
                bypass_disabled: None,
                auto_disabled: self.auto_disabled.then(the_log),
                managed_only: self.managed_only.then(the_log),
            },
            auto_mode: self.auto_mode,
            fallback_models: with_log_origin(self.fallback_models),
            memory_excludes: self.memory_excludes,
            memory_sources: self.memory_sources,
            ..FileSettings::default()
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn recorded_rules(rules: &[SourcedValue<String>]) -> Vec<RecordedRules> {
    let file = |rule: &SourcedValue<String>| {
        let SettingOrigin { level, file, anchor, .. } = rule.origin.clone();
        (level, file, anchor)
    };
    let recorded = |rules: &[SourcedValue<String>]| {
        let (level, file, anchor) = file(rules.first()?);
        let rules = rules.iter().map(|rule| (rule.origin.line, rule.value.clone())).collect();
        Some(RecordedRules { level, file, anchor, rules })
    };
    rules.chunk_by(|one, next| file(one) == file(next)).filter_map(recorded).collect()
}

fn rule_texts(recorded: Vec<RecordedRules>) -> Vec<SourcedValue<String>> {
    let rules = |RecordedRules { level, file, anchor, rules }: RecordedRules| {
        let origin = SettingOrigin::of_file(level, file, anchor, false);
        rules.into_iter().map(move |(line, value)| SourcedValue {
            value,
            origin: SettingOrigin { line, ..origin.clone() },
        })
    };
    recorded.into_iter().flat_map(rules).collect()
}

fn values<T: Clone>(list: &[SourcedValue<T>]) -> Vec<T> {
    list.iter().map(|item| item.value.clone()).collect()
}

fn with_log_origin<T>(list: Vec<T>) -> Vec<SourcedValue<T>> {
    list.into_iter().map(|value| SourcedValue { value, origin: the_log() }).collect()
}

/// Where values stand whose place in a file is not recorded.
fn the_log() -> SettingOrigin {
    SettingOrigin::of_file(SettingsLevel::Flags, None, PathBuf::new(), false)
}
