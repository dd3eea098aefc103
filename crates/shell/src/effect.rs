//! What a program does, by its name and arguments: nothing but looking, changing files that it names, or anything.

mod awk;
mod bracket;
mod edits;
mod find;
mod git;
mod options;
mod sed;
mod special;
#[cfg(test)]
mod tests;
mod tools;

pub(crate) use awk::is_plain_program as is_plain_awk;
pub(crate) use git::shown as shown_by_git;
pub(crate) use options::{OptionValue, letter_value, long_value};
pub(crate) use sed::{is_plain_script as is_plain_sed, runs_something as runs_in_sed};
pub(crate) use special::double_bracket;

use std::borrow::Cow;

use crate::expansion::may_take_next;
use crate::names::{has_name, is_name_char};
use crate::places::{Places, named, path_text};
use crate::strict::{Stripped, WRAPPERS};
use crate::{CommandDirectory, LineEffect, LinePath, ListedNames, NameEnd, PipedNames, Word};
use options::{Operands, Parsed, Tool, may_become_option};

/// What is known about a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) effect: LineEffect,
    pub(crate) reads: Vec<LinePath>,
    pub(crate) writes: Vec<LinePath>,
    pub(crate) exact_only: bool,
    /// Where the shell is afterwards, if the command moves it.
    pub(crate) enters: Option<Places>,
    /// Where it runs, if it goes somewhere by itself.
    pub(crate) directory: Option<CommandDirectory>,
    /// The files whose names it prints, if it prints names only.
    pub(crate) names: Vec<LinePath>,
    /// The one file whose content it shows, whole or in part.
    pub(crate) shows: Option<LinePath>,
}

/// What a command is judged by besides its words.
pub(crate) struct Context<'a> {
    pub(crate) here: &'a Places,
    pub(crate) stripped: &'a Stripped,
    /// The files whose names come in from the pipeline.
    pub(crate) names: &'a [LinePath],
}

/// What a process substitution is called: a file that is there only for this command.
pub(crate) const FROM_COMMAND: &str = "/dev/fd/\0";

/// Files that say what system this is and how busy it is, to anybody who asks.
const ABOUT_SYSTEM: &str = "/etc/os-release /etc/lsb-release /etc/debian_version /proc/cpuinfo /proc/loadavg /proc/meminfo /proc/uptime /proc/version";

/// Commands that run what is in their arguments, in ways that a prefix does not show.
const EXACT_ONLY: &str = "watch setsid ionice flock";

/// Builtins that change what later commands mean, or evaluate their arguments, in ways that are not followed.
const CHANGES_SHELL: &str = "eval alias unalias hash enable trap shopt unset mapfile readarray declare typeset local readonly let \
    getopts bind complete compgen compopt fc history caller coproc select function return shift";

/// Refuses commands after which nothing is certain.
pub(crate) fn refuse_shell_changes(words: &[Word]) -> Result<(), String> {
    let Some((name, arguments)) = words.split_first() else { return Ok(()) };
    let evaluates = match name.text.as_str() {
        "test" => !special::is_plain_test(arguments),
        "[" => !special::is_plain_test(&arguments[..arguments.len().saturating_sub(1)]),
        "printf" => {
            arguments.first().is_some_and(|word| word.text.starts_with("-v") || may_become_option(word))
        }
        "wait" => arguments.iter().any(|word| word.text.starts_with('-') || may_become_option(word)),
        "export" => !arguments.iter().all(is_export),
        // What is still here after wrappers were taken off is used in an unusual way.
        "command" | "builtin" => !special::finds_command(arguments),
        "read" => !special::is_plain_read(arguments),
        "jobs" => arguments.iter().any(|word| word.text.contains('x') || may_become_option(word)),
        // Without a command it only redirects.
        "exec" => !arguments.is_empty(),
        name => has_name(CHANGES_SHELL, name),
    };
    if evaluates {
        return Err(format!("`{}` may change the shell itself", name.text));
    }
    Ok(())
}

/// A name, or a name with a value.
fn is_export(word: &Word) -> bool {
    let name = word.text.split('=').next().unwrap_or_default();
    let plain = name.chars().all(is_name_char);
    plain && !name.is_empty() && !word.is_split && !word.is_pattern
}

/// Says what a command does.
pub(crate) fn judge(words: &[Word], context: &Context<'_>) -> Facts {
    let Some((name, arguments)) = words.split_first() else {
        return looks(Vec::new());
    };
    let exact_only = has_name(EXACT_ONLY, base_name(&name.text))
        || hides_command(base_name(&name.text), arguments)
        || find::runs_or_changes(&name.text, arguments, context.stripped.gets_more);
    let facts = known(&name.text, arguments, context).unwrap_or_default();
    let may_move = has_name("cd pushd popd source . eval exec", &name.text);
    let enters = facts.enters.clone().or_else(|| may_move.then(Places::unknown));
    Facts { exact_only, enters, ..facts }
}

/// Whether it is only known at run time which word of a wrapper is the command.
fn hides_command(base: &str, arguments: &[Word]) -> bool {
    let is_open = |word: &Word| word.is_split || word.text.starts_with('\0');
    let mut front = arguments.iter().take_while(|word| word.text.starts_with('-') || is_open(word));
    has_name(WRAPPERS, base)
        && (front.any(is_open) || arguments.iter().any(|word| may_take_next(base, &word.text)))
}

/// What is known about a program by its bare name.
fn known(name: &str, arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let mut arguments = Cow::Borrowed(arguments);
    if context.stripped.gets_more {
        arguments.to_mut().push(Word { is_split: true, ..Word::new("\0") });
    }
    let arguments = &arguments[..];
    if literals(arguments).is_some_and(|arguments| tools::asks_for_version(name, &arguments)) {
        return Some(looks(Vec::new()));
    }
    if let Some(tool) = tools::find(name) {
        return tool.judge(arguments, context);
    }
    match name {
        "bat" | "batcat" => tools::BAT.view(arguments, context),
        "git" => git::judge(arguments, context),
        "find" => find::judge(arguments, context),
        "sed" => sed::judge(arguments, context),
        "awk" | "gawk" | "mawk" | "nawk" => awk::judge(arguments, context),
        _ => special::judge(name, arguments, context).or_else(|| edits::judge(name, arguments, context)),
    }
}

pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The text of a word that bash does not change.
fn literal(word: &Word) -> Option<&str> {
    let plain = !word.is_unknown() && !word.is_pattern && !word.is_split && !word.is_home;
    plain.then_some(word.text.as_str())
}

fn literals(words: &[Word]) -> Option<Vec<&str>> {
    words.iter().map(literal).collect()
}

/// Names that a program prints.
fn listed(paths: &[LinePath], handed: &PipedNames) -> Vec<LinePath> {
    paths.iter().map(|path| LinePath { handed: Some(handed.clone()), ..path.clone() }).collect()
}

/// Names that a program takes in, which ends them here.
pub(crate) fn taken(names: &[LinePath], end: NameEnd) -> impl Iterator<Item = LinePath> + '_ {
    names.iter().cloned().map(move |mut name| {
        if let Some(handed) = &mut name.handed {
            // Without a NUL in it, the whole list is one name.
            handed.end = if end == NameEnd::Nul { handed.end } else { end };
        }
        name
    })
}

/// A command that only looks at these.
fn looks(mut reads: Vec<LinePath>) -> Facts {
    reads.retain(|path| !path.text.as_known().is_some_and(|text| has_name(ABOUT_SYSTEM, text)));
    Facts { effect: LineEffect::Looks, reads, ..Facts::default() }
}

/// The file that is named, if it is the only one.
fn only_file(paths: &[LinePath]) -> Option<LinePath> {
    let [path] = paths else { return None };
    (!path.is_pattern && path.text.is_known() && path.handed.is_none()).then(|| path.clone())
}

impl Context<'_> {
    /// The paths that operands name.
    fn paths<'a>(&self, operands: impl IntoIterator<Item = &'a Word>, is_recursive: bool) -> Vec<LinePath> {
        let mut paths = Vec::new();
        for word in operands {
            // What comes in through a pipeline of names is known as well as those names are.
            if word.text == "\0" && word.is_split && self.stripped.gets_more && !self.names.is_empty() {
                paths.extend(taken(self.names, self.stripped.end));
            } else if !word.choices.is_empty() {
                paths.extend(word.choices.iter().cloned());
            } else if !matches!(word.text.as_str(), "" | "-" | "/dev/null" | FROM_COMMAND) {
                paths.extend(named(&path_text(word), word.is_pattern, self.here));
            }
        }
        for path in &mut paths {
            path.is_recursive |= is_recursive;
        }
        paths
    }

    /// The directories that bash looks into to put names in place of patterns.
    fn listed<'a>(&self, words: impl IntoIterator<Item = &'a Word>) -> Vec<LinePath> {
        self.paths(words.into_iter().filter(|word| word.is_pattern), false)
    }

    /// The working directory itself.
    fn here(&self, is_recursive: bool) -> Vec<LinePath> {
        named(".", false, self.here).into_iter().map(|path| LinePath { is_recursive, ..path }).collect()
    }
}

impl Tool {
    fn judge(&self, arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
        if self.takes_lists && arguments.iter().any(|word| word.text.starts_with(['@', '\0'])) {
            return None;
        }
        // There are no options at all, or none that matter.
        let parsed = if has_name(self.names, "echo") {
            Parsed { operands: arguments.iter().collect(), ..Parsed::default() }
        } else {
            self.parse(arguments).filter(|parsed| !tools::follows_links(self, parsed))?
        };
        let is_whole = |word: &&Word| word.text == "-" || special::has_ending(word, self.endings);
        if !self.endings.is_empty() && !parsed.operands.iter().all(is_whole) {
            return None;
        }
        let reads = self.reads(&parsed, context)?;
        let mut facts = looks(reads);
        facts.names = self.names_printed(&parsed, context, &facts.reads);
        facts.shows = only_file(&facts.reads).filter(|_| tools::shows_content(self, &parsed));
        Some(facts)
    }

    /// What a program shows that may do anything besides.
    fn view(&self, arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
        let reads = self.reads(&self.parse(arguments)?, context)?;
        Some(Facts { shows: only_file(&reads), ..Facts::default() })
    }

    /// What it looks at.
    fn reads(&self, parsed: &Parsed<'_>, context: &Context<'_>) -> Option<Vec<LinePath>> {
        let is_recursive = self.recursive == "*" || parsed.has(self.recursive);
        let operands = &parsed.operands[..];
        let first = operands.first();
        let takes_text = matches!(self.operands, Operands::TextThenPaths | Operands::TextThenPathsOrHere)
            && !parsed.has(self.text_options);
        let paths = match self.operands {
            Operands::None if operands.is_empty() => return Some(Vec::new()),
            Operands::None => return None,
            Operands::Text => return Some(context.listed(operands.iter().copied())),
            Operands::OnePath => {
                let one = operands.len() <= 1 && !first.is_some_and(|word| word.is_pattern || word.is_split);
                return one.then(|| context.paths(operands.iter().copied(), false));
            }
            Operands::Paths
            | Operands::PathsOrHere
            | Operands::TextThenPaths
            | Operands::TextThenPathsOrHere => operands.get(usize::from(takes_text)..).unwrap_or_default(),
        };
        // What to look for may be several words, of which all but the first are files.
        let mut reads = context.paths(paths.iter().copied(), is_recursive);
        if takes_text && first.is_some_and(|word| word.is_split || word.is_pattern) {
            reads.extend(context.paths(first.copied(), is_recursive));
        }
        let here =
            matches!(self.operands, Operands::PathsOrHere | Operands::TextThenPathsOrHere) || is_recursive;
        if here && paths.is_empty() {
            reads.extend(context.here(is_recursive));
        }
        if self.opens_links {
            let all = PipedNames { listed: ListedNames::All, end: NameEnd::Nul, is_led: true, pattern: None };
            return Some(listed(&reads, &all));
        }
        if is_recursive && let Some(only) = tools::only(self, parsed) {
            for path in &mut reads {
                path.only = Some(only.clone());
            }
        }
        Some(reads)
    }

    /// The files whose names it prints: searches that were asked for names, and filters of what comes in. Options that print
    /// something else, or let text decide what is printed, make that unknown.
    fn names_printed(&self, parsed: &Parsed<'_>, context: &Context<'_>, reads: &[LinePath]) -> Vec<LinePath> {
        let name = self.name();
        let lists = parsed.has("l files-with-matches files L files-without-match") || name == "fd";
        if has_name("grep rg fd", name) && lists {
            let renames = parsed.has("label path-separator replace color colour colors");
            return if renames { Vec::new() } else { listed(reads, &tools::handed(name, parsed)) };
        }
        let changes_lines = match name {
            "grep" => {
                "b byte-offset c color colour count H with-filename label n line-number o only-matching T initial-tab"
            }
            "head" | "tail" => "bytes c v verbose",
            "sort" | "uniq" => "c count all-repeated group",
            "tac" => "b before r regex s separator",
            _ => return Vec::new(),
        };
        let texts = usize::from(name == "grep" && !parsed.has(self.text_options));
        let from_input = parsed.operands.len() <= texts;
        if from_input && !parsed.has(changes_lines) { context.names.to_vec() } else { Vec::new() }
    }
}
