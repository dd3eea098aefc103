//! What git reads and writes besides the words it is told.

use super::super::word::Argument;
use super::path;
use crate::all_commands::below;
use crate::effect::shown_by_git;
use crate::names::has_name as has;
use crate::places::{Places, named};
use crate::{LinePath, LooseCommand};

/// Adds the files whose contents are shown, and those that hold settings.
pub(super) fn add(command: &mut LooseCommand, arguments: &[Argument], places: &Places) {
    let (places, at) = start(arguments, places);
    let rest = arguments.get(at..).unwrap_or_default();
    let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    if let Some(shown) = shown_by_git(&texts) {
        let paths = shown.paths.iter().filter_map(|at| rest.get(*at)).flat_map(|word| path(word, &places));
        command.reads.extend(below(paths.collect(), true));
        let whole = shown.is_whole.then(|| below(named(".", false, &places), true));
        command.reads.extend(whole.into_iter().flatten());
    }
    if texts.first().is_some_and(|subcommand| has(WRITES, subcommand)) {
        command.writes.extend(outputs(rest, &places));
    }
    match texts.split_first() {
        Some((&"config", words)) => config(command, words, &places),
        Some((subcommand, _)) if has(CHANGES, subcommand) => changed(command, rest, &places),
        _ => {}
    }
}

/// Subcommands that are told where to write.
const WRITES: &str = "archive format-patch bundle fast-export fast-import checkout-index";
/// Subcommands that change files of the work.
const CHANGES: &str = "checkout restore rm mv clean apply am checkout-index worktree clone init submodule";

/// Adds the files that a subcommand changes. What may be a branch as well is only mentioned.
fn changed(command: &mut LooseCommand, words: &[Argument], places: &Places) {
    const ONLY_SAYS: &str = "-n --dry-run --check --stat --numstat --summary -b -B --orphan";
    let subcommand = words.first().map_or("", |word| word.text.as_str());
    let has_any = |names: &str| words.iter().any(|word| has(names, &word.text));
    let is_index_only = has_any("--cached --staged -S") && !has_any("--worktree -W");
    if is_index_only || has_any(ONLY_SAYS) {
        return;
    }
    let (operands, dashes) = operands(words.get(1..).unwrap_or_default());
    let operands = &operands[..];
    let first = operands.first().map_or("", |word| word.text.as_str());
    let (mentioned, written) = match subcommand {
        "checkout" => operands.split_at(branches(first, dashes).min(operands.len())),
        "worktree" | "submodule" if !has("add move remove", first) => return,
        "worktree" | "submodule" | "clone" => (&[][..], operands.get(1..).unwrap_or_default()),
        "apply" | "am" => (&[][..], &[][..]),
        _ => (&[][..], operands),
    };
    // What is in a patch is not known.
    if has("apply am", subcommand) || (subcommand == "clean" && operands.is_empty()) {
        command.writes.extend(below(named(".", false, places), true));
    }
    let mentioned = mentioned.iter().filter(|_| dashes.is_none());
    command.mentions.extend(mentioned.flat_map(|word| path(word, places)));
    command.writes.extend(below(written.iter().flat_map(|word| path(word, places)).collect(), true));
}

/// How many operands of `checkout` may be branches: a directory that is written as one is none.
fn branches(first: &str, dashes: Option<usize>) -> usize {
    dashes.unwrap_or_else(|| usize::from(!has(". ..", first) && !first.ends_with('/')))
}

/// The operands, and how many of them stand in front of two dashes, if there are any.
fn operands(words: &[Argument]) -> (Vec<&Argument>, Option<usize>) {
    const VALUED: &str =
        "-s --source -b -B --orphan --conflict -e --exclude --directory -p --reference -o -c --depth";
    let mut operands: Vec<&Argument> = Vec::new();
    let mut dashes = None;
    let mut before = "";
    for word in words {
        if word.text == "--" {
            dashes.get_or_insert(operands.len());
        } else if dashes.is_some() || !(word.text.starts_with('-') || has(VALUED, before)) {
            operands.push(word);
        }
        before = word.text.as_str();
    }
    (operands, dashes)
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
fn config(command: &mut LooseCommand, words: &[&str], places: &Places) {
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
    let paths: Vec<LinePath> = files.flat_map(|file| named(file, false, places)).collect();
    if changes {
        // Without an option only the settings of the work are changed.
        let is_changed = |path: &&LinePath| {
            operands == 0 || has_any("--global") || !path.text.start().starts_with("~/.gitconfig")
        };
        command.writes.extend(paths.iter().filter(is_changed).cloned());
    } else {
        command.reads.extend(paths);
    }
}

/// The file or the directory that is written.
fn outputs(words: &[Argument], places: &Places) -> Vec<LinePath> {
    let mut paths = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        let value = ["--output=", "--output-directory=", "--export-marks=", "--prefix=", "-o"]
            .iter()
            .find_map(|name| text.strip_prefix(name));
        let attached = value.filter(|value| !value.is_empty());
        let next = words.get(at + 1).filter(|_| has("-o --output --output-directory create", text));
        let attached = attached.map(Argument::new);
        paths.extend(attached.iter().chain(next).flat_map(|word| path(word, places)));
    }
    paths
}
