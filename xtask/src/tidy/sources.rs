//! Rules for the text of files: their size, the names in them, and what must not stand in them.

use super::Source;

const LINES_MAX: usize = 999;

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

pub(crate) fn files_are_short(sources: &[Source]) -> Vec<String> {
    let long = |source: &&Source| source.text.lines().count() > LINES_MAX;
    let complaint = |source: &Source| {
        format!("{}: {} lines, fewer than 1,000 are allowed", source.path, source.text.lines().count())
    };
    rust(sources).filter(long).map(complaint).collect()
}

pub(crate) fn names_mean_something(sources: &[Source]) -> Vec<String> {
    let empty_file = |source: &&Source| {
        let mut parts = source.path.trim_end_matches(".rs").split('/');
        parts.any(|part| EMPTY_FILE_NAMES.contains(&part))
    };
    let files = rust(sources).filter(empty_file);
    let files = files.map(|source| format!("{}: the name says nothing about what is in it", source.path));
    let types = rust(sources).flat_map(|source| {
        let names = code_lines(source).filter_map(|(line, text)| Some((line, declared_type(text)?)));
        let empty = names.filter(|(_, name)| EMPTY_TYPE_NAMES.iter().any(|end| name.ends_with(end)));
        empty.map(|(line, name)| format!("{}:{line}: `{name}` says nothing about what it is", source.path))
    });
    files.chain(types).collect()
}

/// Lints are lifted with `expect` and a reason; work is finished before it comes in.
pub(crate) fn nothing_is_waved_through(sources: &[Source]) -> Vec<String> {
    let rules = [
        (concat!("#[", "allow("), "use `#[expect(…, reason = \"…\")]`"),
        (concat!("#![", "allow("), "use `#![expect(…, reason = \"…\")]`"),
        (concat!("to", "do!("), "finish it"),
        (concat!("unimple", "mented!("), "finish it"),
    ];
    find(rust(sources), &rules)
}

/// A queue without a limit is a leak that waits for a slow reader.
pub(crate) fn channels_are_bounded(sources: &[Source]) -> Vec<String> {
    let rules = [
        ("unbounded_channel", "use a bounded channel"),
        ("mpsc::unbounded", "use a bounded channel"),
        ("mpsc::channel()", "std's channel is unbounded; use `sync_channel`"),
        ("mpsc::channel::<", "std's channel is unbounded; use `sync_channel`"),
        ("std::sync::mpsc::channel", "std's channel is unbounded; use `sync_channel`"),
    ];
    let shipped = |source: &&Source| source.path.starts_with("crates/") && source.path.contains("/src/");
    let bounded = |source: &Source| source.text.contains("tokio::sync::mpsc");
    let complaints = rust(sources).filter(shipped).map(|source| {
        // The channel of tokio has the same name and always a limit.
        let rules = if bounded(source) { &rules[..2] } else { &rules[..] };
        find(std::iter::once(source), rules)
    });
    complaints.flatten().collect()
}

pub(crate) fn no_machine_is_named(sources: &[Source]) -> Vec<String> {
    let texts = sources.iter().filter(|source| source.path != "Cargo.lock" && source.path != OWN_PATH);
    let lines = texts.flat_map(|source| source.text.lines().enumerate().map(move |line| (source, line)));
    let complaint = |(source, (number, text)): (&Source, (usize, &str))| {
        let folder = MACHINE_FOLDERS.iter().find(|folder| names_folder(text, folder));
        let host = REGISTRY_HOSTS.iter().find(|host| text.contains(**host));
        let found = folder.or(host)?;
        Some(format!("{}:{}: `{found}` belongs to one machine, not to the project", source.path, number + 1))
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

fn find<'a>(sources: impl Iterator<Item = &'a Source>, rules: &[(&str, &str)]) -> Vec<String> {
    let in_source = |source: &Source| {
        let in_line = |(line, text): (usize, &str)| {
            let (pattern, advice) = rules.iter().find(|(pattern, _)| text.contains(pattern))?;
            Some(format!("{}:{line}: `{pattern}` is not allowed; {advice}", source.path))
        };
        code_lines(source).filter_map(in_line).collect::<Vec<_>>()
    };
    sources.flat_map(in_source).collect()
}

fn rust(sources: &[Source]) -> impl Iterator<Item = &Source> {
    let is_rust = |source: &&Source| source.path.rsplit_once('.').is_some_and(|(_, end)| end == "rs");
    sources.iter().filter(is_rust)
}

/// The lines of a file that are not comments, with their numbers from 1.
fn code_lines(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let lines = source.text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.starts_with("//"))
}

/// The name of the type that a line declares.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let keyword = words.find(|word| !["pub", "crate", "super", "unsafe"].contains(word))?;
    let declares = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    words.next().filter(|_| declares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::source;

    type Rule = fn(&[Source]) -> Vec<String>;

    fn check(rule: Rule, path: &str, text: &str, expected: &[&str]) {
        assert_eq!(rule(&[source(path, text)]), expected, "for {path}: {text}");
    }

    #[test]
    fn a_file_has_fewer_than_a_thousand_lines() {
        check(files_are_short, "a.rs", &"x\n".repeat(999), &[]);
        check(
            files_are_short,
            "a.rs",
            &"x\n".repeat(1000),
            &["a.rs: 1000 lines, fewer than 1,000 are allowed"],
        );
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
            &["crates/a/src/utils.rs: the name says nothing about what is in it"],
        );
        check(
            rule,
            "crates/a/src/helpers/x.rs",
            "",
            &["crates/a/src/helpers/x.rs: the name says nothing about what is in it"],
        );
        check(
            rule,
            "a.rs",
            "\npub(crate) enum CallManager<T> {",
            &["a.rs:2: `CallManager` says nothing about what it is"],
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
        check("crates/engine/tests/a.rs", "let x = mpsc::channel();", 0);
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
