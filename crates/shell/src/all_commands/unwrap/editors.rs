//! Editors that take commands: those behind an exclamation mark, and others that start something.

use std::sync::LazyLock;

use super::languages::EDITING;
use super::{Inside, Seen};
use crate::names::{Sieve, find_text, has_name as has};

const VIMS: &str =
    "vim vi nvim view ex gvim vimdiff nvimdiff gvimdiff rvim rview gview rgvim rgview evim vimx mvim nvim-qt";

const OTHERS: &str = "ed emacs";

static MAY_EDIT: LazyLock<Sieve> = LazyLock::new(|| Sieve::of([VIMS, OTHERS]));

/// What stands in front of a command line, and what ends it.
const MARKS: [&str; 10] = [
    "system('",
    "system(\"",
    "systemlist('",
    "systemlist(\"",
    "jobstart('",
    "jobstart(\"",
    "execute('",
    "execute(\"",
    "terminal ",
    "term ",
];

pub(super) fn editors(seen: &Seen<'_>, inside: &mut Inside) {
    if !MAY_EDIT.may_have(seen.base) {
        return;
    }
    let is_vim = has(VIMS, seen.base);
    if !is_vim && !has(OTHERS, seen.base) {
        return;
    }
    for word in seen.arguments {
        inside.scripts.extend(word.text.split_once('!').map(|(_, script)| script.to_owned()));
        let marked =
            MARKS.iter().find_map(|mark| Some(&word.text[find_text(&word.text, mark)? + mark.len()..]));
        let script = marked.and_then(|rest| rest.split(['\'', '"']).next()).filter(|_| is_vim);
        inside.scripts.extend(script.map(str::to_owned));
        if word.text.contains(' ') {
            inside.mentions.read_words(&word.text);
        }
    }
    let takes_input = |text: &str| has("-e -E -es -Es -s", text);
    if is_vim && seen.arguments.iter().any(|word| takes_input(&word.text)) {
        inside.input.code = Some(&EDITING);
        if seen.is_piped {
            inside.unseen = Some("an editor runs what is piped into it");
        }
    }
}
