//! Each key: its type, who may set it, how values merge. Checks, schema and documentation go by this table.

use windlass_text::nearest::nearest;

mod table;

pub(crate) use table::KEYS;

#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueType {
    Text,
    Switch,
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number in a range.
    Share(f64, f64),
    Choice(&'static [&'static str]),
    List(&'static ValueType),
    /// An object with any names and values of one type.
    Map(&'static ValueType),
    /// An object whose names are keys of their own in the table.
    Group,
    /// An object with these fields; those marked must be there.
    Fields(&'static [(&'static str, ValueType, bool)]),
    /// An object with any content: others look into it.
    Object,
    Any,
}

pub(crate) const TEXTS: ValueType = ValueType::List(&ValueType::Text);

/// How values of several levels become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeRule {
    /// Lists add up, objects are merged name by name, of single values the highest level's holds.
    Usual,
    /// As usual, but equal values stay apart: one may be turned off without the other.
    AddUp,
    /// The highest level's list holds as a whole.
    Whole,
    /// As usual, but the administrator's list replaces the others.
    ManagedReplaces,
    /// Once a level says this, it holds.
    Strict(bool),
}

/// Whose files may say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    Everywhere,
    /// Not in files that lie in a repository, whoever wrote them.
    OutsideRepositories,
    /// Not in files that came with the project.
    NotForeign,
    /// Files that came with the project may only say this, since the other is weaker.
    ForeignOnly(bool),
    Managed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its name, with the groups it lies in.
    pub(crate) path: &'static str,
    pub(crate) kind: ValueType,
    pub(crate) about: &'static str,
    /// What holds without it.
    pub(crate) default: &'static str,
    pub(crate) merging: MergeRule,
    pub(crate) allowed: KeyScope,
    /// Whether it does something here.
    pub(crate) has_effect: bool,
    /// Whether it waits for trust when it comes with the project.
    pub(crate) is_awaiting_trust: bool,
    /// Whether a value means something else in another file.
    pub(crate) is_anchored: bool,
    /// Whether nothing may start when it is wrong.
    pub(crate) is_forbidding: bool,
}

/// A key that has an effect.
const fn key(path: &'static str, kind: ValueType) -> Key {
    Key {
        path,
        kind,
        about: "",
        default: "",
        merging: MergeRule::Usual,
        allowed: KeyScope::Everywhere,
        has_effect: true,
        is_awaiting_trust: false,
        is_anchored: false,
        is_forbidding: false,
    }
}

/// One that waits for trust when it comes with the project.
const fn trusted(path: &'static str, kind: ValueType) -> Key {
    key(path, kind).waits()
}

/// One that protects: nothing may start when it is wrong.
const fn protect(path: &'static str, kind: ValueType) -> Key {
    Key { is_forbidding: true, ..key(path, kind) }
}

/// One that is known and has no effect yet.
const fn idle(path: &'static str, kind: ValueType) -> Key {
    Key { has_effect: false, ..key(path, kind) }
}

impl Key {
    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    const fn merge(self, merging: MergeRule) -> Self {
        Self { merging, ..self }
    }

    const fn scope(self, allowed: KeyScope) -> Self {
        Self { allowed, ..self }
    }

    const fn waits(self) -> Self {
        Self { is_awaiting_trust: true, ..self }
    }

    const fn anchor(self) -> Self {
        Self { is_anchored: true, ..self }
    }

    /// Its name without the groups.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// Whether it lies directly in a group; the outermost has no name.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        match self.path.rsplit_once('.') {
            Some((its, _)) => its == group,
            None => group.is_empty(),
        }
    }
}

pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The key that says how values under this name become one: that of the object for what has any name.
pub(crate) fn governing(path: &str) -> Option<&'static Key> {
    let holds = |key: &&Key| {
        matches!(key.kind, ValueType::Map(_))
            && path.strip_prefix(key.path).is_some_and(|rest| rest.starts_with('.'))
    };
    find(path).or_else(|| KEYS.iter().find(holds))
}

impl ValueType {
    /// What is accepted; fits after "must be".
    pub(crate) fn accepts(&self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Switch => "true or false".into(),
            Self::Whole(least, u64::MAX) => format!("a whole number from {least} on"),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Share(least, most) => format!("a number from {least} to {most}"),
            Self::Choice([one]) => format!("\"{one}\""),
            Self::Choice(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                let (last, others) =
                    quoted.split_last().map_or(("", &[][..]), |(last, others)| (last, others));
                format!("{} or {last}", others.join(", "))
            }
            Self::List(ValueType::Text) => "a list of texts".into(),
            Self::List(_) => "a list".into(),
            Self::Map(ValueType::Text) => "an object with texts".into(),
            Self::Map(_) | Self::Group | Self::Fields(_) | Self::Object => "an object".into(),
            Self::Any => "anything".into(),
        }
    }
}

/// What settings are called elsewhere, in small letters: by other programs, by our own flags, and by whoever guesses.
const OTHER_NAMES: [(&str, &str); 6] = [
    (
        "disallowedtools disallowed disallow deniedtools denied denytools denylist \
         blockedtools blocked block forbidden forbid",
        "permissions.deny",
    ),
    ("asktools confirm", "permissions.ask"),
    ("allowedtools allowed allowlist", "permissions.allow"),
    (
        "blockeddomains blockdomains deniedhosts denyhosts blockedhosts denynetwork",
        "sandbox.network.deniedDomains",
    ),
    ("blockread blockedread deniedread readdeny", "sandbox.filesystem.denyRead"),
    ("blockwrite blockedwrite deniedwrite writedeny", "sandbox.filesystem.denyWrite"),
];

/// The key that was probably meant by a name in a group: one with another name, its neighbour, or one of another group.
pub(crate) fn find_meant(name: &str, group: &str) -> Option<&'static Key> {
    let neighbours = || KEYS.iter().filter(|key| key.is_in(group));
    let near = || {
        let near = nearest(name, neighbours().map(Key::name))?;
        neighbours().find(|key| key.name() == near)
    };
    let elsewhere = || KEYS.iter().find(|key| key.name() == name);
    other_name(name).or_else(near).or_else(elsewhere)
}

/// Whether a name may have been meant for something that protects: a quick look, for files with very many names.
pub(crate) fn can_protect(name: &str, group: &str) -> bool {
    let protecting = || KEYS.iter().filter(|key| key.is_forbidding || key.path == "hooks");
    other_name(name).is_some()
        || protecting().any(|key| key.name() == name)
        || nearest(name, protecting().filter(|key| key.is_in(group)).map(Key::name)).is_some()
}

/// The key that is called so elsewhere.
fn other_name(name: &str) -> Option<&'static Key> {
    let plain = name.replace(['-', '_'], "").to_lowercase();
    let (_, path) = OTHER_NAMES.iter().find(|(names, _)| names.split(' ').any(|name| name == plain))?;
    find(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_a_key_is_in_the_table_and_no_key_is_there_twice() {
        for (position, key) in KEYS.iter().enumerate() {
            assert!(KEYS[position + 1..].iter().all(|other| other.path != key.path), "{}", key.path);
            if let Some((group, _)) = key.path.rsplit_once('.') {
                assert!(matches!(find(group).unwrap().kind, ValueType::Group), "{}", key.path);
            }
            let is_switch = matches!(key.kind, ValueType::Switch);
            assert!(is_switch || !matches!(key.merging, MergeRule::Strict(_)), "{}", key.path);
            assert!(is_switch || !matches!(key.allowed, KeyScope::ForeignOnly(_)), "{}", key.path);
            assert!(key.about.ends_with('.'), "{}", key.path);
        }
    }
}
