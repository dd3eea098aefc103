//! What git reads and writes besides the words it is told.

use super::super::word::Argument;
use super::path;
use crate::effect::shown_by_git;
use crate::found::below;
use crate::names::has_name as has;
use crate::places::{Places, named};
use crate::{FoundCommand, NamedPath};

/// Adds the files whose contents are shown, and those that hold settings.
pub(super) fn add(command: &mut FoundCommand, arguments: &[Argument], places: &Places) {
    let (places, at) = start(arguments, places);
    let rest = arguments.get(at..).unwrap_or_default();
    let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    if let Some(shown) = shown_by_git(&texts) {
        let paths = shown.paths.iter().filter_map(|at| rest.get(*at)).flat_map(|word| path(word, &places));
        command.reads.extend(below(paths.collect(), true));
        let whole = shown.is_whole.then(|| below(named(".", false, &places), true));
        command.reads.extend(whole.into_iter().flatten());
    }
    match texts.split_first() {
        Some((&"config", words)) => config(command, words, &places),
        Some((&("archive" | "format-patch" | "bundle"), _)) => command.writes.extend(outputs(rest, &places)),
        _ => {}
    }
}

/// Where it runs, and where its subcommand stands.
fn start(arguments: &[Argument], places: &Places) -> (Places, usize) {
    const VALUED: &str = "-c --git-dir --work-tree --namespace --config-env --exec-path --attr-source";
    let mut places = places.clone();
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        at += 1;
        if word.text == "-C" {
            let directory = arguments.get(at).map(|word| word.text.as_str());
            places = directory.map_or(Places::unknown(), |directory| places.enter(Some(directory)));
            at += 1;
        } else if has(VALUED, &word.text) {
            at += 1;
        }
    }
    (places, at)
}

/// `git config`: the file that is asked or changed.
fn config(command: &mut FoundCommand, words: &[&str], places: &Places) {
    const ASKS: &str =
        "-l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool list get";
    const CHANGES: &str =
        "--unset --unset-all --add --replace-all --rename-section --remove-section -e --edit";
    let has_any = |names: &str| words.iter().any(|word| has(names, word));
    let given = words.iter().enumerate().find_map(|(at, word)| match *word {
        "-f" | "--file" => words.get(at + 1).copied(),
        word => word.strip_prefix("--file=").or_else(|| word.strip_prefix("-f")),
    });
    let files: &[&str] = match given {
        Some(_) => &[],
        None if has_any("--global") => &["~/.gitconfig", "~/.config/git/config"],
        None if has_any("--system") => &["/etc/gitconfig"],
        None if has_any("--local --worktree") => &[".git/config"],
        None => &[".git/config", "~/.gitconfig"],
    };
    let operands = words.iter().filter(|word| !word.starts_with('-')).count();
    let operands = operands.saturating_sub(usize::from(has_any("-f --file")));
    let changes = has_any(CHANGES) || (!has_any(ASKS) && operands != 1);
    let files = given.iter().chain(files);
    let paths: Vec<NamedPath> = files.flat_map(|file| named(file, false, places)).collect();
    if changes {
        // Without an option only the settings of the work are changed.
        let is_changed = |path: &&NamedPath| {
            operands == 0 || has_any("--global") || !path.text.starts_with("~/.gitconfig")
        };
        command.writes.extend(paths.iter().filter(is_changed).cloned());
    } else {
        command.reads.extend(paths);
    }
}

/// The file or the directory that is written.
fn outputs(words: &[Argument], places: &Places) -> Vec<NamedPath> {
    let mut paths = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        let value =
            ["--output=", "--output-directory=", "-o"].iter().find_map(|name| text.strip_prefix(name));
        let attached = value.filter(|value| !value.is_empty());
        let next = words.get(at + 1).filter(|_| has("-o --output --output-directory create", text));
        let attached = attached.map(|text| Argument { text: text.to_owned(), ..Argument::default() });
        paths.extend(attached.iter().chain(next).flat_map(|word| path(word, places)));
    }
    paths
}
