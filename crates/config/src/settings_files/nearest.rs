//! The known name that was probably meant.

use windlass_text::nearest::nearest;

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
    let plain = name.replace(['-', '_'], "").to_lowercase();
    let (_, path) = OTHER_NAMES.iter().find(|(names, _)| names.contains(&&*plain))?;
    keys::find(path)
}
