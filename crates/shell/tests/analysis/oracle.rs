//! Bash itself says what a line means. Every line runs in a jail where each program is a stub that writes down its arguments; what ran
//! must be among the commands that the analysis lists, and what was promised to stay as it is must stay so.

use std::collections::BTreeSet;

use crate::jail::{Jail, Ran};
use crate::lines::{self, Rng};
use windlass_protocol::CommandWord;
use windlass_shell::{Analysis, LineEffect, LooseCommand, StrictCommand, Word, analyse};

/// The lines are part of the test: the same ones each time.
const SEED: u64 = 20_261_115;
const LINES: usize = 1_200;

/// Names that bash runs itself, so that no stub hears of them.
const BUILTINS: &[&str] = &[
    ".", ":", "[", "[[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare", "echo",
    "enable", "eval", "exec", "exit", "export", "false", "fg", "getopts", "hash", "jobs", "kill", "let",
    "local", "mapfile", "printf", "pushd", "popd", "pwd", "read", "readonly", "return", "set", "shift",
    "shopt", "source", "test", "time", "trap", "true", "type", "typeset", "umask", "unset", "wait",
];

/// A line with what is thought of it.
struct Judged {
    line: String,
    analysis: Analysis,
}

fn judged(seed: u64) -> Vec<Judged> {
    let mut rng = Rng::new(seed);
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let corpus = lines::corpus();
    let generated = (0..LINES).map(|_| lines::generate(&mut rng, &corpus));
    let generated: Vec<String> = generated.collect();
    for line in corpus.iter().cloned().chain(generated) {
        // A connection would leave the jail.
        if line.contains('\0') || line.contains("/dev/tcp") || !seen.insert(line.clone()) {
            continue;
        }
        let analysis = analyse(&line);
        // What a file holds is not part of the line.
        let sources = |command: &LooseCommand| {
            command.words.first().is_some_and(|name| name == "source" || name == ".")
        };
        if !analysis.found.iter().any(sources) {
            all.push(Judged { line, analysis });
        }
    }
    all
}

impl Judged {
    fn plain(&self) -> Option<&[StrictCommand]> {
        self.analysis.plain.as_deref().ok()
    }

    /// Nothing but looking was seen.
    fn looks(&self) -> bool {
        let looks = |command: &StrictCommand| {
            matches!(command.effect, LineEffect::Looks | LineEffect::LooksAtStart)
                && command.writes.is_empty()
        };
        self.plain().is_some_and(|commands| commands.iter().all(looks))
    }
}

#[test]
fn what_runs_is_what_was_listed() {
    let seed = lines::seed(SEED);
    println!("seed {seed}");
    let all = judged(seed);
    let jail = Jail::new();
    // What it prints may be part of another command.
    jail.add_program("cat");
    for judged in &all {
        for command in &judged.analysis.found {
            let name = command.words.first().map_or("".into(), |name| name.marked("\0"));
            if !BUILTINS.contains(&&*name) {
                jail.add_stub(&name);
            }
        }
    }
    let (looking, others): (Vec<&Judged>, Vec<&Judged>) = all.iter().partition(|judged| judged.looks());
    assert!(looking.len() > 200, "only {} lines look", looking.len());
    let before = jail.tree("looking");
    let ran = jail.run("looking", looking.iter().map(|judged| judged.line.as_str()));
    let after = jail.tree("looking");
    if before != after {
        let changed = looking.iter().find(|judged| jail.changes(&judged.line));
        panic!("a line that only looks changed a file: {:?}", changed.map(|judged| &judged.line));
    }
    let ran_others = jail.run("others", others.iter().map(|judged| judged.line.as_str()));
    let mut faults = Vec::new();
    let mut plain = 0;
    let mut recorded = 0;
    for (judged, ran) in looking.iter().chain(&others).zip(ran.iter().chain(&ran_others)) {
        plain += usize::from(judged.plain().is_some());
        recorded += ran.len();
        faults.extend(unlisted(judged, ran, &jail));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    println!(
        "{} lines, {plain} of them plain, {} only look, {recorded} programs ran",
        all.len(),
        looking.len()
    );
    assert!(plain > 500, "only {plain} plain lines");
    assert!(recorded > 1_000, "only {recorded} programs ran");
}

/// What ran and was not listed.
fn unlisted(judged: &Judged, ran: &[Ran], jail: &Jail) -> Vec<String> {
    let line = &judged.line;
    let mut faults = Vec::new();
    for Ran { arguments } in ran {
        // What `command` and `builtin` run is run by the shell itself.
        let fits = |command: &StrictCommand| {
            fits_words(&command.whole, arguments, jail) || fits_words(&command.words, arguments, jail)
        };
        if judged.plain().is_some_and(|commands| !commands.iter().any(fits)) {
            faults.push(format!("{line:?} is plain and ran {arguments:?}"));
        }
        let found = &judged.analysis.found;
        if judged.analysis.unseen.is_none()
            && !found.iter().any(|command| fits_found(command, arguments, jail))
        {
            let words: Vec<_> = found.iter().map(|command| &command.words).collect();
            faults.push(format!("{line:?} ran {arguments:?}, found are {words:?}"));
        }
    }
    faults
}

/// Whether a program got the arguments that were listed, once bash expanded them.
fn fits_words(words: &[Word], arguments: &[String], jail: &Jail) -> bool {
    let parts: Vec<(String, bool)> = words
        .iter()
        .map(|word| {
            let text = word.text().marked("\0").into_owned();
            let text = if word.is_home { jail.at_home(&text) } else { text };
            (text, word.is_split || word.is_pattern)
        })
        .collect();
    fits(&parts, arguments)
}

fn fits_found(command: &LooseCommand, arguments: &[String], jail: &Jail) -> bool {
    let spelled = |home: bool| -> Vec<(String, bool)> {
        let spell = |word: &CommandWord| {
            let word = &word.marked("\0").into_owned();
            let is_home = home && (word == "~" || word.starts_with("~/"));
            let text = if is_home { jail.at_home(word) } else { word.clone() };
            // Bash looks for a home directory inside words that look like assignments, too.
            let text = text.replace("=~", "=\0").replace(":~", ":\0");
            let text = if text.starts_with('~') { "\0".to_owned() } else { text };
            (text, word.contains(['\0', '*', '?', '[']))
        };
        command.words.iter().map(spell).collect()
    };
    fits(&spelled(true), arguments) || fits(&spelled(false), arguments)
}

/// Whether words fit, of which some may have become any number of words.
fn fits(words: &[(String, bool)], arguments: &[String]) -> bool {
    match (words.split_first(), arguments.split_first()) {
        (None, None) => true,
        (Some(((_, true), rest)), _) => (0..=arguments.len()).any(|count| fits(rest, &arguments[count..])),
        (Some(((word, false), rest)), Some((argument, others))) => {
            fits_text(word, argument) && fits(rest, others)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Whether a text fits in which NULs stand for anything. `$PWD` is written as a dot.
fn fits_text(word: &str, argument: &str) -> bool {
    if word == argument || (word.starts_with('.') && argument.starts_with('/')) {
        return true;
    }
    let mut parts = word.split('\0');
    let Some(mut rest) = argument.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut any = false;
    for part in parts {
        any = true;
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    any
}
