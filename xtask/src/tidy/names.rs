//! Names that a stranger understands: one name stands for one type, and neither a type nor a module is a bare participle, which says
//! what happened to a thing but not what it is.

use std::collections::BTreeMap;

use super::SourceFile;
use super::sources::{code_lines, declared_type, rust};

/// Names that may be declared more than once, with the reason.
const SHARED_NAMES: &[(&str, &str)] = &[
    ("Session", "that of `windlass` is that of `engine` with the application around it"),
    ("Run", "as with `Session`"),
];

/// Types and modules that may be bare participles, with the reason.
const PARTICIPLES_ALLOWED: &[(&str, &str)] = &[("Read", "the name of the tool")];

/// Files whose names are checked later, with the reason.
const LATER: &[(&str, &str)] =
    &[("crates/shell/src/", "its inside is to be rewritten; its public types are in `analysis.rs`")];
const LATER_BUT: &str = "crates/shell/src/analysis.rs";

/// Participles that do not end with `ed`.
const IRREGULAR: &[&str] = &[
    "begun", "bound", "built", "cut", "done", "drawn", "found", "given", "gone", "heard", "held", "hidden",
    "kept", "known", "left", "lost", "made", "meant", "put", "read", "said", "seen", "sent", "shown",
    "spent", "taken", "told", "written",
];

/// Nouns that end with `ed`.
const NOUNS: &[&str] = &["embed", "feed", "need", "seed", "speed"];

/// A type that others than its own file can name.
struct VisibleType<'a> {
    name: &'a str,
    path: &'a str,
    line: usize,
}

pub(crate) fn types_have_names_of_their_own(sources: &[SourceFile]) -> Vec<String> {
    let mut declared: BTreeMap<&str, Vec<VisibleType<'_>>> = BTreeMap::new();
    for found in visible_types(sources).filter(|found| !is_listed(SHARED_NAMES, found.name)) {
        declared.entry(found.name).or_default().push(found);
    }
    let complaint = |types: Vec<VisibleType<'_>>| {
        let [first, others @ ..] = &types[..] else { return None };
        let other = others.first()?;
        let (path, line, name) = (first.path, first.line, first.name);
        Some(format!("{path}:{line}: `{name}` is also declared in {}:{}; rename one", other.path, other.line))
    };
    declared.into_values().filter_map(complaint).collect()
}

pub(crate) fn names_are_no_participles(sources: &[SourceFile]) -> Vec<String> {
    let types = visible_types(sources).filter(|found| is_bare_participle(found.name));
    let types = types.map(|found| {
        let (path, line, name) = (found.path, found.line, found.name);
        format!("{path}:{line}: the type `{name}` is a bare participle; name what it is")
    });
    let modules = shipped(sources).filter(|source| is_bare_participle(module(source)));
    let modules =
        modules.map(|source| format!("{}: the module is a bare participle; name its topic", source.path));
    types.chain(modules).collect()
}

fn visible_types(sources: &[SourceFile]) -> impl Iterator<Item = VisibleType<'_>> {
    shipped(sources).flat_map(|source| {
        let before_tests = |(_, text): &(usize, &str)| *text != "#[cfg(test)]";
        let lines = code_lines(source).take_while(before_tests).filter(|(_, text)| text.starts_with("pub"));
        lines.filter_map(|(line, text)| {
            Some(VisibleType { name: declared_type(text)?, path: &source.path, line })
        })
    })
}

/// Files of the project that are no tests.
fn shipped(sources: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    rust(sources).filter(|source| {
        let is_test = source.path.contains("/tests/") || source.path.ends_with("tests.rs");
        let is_later = is_begun(LATER, &source.path) && source.path != LATER_BUT;
        source.path.contains("/src/") && !is_test && !is_later
    })
}

fn module(source: &SourceFile) -> &str {
    let (_, file) = source.path.rsplit_once('/').unwrap_or_default();
    file.strip_suffix(".rs").unwrap_or(file)
}

fn is_bare_participle(name: &str) -> bool {
    let is_one_word = !name.contains('_') && !name.chars().skip(1).any(char::is_uppercase);
    let word = name.to_ascii_lowercase();
    let is_participle = (word.ends_with("ed") && !NOUNS.contains(&&*word)) || IRREGULAR.contains(&&*word);
    is_one_word
        && is_participle
        && !PARTICIPLES_ALLOWED.iter().any(|(other, _)| word == other.to_ascii_lowercase())
}

fn is_listed(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(other, _)| *other == name)
}

fn is_begun(list: &[(&str, &str)], path: &str) -> bool {
    list.iter().any(|(start, _)| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::source;

    #[test]
    fn a_name_stands_for_one_type_unless_it_is_private_to_a_file() {
        let check = |first: &str, second: &str, expected: usize| {
            let sources = [source("crates/a/src/x.rs", first), source("crates/b/src/y.rs", second)];
            assert_eq!(types_have_names_of_their_own(&sources).len(), expected, "{first} {second}");
        };
        check("pub struct Door;", "pub(crate) enum Door {}", 1);
        check("pub struct Door;", "struct Door;", 0);
        check("pub struct Door;", "#[cfg(test)]\nmod tests {\n    pub(crate) struct Door;\n}", 0);
        check("pub struct Door;", "// pub struct Door;", 0);
        check("pub struct Session;", "pub struct Session;", 0);
    }

    #[test]
    fn a_participle_needs_its_noun() {
        let check = |path: &str, text: &str, expected: usize| {
            assert_eq!(names_are_no_participles(&[source(path, text)]).len(), expected, "{path}: {text}");
        };
        check("crates/a/src/x.rs", "pub struct Kept;", 1);
        check("crates/a/src/x.rs", "pub(super) enum Watched {}", 1);
        check("crates/a/src/x.rs", "struct Watched;", 0);
        check("crates/a/src/x.rs", "pub struct WatchedFile;", 0);
        check("crates/a/src/x.rs", "pub struct Seed;", 0);
        check("crates/a/src/told.rs", "", 1);
        check("crates/a/src/told_outcome.rs", "", 0);
        check("crates/a/tests/told.rs", "", 0);
        check("crates/shell/src/told.rs", "", 0);
        check("crates/shell/src/analysis.rs", "pub struct Kept;", 1);
    }
}
