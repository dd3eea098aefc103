//! What all files say together.

use std::fmt;

use serde_json::Value;

use super::SettingsFiles;
use super::keys::{KEYS, Kind};
use super::origin::{Level, Source, Sourced};
use super::problem::{Problem, Severity};
use super::tree::Tree;
use super::typed::{self, FileSettings};

/// What holds, and what was left out.
#[derive(Clone)]
pub struct Effective {
    /// The settings.
    pub settings: FileSettings,
    /// What is wrong with the files, and what in them has no effect.
    pub problems: Vec<Problem>,
    /// Settings that are known and have no effect yet, each once.
    pub unsupported: Vec<Sourced<String>>,
    /// What came with the project and waits for trust.
    pub skipped: Vec<String>,
    pub(crate) tree: Tree,
}

/// The tree may hold secrets.
impl fmt::Debug for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effective")
            .field("settings", &self.settings)
            .field("problems", &self.problems)
            .field("unsupported", &self.unsupported)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

/// A project can turn this on and not off.
const SANDBOX: &str = "sandbox.enabled";
const HOOKS_OFF: &str = "disableAllHooks";

impl Effective {
    /// Why nothing may start, if so.
    #[must_use]
    pub fn fatal(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.severity == Severity::Fatal)
    }

    /// What holds under a full name, such as `statusLine` or `worktree.sparsePaths`, and where its first value stands: for what has no
    /// type of its own here.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Sourced<Value>> {
        let tree = self.tree.get(path)?;
        Some(Sourced { value: tree.to_value(), origin: tree.origin()?.clone() })
    }
}

impl SettingsFiles {
    /// Makes one set of settings of all files. Without trust, what came with the project and would act is left out.
    #[must_use]
    pub fn effective(&self, trusted: bool) -> Effective {
        let locks = Locks::of(&self.files);
        let mut problems = self.problems.clone();
        let (mut tree, mut idle) = (Tree::default(), Vec::new());
        for (source, file) in &self.files {
            let mut file = file.clone();
            if source.foreign {
                idle.extend(hold_back(&mut file, trusted));
            }
            if source.foreign && tree.get(SANDBOX).is_some() {
                // Who turned it on first decides what that spares.
                file.take(SANDBOX);
            }
            if source.level != Level::Managed {
                locks.apply(&mut file, source, &mut problems);
            }
            tree.put(file, "");
        }
        problems.extend(self.lost_hooks(trusted, &locks, &tree));
        turn_hooks_off(&mut tree);
        let mut unsupported = unsupported(&tree);
        for key in idle {
            if unsupported.iter().all(|known| known.value != key.value) {
                unsupported.push(key);
            }
        }
        problems.extend(unsupported.iter().map(no_effect));
        problems.extend(self.servers());
        problems.extend(masks(&tree));
        let places = &self.places;
        let settings = typed::settings(&tree, &places.start, places.home.as_deref());
        Effective {
            settings: FileSettings { memory_sources: self.sources, ..settings },
            problems,
            unsupported,
            skipped: if trusted { Vec::new() } else { self.skipped() },
            tree,
        }
    }
}

impl SettingsFiles {
    /// Hooks that nothing may start without, and that cannot be found. Where they would not count anyway, they are only told.
    fn lost_hooks<'a>(
        &'a self,
        trusted: bool,
        locks: &'a Locks,
        tree: &'a Tree,
    ) -> impl Iterator<Item = Problem> + 'a {
        let off = tree.leaf(HOOKS_OFF).filter(|leaf| leaf.value == true).map(|leaf| leaf.origin.level);
        self.lost_hooks.iter().map(move |(file, problem)| {
            let source = self.files.get(*file).map(|(source, _)| source);
            let is_idle = source.is_some_and(|source| {
                let is_managed = source.level == Level::Managed;
                let is_off = off.is_some_and(|by| by == Level::Managed || !is_managed);
                is_off || (source.foreign && !trusted) || (!is_managed && locks.close("hooks"))
            });
            let severity = if is_idle { Severity::Warning } else { problem.severity };
            Problem { severity, ..problem.clone() }
        })
    }

    /// What is said about the servers of the project: nothing starts them.
    fn servers(&self) -> Option<Problem> {
        let file = self.places.start.join(".mcp.json");
        (self.sources.project && file.symlink_metadata().is_ok()).then(|| Problem {
            file: Some(file),
            line: 0,
            column: 0,
            what: "MCP servers: Not supported yet; ignored".into(),
            advice: String::new(),
            severity: Severity::Ignored,
        })
    }

    fn skipped(&self) -> Vec<String> {
        self.parts().list().iter().map(|part| part.what.clone()).collect()
    }
}

/// Leaves out what waits for trust. What does nothing yet is left out in any case, since nobody agreed to it, and is given back.
fn hold_back(file: &mut Tree, trusted: bool) -> Vec<Sourced<String>> {
    let mut idle = Vec::new();
    for key in KEYS.iter().filter(|key| key.waits && !(trusted && key.acts)) {
        let origin = file.take(key.path).and_then(|taken| taken.origin().cloned());
        idle.extend(
            origin.filter(|_| !key.acts).map(|origin| Sourced { value: key.path.to_owned(), origin }),
        );
    }
    idle
}

/// What only the administrator may allow.
struct Locks {
    /// A switch of the administrator, and what of others does not count then.
    closed: Vec<(&'static str, &'static str)>,
}

impl Locks {
    const ALL: [(&str, &str); 4] = [
        ("allowManagedPermissionRulesOnly", "permissions.allow"),
        ("allowManagedHooksOnly", "hooks"),
        ("sandbox.filesystem.allowManagedReadPathsOnly", "sandbox.filesystem.allowRead"),
        ("sandbox.network.allowManagedDomainsOnly", "sandbox.network.allowedDomains"),
    ];

    fn of(files: &[(Source, Tree)]) -> Self {
        let mut managed = Tree::default();
        for (_, file) in files.iter().filter(|(source, _)| source.level == Level::Managed) {
            managed.put(file.clone(), "");
        }
        let is_closed = |(lock, _): &(&str, &str)| managed.leaf(lock).is_some_and(|leaf| leaf.value == true);
        Self { closed: Self::ALL.into_iter().filter(is_closed).collect() }
    }

    fn close(&self, path: &str) -> bool {
        self.closed.iter().any(|(_, closed)| *closed == path)
    }

    fn apply(&self, file: &mut Tree, source: &Source, problems: &mut Vec<Problem>) {
        for (lock, path) in &self.closed {
            let Some(origin) = file.take(path).and_then(|taken| taken.origin().cloned()) else { continue };
            problems.push(Problem {
                file: origin.file.as_deref().map(Into::into),
                line: origin.line,
                column: origin.column,
                what: format!("`{path}` is ignored in {}", source.what()),
                advice: format!("The administrator set `{lock}`."),
                severity: Severity::Notice,
            });
        }
    }
}

/// `disableAllHooks` of the administrator turns off every hook, that of others only those of others.
fn turn_hooks_off(tree: &mut Tree) {
    let Some(off) = tree.leaf(HOOKS_OFF).filter(|leaf| leaf.value == true) else { return };
    if off.origin.level == Level::Managed {
        tree.take("hooks");
        return;
    }
    let Some(Tree::Object(events)) = tree.get_mut("hooks") else { return };
    for event in events.values_mut() {
        if let Tree::List(list) = event {
            list.items.retain(|item| item.origin.level == Level::Managed);
        }
    }
}

fn unsupported(tree: &Tree) -> Vec<Sourced<String>> {
    let idle = KEYS.iter().filter(|key| !key.acts && !matches!(key.kind, Kind::Group));
    let found = idle.filter_map(|key| {
        let origin = tree.get(key.path)?.origin()?.clone();
        Some(Sourced { value: key.path.to_owned(), origin })
    });
    found.collect()
}

/// Secrets that should be replaced by a placeholder are hidden instead.
fn masks(tree: &Tree) -> Vec<Problem> {
    let lists = ["sandbox.credentials.files", "sandbox.credentials.envVars"];
    let items = lists.into_iter().filter_map(|path| Some((path, tree.list(path)?)));
    let items = items.flat_map(|(path, list)| list.items.iter().map(move |item| (path, item)));
    let masks = items.filter(|(_, item)| item.value["mode"] == "mask");
    let told = masks.map(|(path, item)| Problem {
        file: item.origin.file.as_deref().map(Into::into),
        line: item.origin.line,
        column: item.origin.column,
        what: format!("`{path}` with \"mask\" removes the secret without a placeholder"),
        advice: "Placeholders are not supported yet.".into(),
        severity: Severity::Notice,
    });
    told.collect()
}

fn no_effect(key: &Sourced<String>) -> Problem {
    Problem {
        file: key.origin.file.as_deref().map(Into::into),
        line: key.origin.line,
        column: key.origin.column,
        what: format!("`{}`: Not supported yet; ignored", key.value),
        advice: String::new(),
        severity: Severity::Ignored,
    }
}
