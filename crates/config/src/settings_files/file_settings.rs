//! The settings that have an effect, as types. Each value knows where it stands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_permission::Classifier;
use windlass_protocol::Secret;

use super::SettingSources;
use super::environment::stand_ins;
use super::origin::{SettingOrigin, SourcedValue};
use super::tree::{Leaf, SettingsList, SettingsTree};

/// What the settings files say together.
#[derive(Clone, Debug, Default)]
pub struct FileSettings {
    /// The model, unless a flag or the environment names one.
    pub model: Option<SourcedValue<String>>,
    /// The only models that may be chosen, if there is such a list.
    pub available_models: Option<Vec<SourcedValue<String>>>,
    /// The models that take over when the model is overloaded, in order.
    pub fallback_models: Vec<SourcedValue<String>>,
    /// Settings that say the same as a variable, by its name and as it would say it. They count where it is not set.
    pub stand_ins: BTreeMap<&'static str, String>,
    /// Variables for the run and its commands; an empty value takes one away.
    pub env: BTreeMap<String, SourcedValue<Secret>>,
    /// Who may do what.
    pub permissions: PermissionSettings,
    /// The hooks that may run, in the order of their levels.
    pub hooks: Vec<HookGroup>,
    /// The only addresses that hooks may call, if there is such a list.
    pub hook_urls: Option<Vec<SourcedValue<String>>>,
    /// The only variables that hooks may put into headers, if there is such a list.
    pub hook_variables: Option<Vec<SourcedValue<String>>>,
    /// What commands can reach.
    pub sandbox: SandboxSettings,
    /// Whose memory files are read.
    pub memory_sources: SettingSources,
    /// Patterns of memory files that are not read.
    pub memory_excludes: Vec<String>,
    /// What the model that judges commands is told.
    pub auto_mode: Classifier,
}

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct PermissionSettings {
    /// What runs unasked.
    pub allow: Vec<SourcedValue<String>>,
    /// What is always asked about.
    pub ask: Vec<SourcedValue<String>>,
    /// What never runs.
    pub deny: Vec<SourcedValue<String>>,
    /// Working directories beside the project's, as absolute paths. They may not exist.
    pub directories: Vec<SourcedValue<PathBuf>>,
    /// The mode at the start, by its name.
    pub mode: Option<SourcedValue<String>>,
    /// Who took `bypassPermissions` away.
    pub bypass_disabled: Option<SettingOrigin>,
    /// Who took `auto` away.
    pub auto_disabled: Option<SettingOrigin>,
    /// Who lets only managed rules allow something. Rules of flags do not count then either.
    pub managed_only: Option<SettingOrigin>,
}

/// A group of hooks of one event, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct HookGroup {
    /// The event, whether it is known or not.
    pub event: String,
    /// The matcher and the handlers.
    pub group: Value,
    /// Where the group stands.
    pub origin: SettingOrigin,
}

/// Makes types of a tree that was checked against the table.
pub(crate) fn settings(tree: &SettingsTree, start: &Path, home: Option<&Path>) -> FileSettings {
    let values = Values { tree, start, home };
    FileSettings {
        model: values.single("model"),
        available_models: values.stated_texts("availableModels"),
        fallback_models: values.texts("fallbackModel"),
        stand_ins: stand_ins(tree),
        env: values.variables(),
        permissions: permissions(&values),
        hooks: values.hooks(),
        hook_urls: values.stated_texts("allowedHttpHookUrls"),
        hook_variables: values.stated_texts("httpHookAllowedEnvVars"),
        sandbox: sandbox(&values),
        memory_sources: SettingSources::default(),
        memory_excludes: values.plain_texts("claudeMdExcludes"),
        auto_mode: Classifier {
            environment: values.plain_texts("autoMode.environment"),
            allow: values.plain_texts("autoMode.allow"),
            soft_deny: values.plain_texts("autoMode.soft_deny"),
            hard_deny: values.plain_texts("autoMode.hard_deny"),
        },
    }
}

fn permissions(values: &Values<'_>) -> PermissionSettings {
    let stated = |path| values.tree.leaf(path).map(|leaf| leaf.origin.clone());
    let directories = values.texts("permissions.additionalDirectories").into_iter();
    PermissionSettings {
        allow: values.texts("permissions.allow"),
        ask: values.texts("permissions.ask"),
        deny: values.texts("permissions.deny"),
        directories: directories
            .filter_map(|named| named.read(|path| Some(values.path(path, values.start))))
            .collect(),
        mode: values.single("permissions.defaultMode"),
        bypass_disabled: stated("permissions.disableBypassPermissionsMode"),
        auto_disabled: stated("permissions.disableAutoMode").or_else(|| stated("disableAutoMode")),
        managed_only: values.who_turned_on("allowManagedPermissionRulesOnly"),
    }
}

/// A tree, and what paths in it mean.
struct Values<'a> {
    tree: &'a SettingsTree,
    start: &'a Path,
    home: Option<&'a Path>,
}

impl Values<'_> {
    fn single<T: DeserializeOwned>(&self, path: &str) -> Option<SourcedValue<T>> {
        self.tree.leaf(path)?.read(|value| T::deserialize(value).ok())
    }

    fn who_turned_on(&self, path: &str) -> Option<SettingOrigin> {
        self.single(path).filter(|switch| switch.value).map(|switch| switch.origin)
    }

    fn texts(&self, path: &str) -> Vec<SourcedValue<String>> {
        self.stated_texts(path).unwrap_or_default()
    }

    fn plain_texts(&self, path: &str) -> Vec<String> {
        self.texts(path).into_iter().map(|text| text.value).collect()
    }

    /// A list that says something even if it is empty.
    fn stated_texts(&self, path: &str) -> Option<Vec<SourcedValue<String>>> {
        let text = |leaf: &Leaf| leaf.read(|value| value.as_str().map(str::to_owned));
        Some(self.tree.list(path)?.items.iter().filter_map(text).collect())
    }

    fn items(&self, path: &str) -> &[Leaf] {
        self.tree.list(path).map_or(&[], |list| &list.items)
    }

    fn variables(&self) -> BTreeMap<String, SourcedValue<Secret>> {
        let members = self.tree.object("env").into_iter().flatten();
        let variable = |(name, tree): (&String, &SettingsTree)| {
            let SettingsTree::Leaf(leaf) = tree else { return None };
            Some((name.clone(), leaf.read(|value| value.as_str().map(Secret::new))?))
        };
        members.filter_map(variable).collect()
    }

    fn hooks(&self) -> Vec<HookGroup> {
        let mut groups = Vec::new();
        for (event, tree) in self.tree.object("hooks").into_iter().flatten() {
            let SettingsTree::List(SettingsList { items, .. }) = tree else { continue };
            groups.extend(items.iter().map(|item| HookGroup {
                event: event.clone(),
                group: item.value.clone(),
                origin: item.origin.clone(),
            }));
        }
        groups
    }

    /// What a path means: `~/x` below the home, others below a directory.
    fn path(&self, text: &str, below: &Path) -> PathBuf {
        match (text.strip_prefix('~'), self.home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => below.join(text),
        }
    }
}

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

fn sandbox(values: &Values<'_>) -> SandboxSettings {
    SandboxSettings {
        enabled: values.single("sandbox.enabled"),
        fail_if_unavailable: values.single("sandbox.failIfUnavailable"),
        hooks: values.single("sandbox.hooks"),
        auto_allow_bash: values.single("sandbox.autoAllowBashIfSandboxed"),
        allow_unsandboxed: values.single("sandbox.allowUnsandboxedCommands"),
        excluded_commands: values.texts("sandbox.excludedCommands"),
        allow_write: values.sandbox_paths("allowWrite"),
        deny_write: values.sandbox_paths("denyWrite"),
        deny_read: values.sandbox_paths("denyRead"),
        allow_read: values.sandbox_paths("allowRead"),
        files_unconfined: values.single("sandbox.filesystem.disabled"),
        allowed_domains: values.texts("sandbox.network.allowedDomains"),
        denied_domains: values.texts("sandbox.network.deniedDomains"),
        strict_domains: values.single("sandbox.network.strictAllowlist"),
        managed_domains_only: values.who_turned_on("sandbox.network.allowManagedDomainsOnly"),
        hidden_files: values.hidden_files(),
        hidden_variables: values.hidden_variables(),
        bwrap: values.single("sandbox.bwrapPath"),
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
