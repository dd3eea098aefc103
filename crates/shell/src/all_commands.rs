//! The generous reading: every command that can be found anywhere in a text, whatever stands around it.

mod files;
mod scan;
mod search;
#[cfg(test)]
mod tests;
mod unwrap;
mod variables;
mod word;
mod written_scripts;

pub(crate) use unwrap::runs_in_awk;

use windlass_protocol::CommandWord;

use crate::expansion::may_take_next;
use crate::names::has_name as has;
use crate::places::{self, Places};
use crate::{LinePath, LooseCommand, StrictCommand};
use variables::Variables;
use word::{Argument, Draft};
use written_scripts::Made;

/// Scripts inside scripts are looked at this deep.
const DEPTH_MAX: usize = 16;
/// So many commands are looked at that one command may run.
const LEVELS_MAX: usize = 64;
/// So many words are listed for any text.
const WORDS_MIN: usize = 1 << 15;
/// And so many more for each byte of it.
const WORDS_PER_BYTE: usize = 2;

/// Reads a line. What it sets variables to counts only in a second reading, once it is known that nothing else sets them.
pub(crate) fn walk(line: &str) -> Walk {
    if !line.contains('$') {
        return pass(line, Variables::default());
    }
    let variables = Variables::of(line);
    let first = pass(line, variables.forgotten());
    if variables.is_empty() || first.sets_anything {
        return first;
    }
    pass(line, variables.without(&first.sets))
}

fn pass(line: &str, variables: Variables) -> Walk {
    let mut walk = Walk { variables, budget: WORDS_MIN + line.len() * WORDS_PER_BYTE, ..Walk::default() };
    if line.contains('\0') {
        walk.note_unseen("it contains a NUL");
    }
    scan::commands(line, &Places::default(), &mut walk);
    walk.run_made();
    walk.doubt_removals();
    walk
}

/// What was found so far.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) commands: Vec<LooseCommand>,
    pub(crate) unseen: Option<String>,
    /// The commands of the line itself, as they are written, without those in scripts and behind wrappers.
    written: Vec<Vec<String>>,
    variables: Variables,
    /// Variables that builtins set.
    sets: Vec<String>,
    /// Any variable may be set by something that is not followed.
    sets_anything: bool,
    depth: usize,
    budget: usize,
    /// The arguments of the last command.
    last: Vec<Argument>,
    made: Made,
    /// What the commands so far do with what comes in.
    input: Input,
    /// Something is piped into the script that is read next.
    is_fed: bool,
    /// Patterns may mean other files than they seem to.
    changes_patterns: bool,
}

/// What commands do with what comes in.
#[derive(Clone, Copy, Default)]
struct Input {
    is_run: bool,
    /// It is code of this language.
    code: Option<&'static unwrap::Language>,
}

impl Input {
    fn add(&mut self, other: Self) {
        self.is_run |= other.is_run;
        self.code = self.code.or(other.code);
    }
}

/// How a command comes to run, and what it is handed besides its words.
struct Surroundings<'a> {
    targets: &'a [Target],
    places: &'a Places,
    is_piped: bool,
    /// It runs once in any case, and in the shell itself.
    is_certain: bool,
    /// A here document comes in.
    has_document: bool,
}

/// A redirection with its target.
struct Target {
    kind: &'static str,
    word: Draft,
}

/// What a command does to the shell and to its input.
#[derive(Default)]
struct Consequence {
    /// Where the shell is if the command succeeds.
    enters: Option<Places>,
    input: Input,
    /// Files that get what comes in.
    keeps: Vec<String>,
}

/// Builtins that evaluate what is in their arguments, also if that was quoted.
const EVALUATES: &str = "test [ [[ printf read declare typeset local let unset export readonly mapfile readarray \
    getopts wait";

impl Walk {
    fn note_unseen(&mut self, why: &str) {
        self.unseen.get_or_insert_with(|| why.to_owned());
    }

    /// Reads a text that is run as a script of its own.
    fn script(&mut self, text: &str, places: &Places) {
        self.nested(text, |walk| scan::commands(text, places, walk));
    }

    /// Reads a text for the substitutions in it.
    fn substitutions(&mut self, text: &str, places: &Places) {
        if text.contains(['$', '`']) {
            self.nested(text, |walk| scan::substitutions(text, places, walk));
        }
    }

    fn nested(&mut self, text: &str, inner: impl FnOnce(&mut Self)) {
        if self.depth >= DEPTH_MAX || self.budget < text.len() {
            return self.note_unseen("it nests too many scripts");
        }
        if text.contains('\0') {
            self.note_unseen("a script in it is only known at run time");
        }
        self.budget -= text.len();
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    /// What a variable is known to hold. Using it costs as much as if it had been written there.
    fn variable(&mut self, name: &str, in_quotes: bool) -> Option<String> {
        let value = self.variables.get(name, in_quotes)?;
        self.budget = self.budget.checked_sub(value.len())?;
        Some(value.to_owned())
    }

    /// What a loop sets a variable to, at the same cost.
    fn choices(&mut self, name: &str) -> Vec<String> {
        let choices = self.variables.choices(name);
        let cost = choices.iter().map(String::len).sum();
        let Some(budget) = self.budget.checked_sub(cost) else { return Vec::new() };
        self.budget = budget;
        choices.to_vec()
    }

    /// Takes in the head of a loop.
    fn loop_head(&mut self, words: &[Draft], is_certain: bool) {
        let [_, name, middle, items @ ..] = words else { return };
        if !is_certain || self.depth > 0 || !middle.is_bare("in") {
            return;
        }
        let item = |argument: Argument| {
            let is_plain = !argument.text.contains(['\0', '~', ' ', '\t', '\n', '\\'])
                && (argument.is_pattern || !argument.text.contains(['*', '?', '[', '(']));
            is_plain.then_some(argument.text)
        };
        let items: Option<Vec<String>> = items.iter().flat_map(Draft::expand).map(item).collect();
        if let (Some(name), Some(items)) = (name.bare(), items) {
            self.variables.choose(&name, items);
        }
    }

    /// Takes in one command as it was written.
    fn command(&mut self, words: &[Draft], around: &Surroundings<'_>) -> Consequence {
        let Surroundings { targets, places, .. } = *around;
        let assignments: Vec<_> = words.iter().map_while(Draft::assignment).collect();
        let is_bare = assignments.len() == words.len() && targets.is_empty();
        for (name, value) in &assignments {
            self.substitutions(value, places);
            let mut inside = unwrap::Inside::default();
            unwrap::variable(name, value, &mut inside);
            self.take_in(inside, places);
            if matches!(name.as_str(), "BASH_ENV" | "ENV") {
                let reads = files::path(&Argument::new(value), places);
                self.push(LooseCommand { reads, ..LooseCommand::default() });
            }
            if is_bare && around.is_certain && self.depth == 0 {
                self.variables.set(name, value);
            }
        }
        let arguments: Vec<Argument> = words[assignments.len()..].iter().flat_map(Draft::expand).collect();
        if self.depth == 0 && !arguments.is_empty() {
            self.written.push(arguments.iter().map(|argument| argument.text.clone()).collect());
        }
        let at = self.commands.len();
        let has_words = !arguments.is_empty();
        let piped = if around.is_piped { written_scripts::printed(&self.last) } else { None };
        let mut consequence = if has_words {
            self.run(arguments, places, around.is_piped)
        } else {
            self.push(LooseCommand::default());
            // What comes in is for the commands of a group.
            Consequence { input: self.input, ..Consequence::default() }
        };
        self.redirect(at, targets, places, &consequence);
        if !targets.is_empty() || !consequence.keeps.is_empty() {
            let printed = written_scripts::output(if has_words { &self.last } else { &[] });
            self.make(&printed, piped.as_deref(), around, &mut consequence);
        }
        consequence
    }

    fn push(&mut self, command: LooseCommand) -> bool {
        let cost =
            command.words.len() + command.reads.len() + command.writes.len() + command.mentions.len() + 1;
        if self.budget < cost {
            self.note_unseen("it contains too many commands");
            return false;
        }
        self.budget -= cost;
        self.commands.push(command);
        true
    }

    /// Adds the targets of redirections to the command they were written for.
    fn redirect(&mut self, at: usize, targets: &[Target], places: &Places, consequence: &Consequence) {
        for target in targets {
            for argument in target.word.expand() {
                if target.kind == "<<<" {
                    self.taken_in(&argument.text, consequence.input, places);
                    continue;
                }
                let is_descriptor = is_descriptor(&argument.text) && matches!(target.kind, ">&" | "<&");
                let Some(command) = self.commands.get_mut(at).filter(|_| !is_descriptor) else { continue };
                let paths = files::path(&argument, places);
                if target.kind != "<" {
                    command.writes.extend(paths.clone());
                }
                if matches!(target.kind, "<" | "<>") {
                    command.reads.extend(paths);
                }
            }
        }
    }

    /// Takes in a text that comes in for a command.
    fn taken_in(&mut self, text: &str, input: Input, places: &Places) {
        if input.is_run {
            self.script(text, places);
        }
        let Some(language) = input.code else { return };
        let mut inside = unwrap::Inside::default();
        language.run(text, &mut inside);
        self.nested(text, |walk| walk.take_in(inside, places));
    }

    /// Where patterns may mean anything, a removal by a pattern may remove anything.
    fn doubt_removals(&mut self) {
        for command in self.commands.iter_mut().filter(|_| self.changes_patterns) {
            // Behind the parenthesis of a pattern the words of a command are not seen any more.
            let is_search = |name: &CommandWord| name.end().ends_with("find") || name.end().ends_with("fd");
            let is_cut = command.words.first().is_some_and(is_search)
                && command.words.iter().any(|word| !word.is_known());
            if is_cut || command.removes.iter().any(|path| path.is_pattern || !path.text.is_known()) {
                command.removes.extend(places::named("\0", false, &Places::default()));
            }
        }
    }

    /// Takes in what was found in a text that is no command.
    fn take_in(&mut self, inside: unwrap::Inside, places: &Places) {
        self.changes_patterns |= inside.changes_patterns;
        if let Some(why) = inside.unseen {
            self.note_unseen(why);
        }
        self.mention(inside.mentions, places);
        for script in inside.scripts {
            self.script(&script, places);
        }
        for command in inside.commands {
            self.run(command, places, false);
        }
    }

    /// Lists what texts in code may name.
    fn mention(&mut self, mentions: unwrap::Mentions, places: &Places) {
        if mentions.0.is_empty() {
            return;
        }
        let mut command = LooseCommand::default();
        for text in mentions.0 {
            let is_any = text == "\0";
            let is_home = text == "~" || text.starts_with("~/");
            let paths = files::path(&Argument { text, is_home, ..Argument::default() }, places);
            if is_any {
                command.reads.extend(paths);
            } else {
                command.mentions.extend(paths);
            }
        }
        self.push(command);
    }

    /// Lists a command, and what it runs, and what that runs.
    fn run(&mut self, arguments: Vec<Argument>, places: &Places, is_piped: bool) -> Consequence {
        let mut consequence = Consequence::default();
        let mut pending = perhaps_run(&arguments);
        pending.push((arguments, true));
        let mut levels = 0;
        let mut first = None;
        let mut is_fed = is_piped;
        while let Some((arguments, may_mention)) = pending.pop() {
            levels += 1;
            let Some(name) = arguments.first() else { continue };
            if name.text.contains('\0') || name.is_pattern {
                self.note_unseen("the name of a command is only known at run time");
            }
            let base = name.text.rsplit('/').next().unwrap_or_default();
            let command = files::found(base, &arguments, places);
            let may_mention = may_mention && command.reads.is_empty();
            let is_listed = self.push(command);
            if !is_listed || levels > LEVELS_MAX {
                self.note_unseen("it nests too many commands");
                if levels > LEVELS_MAX {
                    // What is not looked at may remove anything.
                    let removes = places::named("\0", false, &Places::default());
                    self.commands.push(LooseCommand { removes, ..LooseCommand::default() });
                }
                break;
            }
            if shifts_words(base, &arguments) {
                self.note_unseen("an option in it may take the next word as its value");
            }
            // Only with this option does it evaluate anything.
            let prints =
                base == "printf" && arguments.get(1).is_none_or(|first| !first.text.starts_with("-v"));
            if has(EVALUATES, base) && !prints {
                for argument in &arguments[1..] {
                    self.substitutions(&argument.text, places);
                }
            }
            let (arguments_of, last) = (&arguments[1..], &self.last[..]);
            let seen = unwrap::Seen { base, arguments: arguments_of, places, is_piped, last };
            let inner = unwrap::inside(&seen);
            if let Some(why) = inner.unseen {
                self.note_unseen(why);
            }
            if written_scripts::MAKERS.may_have(base) {
                consequence.keeps.extend(self.made.command(base, arguments_of, places));
            }
            if may_mention && inner.commands.is_empty() {
                self.mention_words(base, arguments_of, places);
            }
            // What comes in are words for these.
            is_fed &= !matches!(base, "xargs" | "parallel");
            self.mention(inner.mentions, places);
            consequence.input.add(inner.input);
            for script in inner.scripts {
                consequence.input.add(self.fed_script(&script, places, is_fed));
            }
            self.sets_anything |= inner.sets_anything;
            self.changes_patterns |= inner.changes_patterns;
            self.sets.extend(inner.sets);
            consequence.enters = consequence.enters.or(inner.enters);
            // Of several guesses, one that is known is right, and the others know nothing about its words.
            let is_known =
                |command: &Vec<Argument>| command.first().is_some_and(|name| files::is_known(&name.text));
            let may_mention = !(inner.guesses && inner.commands.iter().any(is_known));
            for command in inner.commands.into_iter().rev() {
                pending.extend(perhaps_run(&command));
                pending.push((command, may_mention));
            }
            first.get_or_insert(arguments);
        }
        self.last = first.unwrap_or_default();
        self.input.add(consequence.input);
        consequence
    }

    /// Adds what the words of the last command may name, if nobody knows what it does with them.
    fn mention_words(&mut self, base: &str, words: &[Argument], places: &Places) {
        let mentioned = files::mentioned(base, words, places);
        let budget = self.budget.checked_sub(mentioned.len());
        let Some((command, budget)) = self.commands.last_mut().zip(budget) else {
            return self.note_unseen("it contains too many words");
        };
        command.mentions.extend(mentioned);
        self.budget = budget;
    }

    /// Reads a script into which something may be piped. Says what it does with that.
    fn fed_script(&mut self, text: &str, places: &Places, is_fed: bool) -> Input {
        let outer = std::mem::take(&mut self.input);
        let before = if is_fed { self.last.clone() } else { Vec::new() };
        self.is_fed = is_fed;
        self.script(text, places);
        self.is_fed = false;
        self.last = before;
        let inner = std::mem::replace(&mut self.input, outer);
        self.input.add(inner);
        inner
    }

    /// Whether the strict reading lists the same commands; if not, what differs.
    pub(crate) fn agrees_with(&self, plain: &[StrictCommand]) -> Result<(), String> {
        let mut written = self.written.iter().filter(|words| words[0] != "[[");
        let commands = plain.iter().map(|command| &command.whole[..]);
        for whole in commands.filter(|whole| whole.first().is_some_and(|name| name.text != "[[")) {
            match written.next() {
                Some(words) if agree(whole, words) => {}
                words => return Err(difference(&whole[0].text, words.map_or("nothing", |words| &words[0]))),
            }
        }
        written.next().map_or(Ok(()), |words| Err(difference("nothing", &words[0])))
    }
}

/// Programs whose words are text, whatever they are.
const TAKES_TEXT: &str = "echo printf test [ [[";
/// Programs that take a word such as `rm` for one of their own.
const TAKES_WORDS: &str = "git grep egrep fgrep rg";
/// Programs that remove files.
const REMOVES: &str = "rm rmdir unlink find fd fdfind";
/// Programs and builtins, besides shells, that run text.
const RUNS_TEXT: &str = "eval watch su runuser script parallel";

/// Whether it is only known at run time which words of a command are values of options.
fn shifts_words(base: &str, arguments: &[Argument]) -> bool {
    !has(TAKES_TEXT, base) && arguments.iter().skip(1).any(|word| may_take_next(base, &word.text))
}

/// The commands that may begin behind a word only known at run time: those that remove something or run text.
fn perhaps_run(arguments: &[Argument]) -> Vec<(Vec<Argument>, bool)> {
    let base = |word: &Argument| word.text.rsplit('/').next().unwrap_or_default().to_owned();
    let name = arguments.first().map(base).unwrap_or_default();
    let unknown = arguments.iter().position(|word| word.text.contains('\0') || word.is_pattern);
    let Some(unknown) = unknown.filter(|_| !has(TAKES_TEXT, &name) && !has(TAKES_WORDS, &name)) else {
        return Vec::new();
    };
    let may_run = |at: &usize| {
        let name = base(&arguments[*at]);
        has(REMOVES, &name) || has(RUNS_TEXT, &name) || has(unwrap::SHELLS, &name)
    };
    let places = (unknown + 1..arguments.len()).filter(may_run);
    places.map(|at| (arguments[at..].to_vec(), false)).take(LEVELS_MAX).collect()
}

/// Whether two lists of words are the same. A word that is not known may stand for several.
fn agree(plain: &[crate::Word], found: &[String]) -> bool {
    let same = |(one, other): (&crate::Word, &String)| {
        one.text == *other || one.text.contains('\0') || other.contains('\0')
    };
    let (known, fits) = match found.iter().position(|word| word == "\0") {
        Some(at) => (at, plain.len() >= at.max(found.len() - at - 1)),
        None => (found.len(), plain.len() == found.len()),
    };
    fits && plain.iter().zip(&found[..known]).all(same)
}

/// Whether the target of a redirection is the number of a descriptor, or closes one.
fn is_descriptor(target: &str) -> bool {
    target.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn difference(plain: &str, found: &str) -> String {
    format!("two analyses of it differ: one sees `{plain}`, the other `{found}`")
}

/// Puts recursive looks at everything below into paths.
fn below(mut paths: Vec<LinePath>, is_recursive: bool) -> Vec<LinePath> {
    for path in &mut paths {
        path.is_recursive |= is_recursive;
    }
    paths
}
