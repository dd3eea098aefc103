//! What came with a project and would act: what trust is about.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_text::numbers::hex;

use super::keys::{KEYS, Key, KeyScope, ValueType};
use super::locations::SettingsPlaces;
use super::named_files::named_files;
use super::problem::visible;
use super::show::ShownValue;
use super::tree::{Leaf, SettingsTree};
use super::{SettingsFile, SettingsFiles};

/// One thing that would act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectPart {
    /// What it is.
    #[serde(rename = "what", deserialize_with = "read_content")]
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

/// What a part says, without values of variables. In the order in which parts are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartContent {
    /// A rule under which calls run unasked.
    AllowRule(String),
    /// A rule under which calls are asked about.
    AskRule(String),
    /// A rule under which calls never run.
    DenyRule(String),
    /// A group of hooks.
    Hook {
        /// The event.
        event: String,
        /// The calls it is for; all if empty.
        matcher: String,
        /// What each of them runs, with its arguments.
        handlers: Vec<String>,
    },
    /// Another setting.
    Setting {
        /// Its name, with the groups it lies in.
        key: String,
        /// Its value.
        value: String,
    },
    /// The mode at the start, by its name.
    PermissionMode(String),
    /// A variable, by its name.
    Variable(String),
    /// A working directory beside the project's.
    WorkingDirectory(String),
}

impl PartContent {
    fn of_sentence(sentence: &str) -> Self {
        type ContentOf = fn(String) -> PartContent;
        const WORDS: [(&str, ContentOf); 6] = [
            ("allow rule ", PartContent::AllowRule),
            ("ask rule ", PartContent::AskRule),
            ("deny rule ", PartContent::DenyRule),
            ("permission mode ", PartContent::PermissionMode),
            ("variable ", PartContent::Variable),
            ("working directory ", PartContent::WorkingDirectory),
        ];
        let mut known =
            WORDS.iter().filter_map(|(words, content)| Some((sentence.strip_prefix(words)?, content)));
        if let Some((rest, content)) = known.next() {
            return content(rest.to_owned());
        }
        if let Some((event, group)) = sentence.strip_prefix("hook on ").and_then(|rest| rest.split_once(": "))
        {
            let group =
                group.strip_suffix(')').and_then(|group| group.rsplit_once(" (for ")).unwrap_or((group, ""));
            let handlers = group.0.split(", ").map(str::to_owned).collect();
            return Self::Hook { event: event.to_owned(), matcher: group.1.to_owned(), handlers };
        }
        let (key, value) = sentence.split_once(' ').unwrap_or((sentence, ""));
        Self::Setting { key: key.to_owned(), value: value.to_owned() }
    }

    /// Whether one can have become the other.
    pub(super) fn has_subject_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::PermissionMode(_), Self::PermissionMode(_)) => true,
            (Self::Hook { event, .. }, Self::Hook { event: other, .. }) => event == other,
            _ => self == other,
        }
    }

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
                Some(("hooks", event)) => Self::Hook {
                    event: visible(event),
                    matcher: visible(value["matcher"].as_str().unwrap_or_default()),
                    handlers: handlers(value),
                },
                _ => Self::Setting { key: path.to_owned(), value: text() },
            },
        }
    }
}

/// Reads also the sentence in which an older version kept a part.
fn read_content<'de, D: serde::Deserializer<'de>>(from: D) -> Result<PartContent, D::Error> {
    let kept = Value::deserialize(from)?;
    match kept.as_str() {
        Some(sentence) => Ok(PartContent::of_sentence(sentence)),
        None => serde_json::from_value(kept).map_err(serde::de::Error::custom),
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

/// Of equal ones, the first counts.
fn each_once(mut parts: Vec<ProjectPart>) -> Vec<ProjectPart> {
    parts.sort_by(|one, other| (&one.content, &one.hash).cmp(&(&other.content, &other.hash)));
    parts.dedup_by(|next, part| (&next.content, &next.hash) == (&part.content, &part.hash));
    parts
}

impl SettingsFiles {
    /// What came with the project and would act. With it, what it forbids.
    pub fn parts(&self) -> ProjectParts {
        // Nobody is asked about what does nothing yet.
        ProjectParts::new(
            self.foreign_parts(|key| key.is_awaiting_trust && key.has_effect),
            self.foreign_parts(restricts),
        )
    }

    /// What the project's files say under some keys.
    fn foreign_parts(&self, wanted: impl Fn(&Key) -> bool) -> Vec<ProjectPart> {
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
    let files = if path.starts_with("hooks.") { named_files(&leaf.value, places) } else { BTreeMap::new() };
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

/// What each handler of a group runs.
fn handlers(group: &Value) -> Vec<String> {
    let handlers = group["hooks"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = handlers.iter().map(|handler| {
        let text = ["command", "url", "prompt", "tool"].into_iter().find_map(|field| handler[field].as_str());
        let shown = text.map_or_else(|| canonical(handler), str::to_owned);
        let arguments = handler["args"].as_array().map(|_| format!(" {}", canonical(&handler["args"])));
        visible(&(shown + &arguments.unwrap_or_default()))
    });
    texts.collect()
}

/// A value as text that does not depend on the order of names or on blanks.
fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

pub(super) fn hash(content: &[u8]) -> String {
    hex(digest(&SHA256, content).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_kept_as_what_it_is() {
        let check = |path: &str, value: Value, kept: Value| {
            let content = PartContent::new(path, &value);
            assert_eq!(serde_json::to_value(&content).unwrap(), kept);
            assert_eq!(PartContent::deserialize(kept).unwrap(), content);
        };
        let kept = |kind: &str, text: &str| serde_json::json!({kind: text});
        check("permissions.allow", "Bash(a: b)".into(), kept("allowRule", "Bash(a: b)"));
        check("permissions.ask", "Read".into(), kept("askRule", "Read"));
        check("permissions.deny", "Read".into(), kept("denyRule", "Read"));
        check("permissions.additionalDirectories", "../a b".into(), kept("workingDirectory", "../a b"));
        check("permissions.defaultMode", "plan".into(), kept("permissionMode", "plan"));
        check("env.NAME", "secret".into(), kept("variable", "NAME"));
        let group = serde_json::json!({"matcher": "Bash", "hooks": [{"command": "a: b"}]});
        let hook = serde_json::json!({"hook": {"event": "Stop", "matcher": "Bash", "handlers": ["a: b"]}});
        check("hooks.Stop", group, hook);
        let setting = |key: &str, value: &str| serde_json::json!({"setting": {"key": key, "value": value}});
        check("sandbox.enabled", true.into(), setting("sandbox.enabled", "true"));
        check("model", "".into(), setting("model", ""));
    }

    #[test]
    fn a_sentence_of_an_older_version_is_read() {
        let check = |sentence: &str, path: &str, value: Value| {
            let kept = serde_json::json!({"what": sentence, "hash": ""});
            assert_eq!(ProjectPart::deserialize(kept).unwrap().content, PartContent::new(path, &value));
        };
        check("allow rule Bash(a: b)", "permissions.allow", "Bash(a: b)".into());
        check("ask rule Read", "permissions.ask", "Read".into());
        check("deny rule Read", "permissions.deny", "Read".into());
        check("working directory ../a b", "permissions.additionalDirectories", "../a b".into());
        check("permission mode plan", "permissions.defaultMode", "plan".into());
        check("variable NAME", "env.NAME", "secret".into());
        let group = serde_json::json!({"matcher": "Bash", "hooks": [{"command": "a: b"}, {"command": "c"}]});
        check("hook on Stop: a: b, c (for Bash)", "hooks.Stop", group);
        check("sandbox.enabled true", "sandbox.enabled", true.into());
    }
}
