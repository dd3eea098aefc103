//! The environment, the flags and the settings files, turned into one typed configuration.
//!
//! Everything is read once, at the start. [`SettingsFiles::read`] reads the settings files; once it is decided whether the project is
//! trusted, [`SettingsFiles::effective`] says what they come to. [`FileSettings::environment`] and [`FileSettings::settings`] put them together with a
//! snapshot of the environment ([`Settings::from_environment`] does without files), and [`RunConfig::new`] adds the flags and the memory
//! files. Nothing is read later. A value that is not understood is an error or a problem that names it and says what is accepted; a secret
//! never shows in either, nor in debug output.

mod config;
mod error;
mod flags;
mod home;
mod memory;
mod permissions;
mod settings;
mod settings_files;
mod shared_file;
mod variables;

pub use config::{ModelChoice, ProcessContext, RunConfig};
pub use error::ConfigError;
pub use flags::{Flags, PromptText};
pub use home::Home;
pub use settings::{
    ApiSettings, FileToolSettings, HomeSettings, MemorySettings, ModelSettings, Settings, ShellSettings,
};
pub use settings_files::{
    ChangeError, EffectiveSettings, FileSettings, HookFileChange, HookGroup, PartChanges, PartContent,
    PermissionSettings, ProjectPart, ProjectParts, RecordedSettings, ReportStore, SandboxSettings,
    SavedChange, SettingOrigin, SettingSources, SettingsFiles, SettingsLevel, SettingsPlaces,
    SettingsProblem, Severity, ShownValue, SourcedValue, TrustAgreement, TrustAnswer, TrustRequest,
    TrustState, TrustStore, TrustedProject, setting_names, settings_page, settings_schema, show,
    update_settings,
};
pub use shared_file::{SharedFile, SharedFileError};
pub use variables::{VARIABLES, Variable};
