//! Settings as a tree of values that know where they stand, and how the trees of several files become one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::keys::{self, Key, MergeRule};
use super::origin::{SettingOrigin, SettingsLevel, SourcedValue};

pub(crate) type Leaf = SourcedValue<Value>;

/// What a file, or all of them, say.
#[derive(Clone, PartialEq)]
pub(crate) enum SettingsTree {
    /// Groups of keys, and objects with any names.
    Object(BTreeMap<String, SettingsTree>),
    List(SettingsList),
    /// Whatever holds as a whole.
    Leaf(Leaf),
}

/// A list, and where it begins: an empty one says something too.
#[derive(Clone, PartialEq)]
pub(crate) struct SettingsList {
    pub(crate) origin: SettingOrigin,
    pub(crate) items: Vec<Leaf>,
}

/// It may hold secrets.
impl fmt::Debug for SettingsTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Default for SettingsTree {
    fn default() -> Self {
        Self::Object(BTreeMap::new())
    }
}

impl SettingsTree {
    pub(crate) fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |tree, name| match tree {
            Self::Object(members) => members.get(name),
            _ => None,
        })
    }

    pub(crate) fn get_mut(&mut self, path: &str) -> Option<&mut Self> {
        path.split('.').try_fold(self, |tree, name| match tree {
            Self::Object(members) => members.get_mut(name),
            _ => None,
        })
    }

    /// A tree with one of the outermost groups alone.
    pub(crate) fn group(&self, name: &str) -> Self {
        Self::Object(self.get(name).map(|group| (name.to_owned(), group.clone())).into_iter().collect())
    }

    /// Takes out what stands under a key; gives where it stood.
    pub(crate) fn take(&mut self, path: &str) -> Option<SettingOrigin> {
        let (group, name) = match path.rsplit_once('.') {
            Some((group, name)) => (self.get_mut(group)?, name),
            None => (self, path),
        };
        match group {
            Self::Object(members) => members.remove(name)?.origin().cloned(),
            _ => None,
        }
    }

    pub(crate) fn leaf(&self, path: &str) -> Option<&Leaf> {
        match self.get(path)? {
            Self::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    pub(crate) fn list(&self, path: &str) -> Option<&SettingsList> {
        self.get(path)?.as_list()
    }

    pub(crate) fn as_list(&self) -> Option<&SettingsList> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    pub(crate) fn object(&self, path: &str) -> Option<&BTreeMap<String, Self>> {
        match self.get(path)? {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The values without where they stand.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Object(members) => {
                members.iter().map(|(name, tree)| (name.clone(), tree.to_value())).collect()
            }
            Self::List(list) => list.items.iter().map(|item| item.value.clone()).collect(),
            Self::Leaf(leaf) => leaf.value.clone(),
        }
    }

    /// Where the first of its values stands.
    pub(crate) fn origin(&self) -> Option<&SettingOrigin> {
        match self {
            Self::Leaf(leaf) => Some(&leaf.origin),
            Self::List(list) => Some(&list.origin),
            Self::Object(members) => members.values().find_map(Self::origin),
        }
    }

    /// Puts stronger settings over these. `path` is the key they both stand under.
    pub(crate) fn put(&mut self, stronger: Self, path: &str) {
        let key = keys::governing(path);
        let merging = key.map_or(MergeRule::Usual, |key| key.merging);
        match (&mut *self, stronger) {
            (Self::Object(members), Self::Object(others)) => {
                let dot = if path.is_empty() { "" } else { "." };
                for (name, tree) in others {
                    match members.get_mut(&name) {
                        Some(member) => member.put(tree, &format!("{path}{dot}{name}")),
                        None => drop(members.insert(name, tree)),
                    }
                }
            }
            (Self::List(list), Self::List(other)) => list.put(other, merging, key),
            (Self::Leaf(leaf), Self::Leaf(other)) => {
                let stays = matches!(merging, MergeRule::Strict(strict) if leaf.value == strict);
                if !stays {
                    *leaf = other;
                }
            }
            (_, other) => *self = other,
        }
    }
}

impl SettingsList {
    fn put(&mut self, stronger: Self, merging: MergeRule, key: Option<&Key>) {
        let managed_first =
            stronger.origin.level == SettingsLevel::Managed && self.origin.level != SettingsLevel::Managed;
        let replaces = match merging {
            MergeRule::Whole => true,
            MergeRule::ManagedReplaces => managed_first,
            MergeRule::Usual | MergeRule::AddUp | MergeRule::Strict(_) => false,
        };
        if replaces {
            *self = stronger;
            return;
        }
        self.origin = stronger.origin;
        self.items.extend(stronger.items);
        if merging != MergeRule::AddUp {
            self.without_doubles(key.is_some_and(|key| key.is_anchored));
        }
    }

    /// Equal values count once. Where the file matters for what a value means, only those of equal meaning.
    pub(crate) fn without_doubles(&mut self, is_anchored: bool) {
        let mut seen = BTreeSet::new();
        self.items.retain(|item| {
            let anchor = is_anchored.then(|| Arc::clone(&item.origin.anchor));
            seen.insert((item.value.to_string(), anchor))
        });
    }
}
