//! Each value that holds, and where it comes from.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::effective::EffectiveSettings;
use super::origin::{SettingOrigin, SettingsLevel};
use super::tree::SettingsTree;
use crate::settings::is_telling;
use crate::variables::VARIABLES;

/// Stands for a value that must not be seen.
const HIDDEN: &str = "(hidden)";

/// A value that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownValue {
    /// Its name, such as `permissions.deny[2]`.
    pub key: String,
    /// The value as JSON. Secrets are hidden.
    pub value_json: String,
    /// Whose it is.
    pub level: SettingsLevel,
    /// The file; none for JSON on the command line.
    pub file: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: u32,
}

impl ShownValue {
    pub(super) fn new(key: String, value: &Value, origin: &SettingOrigin) -> Self {
        let secret = match key.split_once('.') {
            Some(("env", name)) => {
                is_telling(name) || VARIABLES.iter().any(|known| known.is_secret && known.name == name)
            }
            Some(("pluginConfigs", _)) => true,
            _ => false,
        };
        let mut shown = value.clone();
        hide_secrets(&mut shown);
        let value = if secret { Value::from(HIDDEN) } else { shown };
        Self {
            key,
            value_json: value.to_string(),
            level: origin.level,
            file: origin.file.as_deref().map(Path::to_owned),
            line: origin.line,
        }
    }
}

/// Each value that holds, sorted by name.
pub fn show(effective: &EffectiveSettings) -> Vec<ShownValue> {
    let mut shown = Vec::new();
    add(&effective.tree, String::new(), &mut shown);
    shown
}

fn add(tree: &SettingsTree, key: String, shown: &mut Vec<ShownValue>) {
    match tree {
        SettingsTree::Object(members) => {
            let dot = if key.is_empty() { "" } else { "." };
            for (name, member) in members {
                add(member, format!("{key}{dot}{name}"), shown);
            }
        }
        SettingsTree::List(list) if list.items.is_empty() => {
            shown.push(ShownValue::new(key, &Value::Array(Vec::new()), &list.origin));
        }
        SettingsTree::List(list) => {
            for (position, item) in list.items.iter().enumerate() {
                shown.push(ShownValue::new(format!("{key}[{position}]"), &item.value, &item.origin));
            }
        }
        SettingsTree::Leaf(leaf) => shown.push(ShownValue::new(key, &leaf.value, &leaf.origin)),
    }
}

/// Hides headers and variables, however deep they lie. The depth of a file is bounded.
fn hide_secrets(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
            Value::Object(inner) if name == "headers" || name == "env" => {
                inner.values_mut().for_each(|secret| *secret = HIDDEN.into());
            }
            other => hide_secrets(other),
        }),
        _ => {}
    }
}
