//! Which subcommands of git show what is in files, and of which files.

use super::LOG;
use crate::effect::options::OptionValue;
use crate::names::has_name;

/// What is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The words that are certainly paths, counted from the subcommand on.
    pub(crate) paths: Vec<usize>,
    /// Every file of the work.
    pub(crate) is_whole: bool,
}

/// What a subcommand and its words show of files, if they show anything in them.
pub(crate) fn shown(words: &[&str]) -> Option<Shown> {
    let (subcommand, rest) = words.split_first()?;
    let options: Vec<&str> = rest.iter().copied().take_while(|word| *word != "--").collect();
    let has_patch = options.iter().any(|word| asks_for_patch(word));
    let is_summary = !has_patch && options.iter().any(|word| is_summary(word));
    let shows = match *subcommand {
        "grep" => true,
        "diff" | "show" | "format-patch" | "range-diff" => !is_summary,
        "diff-files" | "diff-index" | "diff-tree" | "log" | "whatchanged" | "reflog" => has_patch,
        "stash" => has_patch && rest.first() == Some(&"show"),
        _ => false,
    };
    shows.then(|| operands(subcommand, words))
}

fn asks_for_patch(word: &str) -> bool {
    const LONG: &str = "--patch --unified --cc --word-diff --color-words --function-context --remerge-diff --dd \
        --pickaxe";
    let group = word.strip_prefix('-').unwrap_or_default();
    let is_group = !group.starts_with('-')
        && (group.starts_with(['S', 'G', 'L', 'U', 'W', 'c']) || group.contains(['p', 'u']));
    is_group || LONG.split(' ').any(|long| word.starts_with(long))
}

fn is_summary(word: &str) -> bool {
    const SUMMARIES: &str = "--stat --shortstat --numstat --name-only --name-status --summary --dirstat --compact-summary --raw --quiet --no-patch -s -q";
    has_name(SUMMARIES, word.split('=').next().unwrap_or_default())
}

/// Operands may be names of commits as well as paths: only what hardly is a commit counts as a path.
fn operands(subcommand: &str, words: &[&str]) -> Shown {
    let is_grep = subcommand == "grep";
    let valued = if is_grep { "-A -B -C -m -e -f --max-depth --threads" } else { "-S -G -L -n -l -O" };
    let mut shown = Shown::default();
    let (mut commits, mut blobs) = (0, 0);
    let mut wants_text = is_grep && !words.iter().any(|word| word.starts_with("-e") || *word == "-f");
    let mut at = usize::from(subcommand == "stash") + 1;
    while let Some(word) = words.get(at) {
        let long = word.strip_prefix("--").unwrap_or_default();
        if *word == "--" {
            shown.paths.extend(at + 1..words.len());
            break;
        } else if has_name(valued, word) || LOG.long_value(long) == Some(OptionValue::Needed) {
            at += 1;
        } else if word.starts_with('-') || std::mem::take(&mut wants_text) {
            // Neither a commit nor a path.
        } else if word.contains(':') && !word.starts_with(":/") && !word.starts_with(":(") {
            blobs += 1;
        } else if is_path(word) {
            shown.paths.push(at);
        } else {
            commits += 1;
        }
        at += 1;
    }
    shown.is_whole = shown.paths.is_empty() && (blobs == 0 || commits > 0);
    shown
}

fn is_path(word: &str) -> bool {
    let is_file = |(name, end): (&str, &str)| {
        !name.ends_with('.') && !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    ["./", "../", "/", "~/"].iter().any(|start| word.starts_with(start))
        || word.ends_with('/')
        || word == "."
        || word.rsplit_once('.').is_some_and(is_file)
}
