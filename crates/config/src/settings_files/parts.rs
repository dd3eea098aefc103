//! What came with a project and would act: what trust is about.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SettingsFiles;
use super::keys::{KEYS, Key, KeyScope, ValueType};
use super::locations::SettingsPlaces;
use super::named_files::named;
use super::tree::{Leaf, SettingsTree};
use super::visible::visible;

/// One thing that would act.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Part {
    /// What it is, for people: in full, with what cannot be seen written out. Values of variables are not shown.
    pub what: String,
    /// A hash of its exact content, with that of the files it names.
    pub hash: String,
    /// The files of the project it names, each with a mark of its content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl Part {
    fn new(what: &str, content: &str, files: BTreeMap<String, String>) -> Self {
        let mut all = content.to_owned();
        for (name, mark) in &files {
            let _ = write!(all, "\nfile {name} {mark}");
        }
        Self { what: visible(what), hash: hash(all.as_bytes()), files }
    }
}

/// Everything in a project that would act, in a fixed order, and what it forbids besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectParts {
    parts: Vec<Part>,
    restrictions: Vec<Part>,
}

impl ProjectParts {
    /// Each part and each restriction once, sorted.
    #[must_use]
    pub fn new(parts: Vec<Part>, restrictions: Vec<Part>) -> Self {
        Self { parts: each_once(parts), restrictions: each_once(restrictions) }
    }

    /// The parts.
    #[must_use]
    pub fn list(&self) -> &[Part] {
        &self.parts
    }

    /// What the project forbids, or asks about: with less of it, what acts may do more.
    #[must_use]
    pub fn restrictions(&self) -> &[Part] {
        &self.restrictions
    }

    /// Whether nothing would act.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A hash over all that would act: the same for the same content, however it is written and wherever it stands.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hashes: Vec<&str> = self.parts.iter().map(|part| &*part.hash).collect();
        hashes.sort_unstable();
        hash(hashes.join("\n").as_bytes())
    }
}

fn each_once(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_unstable();
    parts.dedup();
    parts
}

impl SettingsFiles {
    /// What came with the project and would act. With it, what it forbids.
    #[must_use]
    pub fn parts(&self) -> ProjectParts {
        ProjectParts::new(self.under(Key::needs_trust), self.under(restricts))
    }

    /// What the project's files say under some keys.
    fn under(&self, wanted: impl Fn(&Key) -> bool) -> Vec<Part> {
        let mut parts = Vec::new();
        for (_, tree) in self.files.iter().filter(|(source, _)| source.foreign) {
            for key in KEYS.iter().filter(|key| wanted(key)) {
                let Some(found) = tree.get(key.path) else { continue };
                collect(found, key.path, matches!(key.kind, ValueType::Map(_)), &self.places, &mut parts);
            }
        }
        parts
    }
}

/// Whether a project that says this may do less.
fn restricts(key: &Key) -> bool {
    !matches!(key.kind, ValueType::Group) && (key.forbids || matches!(key.allowed, KeyScope::ForeignOnly(_)))
}

fn collect(tree: &SettingsTree, path: &str, is_map: bool, places: &SettingsPlaces, parts: &mut Vec<Part>) {
    match tree {
        SettingsTree::Object(members) if is_map => {
            for (name, member) in members {
                collect(member, &format!("{path}.{name}"), false, places, parts);
            }
        }
        SettingsTree::List(list) => parts.extend(list.items.iter().map(|item| part(path, item, places))),
        SettingsTree::Leaf(leaf) => parts.push(part(path, leaf, places)),
        SettingsTree::Object(_) => {}
    }
}

fn part(path: &str, leaf: &Leaf, places: &SettingsPlaces) -> Part {
    let text = leaf.value.as_str().map_or_else(|| canonical(&leaf.value), str::to_owned);
    let what = match path {
        "permissions.allow" => format!("allow rule {text}"),
        "permissions.ask" => format!("ask rule {text}"),
        "permissions.deny" => format!("deny rule {text}"),
        "permissions.additionalDirectories" => format!("working directory {text}"),
        "permissions.defaultMode" => format!("permission mode {text}"),
        _ => match path.split_once('.') {
            Some(("env", name)) => format!("variable {name}"),
            Some(("hooks", event)) => format!("hook on {event}: {}", handlers(&leaf.value)),
            _ => format!("{path} {text}"),
        },
    };
    let files = if path.starts_with("hooks.") { named(&leaf.value, places) } else { BTreeMap::new() };
    Part::new(&what, &format!("{path}\n{}", canonical(&leaf.value)), files)
}

/// What a group of hooks runs.
fn handlers(group: &Value) -> String {
    let handlers = group["hooks"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = handlers.iter().map(|handler| {
        let named =
            ["command", "url", "prompt", "tool"].into_iter().find_map(|field| handler[field].as_str());
        let arguments = handler["args"].as_array().map(|_| canonical(&handler["args"]));
        let shown = named.map_or_else(|| canonical(handler), str::to_owned);
        arguments.map_or(shown.clone(), |arguments| format!("{shown} {arguments}"))
    });
    let texts: Vec<String> = texts.collect();
    match group["matcher"].as_str() {
        Some(matcher) if !matcher.is_empty() => format!("{} (for {matcher})", texts.join(", ")),
        _ => texts.join(", "),
    }
}

/// A value as text that does not depend on the order of names or on blanks.
fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

pub(super) fn hash(content: &[u8]) -> String {
    let mut hex = String::new();
    for byte in digest(&SHA256, content).as_ref() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
