//! How much is pulled in: the core stays small and pure, the binary stays small.

use std::collections::BTreeSet;

use super::WorkspaceMember;

const CORE: &str = "windlass-core";
const CORE_DEPENDENCIES_MAX: usize = 3;
const BINARY_PACKAGES_MAX: usize = 299;

/// Beginnings of the names of crates that wait, look at a clock, draw a number or open a connection.
const IMPURE: &[&str] = &[
    "async",
    "chrono",
    "crossbeam-channel",
    "fastrand",
    "futures",
    "getrandom",
    "hyper",
    "jiff",
    "mio",
    "rand",
    "reqwest",
    "rustix",
    "smol",
    "time",
    "tokio",
];

/// What a line of a lock file says about a package of the public registry.
const PUBLIC: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn core_is_small(members: &[WorkspaceMember]) -> Vec<String> {
    let core = members.iter().filter(|member| member.package == CORE);
    let count =
        |member: &WorkspaceMember| member.dependencies.iter().filter(|dependency| !dependency.is_dev).count();
    core.map(count)
        .filter(|count| *count > CORE_DEPENDENCIES_MAX)
        .map(|count| {
            format!("crates/core: {count} dependencies; at most {CORE_DEPENDENCIES_MAX} are allowed")
        })
        .collect()
}

/// Takes the output of `cargo tree --prefix none` for the core.
pub(crate) fn core_is_pure(tree: &str) -> Vec<String> {
    let impure = |name: &&str| IMPURE.iter().any(|start| is_of_family(name, start));
    packages(tree)
        .into_iter()
        .filter(impure)
        .map(|name| {
            format!(
                "crates/core: remove the dependency {name}; the core must not wait, measure time or use randomness"
            )
        })
        .collect()
}

/// Takes the output of `cargo tree --prefix none` for the binary.
pub(crate) fn binary_is_small(tree: &str) -> Vec<String> {
    let packages: BTreeSet<&str> =
        tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty()).collect();
    if packages.len() <= BINARY_PACKAGES_MAX {
        return Vec::new();
    }
    vec![format!(
        "crates/cli: the binary has {} packages; at most {BINARY_PACKAGES_MAX} are allowed",
        packages.len()
    )]
}

/// Licences that ask for no more than to be named.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Takes lines of a package and its licence, with a tab between.
pub(crate) fn licences_fit(tree: &str) -> Vec<String> {
    let lines: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let misfits = lines.into_iter().filter_map(|line| {
        let (package, licence) = line.split_once('\t')?;
        (!licence_fits(licence))
            .then(|| format!("{package}: the licence {licence:?} is not compatible with MIT OR Apache-2.0"))
    });
    misfits.collect()
}

/// Of every part that applies, one choice must be in the list.
fn licence_fits(licence: &str) -> bool {
    let licence = licence.replace(['(', ')'], "").replace('/', " OR ");
    licence.split(" AND ").all(|part| part.split(" OR ").any(|choice| LICENCES.contains(&choice.trim())))
}

/// A lock file that names another registry builds only where it was made.
pub(crate) fn lock_is_public(lock: &str) -> Vec<String> {
    let sources = lock.lines().filter_map(|line| line.strip_prefix("source = \"")?.strip_suffix('"'));
    let others: BTreeSet<&str> = sources.filter(|source| *source != PUBLIC).collect();
    others.into_iter().map(|source| format!("Cargo.lock: {source} is not the public registry")).collect()
}

/// The names of the packages of a tree.
fn packages(tree: &str) -> BTreeSet<&str> {
    tree.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

/// Whether a name is the given one or the given one followed by `-`, `_` or a version.
fn is_of_family(name: &str, start: &str) -> bool {
    let rest = name.strip_prefix(start);
    rest.is_some_and(|rest| rest.chars().next().is_none_or(|next| !next.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::member;

    #[test]
    fn the_core_has_at_most_three_dependencies() {
        let check = |line: &str, expected: &[&str]| assert_eq!(core_is_small(&[member(line)]), expected);
        check("core: protocol a b dev:f dev:g", &[]);
        check("core: protocol a b c", &["crates/core: 4 dependencies; at most 3 are allowed"]);
        check("tools: a b c d e f g h", &[]);
    }

    #[test]
    fn the_core_neither_waits_nor_guesses() {
        let check =
            |tree: &str, expected: usize| assert_eq!(core_is_pure(tree).len(), expected, "for {tree}");
        check("windlass-core v0.1.0 (crates/core)\nserde v1.0.0\ntimely v1\nrandom-word v1", 0);
        check(
            "tokio v1.0.0\ntokio v1.0.0 (*)\ntokio-util v0.7.0\nrand v0.9\nrand_core v0.9\nfutures-util v0.3\ntime v0.3",
            6,
        );
    }

    #[test]
    fn licences_ask_for_no_more_than_to_be_named() {
        let check =
            |tree: &str, expected: usize| assert_eq!(licences_fit(tree).len(), expected, "for {tree}");
        check(
            "a v1\tMIT\na v1\tMIT (*)\nb v1\tMIT/Apache-2.0\nc v1\t(Apache-2.0 OR MIT) AND BSD-3-Clause",
            0,
        );
        check("d v1\tMIT OR GPL-3.0-only\ne v1\tApache-2.0 WITH LLVM-exception OR GPL-2.0", 0);
        check("f v1\tGPL-3.0-only\ng v1\tMIT AND AGPL-3.0\nh v1\t", 3);
    }

    #[test]
    fn the_binary_has_fewer_than_three_hundred_packages() {
        let tree = |count: usize| {
            let lines: Vec<String> =
                (0..count).map(|n| format!("package-{n} v1.0.0\npackage-{n} v1.0.0 (*)")).collect();
            lines.join("\n")
        };
        assert!(binary_is_small(&tree(299)).is_empty());
        assert_eq!(
            binary_is_small(&tree(300)),
            ["crates/cli: the binary has 300 packages; at most 299 are allowed"]
        );
    }

    #[test]
    fn packages_come_from_the_public_registry() {
        assert!(lock_is_public(&format!("name = \"a\"\nsource = \"{PUBLIC}\"\n")).is_empty());
        assert_eq!(
            lock_is_public("source = \"registry+https://mirror.invalid/index\""),
            ["Cargo.lock: registry+https://mirror.invalid/index is not the public registry"]
        );
    }
}
