//! What commands can reach.

use std::path::PathBuf;

use super::{Leaf, SourcedValue, Values};
use crate::settings_files::origin::SettingOrigin;

/// What commands can reach. A switch that is not stated has its default.
#[derive(Clone, Debug, Default)]
pub struct SandboxSettings {
    /// Whether commands run in a sandbox.
    pub enabled: Option<SourcedValue<bool>>,
    /// Whether nothing starts where there is no sandbox.
    pub fail_if_unavailable: Option<SourcedValue<bool>>,
    /// Whether hooks that are programs run in the sandbox too.
    pub hooks: Option<SourcedValue<bool>>,
    /// Whether commands in the sandbox run unasked.
    pub auto_allow_bash: Option<SourcedValue<bool>>,
    /// Whether the model may ask to leave the sandbox.
    pub allow_unsandboxed: Option<SourcedValue<bool>>,
    /// Commands that run outside of the sandbox.
    pub excluded_commands: Vec<SourcedValue<String>>,
    /// Can be written.
    pub allow_write: Vec<SandboxPath>,
    /// Cannot be written.
    pub deny_write: Vec<SandboxPath>,
    /// Cannot be read.
    pub deny_read: Vec<SandboxPath>,
    /// Can be read inside of what cannot.
    pub allow_read: Vec<SandboxPath>,
    /// Whether files are not confined.
    pub files_unconfined: Option<SourcedValue<bool>>,
    /// Hosts that can be reached.
    pub allowed_domains: Vec<SourcedValue<String>>,
    /// Hosts that cannot be reached.
    pub denied_domains: Vec<SourcedValue<String>>,
    /// Whether other hosts are refused without a question.
    pub strict_domains: Option<SourcedValue<bool>>,
    /// Who lets only managed lists of hosts allow something. Other grants for hosts do not count then either.
    pub managed_domains_only: Option<SettingOrigin>,
    /// Files that are hidden from commands.
    pub hidden_files: Vec<SandboxPath>,
    /// Names of variables that are hidden from commands.
    pub hidden_variables: Vec<SourcedValue<String>>,
    /// The program that makes the sandbox.
    pub bwrap: Option<SourcedValue<PathBuf>>,
}

/// A path as it was written and as it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPath {
    /// As it was written.
    pub text: String,
    /// As it is meant: absolute, unless there is no home for a `~`. It may hold patterns and need not exist.
    pub path: PathBuf,
    /// Where it stands.
    pub origin: SettingOrigin,
}

pub(super) fn settings(values: &Values<'_>) -> SandboxSettings {
    SandboxSettings {
        enabled: values.switch("sandbox.enabled"),
        fail_if_unavailable: values.switch("sandbox.failIfUnavailable"),
        hooks: values.switch("sandbox.hooks"),
        auto_allow_bash: values.switch("sandbox.autoAllowBashIfSandboxed"),
        allow_unsandboxed: values.switch("sandbox.allowUnsandboxedCommands"),
        excluded_commands: values.texts("sandbox.excludedCommands"),
        allow_write: values.sandbox_paths("allowWrite"),
        deny_write: values.sandbox_paths("denyWrite"),
        deny_read: values.sandbox_paths("denyRead"),
        allow_read: values.sandbox_paths("allowRead"),
        files_unconfined: values.switch("sandbox.filesystem.disabled"),
        allowed_domains: values.texts("sandbox.network.allowedDomains"),
        denied_domains: values.texts("sandbox.network.deniedDomains"),
        strict_domains: values.switch("sandbox.network.strictAllowlist"),
        managed_domains_only: values.who_turned_on("sandbox.network.allowManagedDomainsOnly"),
        hidden_files: values.hidden_files(),
        hidden_variables: values.hidden_variables(),
        bwrap: values.single("sandbox.bwrapPath", |value| Some(PathBuf::from(value.as_str()?))),
    }
}

impl Values<'_> {
    fn sandbox_paths(&self, name: &str) -> Vec<SandboxPath> {
        let items = self.items(&format!("sandbox.filesystem.{name}"));
        items.iter().filter_map(|leaf| Some(self.sandbox_path(leaf.value.as_str()?, leaf))).collect()
    }

    fn hidden_files(&self) -> Vec<SandboxPath> {
        let items = self.items("sandbox.credentials.files");
        items.iter().filter_map(|leaf| Some(self.sandbox_path(leaf.value["path"].as_str()?, leaf))).collect()
    }

    fn hidden_variables(&self) -> Vec<SourcedValue<String>> {
        let variable = |leaf: &Leaf| leaf.read(|value| value["name"].as_str().map(str::to_owned));
        self.items("sandbox.credentials.envVars").iter().filter_map(variable).collect()
    }

    fn sandbox_path(&self, text: &str, leaf: &Leaf) -> SandboxPath {
        let path = self.path(text, &leaf.origin.anchor);
        SandboxPath { text: text.to_owned(), path, origin: leaf.origin.clone() }
    }
}
