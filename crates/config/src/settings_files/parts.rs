//! What came with a project and would act: what trust is about.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::keys::{KEYS, Kind};
use super::tree::{Leaf, Tree};
use super::visible::visible;
use super::{SettingsFiles, json, read};

/// One thing that would act.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// What it is, for people: in full, with what cannot be seen written out. Values of variables are not shown.
    pub what: String,
    /// A hash of its exact content.
    pub hash: String,
}

/// Everything in a project that would act, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectParts {
    parts: Vec<Part>,
}

impl ProjectParts {
    /// Each part once, sorted.
    #[must_use]
    pub fn new(mut parts: Vec<Part>) -> Self {
        parts.sort_unstable();
        parts.dedup();
        Self { parts }
    }

    /// The parts.
    #[must_use]
    pub fn list(&self) -> &[Part] {
        &self.parts
    }

    /// Whether nothing would act.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A hash over all of them: the same for the same content, however it is written and wherever it stands.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hashes: Vec<&str> = self.parts.iter().map(|part| &*part.hash).collect();
        hashes.sort_unstable();
        hash(&hashes.join("\n"))
    }
}

impl SettingsFiles {
    /// What came with the project and would act: from settings files, and the servers of `.mcp.json`.
    #[must_use]
    pub fn parts(&self) -> ProjectParts {
        let mut parts = Vec::new();
        for (_, tree) in self.files.iter().filter(|(source, _)| source.foreign) {
            for key in KEYS.iter().filter(|key| key.waits) {
                let Some(found) = tree.get(key.path) else { continue };
                let start = &self.places.start;
                collect(found, key.path, matches!(key.kind, Kind::Map(_)), start, &mut parts);
            }
        }
        if self.sources.project {
            parts.extend(servers(&self.places.start));
        }
        ProjectParts::new(parts)
    }
}

fn collect(tree: &Tree, path: &str, is_map: bool, start: &Path, parts: &mut Vec<Part>) {
    match tree {
        Tree::Object(members) if is_map => {
            for (name, member) in members {
                collect(member, &format!("{path}.{name}"), false, start, parts);
            }
        }
        Tree::List(list) => parts.extend(list.items.iter().map(|item| part(path, item, start))),
        Tree::Leaf(leaf) => parts.push(part(path, leaf, start)),
        Tree::Object(_) => {}
    }
}

fn part(path: &str, leaf: &Leaf, start: &Path) -> Part {
    let text = leaf.value.as_str().map_or_else(|| canonical(&leaf.value), str::to_owned);
    let what = match path {
        "permissions.allow" => format!("allow rule {text}"),
        "permissions.additionalDirectories" => format!("working directory {text}"),
        "permissions.defaultMode" => format!("permission mode {text}"),
        _ => match path.split_once('.') {
            Some(("env", name)) => format!("variable {name}"),
            Some(("hooks", event)) => format!("hook on {event}: {}", handlers(&leaf.value)),
            _ => format!("{path} {text}"),
        },
    };
    let runs = if path.starts_with("hooks.") { scripts(&leaf.value, start) } else { String::new() };
    Part { what: visible(&what), hash: hash(&format!("{path}\n{}{runs}", canonical(&leaf.value))) }
}

/// The files of the project that texts name, each with a hash of its content: who agrees to a program agrees to what it is now.
fn scripts(value: &Value, start: &Path) -> String {
    let Ok(start) = start.canonicalize() else { return String::new() };
    let mut found = BTreeSet::new();
    for text in texts(value) {
        let text = text.replace("${CLAUDE_PROJECT_DIR}", ".").replace("$CLAUDE_PROJECT_DIR", ".");
        let ends = |c: char| c.is_whitespace() || "\"'`;&|()<>=".contains(c);
        // Quotes may stand around the first part of a name only.
        let whole = text.replace(['"', '\''], "");
        for word in text.split(ends).chain(whole.split(ends)).filter(|word| !word.is_empty()) {
            let file = start.join(word);
            let is_inside = file.canonicalize().is_ok_and(|file| file.starts_with(&start));
            if is_inside && file.is_file() {
                found.insert(file);
            }
        }
    }
    let line = |file: &PathBuf| {
        let content = read::read(file, read::BYTES_MAX).ok().flatten();
        // What is no text, or too long, is told apart by its size and time.
        let mark = content.map_or_else(|| unread(file), |content| hash(&content));
        format!("\nfile {} {mark}", file.display())
    };
    found.iter().map(line).collect()
}

fn unread(file: &Path) -> String {
    file.metadata().map_or_else(|_| String::new(), |facts| format!("{} {:?}", facts.len(), facts.modified()))
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
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

/// The servers that a file names. One that cannot be read is a part too: whoever starts servers may read it after all.
fn servers(start: &Path) -> Vec<Part> {
    let unreadable = |content: &str| {
        let what = "servers in .mcp.json, which cannot be read".to_owned();
        vec![Part { what, hash: hash(&format!("servers\n{content}")) }]
    };
    let text = match read::read(&start.join(".mcp.json"), read::BYTES_MAX) {
        Ok(None) => return Vec::new(),
        Ok(Some(text)) => text,
        Err(problem) => return unreadable(&problem),
    };
    let Ok(node) = json::parse(&text) else { return unreadable(&text) };
    if !node.doubled().is_empty() {
        return unreadable(&text);
    }
    let value = node.to_value();
    let Some(servers) = value["mcpServers"].as_object() else { return Vec::new() };
    let part = |(name, server): (&String, &Value)| {
        let address = server["command"].as_str().or_else(|| server["url"].as_str()).unwrap_or("?");
        let arguments = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let words: Vec<&str> = std::iter::once(address).chain(arguments).collect();
        let what = format!("server {name}: {}", words.join(" "));
        Part {
            what: visible(&what),
            hash: hash(&format!("server {name}\n{}{}", canonical(server), scripts(server, start))),
        }
    };
    servers.iter().map(part).collect()
}

/// A value as text that does not depend on the order of names or on blanks.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut pairs: Vec<(&String, &Value)> = members.iter().collect();
            pairs.sort_unstable_by_key(|(name, _)| *name);
            let pairs: Vec<String> = pairs
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(&**name), canonical(value)))
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fn hash(text: &str) -> String {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
