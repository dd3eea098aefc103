//! The settings that have an effect, as types that know where each value stands, and what they say with the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_permission::Classifier;
use windlass_protocol::{Behaviour, Secret};

use super::SettingSources;
use super::keys;
use super::origin::{SettingOrigin, SourcedValue};
use super::tree::{Leaf, SettingsList, SettingsTree};
use crate::{ConfigError, Settings, VARIABLES};

/// What the settings files say together.
#[derive(Clone, Debug, Default)]
pub struct FileSettings {
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
    /// The instructions for the model that judges commands.
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

impl PermissionSettings {
    /// The rules in the order in which they decide.
    pub fn rules(&self) -> [(Behaviour, &[SourcedValue<String>]); 3] {
        [(Behaviour::Deny, &self.deny), (Behaviour::Ask, &self.ask), (Behaviour::Allow, &self.allow)]
    }
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
    FileSettings {
        available_models: tree.stated_texts("availableModels"),
        fallback_models: tree.texts("fallbackModel"),
        stand_ins: stand_ins(tree),
        env: tree.variables(),
        permissions: permissions(tree, start, home),
        hooks: tree.hooks(),
        hook_urls: tree.stated_texts("allowedHttpHookUrls"),
        hook_variables: tree.stated_texts("httpHookAllowedEnvVars"),
        sandbox: SandboxSettings { tree: tree.group("sandbox"), home: home.map(Path::to_owned) },
        memory_sources: SettingSources::default(),
        memory_excludes: tree.plain_texts("claudeMdExcludes"),
        auto_mode: Classifier {
            environment: tree.plain_texts("autoMode.environment"),
            allow: tree.plain_texts("autoMode.allow"),
            soft_deny: tree.plain_texts("autoMode.soft_deny"),
            hard_deny: tree.plain_texts("autoMode.hard_deny"),
        },
    }
}

fn permissions(tree: &SettingsTree, start: &Path, home: Option<&Path>) -> PermissionSettings {
    let stated = |path| tree.leaf(path).map(|leaf| leaf.origin.clone());
    let directories = tree.texts("permissions.additionalDirectories").into_iter();
    PermissionSettings {
        allow: tree.texts("permissions.allow"),
        ask: tree.texts("permissions.ask"),
        deny: tree.texts("permissions.deny"),
        directories: directories
            .filter_map(|named| named.read(|path| Some(meant_path(path, start, home))))
            .collect(),
        mode: tree.single("permissions.defaultMode"),
        bypass_disabled: stated("permissions.disableBypassPermissionsMode"),
        auto_disabled: stated("permissions.disableAutoMode").or_else(|| stated("disableAutoMode")),
        managed_only: tree.who_turned_on("allowManagedPermissionRulesOnly"),
    }
}

/// What stands under keys, by their full names.
impl SettingsTree {
    fn single<T: DeserializeOwned>(&self, path: &str) -> Option<SourcedValue<T>> {
        self.leaf(path)?.read(|value| T::deserialize(value).ok())
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
        Some(self.list(path)?.items.iter().filter_map(text).collect())
    }

    fn variables(&self) -> BTreeMap<String, SourcedValue<Secret>> {
        let members = self.object("env").into_iter().flatten();
        let variable = |(name, tree): (&String, &SettingsTree)| {
            let SettingsTree::Leaf(leaf) = tree else { return None };
            Some((name.clone(), leaf.read(|value| value.as_str().map(Secret::new))?))
        };
        members.filter_map(variable).collect()
    }

    fn hooks(&self) -> Vec<HookGroup> {
        let mut groups = Vec::new();
        for (event, tree) in self.object("hooks").into_iter().flatten() {
            let SettingsTree::List(SettingsList { items, .. }) = tree else { continue };
            groups.extend(items.iter().map(|item| HookGroup {
                event: event.clone(),
                group: item.value.clone(),
                origin: item.origin.clone(),
            }));
        }
        groups
    }
}

/// What commands can reach: the settings of the group `sandbox`, by their full names.
#[derive(Clone, Debug, Default)]
pub struct SandboxSettings {
    tree: SettingsTree,
    home: Option<PathBuf>,
}

impl SandboxSettings {
    /// A switch, if it is stated.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.get(name)?.to_value().as_bool()
    }

    /// A text, if it is stated.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.to_value().as_str().map(str::to_owned)
    }

    /// Where a setting stands, if it is stated.
    pub fn origin(&self, name: &str) -> Option<&SettingOrigin> {
        self.get(name)?.origin()
    }

    /// The texts of a list.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.items(name).map(|(text, _)| text.to_owned()).collect()
    }

    /// The paths of a list as they are meant: absolute, unless there is no home for a `~`. They may hold patterns and need not exist.
    pub fn paths(&self, name: &str) -> Vec<PathBuf> {
        let home = self.home.as_deref();
        self.items(name).map(|(text, leaf)| meant_path(text, &leaf.origin.anchor, home)).collect()
    }

    fn get(&self, name: &str) -> Option<&SettingsTree> {
        debug_assert!(keys::find(name).is_some(), "there is no setting {name}");
        self.tree.get(name)
    }

    /// The items of a list; what is hidden has its path or name in an object.
    fn items(&self, name: &str) -> impl Iterator<Item = (&str, &Leaf)> {
        let list = self.get(name).and_then(SettingsTree::as_list);
        list.into_iter().flat_map(|list| &list.items).filter_map(|leaf| {
            let value = &leaf.value;
            let text = value.as_str().or_else(|| value["path"].as_str()).or_else(|| value["name"].as_str());
            Some((text?, leaf))
        })
    }
}

/// What a path means: `~/x` below the home, others below a directory.
fn meant_path(text: &str, below: &Path, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => below.join(text),
    }
}

type Environment = BTreeMap<OsString, OsString>;

/// A setting that says the same as a variable: the key, the variable, and how it would say it.
type StandIn = (&'static str, &'static str, fn(&Value) -> Option<String>);

const STAND_INS: [StandIn; 10] = [
    ("model", "ANTHROPIC_MODEL", text),
    ("effortLevel", "CLAUDE_CODE_EFFORT_LEVEL", text),
    ("alwaysThinkingEnabled", "MAX_THINKING_TOKENS", |value| (*value == false).then(|| "0".to_owned())),
    ("autoCompactEnabled", "DISABLE_AUTO_COMPACT", one_if_off),
    ("autoCompactWindow", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", number),
    ("repeatedCallsMax", "WINDLASS_REPEATS_END", number),
    ("fileCheckpointingEnabled", "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", one_if_off),
    ("toolUseSummariesEnabled", "CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", one_or_zero),
    ("promptSuggestionEnabled", "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", one_or_zero),
    // Output of commands is never cut shorter or left longer than this.
    ("bashOutputMaxChars", "BASH_MAX_OUTPUT_LENGTH", |value| {
        Some(value.as_u64()?.clamp(4_000, 128_000).to_string())
    }),
];

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Value) -> Option<String> {
    value.as_u64().map(|number| number.to_string())
}

fn one_or_zero(value: &Value) -> Option<String> {
    value.as_bool().map(|on| if on { "1" } else { "0" }.to_owned())
}

fn one_if_off(value: &Value) -> Option<String> {
    (*value == false).then(|| "1".to_owned())
}

/// What settings say in place of variables.
fn stand_ins(tree: &SettingsTree) -> BTreeMap<&'static str, String> {
    let stated = |&(key, variable, read): &StandIn| Some((variable, read(&tree.leaf(key)?.value)?));
    STAND_INS.iter().filter_map(stated).collect()
}

impl FileSettings {
    /// The environment of a run: the shell's, overridden by the files', whose empty variables remove one.
    pub fn environment(&self, shell: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let mut environment: Environment = shell.into_iter().collect();
        for (name, value) in &self.env {
            let name = OsString::from(name);
            match value.value.reveal() {
                "" => drop(environment.remove(&name)),
                value => drop(environment.insert(name, value.into())),
            }
        }
        environment
    }

    /// What the environment and the files say together. A setting that a variable has too counts where the variable is not set.
    pub fn settings(&self, environment: &Environment) -> Result<Settings, ConfigError> {
        let origin = |name: &str| Some(self.env.get(name)?.origin.to_string());
        let mut settings = Settings::read(&self.fill_environment(environment), origin)?;
        settings.memory.sources = self.memory_sources;
        settings.memory.excludes.clone_from(&self.memory_excludes);
        Ok(settings)
    }

    /// The variables that shape a run and are no secrets, with what settings say in their place.
    pub fn plain_variables(&self, environment: &Environment) -> BTreeMap<String, String> {
        let filled = self.fill_environment(environment);
        let plain = VARIABLES.iter().filter(|variable| !variable.is_secret);
        plain
            .filter_map(|variable| {
                let value = filled.get(OsStr::new(variable.name))?.to_str()?;
                Some((variable.name.to_owned(), value.to_owned()))
            })
            .collect()
    }

    /// The environment, and what settings say in place of variables that are not set.
    fn fill_environment(&self, environment: &Environment) -> Environment {
        let mut filled = environment.clone();
        for (name, value) in &self.stand_ins {
            let variable = filled.entry(OsString::from(name)).or_default();
            if variable.is_empty() {
                *variable = value.into();
            }
        }
        filled
    }

    /// Whether a model, by its id, may be chosen. A list names ids and families; a family stands for every model of it.
    pub fn allows_model(&self, name: &str) -> bool {
        const FAMILIES: [&str; 4] = ["opus", "sonnet", "haiku", "fable"];
        let Some(available) = &self.available_models else { return true };
        let is_family = |entry: &str| FAMILIES.iter().any(|family| family.eq_ignore_ascii_case(entry));
        let fits = |entry: &str| {
            let of_family = || name.split('-').any(|piece| piece.eq_ignore_ascii_case(entry));
            entry.eq_ignore_ascii_case(name) || (is_family(entry) && of_family())
        };
        available.iter().any(|entry| fits(entry.value.trim()))
    }
}
