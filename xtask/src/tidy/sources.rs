//! Rules for the text of files: their size, the names in them, and what must not stand in them.

use super::SourceFile;

const LINES_MAX: usize = 650;

/// Names of files that say nothing about what is in them.
const EMPTY_FILE_NAMES: &[&str] = &["common", "helper", "helpers", "misc", "shared", "util", "utils"];

/// Ends of names of types that say nothing about what the type is.
const EMPTY_TYPE_NAMES: &[&str] = &["Helper", "Manager", "Util", "Utils"];

/// Hosts that packages come from: a build finds them in its own configuration.
const REGISTRY_HOSTS: &[&str] = &[
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "pypi.org",
    "files.pythonhosted.org",
    "proxy.golang.org",
    "artifactory",
    "jfrog.io",
];

/// Folders of the machines the project is developed on.
const MACHINE_FOLDERS: &[&str] = &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "tmp/w/")];

pub(crate) fn files_are_short(sources: &[SourceFile]) -> Vec<String> {
    let long = |source: &&SourceFile| source.text.lines().count() > LINES_MAX;
    let complaint = |source: &SourceFile| {
        format!("{}: {} lines, {LINES_MAX} are allowed", source.path, source.text.lines().count())
    };
    rust(sources).filter(long).map(complaint).collect()
}

pub(crate) fn names_mean_something(sources: &[SourceFile]) -> Vec<String> {
    let empty_file = |source: &&SourceFile| {
        let mut parts = source.path.trim_end_matches(".rs").split('/');
        parts.any(|part| EMPTY_FILE_NAMES.contains(&part))
    };
    let files = rust(sources).filter(empty_file);
    let files =
        files.map(|source| format!("{}: the file name does not say what the file contains", source.path));
    let types = rust(sources).flat_map(|source| {
        let names = code_lines(source).filter_map(|(line, text)| Some((line, declared_type(text)?)));
        let empty = names.filter(|(_, name)| EMPTY_TYPE_NAMES.iter().any(|end| name.ends_with(end)));
        empty.map(|(line, name)| format!("{}:{line}: the name `{name}` does not say what it is", source.path))
    });
    files.chain(types).collect()
}

/// Lints are lifted with `expect` and a reason; work is finished before it comes in.
pub(crate) fn nothing_is_waved_through(sources: &[SourceFile]) -> Vec<String> {
    let rules = [
        (concat!("#[", "allow("), "use `#[expect(…, reason = \"…\")]`"),
        (concat!("#![", "allow("), "use `#![expect(…, reason = \"…\")]`"),
        (concat!("to", "do!("), "finish it"),
        (concat!("unimple", "mented!("), "finish it"),
    ];
    find(rust(sources), &rules)
}

/// An application acts on its errors, so a text is none.
pub(crate) fn errors_have_types(sources: &[SourceFile]) -> Vec<String> {
    let is_of_application = |source: &&SourceFile| {
        let is_test = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
        !is_test
            && (source.path.starts_with("crates/cli/src") || source.path.starts_with("crates/windlass/src"))
    };
    let complaints = |source: &SourceFile| {
        let texts =
            code_lines(source).filter(|(_, text)| text.contains("Result<") && text.contains(", String>"));
        texts
            .map(|(line, _)| format!("{}:{line}: an error needs a type that says who must act", source.path))
            .collect::<Vec<_>>()
    };
    rust(sources).filter(is_of_application).flat_map(complaints).collect()
}

/// A queue without a limit is a leak that waits for a slow reader.
pub(crate) fn channels_are_bounded(sources: &[SourceFile]) -> Vec<String> {
    let in_source = |source: &SourceFile| {
        let complaint = |(line, text): (usize, &str)| {
            let (what, advice) = unbounded_channel(text)?;
            Some(format!("{}:{line}: `{what}` is not allowed; {advice}", source.path))
        };
        code_lines(source).filter_map(complaint).collect::<Vec<_>>()
    };
    rust(sources).filter(|source| is_shipped(source)).flat_map(in_source).collect()
}

/// The unbounded channel that a line makes or brings in, and what to do instead. The channel of std has the same name
/// as that of tokio, which always has a limit; it is the one that is made without any argument.
fn unbounded_channel(line: &str) -> Option<(&'static str, &'static str)> {
    const BOUNDED: &str = "use a bounded channel";
    const OF_STD: (&str, &str) = ("channel()", "std's channel is unbounded; use `sync_channel`");
    if line.contains("unbounded_channel") {
        return Some(("unbounded_channel", BOUNDED));
    }
    if words(line).any(|(at, word)| word == "unbounded" && !line[..at].ends_with("fn ")) {
        return Some(("unbounded", BOUNDED));
    }
    let is_of_std = |(at, word): (usize, &str)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let imported = before.contains("std::sync::mpsc::");
        let defined_or_single = before.ends_with("fn ") || before.ends_with("oneshot::");
        word == "channel" && !defined_or_single && (imported || arguments(after).starts_with("()"))
    };
    words(line).any(is_of_std).then_some(OF_STD)
}

/// The words of a line of code with their places.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let starts =
        line.match_indices(is_part).map(|(at, _)| at).filter(move |at| !line[..*at].ends_with(is_part));
    starts.map(move |at| (at, line[at..].split(|c| !is_part(c)).next().unwrap_or_default()))
}

/// What follows the name of a function, without the types it is given.
fn arguments(after: &str) -> &str {
    let Some(types) = after.strip_prefix("::<") else { return after };
    let mut depth = 1_usize;
    let end = types.find(|c| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.map_or("", |end| &types[end + 1..])
}

/// Files whose names are those of others: what hosts read, and the flags that users know.
const NAMES_OF_OTHERS: &[&str] = &["crates/wire/src/", "crates/cli/src/arguments.rs"];

/// `turns_max`, not `max_turns`: what a thing is comes first.
pub(crate) fn qualifiers_come_last(sources: &[SourceFile]) -> Vec<String> {
    let ours = |source: &&SourceFile| {
        is_shipped(source) && !NAMES_OF_OTHERS.iter().any(|other| source.path.starts_with(other))
    };
    let fixed = fixed_names(sources);
    let in_source = |source: &SourceFile| {
        let mut in_type = false;
        let complaint = |(line, text): (usize, &str)| {
            in_type = text != "}" && (in_type || (declared_type(text).is_some() && text.ends_with('{')));
            let name = declared_name(text, in_type).filter(|name| begins_with_qualifier(name))?;
            if fixed.contains(&name) {
                return None;
            }
            Some(format!("{}:{line}: `{name}` begins with its unit or qualifier; put it last", source.path))
        };
        code_lines(source).filter_map(complaint).collect::<Vec<_>>()
    };
    rust(sources).filter(ours).flat_map(in_source).collect()
}

/// The names of transitions and terminals, which hosts know and rules are called by.
fn fixed_names(sources: &[SourceFile]) -> Vec<&str> {
    let names = sources.iter().find(|source| source.path == "crates/protocol/src/reason.rs");
    let literals = names.map_or("", |source| &source.text).split('"').skip(1).step_by(2);
    literals.collect()
}

fn begins_with_qualifier(name: &str) -> bool {
    let first = name.split_once('_').map(|(first, _)| first.to_ascii_lowercase());
    first.is_some_and(|first| ["max", "min", "ms"].contains(&&*first))
}

/// The name of the function, constant, variable or, in a type, field that a line declares. Elsewhere, what looks like a
/// field may be one of somebody else's type.
fn declared_name(line: &str, is_in_type: bool) -> Option<&str> {
    let keywords = ["pub", "crate", "super", "async", "unsafe", "mut", "static"];
    let mut words = words(line).filter(|(_, word)| !keywords.contains(word));
    let (at, first) = words.next()?;
    match first {
        "fn" | "const" | "let" => words.map(|(_, word)| word).find(|word| *word != "fn"),
        field => (is_in_type && line[at + field.len()..].starts_with(": ")).then_some(field),
    }
}

/// Where an iteration hands over to the next.
const TRANSITIONS: &[&str] = &[
    "crates/core/src/turn/transition.rs",
    "crates/core/src/turn/prepare.rs",
    "crates/core/src/turn/guards.rs",
];

/// What is carried over is written out in full, so that a new field forces a decision at each transition.
pub(crate) fn carry_is_written_out(sources: &[SourceFile]) -> Vec<String> {
    let in_source = |source: &SourceFile| {
        let code = code_lines(source).map(|(_, line)| line).collect::<Vec<_>>().join("\n");
        let is_type = |at: usize| code[..at].ends_with("struct ") || code[..at].ends_with("impl ");
        let literals = ["Carry {", "Self {"].iter().flat_map(|name| code.match_indices(name));
        let short = literals.filter(|(at, _)| !is_type(*at) && takes_the_rest(&code[*at..])).count();
        (short > 0).then(|| format!("{}: list every carried field; no `..`", source.path))
    };
    sources.iter().filter(|source| TRANSITIONS.contains(&&*source.path)).filter_map(in_source).collect()
}

/// Whether the literal at the beginning of a text takes fields from elsewhere.
fn takes_the_rest(literal: &str) -> bool {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in literal.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return false,
            '}' => depth -= 1,
            '.' if depth == 1 && "{,".contains(before) && literal[at..].starts_with("..") => return true,
            _ => {}
        }
        before = if c.is_whitespace() { before } else { c };
    }
    false
}

fn is_shipped(source: &SourceFile) -> bool {
    source.path.starts_with("crates/") && source.path.contains("/src/")
}

pub(crate) fn no_machine_is_named(sources: &[SourceFile]) -> Vec<String> {
    let texts = sources.iter().filter(|source| source.path != "Cargo.lock" && source.path != OWN_PATH);
    let lines = texts.flat_map(|source| source.text.lines().enumerate().map(move |line| (source, line)));
    let complaint = |(source, (number, text)): (&SourceFile, (usize, &str))| {
        let folder = MACHINE_FOLDERS.iter().find(|folder| names_folder(text, folder));
        let host = REGISTRY_HOSTS.iter().find(|host| text.contains(**host));
        let found = folder.or(host)?;
        Some(format!("{}:{}: `{found}` is specific to one machine; remove it", source.path, number + 1))
    };
    lines.filter_map(complaint).collect()
}

/// This file, which has to name what it looks for.
const OWN_PATH: &str = "xtask/src/tidy/sources.rs";

/// Whether a line names an absolute path in a folder; `a/work/b` is another path.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !(before.is_alphanumeric() || "._-~/}>)$".contains(before)))
    })
}

fn find<'a>(sources: impl Iterator<Item = &'a SourceFile>, rules: &[(&str, &str)]) -> Vec<String> {
    let in_source = |source: &SourceFile| {
        let in_line = |(line, text): (usize, &str)| {
            let (pattern, advice) = rules.iter().find(|(pattern, _)| text.contains(pattern))?;
            Some(format!("{}:{line}: `{pattern}` is not allowed; {advice}", source.path))
        };
        code_lines(source).filter_map(in_line).collect::<Vec<_>>()
    };
    sources.flat_map(in_source).collect()
}

pub(super) fn rust(sources: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    let is_rust = |source: &&SourceFile| source.path.rsplit_once('.').is_some_and(|(_, end)| end == "rs");
    sources.iter().filter(is_rust)
}

/// The lines of a file that are not comments, with their numbers from 1.
pub(super) fn code_lines(source: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let lines = source.text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.starts_with("//"))
}

/// The name of the type that a line declares.
pub(super) fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let keyword = words.find(|word| !["pub", "crate", "super", "unsafe"].contains(word))?;
    let declares = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    words.next().filter(|_| declares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::source;

    type Rule = fn(&[SourceFile]) -> Vec<String>;

    fn check(rule: Rule, path: &str, text: &str, expected: &[&str]) {
        assert_eq!(rule(&[source(path, text)]), expected, "for {path}: {text}");
    }

    #[test]
    fn a_file_has_at_most_650_lines() {
        check(files_are_short, "a.rs", &"x\n".repeat(650), &[]);
        check(files_are_short, "a.rs", &"x\n".repeat(651), &["a.rs: 651 lines, 650 are allowed"]);
        check(files_are_short, "a.md", &"x\n".repeat(1000), &[]);
    }

    #[test]
    fn names_that_say_nothing_are_refused() {
        let rule = names_mean_something;
        check(rule, "crates/tools/src/truncate.rs", "pub struct Window;\nfn manager() {}", &[]);
        check(
            rule,
            "crates/a/src/utils.rs",
            "",
            &["crates/a/src/utils.rs: the file name does not say what the file contains"],
        );
        check(
            rule,
            "crates/a/src/helpers/x.rs",
            "",
            &["crates/a/src/helpers/x.rs: the file name does not say what the file contains"],
        );
        check(
            rule,
            "a.rs",
            "\npub(crate) enum CallManager<T> {",
            &["a.rs:2: the name `CallManager` does not say what it is"],
        );
        check(rule, "a.rs", "// struct PathHelper", &[]);
    }

    #[test]
    fn lints_are_not_waved_through() {
        let rule = nothing_is_waved_through;
        check(rule, "a.rs", "#[expect(dead_code, reason = \"x\")]", &[]);
        let allow = concat!("#[", "allow(dead_code)]");
        let complaint = format!(
            "a.rs:1: `{}` is not allowed; use `#[expect(…, reason = \"…\")]`",
            concat!("#[", "allow(")
        );
        check(rule, "a.rs", allow, &[&complaint]);
        check(rule, "a.rs", &format!("// {allow}"), &[]);
        check(
            rule,
            "a.rs",
            concat!("to", "do!()"),
            &[concat!("a.rs:1: `to", "do!(` is not allowed; finish it")],
        );
    }

    #[test]
    fn channels_have_a_limit() {
        let check = |path: &str, text: &str, complaints: usize| {
            assert_eq!(channels_are_bounded(&[source(path, text)]).len(), complaints, "for {text}");
        };
        let path = "crates/engine/src/a.rs";
        check(path, "use tokio::sync::mpsc;\nlet x = mpsc::channel::<u8>(16);", 0);
        check(path, "let x = mpsc::sync_channel(1);", 0);
        check(path, "let x = mpsc::unbounded_channel();", 1);
        check(path, "let x = futures::channel::mpsc::unbounded();", 1);
        check(path, "let (a, b) = mpsc::channel();", 1);
        check(path, "use std::sync::mpsc::channel;", 1);
        check(path, "use std::sync::mpsc::{Receiver, channel as queue};", 1);
        check(path, "use std::sync::mpsc::{SyncSender, sync_channel};", 0);
        check(path, "use tokio::sync::mpsc;\nlet x = std::sync::mpsc::channel::<Vec<u8>>();", 1);
        check(path, "use tokio::sync::mpsc;\nlet x = mpsc::channel();", 1);
        check(path, "let x = channel::<Vec<Option<u8>>>();", 1);
        check(path, "let x = channel::<Vec<Option<u8>>>(4);", 0);
        check(path, "let x = oneshot::channel();\nlet y = progress_channel();", 0);
        for library in ["flume", "async_channel", "crossbeam_channel"] {
            check(path, &format!("let x = {library}::unbounded();"), 1);
            check(path, &format!("let x = {library}::unbounded::<u8>();"), 1);
            check(path, &format!("use {library}::{{Sender, unbounded}};"), 1);
            check(path, &format!("let x = {library}::bounded(1);"), 0);
        }
        check("crates/engine/tests/a.rs", "let x = mpsc::channel();", 0);
    }

    #[test]
    fn units_and_qualifiers_come_last() {
        let check = |path: &str, text: &str, complaint: Option<(usize, &str)>| {
            let expected = complaint.map(|(line, name)| {
                format!("{path}:{line}: `{name}` begins with its unit or qualifier; put it last")
            });
            let seen = qualifiers_come_last(&[source(path, text)]);
            assert_eq!(seen, expected.into_iter().collect::<Vec<_>>(), "for {text}");
        };
        let path = "crates/core/src/a.rs";
        for (text, complaint) in [
            ("pub struct A {\n    pub(crate) max_turns: u32,\n}", (2, "max_turns")),
            (
                "enum B {\n    C {\n        a: u8,\n    },\n    D {\n        min_lines: u8,\n    },\n}",
                (6, "min_lines"),
            ),
            ("pub fn ms_since(&self) -> u64 {", (1, "ms_since")),
            ("pub(crate) const fn max_of() {", (1, "max_of")),
            ("const MAX_TURNS: u32 = 1;", (1, "MAX_TURNS")),
            ("let mut max_seen = 0;", (1, "max_seen")),
        ] {
            check(path, text, Some(complaint));
            check("crates/wire/src/lines.rs", text, None);
            check("crates/core/tests/a.rs", text, None);
        }
        check(
            path,
            "struct A {\n    turns_max: u32,\n    pub(crate) backoff_ms: u64,\n    maximum: u32,\n}",
            None,
        );
        check(path, "struct A {\n    a: u8,\n}\nlet foreign = Foreign {\n    max_size: 1,\n};", None);
        check(path, "let max = a.max_by_key(f);\nlimits.max_alloc = Some(1);", None);
        check(path, "\"max_turns\" => Self::MaxTurns,", None);
    }

    #[test]
    fn texts_are_no_errors_of_an_application() {
        let check = |path: &str, text: &str, expected: usize| {
            assert_eq!(errors_have_types(&[source(path, text)]).len(), expected, "{path}: {text}");
        };
        check("crates/cli/src/x.rs", "fn open() -> Result<Door, String> {", 1);
        check("crates/windlass/src/x.rs", "fn open() -> Result<Door, DoorError> {", 0);
        check("crates/tools/src/x.rs", "fn open() -> Result<Door, String> {", 0);
    }

    #[test]
    fn what_is_carried_over_is_written_out() {
        let check = |path: &str, text: &str, short: bool| {
            assert_eq!(!carry_is_written_out(&[source(path, text)]).is_empty(), short, "for {path}: {text}");
        };
        let path = "crates/core/src/turn/transition.rs";
        check(path, "let carry = Carry {\n    messages,\n    // ..before\n    turn: 1,\n};\nf(..);", false);
        check(path, "Carry { messages, turn: list[..2].len(), tools: Tools { a, ..b } }", false);
        check(path, "Carry {\n    messages,\n    ..before\n}", true);
        check(path, "Carry { turn: Turn { a: 1 }, ..Carry::default() }", true);
        check(path, "Carry { ..before }", true);
        check("crates/core/src/turn/prepare.rs", "Carry { ..before }", true);
        check("crates/core/src/state.rs", "Carry { messages, ..Carry::default() }", false);
    }

    #[test]
    fn no_folder_or_host_of_a_machine_is_named() {
        let check = |text: &str, complaints: usize| {
            assert_eq!(no_machine_is_named(&[source("README.md", text)]).len(), complaints, "for {text}");
        };
        check("see docs/work/a and $HOME/work/ and example.com/work/", 0);
        check(concat!("see `/", "work/a`"), 1);
        check(concat!("/", "root/.cargo"), 1);
        check("from index.crates.io", 1);
        check("on crates.io", 0);
    }
}
