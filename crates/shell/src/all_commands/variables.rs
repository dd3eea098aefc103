//! What the line itself sets variables to. A value counts only if nothing in the line can give the variable another one.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::is_name_char;

/// Longer values are not kept.
const VALUE_MAX: usize = 1024;
/// More words of a loop are not kept.
const CHOICES_MAX: usize = 16;
/// More values are not kept.
const VALUES_MAX: usize = 256;

/// The variables of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    /// Names that are written exactly once other than to use them, and there with an equals sign behind.
    once: BTreeSet<String>,
    pub(super) values: BTreeMap<String, String>,
    /// Names that are written exactly once other than to use them, without an equals sign behind.
    named_once: BTreeSet<String>,
    /// What loops set variables to.
    pub(super) choices: BTreeMap<String, Vec<String>>,
    /// `HOME` may be another directory than it seems.
    pub(super) home_is_set: bool,
    /// `PWD` may be another directory than it seems.
    pub(super) here_is_set: bool,
}

impl Variables {
    /// Counts how often each name is written, quoted or not. Nothing has a value yet.
    pub(super) fn of(line: &str) -> Self {
        let mut written: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
        let mut rest = line;
        while let Some(start) = rest.find(is_name_char) {
            let name = &rest[start..];
            let length = name.find(|c| !is_name_char(c)).unwrap_or(name.len());
            let (before, after) = (&rest[..start], &name[length..]);
            let sets_default = after.starts_with('=') || after.starts_with(":=");
            let is_use = before.ends_with('$') || (before.ends_with("${") && !sets_default);
            if !is_use {
                let entry = written.entry(&name[..length]).or_default();
                *entry = (entry.0 + 1, after.starts_with('='));
            }
            rest = after;
        }
        let names = |with_equals: bool| -> BTreeSet<String> {
            let fits = |(name, (count, is_set)): &(&&str, &(usize, bool))| {
                *count == 1 && *is_set == with_equals && !name.starts_with(|c: char| c.is_ascii_digit())
            };
            written.iter().filter(fits).take(VALUES_MAX).map(|(name, _)| (*name).to_owned()).collect()
        };
        // With other separators words are split in other places.
        let (once, named_once) =
            if line.contains("IFS") { Default::default() } else { (names(true), names(false)) };
        let is_set = |name: &str| written.contains_key(name);
        let (home_is_set, here_is_set) = (is_set("HOME"), is_set("PWD"));
        Self { once, named_once, home_is_set, here_is_set, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.once.is_empty() && self.named_once.is_empty()
    }

    /// The same without some names that are set in another way.
    pub(super) fn without(mut self, names: &[String]) -> Self {
        for name in names {
            self.once.remove(name);
            self.named_once.remove(name);
        }
        self
    }

    /// The same without any value.
    pub(super) fn forgotten(&self) -> Self {
        Self { home_is_set: self.home_is_set, here_is_set: self.here_is_set, ..Self::default() }
    }

    /// Notes an assignment that certainly runs.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        let is_plain = value.len() <= VALUE_MAX && !value.is_empty() && !value.contains(['\0', '~']);
        if is_plain && self.once.contains(name) {
            self.values.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Notes the words of a loop that certainly runs.
    pub(super) fn choose(&mut self, name: &str, words: Vec<String>) {
        let is_plain = |word: &String| !word.is_empty() && word.len() <= VALUE_MAX / CHOICES_MAX;
        let fits = !words.is_empty() && words.len() <= CHOICES_MAX && words.iter().all(is_plain);
        if fits && self.named_once.contains(name) {
            self.choices.insert(name.to_owned(), words);
        }
    }

    /// What a loop may have set a variable to.
    pub(super) fn choices(&self, name: &str) -> &[String] {
        self.choices.get(name).map_or(&[], Vec::as_slice)
    }

    /// What a variable is known to hold. Outside quotes no names of files may take its place.
    pub(super) fn get(&self, name: &str, in_quotes: bool) -> Option<&str> {
        let value = self.values.get(name).map(String::as_str)?;
        let stays =
            !value.contains(['*', '?', '[', '(', '\\']) && !value.trim_matches([' ', '\t', '\n']).is_empty();
        (in_quotes || stays).then_some(value)
    }
}
