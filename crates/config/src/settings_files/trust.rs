//! Whether a project may act: who agreed to what, and whether it is still that. Agreement is bound to content, kept by
//! the top of the repository and the directory below it. It lapses, and the difference is shown, when a part that acts
//! is not exactly what was agreed to or a restriction is gone; further restrictions take nothing back.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use windlass_text::time::now_ms;

use super::locations::SettingsPlaces;
use super::parts::{PartContent, ProjectPart, ProjectParts};
use super::problem::visible;
use crate::{SharedFile, SharedFileError};

/// What is known about a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// The user agreed to exactly this.
    Trusted,
    /// The user was never asked.
    NeverAsked,
    /// The user agreed to something else.
    Changed {
        /// What is new, or now says something else.
        added: Vec<PartContent>,
        /// What is gone, or said something else.
        removed: Vec<PartContent>,
        /// Of what is in both, the files that are not what they were.
        files: BTreeMap<PartContent, Vec<HookFileChange>>,
    },
}

/// What became of the parts of a project, each told once.
#[derive(Debug, PartialEq, Eq)]
pub struct PartChanges<'a> {
    /// What says something else now: as it was, and as it is.
    pub changed: Vec<(&'a PartContent, &'a PartContent)>,
    /// What is new.
    pub new: Vec<&'a PartContent>,
    /// What is gone.
    pub gone: Vec<&'a PartContent>,
}

impl<'a> PartChanges<'a> {
    /// Pairs what was taken away with what was added. Where several have the same subject, nothing tells which became which.
    pub fn between(removed: &'a [PartContent], added: &'a [PartContent]) -> Self {
        let only = |parts: &'a [PartContent], one: &PartContent| {
            let mut same = parts.iter().filter(|part| part.has_subject_of(one));
            same.next().filter(|_| same.next().is_none())
        };
        let pair = |part: &PartContent| Some((only(removed, part)?, only(added, part)?));
        Self {
            changed: added.iter().filter_map(pair).collect(),
            new: added.iter().filter(|part| pair(part).is_none()).collect(),
            gone: removed.iter().filter(|part| pair(part).is_none()).collect(),
        }
    }
}

/// What became of a file that a part names, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFileChange {
    /// It says something else.
    Edited(String),
    /// It was not there before.
    Added(String),
    /// It is there no longer.
    Removed(String),
}

/// How the process was started, as far as trust depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrustRequest {
    /// The user cannot be asked.
    pub is_headless: bool,
    /// `--setting-sources` was given and names the project.
    pub is_project_named: bool,
    /// `--trust-project`.
    pub has_trust_flag: bool,
}

/// What to do about a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    /// Its parts act.
    Trust,
    /// The user has to be asked; until then its parts do not act.
    Ask,
    /// Its parts do not act, and a notice says so.
    Skip,
}

impl TrustRequest {
    /// What follows from what is known.
    pub fn answer(self, state: &TrustState) -> TrustAnswer {
        if self.has_trust_flag || *state == TrustState::Trusted {
            return TrustAnswer::Trust;
        }
        match (self.is_headless, self.is_project_named) {
            (true, true) => TrustAnswer::Trust,
            (true, false) => TrustAnswer::Skip,
            (false, _) => TrustAnswer::Ask,
        }
    }
}

/// What became of an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAgreement {
    /// It is kept.
    Kept,
    /// It lasts for this session: the home directory holds too much to agree to it for good.
    ForThisSession,
}

/// A project as trust knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProject {
    /// The top of the repository, or the directory outside of one.
    pub root: PathBuf,
    /// The directory below it whose settings were shown; empty for the top itself.
    pub inside: PathBuf,
    /// When the user agreed, in milliseconds since 1970.
    pub time_ms: u64,
    /// What was agreed to.
    pub parts: Vec<PartContent>,
}

/// The file that remembers who agreed to what.
#[derive(Clone, Debug)]
pub struct TrustStore {
    file: SharedFile,
}

impl TrustStore {
    /// The one in our home.
    pub fn new(home: &Path) -> Self {
        Self { file: SharedFile::new(home.join("trust.json")) }
    }

    /// Whether these parts were agreed to, here or, for a linked work tree not asked about, in the main one.
    pub fn state(
        &self,
        places: &SettingsPlaces,
        parts: &ProjectParts,
    ) -> Result<TrustState, SharedFileError> {
        if places.is_home(places.root()) {
            return Ok(TrustState::NeverAsked);
        }
        let known = self.read()?;
        let (root, inside) = keys(places);
        let entry = &known["projects"][&root][&inside];
        if is_about(entry, parts) {
            return Ok(TrustState::Trusted);
        }
        if entry.is_null() {
            let main = places.repository.as_ref().and_then(|repository| repository.main.as_ref());
            let agreed =
                main.is_some_and(|main| is_about(&known["projects"][name(&main.top)][&inside], parts));
            return Ok(if agreed { TrustState::Trusted } else { TrustState::NeverAsked });
        }
        let agreed = ProjectParts::new(stored_parts(&entry["parts"]), stored_parts(&entry["restrictions"]));
        Ok(difference(&agreed, parts))
    }

    /// Remembers that the user agreed to these parts.
    pub fn agree(
        &self,
        places: &SettingsPlaces,
        parts: &ProjectParts,
    ) -> Result<TrustAgreement, SharedFileError> {
        if places.is_home(places.root()) {
            return Ok(TrustAgreement::ForThisSession);
        }
        let (root, inside) = keys(places);
        let entry = json!({
            "hash": parts.fingerprint(),
            "timeMs": now_ms(),
            "parts": parts.list,
            "restrictions": parts.restrictions,
        });
        self.file.update(|json| *member(member(member(json, "projects"), &root), &inside) = entry)?;
        Ok(TrustAgreement::Kept)
    }

    /// Forgets every agreement about a project. Says whether there was one.
    pub fn revoke(&self, root: &Path) -> Result<bool, SharedFileError> {
        let root = name(root);
        self.file.update(|json| {
            let projects = json.get_mut("projects").and_then(Value::as_object_mut);
            projects.is_some_and(|projects| projects.shift_remove(&root).is_some())
        })
    }

    /// Every agreement.
    pub fn list(&self) -> Result<Vec<TrustedProject>, SharedFileError> {
        let known = self.read()?;
        let mut found = Vec::new();
        for (root, directories) in known["projects"].as_object().into_iter().flatten() {
            for (inside, entry) in directories.as_object().into_iter().flatten() {
                found.push(TrustedProject {
                    root: root.into(),
                    inside: inside.into(),
                    time_ms: entry["timeMs"].as_u64().unwrap_or(0),
                    parts: stored_parts(&entry["parts"]).into_iter().map(|part| part.content).collect(),
                });
            }
        }
        Ok(found)
    }

    /// What the file says. Nobody else may be able to write it.
    fn read(&self) -> Result<Value, SharedFileError> {
        let path = &self.file.path;
        if std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o022 != 0) {
            return Err(SharedFileError::Foreign { path: path.clone(), problem: "others can write it" });
        }
        self.file.read()
    }
}

/// The names under which agreements about a project are kept.
fn keys(places: &SettingsPlaces) -> (String, String) {
    let root = places.root();
    let inside = places.start.strip_prefix(root).unwrap_or(Path::new(""));
    (name(root), name(inside))
}

/// A path as the name of a member. Two paths never have the same name.
fn name(path: &Path) -> String {
    path.to_str()
        .map_or_else(|| path.as_os_str().as_encoded_bytes().escape_ascii().to_string(), str::to_owned)
}

/// Whether an agreement is about these parts, with everything forbidden that was when it was given.
fn is_about(entry: &Value, parts: &ProjectParts) -> bool {
    // By their hashes alone, since a restriction whose words cannot be read was agreed to all the same.
    let mut restrictions = entry["restrictions"].as_array().into_iter().flatten();
    let is_there = |agreed: &Value| parts.restrictions.iter().any(|part| agreed["hash"] == *part.hash);
    entry["hash"] == parts.fingerprint() && restrictions.all(is_there)
}

fn difference(before: &ProjectParts, now: &ProjectParts) -> TrustState {
    let (added, mut removed) =
        (parts_missing_in(&now.list, &before.list), parts_missing_in(&before.list, &now.list));
    let was: BTreeMap<_, _> = removed.iter().map(|part| (&part.content, *part)).collect();
    let changed = |part: &&ProjectPart| {
        let files = changed_files(&was.get(&part.content)?.files, &part.files);
        (!files.is_empty()).then(|| (part.content.clone(), files))
    };
    let files = added.iter().filter_map(changed).collect();
    removed.extend(parts_missing_in(&before.restrictions, &now.restrictions));
    let contents = |parts: Vec<&ProjectPart>| parts.into_iter().map(|part| part.content.clone()).collect();
    TrustState::Changed { added: contents(added), removed: contents(removed), files }
}

/// The parts that others do not have.
fn parts_missing_in<'a>(these: &'a [ProjectPart], those: &[ProjectPart]) -> Vec<&'a ProjectPart> {
    let those: BTreeSet<&str> = those.iter().map(|part| &*part.hash).collect();
    these.iter().filter(|part| !those.contains(&*part.hash)).collect()
}

fn changed_files(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<HookFileChange> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let change = |name: &String| match (before.get(name), now.get(name)) {
        (Some(was), Some(is)) if was == is => None,
        (Some(_), Some(_)) => Some(HookFileChange::Edited(visible(name))),
        (None, _) => Some(HookFileChange::Added(visible(name))),
        (_, None) => Some(HookFileChange::Removed(visible(name))),
    };
    names.into_iter().filter_map(change).collect()
}

fn stored_parts(parts: &Value) -> Vec<ProjectPart> {
    let parts = parts.as_array().into_iter().flatten();
    parts.filter_map(|part| ProjectPart::deserialize(part).ok()).collect()
}

/// A member of an object; whatever else stood there was not written by us.
pub(super) fn member<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    &mut value[name]
}
