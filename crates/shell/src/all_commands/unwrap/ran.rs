//! Which files a command runs, by its words.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::builds::{MAKEFILE, PACKAGE};
use super::languages::{AWKS, EDITING, Language, language};
use super::{SHELLS, texts};
use crate::names::{Sieve, firsts, has_name as has};

/// How a file is run.
#[derive(Clone, Copy)]
pub(in crate::all_commands) enum How {
    Shell,
    /// As its first line says.
    Itself,
    Code(&'static Language),
}

impl How {
    /// What tells two of them apart.
    pub(in crate::all_commands) fn name(self) -> &'static str {
        match self {
            Self::Shell => "sh",
            Self::Itself => "",
            Self::Code(language) => language.names,
        }
    }

    /// The same for a file with this text.
    pub(in crate::all_commands) fn for_text(self, text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        let Some(line) = first.strip_prefix("#!").filter(|_| matches!(self, Self::Itself)) else {
            return self;
        };
        let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or_default());
        let program = words.find(|word| !word.starts_with('-') && *word != "env").unwrap_or_default();
        by_option(program).or_else(|| language(program).map(Self::Code)).unwrap_or(Self::Shell)
    }
}

static AWK: Language =
    Language { names: AWKS, translate: Some(super::awk::scripts), ..super::languages::NONE };
static SED: Language =
    Language { names: "sed gsed", translate: Some(texts::edit_commands), ..super::languages::NONE };

/// Programs that run files without being told.
const BY_THEMSELVES: &[(&str, &str)] = &[
    ("make gmake", "Makefile makefile GNUmakefile"),
    ("npm pnpm yarn bun", "package.json"),
    ("just", "justfile Justfile .justfile"),
    ("rake", "Rakefile rakefile"),
    ("pytest py.test python python3 tox", "conftest.py sitecustomize.py usercustomize.py"),
    ("direnv", ".envrc"),
    (
        "git",
        "pre-commit prepare-commit-msg commit-msg post-commit pre-push pre-rebase post-checkout post-merge",
    ),
    (
        SHELLS,
        ".bashrc .bash_profile .bash_login .bash_aliases .profile .zshrc .zshenv .zprofile .kshrc config.fish",
    ),
];

/// Programs that run the files which options name.
const BY_OPTION: &str = "make gmake just parallel sem vim vi nvim ex gvim sed gsed";

static MAY_RUN: LazyLock<Sieve> =
    LazyLock::new(|| Sieve::of(firsts(BY_THEMSELVES).chain([BY_OPTION, AWKS, "source ."])));

/// Says which files a command runs: by which name, how, and whether it was told so.
pub(in crate::all_commands) fn files_run(
    base: &str,
    words: &[Cow<'_, str>],
    run: &mut impl FnMut(&str, How, bool),
) {
    run(base, How::Itself, true);
    let language = language(base);
    if language.is_none() && !MAY_RUN.may_have(base) {
        return;
    }
    for (_, names) in BY_THEMSELVES.iter().filter(|(programs, _)| has(programs, base)) {
        let how = if has(SHELLS, base) { How::Shell } else { by_itself(base) };
        names.split(' ').for_each(|name| run(name, how, false));
    }
    if has(SHELLS, base) || matches!(base, "source" | ".") {
        return first_operand(words, "oO").into_iter().for_each(|file| run(file, How::Shell, true));
    }
    if let Some(how) = by_option(base) {
        return values(words).for_each(|file| run(file, how, true));
    }
    let Some(language) = language else { return };
    if !language.marks.is_empty() {
        return values(words).for_each(|file| run(file, How::Code(language), true));
    }
    if let Some(file) = first_operand(words, "WX") {
        run(file, How::Code(language), true);
    }
    for two in words.windows(2) {
        if has("-r --require --import -I --init-file -l -f --file", &two[0]) {
            run(&two[1], How::Code(language), true);
        } else if two[0] == "-m" {
            run(&format!("{}.py", two[1]), How::Code(language), true);
        }
    }
}

fn by_itself(base: &str) -> How {
    match base {
        "npm" | "pnpm" | "yarn" | "bun" => How::Code(&PACKAGE),
        "direnv" | "git" => How::Itself,
        "pytest" | "py.test" | "tox" => language("python").map_or(How::Shell, How::Code),
        _ => by_option(base).or_else(|| language(base).map(How::Code)).unwrap_or(How::Shell),
    }
}

/// How a program runs the files that options name.
fn by_option(base: &str) -> Option<How> {
    match base {
        "make" | "gmake" | "just" => Some(How::Code(&MAKEFILE)),
        "sed" | "gsed" => Some(How::Code(&SED)),
        "parallel" | "sem" => Some(How::Shell),
        _ if has(AWKS, base) => Some(How::Code(&AWK)),
        _ if has(BY_OPTION, base) => Some(How::Code(&EDITING)),
        _ => None,
    }
}

/// The script among the words of an interpreter.
fn first_operand<'a>(words: &'a [Cow<'_, str>], valued: &str) -> Option<&'a str> {
    let mut words = words.iter().map(Cow::as_ref);
    while let Some(word) = words.next() {
        let letters = word.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty());
        match letters {
            Some(letters) if letters.len() == 1 && valued.contains(letters) => _ = words.next(),
            Some(_) => {}
            None if word == "run" => {}
            None => return Some(word),
        }
    }
    None
}

/// What may be values of options.
fn values<'a>(words: &'a [Cow<'_, str>]) -> impl Iterator<Item = &'a str> {
    let behind = words.windows(2).filter(|two| two[0].starts_with(['-', ':'])).map(|two| &*two[1]);
    let attached =
        words.iter().filter(|word| word.starts_with('-')).filter_map(|word| match word.split_once('=') {
            Some((_, value)) => Some(value),
            None => word.get(2..),
        });
    behind.chain(attached.filter(|value| !value.is_empty()))
}
