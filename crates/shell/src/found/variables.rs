//! What the line itself sets variables to. A value counts only if nothing in the line can give the variable another one.

use std::collections::{BTreeMap, BTreeSet};

/// Longer values are not kept.
const VALUE_MAX: usize = 1024;
/// More values are not kept.
const VALUES_MAX: usize = 256;

/// The variables of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    /// Names that are written exactly once other than to use them, and there with an equals sign behind.
    once: BTreeSet<String>,
    values: BTreeMap<String, String>,
    home_is_set: bool,
    here_is_set: bool,
}

impl Variables {
    /// Counts how often each name is written, quoted or not. Nothing has a value yet.
    pub(super) fn of(line: &str) -> Self {
        let mut written: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
        let mut rest = line;
        while let Some(start) = rest.find(is_name) {
            let name = &rest[start..];
            let length = name.find(|c| !is_name(c)).unwrap_or(name.len());
            let (before, after) = (&rest[..start], &name[length..]);
            let sets_default = after.starts_with('=') || after.starts_with(":=");
            let is_use = before.ends_with('$') || (before.ends_with("${") && !sets_default);
            if !is_use {
                let entry = written.entry(&name[..length]).or_default();
                *entry = (entry.0 + 1, after.starts_with('='));
            }
            rest = after;
        }
        let is_once = |(name, (count, is_set)): (&&str, &(usize, bool))| {
            (*count == 1 && *is_set && !name.starts_with(|c: char| c.is_ascii_digit()))
                .then(|| (*name).to_owned())
        };
        // With other separators words are split in other places.
        let once = if line.contains("IFS") {
            BTreeSet::new()
        } else {
            written.iter().filter_map(is_once).take(VALUES_MAX).collect()
        };
        let is_set = |name: &str| written.contains_key(name);
        Self { once, values: BTreeMap::new(), home_is_set: is_set("HOME"), here_is_set: is_set("PWD") }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.once.is_empty()
    }

    /// The same without some names that are set in another way.
    pub(super) fn without(mut self, names: &[String]) -> Self {
        for name in names {
            self.once.remove(name);
        }
        self
    }

    /// The same without any value.
    pub(super) fn forgotten(&self) -> Self {
        Self { once: BTreeSet::new(), values: BTreeMap::new(), ..self.clone() }
    }

    pub(super) fn forget_values(&mut self) {
        self.values.clear();
    }

    /// Notes an assignment that certainly runs.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        let is_plain = value.len() <= VALUE_MAX && !value.is_empty() && !value.contains(['\0', '~']);
        if is_plain && self.once.contains(name) {
            self.values.insert(name.to_owned(), value.to_owned());
        }
    }

    /// What a variable is known to hold. Outside quotes it must stay one word.
    pub(super) fn get(&self, name: &str, in_quotes: bool) -> Option<&str> {
        let value = self.values.get(name).map(String::as_str)?;
        let stays = !value.contains(|c: char| c.is_whitespace() || matches!(c, '*' | '?' | '[' | '\\'));
        (in_quotes || stays).then_some(value)
    }

    /// Whether `HOME` may be another directory than it seems.
    pub(super) fn home_is_set(&self) -> bool {
        self.home_is_set
    }

    /// Whether `PWD` may be another directory than it seems.
    pub(super) fn here_is_set(&self) -> bool {
        self.here_is_set
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
