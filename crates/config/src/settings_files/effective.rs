//! What all files say together.

use serde_json::Value;

use super::file_settings::{self, FileSettings};
use super::keys::{KEYS, ValueType};
use super::origin::{SettingOrigin, SettingsLevel, SourcedValue};
use super::parts::{PartContent, ProjectParts};
use super::problem::{SettingsProblem, Severity};
use super::tree::SettingsTree;
use super::{SettingsFile, SettingsFiles};

/// What holds, and what was left out.
#[derive(Clone, Debug)]
pub struct EffectiveSettings {
    /// The settings.
    pub settings: FileSettings,
    /// What is wrong with the files, and what in them has no effect.
    pub problems: Vec<SettingsProblem>,
    /// Settings that are known and have no effect yet, each once.
    pub unsupported: Vec<SourcedValue<String>>,
    /// What came with the project and waits for trust.
    pub skipped: Vec<PartContent>,
    pub(crate) tree: SettingsTree,
}

/// A project can turn this on and not off.
const SANDBOX: &str = "sandbox.enabled";
const HOOKS_OFF: &str = "disableAllHooks";

impl EffectiveSettings {
    /// Why nothing may start, if so.
    pub fn fatal(&self) -> Option<&SettingsProblem> {
        self.problems.iter().find(|problem| problem.severity == Severity::Fatal)
    }

    /// The value under a full name such as `statusLine`, and its place: for settings without a type here.
    pub fn value(&self, path: &str) -> Option<SourcedValue<Value>> {
        let tree = self.tree.get(path)?;
        Some(SourcedValue { value: tree.to_value(), origin: tree.origin()?.clone() })
    }
}

impl SettingsFiles {
    /// Makes one set of settings of all files. Without trust, what came with the project and would act is left out.
    pub fn effective(&self, is_trusted: bool) -> EffectiveSettings {
        let locks = closed_locks(&self.files);
        let mut problems = self.problems.clone();
        let (mut tree, mut idle) = (SettingsTree::default(), Vec::new());
        for SettingsFile { source, tree: file, .. } in &self.files {
            let mut file = file.clone();
            if source.is_foreign {
                idle.extend(hold_back(&mut file, is_trusted));
            }
            if source.is_foreign && tree.get(SANDBOX).is_some() {
                // Who turned it on first decides what that spares.
                file.take(SANDBOX);
            }
            if source.level != SettingsLevel::Managed {
                apply_locks(&locks, &mut file, source, &mut problems);
            }
            tree.put(file, "");
        }
        problems.extend(self.files.iter().flat_map(|file| file.lost_hooks(is_trusted, &locks, &tree)));
        turn_hooks_off(&mut tree);
        let mut unsupported = unsupported_keys(&tree);
        for key in idle {
            if unsupported.iter().all(|known| known.value != key.value) {
                unsupported.push(key);
            }
        }
        problems.extend(unsupported.iter().map(|key| {
            let what = format!("`{}`: Not supported yet; ignored", key.value);
            SettingsProblem::at(&key.origin, Severity::Ignored, what, "")
        }));
        problems.extend(self.servers());
        problems.extend(masks(&tree));
        let places = &self.places;
        let parts = if is_trusted { ProjectParts::default() } else { self.parts() };
        let settings = file_settings::settings(&tree, &places.start, places.home.as_deref());
        EffectiveSettings {
            settings: FileSettings { memory_sources: self.sources, ..settings },
            problems,
            unsupported,
            skipped: parts.list.iter().map(|part| part.content.clone()).collect(),
            tree,
        }
    }

    /// What is said about the servers of the project: nothing starts them.
    fn servers(&self) -> Option<SettingsProblem> {
        let file = self.places.start.join(".mcp.json");
        let what = "MCP servers: Not supported yet; ignored";
        (self.sources.project && file.symlink_metadata().is_ok())
            .then(|| SettingsProblem::with_file(&file, Severity::Ignored, what.into(), ""))
    }
}

impl SettingsFile {
    /// Hooks that nothing may start without, and that cannot be found. Where they would not count anyway, they are only told.
    fn lost_hooks(
        &self,
        is_trusted: bool,
        locks: &[Lock],
        tree: &SettingsTree,
    ) -> impl Iterator<Item = SettingsProblem> {
        let is_managed = self.source.level == SettingsLevel::Managed;
        let off = tree.leaf(HOOKS_OFF).filter(|leaf| leaf.value == true).map(|leaf| leaf.origin.level);
        let is_off = off.is_some_and(|by| by == SettingsLevel::Managed || !is_managed);
        let is_locked = !is_managed && locks.iter().any(|(_, path)| *path == "hooks");
        let is_idle = is_off || is_locked || (self.source.is_foreign && !is_trusted);
        self.lost_hooks.iter().map(move |problem| {
            let severity = if is_idle { Severity::Warning } else { problem.severity };
            SettingsProblem { severity, ..problem.clone() }
        })
    }
}

/// Leaves out what waits for trust. What does nothing yet is left out in any case, since nobody agreed to it, and is given back.
fn hold_back(file: &mut SettingsTree, is_trusted: bool) -> Vec<SourcedValue<String>> {
    let mut idle = Vec::new();
    for key in KEYS.iter().filter(|key| key.is_awaiting_trust && !(is_trusted && key.has_effect)) {
        let origin = file.take(key.path).filter(|_| !key.has_effect);
        idle.extend(origin.map(|origin| SourcedValue { value: key.path.to_owned(), origin }));
    }
    idle
}

/// A switch of the administrator, and what of others does not count where it is on.
type Lock = (&'static str, &'static str);

const LOCKS: [Lock; 4] = [
    ("allowManagedPermissionRulesOnly", "permissions.allow"),
    ("allowManagedHooksOnly", "hooks"),
    ("sandbox.filesystem.allowManagedReadPathsOnly", "sandbox.filesystem.allowRead"),
    ("sandbox.network.allowManagedDomainsOnly", "sandbox.network.allowedDomains"),
];

fn closed_locks(files: &[SettingsFile]) -> Vec<Lock> {
    let mut managed = SettingsTree::default();
    for file in files.iter().filter(|file| file.source.level == SettingsLevel::Managed) {
        managed.put(file.tree.clone(), "");
    }
    let is_closed = |(lock, _): &Lock| managed.leaf(lock).is_some_and(|leaf| leaf.value == true);
    LOCKS.into_iter().filter(is_closed).collect()
}

/// Takes out of the settings of others what only the administrator may allow.
fn apply_locks(
    locks: &[Lock],
    file: &mut SettingsTree,
    source: &SettingOrigin,
    problems: &mut Vec<SettingsProblem>,
) {
    for (lock, path) in locks {
        let Some(origin) = file.take(path) else { continue };
        let what = format!("`{path}` is ignored in {}", source.what());
        let advice = format!("The administrator set `{lock}`.");
        problems.push(SettingsProblem::at(&origin, Severity::Notice, what, &advice));
    }
}

/// `disableAllHooks` of the administrator turns off every hook, that of others only those of others.
fn turn_hooks_off(tree: &mut SettingsTree) {
    let Some(off) = tree.leaf(HOOKS_OFF).filter(|leaf| leaf.value == true) else { return };
    if off.origin.level == SettingsLevel::Managed {
        tree.take("hooks");
        return;
    }
    let Some(SettingsTree::Object(events)) = tree.get_mut("hooks") else { return };
    for event in events.values_mut() {
        if let SettingsTree::List(list) = event {
            list.items.retain(|item| item.origin.level == SettingsLevel::Managed);
        }
    }
}

fn unsupported_keys(tree: &SettingsTree) -> Vec<SourcedValue<String>> {
    let idle = KEYS.iter().filter(|key| !key.has_effect && !matches!(key.kind, ValueType::Group));
    let found = idle.filter_map(|key| {
        let origin = tree.get(key.path)?.origin()?.clone();
        Some(SourcedValue { value: key.path.to_owned(), origin })
    });
    found.collect()
}

/// Secrets that should be replaced by a placeholder are hidden instead.
fn masks(tree: &SettingsTree) -> Vec<SettingsProblem> {
    let lists = ["sandbox.credentials.files", "sandbox.credentials.envVars"];
    let items = lists.into_iter().filter_map(|path| Some((path, tree.list(path)?)));
    let items = items.flat_map(|(path, list)| list.items.iter().map(move |item| (path, item)));
    let masks = items.filter(|(_, item)| item.value["mode"] == "mask");
    let told = masks.map(|(path, item)| {
        let what = format!("`{path}` with \"mask\" removes the secret without a placeholder");
        SettingsProblem::at(&item.origin, Severity::Notice, what, "Placeholders are not supported yet.")
    });
    told.collect()
}
