//! What came with a project and would act: what trust is about.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keys::{KEYS, Key, KeyScope, ValueType};
use super::locations::SettingsPlaces;
use super::named_files::named;
use super::problem::visible;
use super::show::ShownValue;
use super::tree::{Leaf, SettingsTree};
use super::{SettingsFile, SettingsFiles};

/// One thing that would act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectPart {
    /// What it is.
    #[serde(rename = "what")]
    pub content: PartContent,
    /// A hash of its exact content, with that of the files it names.
    pub hash: String,
    /// The files of the project it names, each with a mark of its content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Its value and where it stands; nothing for what was agreed to before.
    #[serde(skip)]
    pub shown: Option<ShownValue>,
}

/// What a part says, without values of variables; kept as the sentence people read, which can be read back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum PartContent {
    /// A rule under which calls run unasked.
    AllowRule(String),
    /// A rule under which calls are asked about.
    AskRule(String),
    /// A rule under which calls never run.
    DenyRule(String),
    /// A working directory beside the project's.
    WorkingDirectory(String),
    /// The mode at the start, by its name.
    PermissionMode(String),
    /// A variable, by its name.
    Variable(String),
    /// A group of hooks.
    Hook {
        /// The event.
        event: String,
        /// What the group runs, and for which calls.
        handlers: String,
    },
    /// Another setting.
    Setting {
        /// Its name, with the groups it lies in.
        key: String,
        /// Its value.
        value: String,
    },
}

impl PartContent {
    fn new(path: &str, value: &Value) -> Self {
        let text = || visible(&value.as_str().map_or_else(|| canonical(value), str::to_owned));
        match path {
            "permissions.allow" => Self::AllowRule(text()),
            "permissions.ask" => Self::AskRule(text()),
            "permissions.deny" => Self::DenyRule(text()),
            "permissions.additionalDirectories" => Self::WorkingDirectory(text()),
            "permissions.defaultMode" => Self::PermissionMode(text()),
            _ => match path.split_once('.') {
                Some(("env", name)) => Self::Variable(visible(name)),
                Some(("hooks", event)) => {
                    Self::Hook { event: visible(event), handlers: visible(&handlers(value)) }
                }
                _ => Self::Setting { key: path.to_owned(), value: text() },
            },
        }
    }
}

impl fmt::Display for PartContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllowRule(rule) => write!(f, "allow rule {rule}"),
            Self::AskRule(rule) => write!(f, "ask rule {rule}"),
            Self::DenyRule(rule) => write!(f, "deny rule {rule}"),
            Self::WorkingDirectory(path) => write!(f, "working directory {path}"),
            Self::PermissionMode(mode) => write!(f, "permission mode {mode}"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Hook { event, handlers } => write!(f, "hook on {event}: {handlers}"),
            Self::Setting { key, value } => write!(f, "{key} {value}"),
        }
    }
}

impl From<PartContent> for String {
    fn from(content: PartContent) -> Self {
        content.to_string()
    }
}

impl From<String> for PartContent {
    fn from(sentence: String) -> Self {
        type ContentOf = fn(String) -> PartContent;
        const WORDS: [(&str, ContentOf); 6] = [
            ("allow rule ", PartContent::AllowRule),
            ("ask rule ", PartContent::AskRule),
            ("deny rule ", PartContent::DenyRule),
            ("working directory ", PartContent::WorkingDirectory),
            ("permission mode ", PartContent::PermissionMode),
            ("variable ", PartContent::Variable),
        ];
        for (words, content) in WORDS {
            if let Some(rest) = sentence.strip_prefix(words) {
                return content(rest.to_owned());
            }
        }
        if let Some((event, handlers)) =
            sentence.strip_prefix("hook on ").and_then(|rest| rest.split_once(": "))
        {
            return Self::Hook { event: event.to_owned(), handlers: handlers.to_owned() };
        }
        let (key, value) = sentence.split_once(' ').unwrap_or((&sentence, ""));
        Self::Setting { key: key.to_owned(), value: value.to_owned() }
    }
}

/// Everything in a project that would act, in a fixed order, and what it forbids besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectParts {
    /// The parts that would act.
    pub list: Vec<ProjectPart>,
    /// What the project forbids, or asks about: with less of it, what acts may do more.
    pub restrictions: Vec<ProjectPart>,
}

impl ProjectParts {
    /// Each part and each restriction once, sorted.
    pub fn new(parts: Vec<ProjectPart>, restrictions: Vec<ProjectPart>) -> Self {
        Self { list: each_once(parts), restrictions: each_once(restrictions) }
    }

    /// A hash over all that would act: the same for the same content, however it is written and wherever it stands.
    pub fn fingerprint(&self) -> String {
        let mut hashes: Vec<&str> = self.list.iter().map(|part| &*part.hash).collect();
        hashes.sort_unstable();
        hash(hashes.join("\n").as_bytes())
    }
}

/// In the order of their sentences; of equal ones, the first counts.
fn each_once(mut parts: Vec<ProjectPart>) -> Vec<ProjectPart> {
    parts.sort_by_cached_key(|part| (part.content.to_string(), part.hash.clone()));
    parts.dedup_by(|next, part| (&next.content, &next.hash) == (&part.content, &part.hash));
    parts
}

impl SettingsFiles {
    /// What came with the project and would act. With it, what it forbids.
    pub fn parts(&self) -> ProjectParts {
        // Nobody is asked about what does nothing yet.
        ProjectParts::new(self.under(|key| key.is_awaiting_trust && key.has_effect), self.under(restricts))
    }

    /// What the project's files say under some keys.
    fn under(&self, wanted: impl Fn(&Key) -> bool) -> Vec<ProjectPart> {
        let mut parts = Vec::new();
        for SettingsFile { tree, .. } in self.files.iter().filter(|file| file.source.is_foreign) {
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
    !matches!(key.kind, ValueType::Group)
        && (key.is_forbidding || matches!(key.allowed, KeyScope::ForeignOnly(_)))
}

fn collect(
    tree: &SettingsTree,
    path: &str,
    is_map: bool,
    places: &SettingsPlaces,
    parts: &mut Vec<ProjectPart>,
) {
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

fn part(path: &str, leaf: &Leaf, places: &SettingsPlaces) -> ProjectPart {
    let files = if path.starts_with("hooks.") { named(&leaf.value, places) } else { BTreeMap::new() };
    let mut all = format!("{path}\n{}", canonical(&leaf.value));
    for (name, mark) in &files {
        let _ = write!(all, "\nfile {name} {mark}");
    }
    ProjectPart {
        content: PartContent::new(path, &leaf.value),
        hash: hash(all.as_bytes()),
        files,
        shown: Some(ShownValue::new(path.to_owned(), &leaf.value, &leaf.origin)),
    }
}

fn handlers(group: &Value) -> String {
    let handlers = group["hooks"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = handlers.iter().map(|handler| {
        let text = ["command", "url", "prompt", "tool"].into_iter().find_map(|field| handler[field].as_str());
        let arguments = handler["args"].as_array().map(|_| canonical(&handler["args"]));
        let shown = text.map_or_else(|| canonical(handler), str::to_owned);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_read_back() {
        let check = |path: &str, value: Value, sentence: &str| {
            let content = PartContent::new(path, &value);
            assert_eq!(content.to_string(), sentence);
            assert_eq!(PartContent::from(sentence.to_owned()), content);
        };
        check("permissions.allow", "Bash(a: b)".into(), "allow rule Bash(a: b)");
        check("permissions.ask", "Read".into(), "ask rule Read");
        check("permissions.deny", "Read".into(), "deny rule Read");
        check("permissions.additionalDirectories", "../a b".into(), "working directory ../a b");
        check("permissions.defaultMode", "plan".into(), "permission mode plan");
        check("env.NAME", "secret".into(), "variable NAME");
        let group = serde_json::json!({"matcher": "Bash", "hooks": [{"command": "a: b"}]});
        check("hooks.Stop", group, "hook on Stop: a: b (for Bash)");
        check("sandbox.enabled", true.into(), "sandbox.enabled true");
        check("model", "".into(), "model ");
    }
}
