//! What Landlock lets a command do with files. It only allows, and for everything below a directory: to keep something
//! closed inside an open directory, all else in that directory is allowed instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::launch_plan::{FileAccess, Landlock};
use crate::mounts;

/// More rules than these are not made; what is left out stays closed.
const RULES_MAX: usize = 20_000;

/// Devices that every program may use. Terminals are not among them: those of the user could be read and written.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// From this version on, nothing that changes a file is left out: truncating came last.
pub(crate) const VERSION_MIN: u32 = 3;
/// From this version on, a command cannot signal processes outside.
pub(crate) const VERSION_SIGNALS: u32 = 6;

/// The version of Landlock's interface that the kernel has, as far as this program knows it; `None` without Landlock.
pub(crate) fn version() -> Option<u32> {
    (1..=VERSION_SIGNALS).rev().find(|&version| ruleset(version).and_then(Ruleset::create).is_ok())
}

fn abi(version: u32) -> ABI {
    version.cast_signed().into()
}

/// Everything that version knows, or a failure.
fn ruleset(version: u32) -> Result<Ruleset, RulesetError> {
    let abi = abi(version);
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
    if version < VERSION_SIGNALS { Ok(ruleset) } else { ruleset.scope(Scope::from_all(abi)) }
}

/// Restricts this process and what it starts, for good.
pub(crate) fn restrict(files: &FileAccess, landlock: Landlock) -> Result<(), String> {
    let version = landlock.version;
    let rules = file_rules(files, landlock)?;
    let apply = || -> Result<RulesetStatus, RulesetError> {
        // What has gone meanwhile gets no rule, and a file none about directories.
        let rules = rules.into_iter().flat_map(|(path, access)| path_beneath_rules([path], access));
        Ok(ruleset(version)?.create()?.add_rules(rules)?.restrict_self()?.ruleset)
    };
    match apply().map_err(|error| error.to_string())? {
        RulesetStatus::FullyEnforced => Ok(()),
        status => Err(format!("{status:?}")),
    }
}

/// Keeps this process and what it starts from the abstract sockets of others, for good.
pub(crate) fn close_abstract_sockets() -> Result<(), RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::AbstractUnixSocket)?.create()?.restrict_self().map(drop)
}

type FileRule = (PathBuf, BitFlags<AccessFs>);

fn file_rules(files: &FileAccess, landlock: Landlock) -> Result<Vec<FileRule>, String> {
    let abi = abi(landlock.version);
    let (file, read) = (AccessFs::from_file(abi), AccessFs::Execute | AccessFs::ReadFile);
    let mut write = AccessFs::from_all(abi);
    write.remove(AccessFs::MakeChar | AccessFs::MakeBlock);
    // Names can be listed everywhere; contents are another matter.
    let mut rules: Vec<FileRule> = vec![("/".into(), AccessFs::ReadDir.into())];
    let mut closed = hidden_paths(files);
    closed.insert("/dev".into());
    rules.extend(around(Path::new("/"), &closed).into_iter().map(|path| (path, read)));
    rules.extend(files.readable.iter().map(|path| (path.clone(), read)));
    for device in DEVICES {
        rules.push((Path::new("/dev").join(device), file));
    }
    let fixed = fixed_paths(files);
    for (_, root) in mounts::writable_places(files)? {
        for place in around(&root, &fixed) {
            rules.push((place, write));
        }
    }
    rules.truncate(RULES_MAX);
    Ok(rules)
}

fn hidden_paths(files: &FileAccess) -> BTreeSet<PathBuf> {
    files.hidden.iter().flat_map(|path| spellings(path)).collect()
}

/// What stays as it is inside of writable places.
fn fixed_paths(files: &FileAccess) -> BTreeSet<PathBuf> {
    let protected = files.protected.iter().map(|protected| &protected.path);
    let paths = protected.chain(&files.readable).chain(&files.hidden);
    paths.flat_map(|path| spellings(path)).collect()
}

/// Writable directories opened only by their content: nothing can be made, removed or renamed in them.
pub(crate) fn opened_in_part(files: &FileAccess) -> BTreeSet<PathBuf> {
    let places = mounts::writable_places(files).unwrap_or_default();
    let mut found = BTreeSet::new();
    for path in fixed_paths(files) {
        for (_, root) in &places {
            let above = path.ancestors().skip(1).take_while(|above| above.starts_with(root));
            found.extend(above.filter(|above| above.is_dir()).map(Path::to_owned));
        }
    }
    found
}

/// A path as it is named, below a directory without links, and as it is. Closing both closes the link and its target.
fn spellings(path: &Path) -> Vec<PathBuf> {
    let named = path.parent().and_then(|parent| parent.canonicalize().ok()).zip(path.file_name());
    let named = named.map_or_else(|| path.to_owned(), |(parent, name)| parent.join(name));
    let real = mounts::resolve(path).ok().map(|resolved| resolved.path);
    [real, Some(named), Some(path.to_owned())].into_iter().flatten().collect()
}

/// Everything in `root` but what is closed: the root itself if nothing is, else what is in it.
fn around(root: &Path, closed: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut open = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(place) = waiting.pop() {
        // Sorted by parts, so what is below a place comes right after it.
        match closed.range(place.clone()..).next() {
            Some(first) if *first == place => {}
            Some(first) if first.starts_with(&place) => {
                let list = fs::read_dir(&place).into_iter().flatten().flatten();
                let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
                waiting.extend(list.filter(|entry| !is_link(entry)).map(|entry| entry.path()));
            }
            _ => open.push(place),
        }
        if open.len() > RULES_MAX {
            break;
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for name in ["a/b", "a/c/d", "a-b", "e"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let check = |closed: &[&str], expected: &[&str]| {
            let closed = closed.iter().map(|name| root.join(name)).collect();
            let mut found = around(&root, &closed);
            found.sort();
            let expected: Vec<PathBuf> = expected.iter().map(|name| root.join(name)).collect();
            assert_eq!(found, expected, "{closed:?}");
        };
        check(&[], &[""]);
        check(&[""], &[]);
        check(&["a"], &["a-b", "e"]);
        check(&["a/c"], &["a/b", "a-b", "e"]);
        check(&["a/c/d/missing"], &["a/b", "a-b", "e"]);
        check(&["missing"], &["a", "a-b", "e"]);
        check(&["missing/below"], &["a", "a-b", "e"]);
    }
}
