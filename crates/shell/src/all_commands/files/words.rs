//! Words of programs of which nobody knows what they do with them: each may name a file.

use std::sync::LazyLock;

use super::super::word::Argument;
use super::{COMPILES, READS, WRITES, WRITES_BUT_FIRST, WRITES_LAST, path};
use crate::LinePath;
use crate::names::{Sieve, has_name as has};
use crate::places::Places;

/// Programs for which words are mere text.
const TAKE_TEXT: &str = "echo printf true false : seq expr yes sleep basename dirname tr numfmt date cal which whereis type man info \
    whatis apropos help exit return break continue shift set unset local declare typeset readonly let read getopts trap alias unalias \
    kill killall pkill pgrep ps wait jobs fg bg disown umask ulimit tput stty clear history say notify-send logger wall \
    ping dig host nslookup hostname uname id whoami groups getent printenv pwd tty nproc arch uptime free df apt apt-get brew dnf yum \
    pacman apk systemctl journalctl service shopt bind complete compgen eval";

const KNOWN: [&str; 6] = [READS, COMPILES, WRITES, WRITES_BUT_FIRST, WRITES_LAST, TAKE_TEXT];

static MAY_BE_KNOWN: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(KNOWN));

/// What stands between two names in a word.
const SEPARATORS: [char; 8] = ['=', '@', '<', '>', ':', ',', ';', '|'];
/// More words of a command, and more parts of a word, are not looked at.
const WORDS_MAX: usize = 128;
const PARTS_MAX: usize = 8;
/// No name of a file is longer than that here.
const LENGTH_MAX: usize = 512;

/// Words that say what to do where they come first, though there are directories of these names.
const TASKS: &str = "run run-script exec build rebuild test tests check lint format fmt fix clean dev start stop serve watch preview docs doc \
    dist release deploy publish package pack install generate gen codegen init config setup bench bundle compile migrate";
/// So many words may be those.
const TASKS_MAX: usize = 2;

/// What the words of a command may name, if nobody knows what it does with them.
pub(in crate::all_commands) fn mentioned(
    base: &str,
    arguments: &[Argument],
    places: &Places,
) -> Vec<LinePath> {
    let mut names = Vec::new();
    if is_known(base) {
        return names;
    }
    let mut tasks = 0;
    for word in arguments.iter().take(WORDS_MAX) {
        let is_first = tasks < TASKS_MAX && !word.text.starts_with('-');
        tasks += usize::from(is_first);
        if !(is_first && has(TASKS, &word.text)) {
            parts(word, &mut |part| names.extend(name(word, part, places)));
        }
    }
    names
}

/// Whether it is known what a program does with its words.
pub(in crate::all_commands) fn is_known(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or_default();
    MAY_BE_KNOWN.may_have(base) && KNOWN.iter().any(|list| has(list, base))
}

/// The parts of a word that may be names: all of it, what is behind the letter of an option, and what stands between separators.
fn parts(word: &Argument, take: &mut impl FnMut(&str)) {
    let text = word.text.as_str();
    let value = match text.strip_prefix('-') {
        Some(option) if option.starts_with('-') => text.split_once('=').map_or("", |(_, value)| value),
        Some(_) => text.get(2..).unwrap_or_default(),
        None => text,
    };
    if let Some(start) = value.find("://") {
        return take(if value[..start].ends_with("file") { &value[start + 3..] } else { "" });
    }
    take(value);
    if value.contains(SEPARATORS) {
        value.split(SEPARATORS).take(PARTS_MAX).for_each(take);
    }
}

/// The path of a name, or of anything below it.
fn name(word: &Argument, part: &str, places: &Places) -> Vec<LinePath> {
    let is_option = part.starts_with('-');
    if part.is_empty() || is_option || part.len() > LENGTH_MAX || part.contains(char::is_whitespace) {
        return Vec::new();
    }
    let directory = if word.is_pattern { without_pattern(part) } else { part };
    let is_home = word.is_home || part.starts_with("~/");
    let argument = |text: String| Argument { text, is_home, ..Argument::default() };
    // What lies below matters as well; and nobody has to look for a name that is not whole.
    let below = (!directory.is_empty()).then(|| argument(format!("{}/\0", directory.trim_end_matches('/'))));
    let is_path = part.contains('/') || part.starts_with(['.', '~']);
    let is_hidden = || part.rsplit('/').next().is_some_and(|last| last.starts_with('.'));
    let is_whole = is_path && !part.contains('\0') && (!word.is_pattern || is_hidden());
    let whole = is_whole.then(|| Argument { is_pattern: word.is_pattern, ..argument(part.to_owned()) });
    below.into_iter().chain(whole).flat_map(|argument| path(&argument, places)).collect()
}

/// The directories in front of the first part that stands for several names.
fn without_pattern(text: &str) -> &str {
    let end = text.find(['*', '?', '[', '{']).unwrap_or(text.len());
    text[..end].rfind('/').map_or("", |slash| &text[..slash])
}
