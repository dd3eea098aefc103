//! Words that a command of the line prints, or that the line keeps in a variable: whether they may turn out to be options.

use crate::names::has_name;
use crate::{StrictCommand, Word};

/// What git does that no option can make run another program.
const TAME_GIT: &str = "add branch check-ignore checkout commit ls-files merge mv reset restore rev-parse rm stash status switch tag";
/// Programs that print a path, a name or a number, whatever they are told.
const TAME: &str = "pwd nproc whoami hostname uname which";
/// Options of `git rev-parse` under which it prints no words of its own line.
const TAME_OPTIONS: &str =
    "--abbrev-ref --git-dir --short --show-toplevel --verify --show-current --tags --always";

/// Whether a word that may be anything may tell a program to run another one.
pub(super) fn may_tell(base: &str, words: &[Word], gets_anything: bool) -> bool {
    let is_known = super::names().any(|names| has_name(names, base));
    let subcommand = words.get(1).map_or("", |word| word.text.as_str());
    if !is_known || (base == "git" && has_name(TAME_GIT, subcommand)) {
        return false;
    }
    let options = words.iter().take_while(|word| word.text != "--").count();
    words[..options].iter().any(is_open) || (gets_anything && options == words.len())
}

/// Whether a word may become an option, or several words.
fn is_open(word: &Word) -> bool {
    let name = word.text.split('=').next().unwrap_or_default();
    let may_be_option =
        name.starts_with('\0') || name.starts_with("-\0") || (name.starts_with("--") && name.contains('\0'));
    word.is_arbitrary && (word.is_split || may_be_option)
}

/// Whether what a command prints never begins with a dash.
pub(crate) fn prints_no_option(command: &StrictCommand) -> bool {
    let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    let is_name = |word: &&str| {
        has_name(TAME_OPTIONS, word)
            || word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/.@~^{}".contains(&byte))
    };
    match &words[..] {
        ["git", "branch", "--show-current"] | ["date"] => true,
        ["git", "rev-parse" | "merge-base" | "symbolic-ref" | "describe", names @ ..] => {
            names.iter().all(is_name)
        }
        ["command", "-v", name] => is_name(name),
        ["date", format] => is_date(format),
        [name, rest @ ..] => has_name(TAME, name) && rest.iter().all(|word| !word.contains('\0')),
        [] => false,
    }
}

/// A format of a date that prints digits and what stands between them.
fn is_date(format: &str) -> bool {
    let is_plain = |part: &str| {
        let rest = part.strip_prefix(['Y', 'm', 'd', 'H', 'M', 'S', 'F', 'T', 's', 'y', 'j']);
        rest.is_some_and(|rest| rest.bytes().all(|byte| b"-_.:".contains(&byte)))
    };
    format.strip_prefix("+%").is_some_and(|format| format.split('%').all(is_plain))
}
