//! The pieces of a command line that may name files.
//!
//! Nobody can know what a line runs without running it. So it is not understood here but taken apart, in every way that a name may be
//! written: one piece too many costs a look at a file that is not there.

use std::collections::BTreeSet;

/// Texts in quotes may be command lines in turn.
const DEPTH_MAX: usize = 3;

/// As many pieces of one text are looked at.
const PIECES_MAX: usize = 4_000;

/// What ends a word outside of quotes.
const ENDS: &str = ";&|()<>`";

/// What stands for text that only the shell knows.
const UNKNOWN: &str = "$`{}()*?[]";

/// What precedes a program that is run, or a directory whose files say what is run. What else is given to a program is what it works
/// on, and may change every day.
const RUNS_NEXT: &str =
    "sh bash dash zsh ksh python python3 node ruby perl php source . -C --directory --prefix";

/// What may name files.
#[derive(Debug, Default)]
pub(super) struct PathCandidates {
    /// Every piece that may be a path.
    pub(super) paths: BTreeSet<String>,
    /// Those of them that, if they are directories, hold what is run.
    pub(super) run: BTreeSet<String>,
}

impl PathCandidates {
    pub(super) fn of(text: &str) -> Self {
        let mut pieces = Self { paths: BTreeSet::from([text.to_owned()]), run: BTreeSet::new() };
        pieces.take_apart(text, DEPTH_MAX);
        pieces.paths.remove("");
        pieces
    }

    fn take_apart(&mut self, text: &str, depth: usize) {
        let mut runs_next = false;
        for word in words(text) {
            if self.paths.len() >= PIECES_MAX {
                return;
            }
            let mut found = BTreeSet::from([word.meant.clone()]);
            cut(&word.written, |c| !c.is_alphanumeric() && !"_./-".contains(c), &mut found);
            cut(&word.meant, |_| false, &mut found);
            cut(&word.meant, |c| "=:,@".contains(c), &mut found);
            if runs_next {
                self.run.extend(found.iter().cloned());
            }
            self.paths.append(&mut found);
            runs_next = RUNS_NEXT
                .split(' ')
                .any(|name| word.meant == name || word.meant.ends_with(&format!("/{name}")));
            if depth > 0 && word.meant != text && word.meant.contains([' ', '\t', '\n', '"', '\'', '\\']) {
                self.take_apart(&word.meant, depth - 1);
            }
        }
    }
}

/// The text between what only the shell knows, and between what else ends a piece. Where the unknown begins inside of a name, the
/// directory counts.
fn cut(text: &str, ends: impl Fn(char) -> bool, found: &mut BTreeSet<String>) {
    let mut rest = text;
    loop {
        let end = rest.find(|c| UNKNOWN.contains(c) || ends(c)).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        found.insert(piece.to_owned());
        let mut behind = behind.chars();
        let Some(stop) = behind.next() else { return };
        if let (true, Some((directory, _))) = (UNKNOWN.contains(stop), piece.rsplit_once('/')) {
            found.insert(directory.to_owned());
        }
        rest = behind.as_str();
        if stop == '$' {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        }
    }
}

/// A word of a command line.
#[derive(Default)]
struct Word {
    /// With its quotes and backslashes.
    written: String,
    /// Without them.
    meant: String,
}

/// The words of a line, without the files that output goes to: a log that grows is no other program.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_target) = (Word::default(), None, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let ends = quote.is_none() && (c.is_whitespace() || ENDS.contains(c));
        if ends {
            let ended = std::mem::take(&mut word);
            let is_word = !ended.written.is_empty();
            if is_word && !is_target {
                words.push(ended);
            }
            is_target = if c.is_whitespace() { is_target && !is_word } else { c == '>' };
            continue;
        }
        word.written.push(c);
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some('"'), '\\') => {
                if let Some(next) = chars.next() {
                    word.written.push(next);
                    word.meant.push(next);
                }
            }
            _ => word.meant.push(c),
        }
    }
    if !word.written.is_empty() && !is_target {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_it_is_written() {
        let check = |text: &str, name: &str| {
            let found = PathCandidates::of(text).paths;
            assert!(found.contains(name), "{text}: {name} is not in {found:?}");
        };
        check("tools/a b.sh", "tools/a b.sh");
        check("sh \"tools/a b.sh\" x", "tools/a b.sh");
        check("sh tools/'a b'.sh", "tools/a b.sh");
        check(r"sh tools/a\ b.sh", "tools/a b.sh");
        check("\"$PWD/tools/a b.sh\"", "/tools/a b.sh");
        check("\"$(git rev-parse --show-toplevel)/tools/a b.sh\"", "/tools/a b.sh");
        check("bash -c 'exec \"tools/a b.sh\"'", "tools/a b.sh");
        check("$PWD/tools/h.sh", "/tools/h.sh");
        check("`pwd`/tools/h.sh", "/tools/h.sh");
        check("${DIR:-.}/tools/h.sh", "/tools/h.sh");
        check("X=tools;sh $X/h.sh", "tools");
        check("sh tools/*.sh", "tools");
        check("sh tools/h$X.sh", "tools");
        check("sh --file=tools/h.sh", "tools/h.sh");
        check(r#"python3 -c "exec(open(\"tools/h.py\").read())""#, "tools/h.py");
        check("sh 'tools/a)b.sh'", "tools/a)b.sh");
        check("sh <tools/h.sh 2>&1", "tools/h.sh");
    }

    #[test]
    fn what_a_program_works_on_is_not_what_is_run() {
        let check = |text: &str, name: &str, expected: bool| {
            assert_eq!(PathCandidates::of(text).run.contains(name), expected, "{text}: {name}");
        };
        check("npm test", "test", false);
        check("npx eslint src", "src", false);
        check("npx prettier --write 'src/**/*.ts'", "src", false);
        check("sh tools/*.sh", "tools", true);
        check("/usr/bin/python3 tools/$NAME", "tools", true);
        check("make -C tools", "tools", true);
        check("bash -c 'make -C tools'", "tools", true);
    }

    #[test]
    fn where_output_goes_is_no_program() {
        let check = |text: &str, expected: bool| {
            assert_eq!(PathCandidates::of(text).paths.contains("log"), expected, "{text}");
        };
        check("date >> log", false);
        check("date >log; ls", false);
        check("date > \"log\"", false);
        check("date > log; sh log", true);
        check("date 2>&1 log", true);
        check("sh < log", true);
    }
}
