//! Where a setting comes from.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::json::TextPosition;

/// Whose settings these are. Later ones win where only one value can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingsLevel {
    /// The user's, for every project.
    User,
    /// The project's, for everybody who works on it.
    Project,
    /// The user's, for this project.
    Local,
    /// `--settings`, for this process.
    Flags,
    /// The administrator's, for everybody on this machine.
    Managed,
}

impl SettingsLevel {
    /// Its name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flags => "flags",
            Self::Managed => "managed",
        }
    }
}

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingOrigin {
    /// Whose it is.
    pub level: SettingsLevel,
    /// The file; none for JSON on the command line.
    pub file: Option<Arc<Path>>,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: u32,
    /// The character in the line, counted from 1; 0 for the file as a whole.
    pub column: u32,
    /// What a leading `/` in a path pattern means there.
    pub anchor: Arc<Path>,
    /// Whether it came with the project, so that another person may have written it.
    pub is_foreign: bool,
}

impl SettingOrigin {
    /// A file as a whole, or the command line.
    pub(crate) fn of_file(
        level: SettingsLevel,
        file: Option<Arc<Path>>,
        anchor: impl Into<Arc<Path>>,
        is_foreign: bool,
    ) -> Self {
        Self { level, file, line: 0, column: 0, anchor: anchor.into(), is_foreign }
    }

    pub(crate) fn at(&self, TextPosition { line, column }: TextPosition) -> Self {
        Self { line, column, ..self.clone() }
    }

    /// Whose file it is, in a sentence.
    pub(crate) fn what(&self) -> &'static str {
        match self.level {
            SettingsLevel::User => "user settings",
            SettingsLevel::Project => "project settings",
            SettingsLevel::Local if self.is_foreign => "local settings that may have come with the project",
            SettingsLevel::Local => "local settings",
            SettingsLevel::Flags => "--settings",
            SettingsLevel::Managed => "managed settings",
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}:{}", file.display(), self.line),
            None => write!(f, "--settings:{}", self.line),
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcedValue<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub origin: SettingOrigin,
}

impl<T> SourcedValue<T> {
    /// What is read from the value, at the same place.
    pub(crate) fn read<U>(&self, read: impl FnOnce(&T) -> Option<U>) -> Option<SourcedValue<U>> {
        Some(SourcedValue { value: read(&self.value)?, origin: self.origin.clone() })
    }
}
