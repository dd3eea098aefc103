//! The known name that was probably meant.

use super::keys::{self, KEYS, Key};

/// What settings are called elsewhere, in small letters: by other programs, by our own flags, and by whoever guesses.
const OTHER_NAMES: [(&[&str], &str); 6] = [
    (
        &[
            "disallowedtools",
            "disallowed",
            "disallow",
            "deniedtools",
            "denied",
            "denytools",
            "denylist",
            "blockedtools",
            "blocked",
            "block",
            "forbidden",
            "forbid",
        ],
        "permissions.deny",
    ),
    (&["asktools", "confirm"], "permissions.ask"),
    (&["allowedtools", "allowed", "allowlist"], "permissions.allow"),
    (
        &["blockeddomains", "blockdomains", "deniedhosts", "denyhosts", "blockedhosts", "denynetwork"],
        "sandbox.network.deniedDomains",
    ),
    (&["blockread", "blockedread", "deniedread", "readdeny"], "sandbox.filesystem.denyRead"),
    (&["blockwrite", "blockedwrite", "deniedwrite", "writedeny"], "sandbox.filesystem.denyWrite"),
];

/// The key that was probably meant by a name in a group: one with another name, its neighbour, or one of another group.
pub(crate) fn meant(name: &str, group: &str) -> Option<&'static Key> {
    let neighbours = || KEYS.iter().filter(|key| key.is_in(group));
    let near = || {
        let near = nearest(name, neighbours().map(Key::name))?;
        neighbours().find(|key| key.name() == near)
    };
    let elsewhere = || KEYS.iter().find(|key| key.name() == name);
    other_name(name).or_else(near).or_else(elsewhere)
}

/// Whether a name may have been meant for something that protects: a quick look, for files with very many names.
pub(crate) fn may_protect(name: &str, group: &str) -> bool {
    let protecting = || KEYS.iter().filter(|key| key.forbids || key.path == "hooks");
    other_name(name).is_some()
        || protecting().any(|key| key.name() == name)
        || nearest(name, protecting().filter(|key| key.is_in(group)).map(Key::name)).is_some()
}

/// The key that is called so elsewhere.
fn other_name(name: &str) -> Option<&'static Key> {
    let plain: String =
        name.chars().take(NAME_CHARS_MAX).filter(|c| !"-_".contains(*c)).collect::<String>().to_lowercase();
    let (_, path) = OTHER_NAMES.iter().find(|(names, _)| names.contains(&&*plain))?;
    keys::find(path)
}

/// Longer names are no slips of the finger.
const NAME_CHARS_MAX: usize = 64;

/// The nearest of some names, if it is near enough to be meant.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(NAME_CHARS_MAX + 1).flat_map(char::to_lowercase).collect();
    if name.len() > NAME_CHARS_MAX {
        return None;
    }
    let far_max = (name.len() / 3).max(1);
    // Of names that differ much in length, nothing else need be looked at.
    let known = known.filter(|known| known.len().abs_diff(name.len()) <= far_max);
    let far = |known: &str| distance(&name, &known.to_lowercase().chars().collect::<Vec<_>>());
    let best = known.map(|known| (far(known), known)).min()?;
    (best.0 <= far_max).then_some(best.1)
}

/// How many characters must be changed, added, taken away or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, from) in a.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, to) in b.iter().enumerate() {
            let changed = last[column] + usize::from(from != to);
            let mut least = changed.min(last[column + 1] + 1).min(next[column] + 1);
            let swapped = row > 0 && column > 0 && *from == b[column - 1] && a[row - 1] == *to;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(
                nearest(name, ["permissions", "deny", "env", "model"].into_iter()),
                expected,
                "{name}"
            );
        };
        check("permisions", Some("permissions"));
        check("PERMISSIONS", Some("permissions"));
        check("dney", Some("deny"));
        check("denied", None);
        check("modle", Some("model"));
        check("enc", Some("env"));
        check("something", None);
        check("", None);
        check(&"x".repeat(100_000), None);
    }
}
