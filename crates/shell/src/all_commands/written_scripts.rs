//! Files that a line makes itself, and what it runs of them: `echo ls > s; sh s`, `cp /bin/ls a; ./a`.
//!
//! Only the last part of a name counts, and no order: none is missed behind a `cd` or in a loop.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use windlass_protocol::CommandWord;

use super::unwrap::{self, How};
use super::word::{Argument, ansi_decoded};
use super::{Consequence, Input, Surroundings, Walk, is_descriptor};
use crate::analysis::UNKNOWN;
use crate::names::{Sieve, has_name as has};
use crate::places::Places;

/// So often files that were run may make others that are run.
const ROUNDS_MAX: usize = 4;
/// A file that was copied more often is not followed.
const COPIES_MAX: usize = 8;
/// More files are not told apart.
const FILES_MAX: usize = 64;

#[derive(Default)]
pub(super) struct Made {
    files: Vec<File>,
    copies: Vec<Copied>,
    /// Files that come in for a program which runs them.
    fed: Vec<(String, How)>,
    /// There are more than are told apart.
    is_full: bool,
}

#[derive(Default)]
struct File {
    name: String,
    /// What the line says that is in it, one after the other.
    text: String,
    /// There may be more in it.
    is_open: bool,
    places: Places,
}

struct Copied {
    name: String,
    source: Argument,
}

pub(super) enum Printed {
    Text(String),
    /// What comes in.
    Input,
    /// What is in these files.
    Files(Vec<Argument>),
    Unknown,
}

impl Made {
    /// Notes a file with its text, if that is known.
    pub(super) fn file(&mut self, name: &str, text: Option<&str>, places: &Places) {
        let name = last_part(name);
        let known = self.files.iter().position(|file| file.name == name);
        let at = known.unwrap_or_else(|| {
            let (name, places) = (name.to_owned(), places.clone());
            self.files.push(File { name, places, ..File::default() });
            self.files.len() - 1
        });
        let file = &mut self.files[at];
        file.is_open |= text.is_none();
        if let Some(text) = text {
            file.text.push_str(text);
            file.text.push('\n');
        }
        self.is_full |= self.files.len() > FILES_MAX;
        self.files.truncate(FILES_MAX);
    }

    fn copy(&mut self, name: &str, source: &Argument) {
        let name = last_part(name);
        if self.copies.len() == FILES_MAX {
            self.is_full = true;
        } else if name != last_part(&source.text) {
            self.copies.push(Copied { name: name.to_owned(), source: source.clone() });
        }
    }

    /// Notes what a program makes that copies files or fetches them. Says which files get what comes in for it.
    pub(super) fn command(&mut self, base: &str, arguments: &[Argument], places: &Places) -> Vec<String> {
        let operands: Vec<&Argument> = arguments.iter().filter(|word| !word.text.starts_with('-')).collect();
        match base {
            "tee" | "sponge" => return operands.iter().map(|word| word.text.clone()).collect(),
            "dd" => {
                let source = arguments.iter().find_map(|word| word.text.strip_prefix("if="));
                let target = arguments.iter().find_map(|word| word.text.strip_prefix("of="));
                match (source, target) {
                    (Some(source), Some(target)) => self.copy(target, &Argument::new(source)),
                    (None, Some(target)) => return vec![target.to_owned()],
                    (_, None) => {}
                }
            }
            _ if has(COPIERS, base) => {
                if let [.., source, target] = operands[..] {
                    self.copy(&target.text, source);
                }
            }
            // Which word names the file does not matter here; of an address it is the last part.
            _ if has(FETCHERS, base) => operands.iter().for_each(|word| self.file(&word.text, None, places)),
            _ => {}
        }
        Vec::new()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter().map(|file| file.name.as_str());
        files.chain(self.copies.iter().map(|copied| copied.name.as_str()))
    }

    /// The files that are run by a name.
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (usize, &'a File)> {
        let names = self.originals(last_part(name)).into_iter();
        names.flat_map(|name| self.files.iter().enumerate().filter(move |(_, file)| file.name == name))
    }

    /// A name and what the files of that name are copies of.
    fn originals<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let mut names = vec![name];
        let mut at = 0;
        while let Some(name) = names.get(at).copied() {
            let copies = self.copies.iter().filter(|copied| copied.name == name);
            for source in copies.map(|copied| last_part(&copied.source.text)) {
                if names.len() < COPIES_MAX && !names.contains(&source) {
                    names.push(source);
                }
            }
            at += 1;
        }
        names
    }
}

/// Programs that make a file that is like another one.
const COPIERS: &str = "cp mv ln install rsync link gcp ginstall";
/// Programs that make files of which nobody knows what is in them.
const FETCHERS: &str = "curl wget wget2 aria2c openssl gpg uudecode xxd";

pub(super) static MAKERS: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(["tee sponge dd", COPIERS, FETCHERS]));

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// What a command prints, if its words say that.
pub(super) fn printed(arguments: &[Argument]) -> Option<String> {
    let (name, words) = arguments.split_first()?;
    match last_part(&name.text) {
        "echo" => Some(echoed(words)),
        "printf" => formatted(words),
        _ => None,
    }
}

fn echoed(words: &[Argument]) -> String {
    let is_option = |word: &&Argument| {
        word.text.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.bytes().all(|letter| b"neE".contains(&letter))
        })
    };
    let options = words.iter().take_while(is_option).count();
    let text = unwrap::joined(&words[options..]);
    if words[..options].iter().any(|word| word.text.contains('e')) {
        // There a number begins with a zero.
        return ansi_decoded(&text.replace("\\0", "\\"));
    }
    text
}

fn formatted(words: &[Argument]) -> Option<String> {
    let words = if words.first()?.text == "--" { &words[1..] } else { words };
    let (format, values) = words.split_first()?;
    let mut values = values.iter();
    let mut text = String::new();
    loop {
        let mut parts = format.text.split('%');
        text.push_str(&ansi_decoded(parts.next().unwrap_or_default()));
        let mut takes_values = false;
        while let Some(part) = parts.next() {
            let Some(kind) = part.chars().next() else {
                // A percent sign that is doubled.
                text.push('%');
                text.push_str(&ansi_decoded(parts.next().unwrap_or_default()));
                continue;
            };
            if !matches!(kind, 's' | 'b' | 'd' | 'q') {
                return None;
            }
            takes_values = true;
            text.push_str(values.next().map_or("", |value| value.text.as_str()));
            text.push_str(&ansi_decoded(&part[1..]));
        }
        if !takes_values || values.len() == 0 {
            return Some(text);
        }
    }
}

/// What a command prints, wherever that comes from.
pub(super) fn output(arguments: &[Argument]) -> Printed {
    let Some((name, words)) = arguments.split_first() else { return Printed::Unknown };
    let operands = || words.iter().filter(|word| !word.text.starts_with('-')).cloned().collect::<Vec<_>>();
    match last_part(&name.text) {
        "cat" if operands().is_empty() => Printed::Input,
        "cat" => Printed::Files(operands()),
        "tee" | "sponge" => Printed::Input,
        ":" | "true" => Printed::Text(String::new()),
        _ => printed(arguments).map_or(Printed::Unknown, Printed::Text),
    }
}

impl Surroundings<'_> {
    /// The targets of redirections of some kinds.
    fn targets_of(&self, kinds: &[&str]) -> Vec<Argument> {
        let meant = self.targets.iter().filter(|target| kinds.contains(&target.kind));
        meant.flat_map(|target| target.word.expand()).collect()
    }
}

/// What was already read.
#[derive(Default)]
struct Seen {
    /// Files, how much was in them, and how they were run.
    files: BTreeSet<(usize, usize, &'static str)>,
    /// Copies, and the words of commands that run them.
    copies: BTreeSet<(usize, Vec<CommandWord>)>,
}

impl Walk {
    /// Notes what the redirections of a command make, and what it does with what comes in: `piped`, if that is known.
    pub(super) fn make(
        &mut self,
        printed: &Printed,
        piped: Option<&str>,
        around: &Surroundings<'_>,
        consequence: &mut Consequence,
    ) {
        let places = around.places;
        let is_file = |target: &Argument| target.text != "/dev/null" && !is_descriptor(&target.text);
        for file in around.targets_of(&[">", ">&"]).into_iter().filter(is_file) {
            let name = file.text.as_str();
            match printed {
                Printed::Text(text) => self.made.file(name, Some(text), places),
                Printed::Input => consequence.keeps.push(name.to_owned()),
                Printed::Files(sources) => {
                    for source in sources {
                        self.made.copy(name, source);
                    }
                }
                Printed::Unknown => self.made.file(name, None, places),
            }
        }
        let (texts, files) = (around.targets_of(&["<<<"]), around.targets_of(&["<"]));
        for name in &consequence.keeps {
            for word in &texts {
                self.made.file(name, Some(&word.text), places);
            }
            for source in &files {
                self.made.copy(name, source);
            }
            if texts.is_empty() && files.is_empty() && !around.has_document {
                self.made.file(name, piped, places);
            }
        }
        for file in files {
            let how = consequence.input.is_run.then_some(How::Shell);
            let ways = how.into_iter().chain(consequence.input.code.map(How::Code));
            self.made.fed.extend(ways.map(|how| (file.text.clone(), how)));
        }
    }

    /// Reads what is run of what the line made.
    pub(super) fn run_made(&mut self) {
        let mut seen = Seen::default();
        for _ in 0..ROUNDS_MAX {
            if self.made.files.is_empty() && self.made.copies.is_empty() {
                return;
            }
            let runs = self.runs_of_made(&mut seen);
            let commands = self.renamed(&mut seen);
            if runs.is_empty() && commands.is_empty() {
                break;
            }
            for (text, how, places) in runs {
                self.run_file(&text, how, &places);
            }
            for command in commands {
                self.run(command, &Places::default(), false);
            }
        }
        if self.made.is_full {
            self.note_unseen("it makes too many files");
        }
    }

    /// The files that are run and were not yet seen.
    fn runs_of_made(&mut self, seen: &mut Seen) -> Vec<(String, How, Places)> {
        let mut runs = Vec::new();
        let mut is_open = false;
        // Most names are of no file that was made.
        let made: BTreeSet<&str> = self.made.names().collect();
        let mut run = |name: &str, how: How, is_told: bool| {
            if !made.contains(last_part(name)) {
                return;
            }
            for (at, file) in self.made.named(name) {
                is_open |= is_told && file.is_open;
                let is_new = !file.text.is_empty() && seen.files.insert((at, file.text.len(), how.name()));
                runs.extend(is_new.then(|| (file.text.clone(), how, file.places.clone())));
            }
        };
        self.made.fed.iter().for_each(|(name, how)| run(name, *how, true));
        for command in &self.commands {
            let words: Vec<_> = command.words.iter().map(|word| word.marked(UNKNOWN)).collect();
            let Some((name, words)) = words.split_first() else { continue };
            unwrap::files_run(last_part(name), words, &mut run);
        }
        if is_open {
            self.note_unseen("it runs a file that it writes itself");
        }
        runs
    }

    /// The commands whose programs are copies of others, by the names of those.
    fn renamed(&self, seen: &mut Seen) -> Vec<Vec<Argument>> {
        let mut commands = Vec::new();
        for command in self.commands.iter().filter(|_| !self.made.copies.is_empty()) {
            let words: Vec<_> = command.words.iter().map(|word| word.marked(UNKNOWN)).collect();
            let Some((name, words)) = words.split_first() else { continue };
            let copies = self.made.copies.iter().enumerate();
            for (copy, copied) in copies.filter(|(_, copied)| copied.name == last_part(name)) {
                let rest = words.iter().map(|word| Argument::new(&**word));
                let is_new = seen.copies.insert((copy, command.words[1..].to_vec()));
                commands.extend(is_new.then(|| std::iter::once(copied.source.clone()).chain(rest).collect()));
            }
        }
        commands
    }

    fn run_file(&mut self, text: &str, how: How, places: &Places) {
        match how.for_text(text) {
            How::Code(language) => {
                self.taken_in(text, Input { is_run: false, code: Some(language) }, places);
            }
            How::Shell | How::Itself => self.script(text, places),
        }
    }
}
