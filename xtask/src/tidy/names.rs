//! Names that a stranger understands: one name stands for one type; no type, module or function is a bare participle, which says
//! what happened to a thing but neither what it is nor who acts; no type or module is a preposition, an adverb or a word that fits anything.

use std::collections::BTreeMap;

use super::SourceFile;
use super::sources::{declared_type, rust};

/// Names that may be declared more than once, with the reason.
const SHARED_NAMES: &[(&str, &str)] = &[
    ("Session", "that of `windlass` is that of `engine` with the application around it"),
    ("Run", "as with `Session`"),
];

/// Types and modules that may be bare participles, with the reason.
const PARTICIPLES_ALLOWED: &[(&str, &str)] =
    &[("Read", "the name of the tool"), ("read", "the verb: a module that reads")];

/// Functions that may be bare participles, with the reason.
const FUNCTION_PARTICIPLES_ALLOWED: &[(&str, &str)] = &[
    ("cut", "the verb"),
    ("put", "the verb"),
    ("read", "the verb"),
    ("marked", "its callers in the shell are rewritten later"),
];

/// Words that say nothing without another.
const VAGUE: &[&str] = &[
    "Action", "Case", "Common", "Data", "Detail", "Exact", "Extra", "Info", "Item", "Kind", "Match",
    "Matter", "Meta", "Names", "Only", "Part", "Place", "Thing", "Track", "Wanted", "Way", "What", "Who",
    "World",
];

/// Prepositions and adverbs, which only say where or when a thing is.
const PREPOSITIONS: &[&str] = &[
    "about", "above", "after", "again", "ahead", "around", "before", "behind", "below", "beneath", "beside",
    "besides", "between", "beyond", "inside", "later", "near", "outside", "over", "through", "under",
    "until", "within", "without",
];

/// Files whose names are checked later, with the reason.
const LATER: &[(&str, &str)] =
    &[("crates/shell/src/", "its inside is to be rewritten; its public types are in `analysis.rs`")];
const LATER_BUT: &str = "crates/shell/src/analysis.rs";

/// Participles that do not end with `ed`.
const IRREGULAR: &[&str] = &[
    "begun",
    "bound",
    "bought",
    "broken",
    "brought",
    "built",
    "caught",
    "chosen",
    "cut",
    "done",
    "drawn",
    "fallen",
    "forgotten",
    "found",
    "given",
    "gone",
    "grown",
    "heard",
    "held",
    "hidden",
    "hung",
    "kept",
    "known",
    "laid",
    "left",
    "lost",
    "made",
    "meant",
    "met",
    "paid",
    "put",
    "ran",
    "read",
    "said",
    "seen",
    "sent",
    "shown",
    "sold",
    "spent",
    "spoken",
    "taken",
    "thrown",
    "told",
    "torn",
    "won",
    "worn",
    "written",
];

/// How the name of a boolean begins, so that a condition reads as one.
const CONDITIONS: &[&str] = &["is_", "has_", "can_", "should_"];

/// What a type derives whose fields are named by others: settings, logs, the command line, schemas.
const OUTSIDE_NAMES: &[&str] = &["Serialize", "Deserialize", "Args", "Parser", "Subcommand"];

/// Nouns and verbs that end with `ed`.
const NO_PARTICIPLES: &[&str] =
    &["embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed", "speed", "succeed"];

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

pub(crate) fn names_say_what_things_are(sources: &[SourceFile]) -> Vec<String> {
    let types = visible_types(sources).filter_map(|found| {
        let (path, line, name) = (found.path, found.line, found.name);
        if VAGUE.contains(&name) {
            return Some(format!("{path}:{line}: the type `{name}` fits anything; add what it is of"));
        }
        let flaw = flaw_of(name)?;
        Some(format!("{path}:{line}: the type `{name}` is {flaw}; name what it is"))
    });
    let modules = named_sources(sources).flat_map(|source| {
        let declared = shipped_lines(source).filter_map(|(line, text)| Some((line, declared_module(text)?)));
        declared.filter_map(|(line, name)| {
            let flaw = flaw_of(name)?;
            Some(format!("{}:{line}: the module `{name}` is {flaw}; name its topic", source.path))
        })
    });
    types.chain(modules).collect()
}

pub(crate) fn functions_say_what_they_do(sources: &[SourceFile]) -> Vec<String> {
    named_sources(sources).flat_map(unclear_functions).collect()
}

/// What a whole crate can call by a bare participle. What makes or changes its own type may be called so:
/// `Answer::rejected(why)`, `list.sorted()`.
fn unclear_functions(source: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut lines = shipped_lines(source);
    while let Some((line, text)) = lines.next() {
        let Some(name) = declared_function(text) else { continue };
        let mut signature = text.to_owned();
        while !signature.ends_with(['{', '}', ';']) {
            let Some((_, more)) = lines.next() else { break };
            signature.push_str(more);
        }
        let gives_self = signature.rsplit_once("->").is_some_and(|(_, output)| output.contains("Self"));
        if is_bare_participle(name) && !gives_self && !is_listed(FUNCTION_PARTICIPLES_ALLOWED, name) {
            let complaint =
                format!("the function `{name}` is a bare participle; say what it does or returns");
            complaints.push(format!("{}:{line}: {complaint}", source.path));
        }
    }
    complaints
}

pub(crate) fn booleans_are_conditions(sources: &[SourceFile]) -> Vec<String> {
    named_sources(sources).flat_map(unclear_booleans).collect()
}

fn unclear_booleans(source: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    let (mut is_derived, mut is_inside) = (false, false);
    for (line, text) in shipped_lines(source) {
        if text.starts_with("#[derive(") {
            is_derived = OUTSIDE_NAMES.iter().any(|name| text.contains(name));
        } else if declared_type(text).is_some() {
            is_inside = std::mem::take(&mut is_derived) && text.ends_with('{');
        } else if text == "}" {
            is_inside = false;
        }
        let unclear =
            boolean_names(text).filter(|name| !CONDITIONS.iter().any(|word| name.starts_with(word)));
        for name in unclear.filter(|_| !is_inside) {
            let complaint = format!("the boolean `{name}` begins with none of {}", CONDITIONS.join(", "));
            complaints.push(format!("{}:{line}: {complaint}", source.path));
        }
    }
    complaints
}

/// The fields and parameters that a line declares as booleans.
fn boolean_names(line: &str) -> impl Iterator<Item = &str> {
    let parts: Vec<&str> = line.split(": bool").collect();
    let names = parts.len().saturating_sub(1);
    parts.into_iter().take(names).filter_map(|before| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        before.rsplit(|c: char| !is_part(c)).next().filter(|name| !name.is_empty())
    })
}

fn visible_types(sources: &[SourceFile]) -> impl Iterator<Item = VisibleType<'_>> {
    named_sources(sources).flat_map(|source| {
        let visible = shipped_lines(source).filter(|(_, text)| text.starts_with("pub"));
        visible.filter_map(|(line, text)| {
            Some(VisibleType { name: declared_type(text)?, path: &source.path, line })
        })
    })
}

/// Files of the project whose names count: no tests.
fn named_sources(sources: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    rust(sources).filter(|source| {
        let is_test = source.path.contains("/tests/") || source.path.ends_with("tests.rs");
        let is_later = is_begun(LATER, &source.path) && source.path != LATER_BUT;
        source.path.contains("/src/") && !is_test && !is_later
    })
}

/// The lines that are no comments, with their numbers from 1, but for items that only tests have.
fn shipped_lines(source: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let mut lines = source.text.lines().enumerate();
    std::iter::from_fn(move || {
        loop {
            let (index, line) = lines.next()?;
            if line == "#[cfg(test)]" {
                // An item ends with a line that is not set in.
                lines.find(|(_, line)| !line.starts_with(' ') && line.ends_with([';', '}']));
            } else if !line.trim_start().starts_with("//") {
                return Some((index + 1, line.trim()));
            }
        }
    })
}

fn declared_module(line: &str) -> Option<&str> {
    let (visibility, rest) = line.split_once("mod ")?;
    let name = rest.strip_suffix(';').or_else(|| rest.strip_suffix(" {"))?;
    (visibility.is_empty() || visibility.starts_with("pub")).then_some(name)
}

/// The name of a function that its whole crate can call.
fn declared_function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_visible = before.starts_with("pub ") || before.starts_with("pub(crate) ");
    rest.split(['(', '<']).next().filter(|_| is_visible)
}

/// What is wrong with the name of a type or a module.
fn flaw_of(name: &str) -> Option<&'static str> {
    let is_preposition = PREPOSITIONS.contains(&&*name.to_ascii_lowercase());
    let is_participle = is_bare_participle(name) && !is_listed(PARTICIPLES_ALLOWED, name);
    is_preposition.then_some("a preposition or adverb").or(is_participle.then_some("a bare participle"))
}

fn is_bare_participle(name: &str) -> bool {
    let is_one_word = !name.contains('_') && !name.chars().skip(1).any(char::is_uppercase);
    let word = name.to_ascii_lowercase();
    let is_regular = word.ends_with("ed") && !NO_PARTICIPLES.contains(&&*word);
    is_one_word && (is_regular || IRREGULAR.contains(&&*word))
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
        check("pub struct Door;", "#[cfg(test)]\nmod tests;\n\npub struct Door;", 1);
        check("pub struct Door;", "named_enum! {\n    pub enum Door {}\n}", 1);
        check("pub struct Door;", "// pub struct Door;", 0);
        check("pub struct Session;", "pub struct Session;", 0);
    }

    #[test]
    fn a_boolean_reads_as_a_condition() {
        let check = |text: &str, expected: usize| {
            assert_eq!(
                booleans_are_conditions(&[source("crates/a/src/x.rs", text)]).len(),
                expected,
                "{text}"
            );
        };
        check("struct Door {\n    open: bool,\n}", 1);
        check("struct Door {\n    is_open: bool,\n}", 0);
        check("#[derive(Debug)]\nstruct Door {\n    pub open: bool,\n}", 1);
        check("#[derive(Debug, Deserialize)]\nstruct Door {\n    open: bool,\n}", 0);
        check("#[derive(Deserialize)]\nstruct Key(u8);\nstruct Door {\n    open: bool,\n}", 1);
        check("fn paint(door: Door, wet: bool, dry: bool) {}", 2);
        check("fn paint(door: Door, is_wet: bool) -> bool {}", 0);
    }

    #[test]
    fn a_participle_needs_its_noun() {
        let check = |path: &str, text: &str, expected: usize| {
            assert_eq!(names_say_what_things_are(&[source(path, text)]).len(), expected, "{path}: {text}");
        };
        check("crates/a/src/x.rs", "pub struct Kept;", 1);
        check("crates/a/src/x.rs", "pub(super) enum Watched {}", 1);
        check("crates/a/src/x.rs", "struct Watched;", 0);
        check("crates/a/src/x.rs", "pub struct WatchedFile;", 0);
        check("crates/a/src/x.rs", "pub struct Seed;", 0);
        check("crates/a/src/x.rs", "pub enum Kind {}", 1);
        check("crates/a/src/x.rs", "pub enum DoorKind {}", 0);
        check("crates/a/src/x.rs", "pub struct Names<'a> {}", 1);
        check("crates/a/src/x.rs", "struct Names;", 0);
        check("crates/a/src/x.rs", "pub struct PathNames;", 0);
        check("crates/a/src/x.rs", "pub(crate) enum Match {}", 1);
        check("crates/a/src/x.rs", "pub struct Below;", 1);
        check("crates/a/src/x.rs", "enum Below {}", 0);
        check("crates/a/src/x.rs", "pub enum HiddenBelow {}", 0);
        check("crates/a/src/lib.rs", "mod near;", 1);
        check("crates/a/src/lib.rs", "mod nearest;", 0);
        check("crates/a/src/lib.rs", "mod told;", 1);
        check("crates/a/src/x/mod.rs", "pub(crate) mod told {\n}", 1);
        check("crates/a/src/lib.rs", "mod told_outcome;", 0);
        check("crates/a/src/lib.rs", "mod read;", 0);
        check("crates/a/tests/main.rs", "mod told;", 0);
        check("crates/shell/src/lib.rs", "mod told;", 0);
        check("crates/shell/src/analysis.rs", "pub struct Kept;", 1);
    }

    #[test]
    fn a_function_is_a_verb_or_what_it_returns() {
        let check = |path: &str, text: &str, expected: usize| {
            assert_eq!(functions_say_what_they_do(&[source(path, text)]).len(), expected, "{path}: {text}");
        };
        check("crates/a/src/x.rs", "pub fn told(self) -> Vec<String> {\n}", 1);
        check("crates/a/src/x.rs", "    pub(crate) async fn stopped(&mut self) {", 1);
        check("crates/a/src/x.rs", "pub const fn kept<'a>(text: &'a str) -> &'a str {", 1);
        check("crates/a/src/x.rs", "pub fn shown(\n    text: &str,\n) -> String {\n}", 1);
        check("crates/a/src/x.rs", "fn told(self) -> Vec<String> {\n}", 0);
        check("crates/a/src/x.rs", "pub fn told_texts(self) -> Vec<String> {", 0);
        check("crates/a/src/x.rs", "    pub fn forked(self) -> Self {", 0);
        check("crates/a/src/x.rs", "pub fn limited(\n    most: u32,\n) -> Result<Self> {\n}", 0);
        check("crates/a/src/x.rs", "pub fn resumed(place: Self) -> u32 {", 1);
        check("crates/a/src/x.rs", "pub fn seed(&self) -> u64 {", 0);
        check("crates/a/src/x.rs", "pub fn read(&mut self) -> u8 {", 0);
        check("crates/a/src/x.rs", "pub(super) fn told() {", 0);
        check("crates/a/tests/x.rs", "pub fn told() {", 0);
        check("crates/shell/src/x.rs", "pub fn told() {", 0);
    }
}
