//! One pass over any text: every command in it, as far as it can be seen, however it is nested.
//!
//! It never refuses: with a stack of what is open it ends a command wherever bash might. Depth costs nothing.

mod quote;

use super::unwrap::PATTERNS;
use super::word::Draft;
use super::{Input, Surroundings, Target, Walk};
use crate::effect::FROM_COMMAND;
use crate::names::has_name;
use crate::places::Places;

/// More levels are not told apart.
const LEVELS_MAX: usize = 256;

/// What is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Commands: the text itself, or what `(`, `$(` or `<(` opened.
    #[default]
    Commands,
    /// The words of `a=( … )`.
    Array,
    /// `" … "`
    Quotes,
    /// `${ … }`; whether it stands in double quotes.
    Braces { in_quotes: bool },
    /// `$(( … ))` or `$[ … ]`
    Arithmetic { end: &'static str },
}

/// One level of nesting, with the command that is being read there.
#[derive(Default)]
struct Level {
    kind: Kind,
    word: Option<Draft>,
    words: Vec<Draft>,
    targets: Vec<Target>,
    /// Behind a redirection no word is grammar.
    is_redirected: bool,
    /// The redirection whose target comes next.
    redirection: Option<&'static str>,
    /// Here documents whose lines are still to come.
    documents: Vec<Document>,
    /// How many `case` are open, and whether a pattern comes next.
    cases: usize,
    in_pattern: bool,
    /// Between `[[` and `]]`.
    in_test: bool,
    /// The opening parenthesis was doubled: comparisons look like redirections.
    is_doubled: bool,
    /// How many parentheses are open in arithmetic.
    parentheses: usize,
    places: Places,
    /// Where the shell is if a `cd` of the current chain failed.
    fallback: Option<Places>,
    /// The last command printed into the next one.
    is_piped: bool,
    /// How many groups, loops and conditions are open.
    blocks: usize,
    /// Behind `coproc`.
    in_coprocess: bool,
    /// The next command depends on the one before, or runs beside the shell.
    is_uncertain: bool,
}

#[derive(Default)]
struct Document {
    end: String,
    strips_tabs: bool,
    is_live: bool,
    /// What the command does with it that it is for, once that is known.
    input: Option<Input>,
    /// Files that get it.
    keeps: Vec<String>,
}

pub(super) struct Scanner<'a, 'w> {
    text: &'a str,
    at: usize,
    level: Level,
    /// The levels around it.
    outer: Vec<Level>,
    walk: &'w mut Walk,
}

impl Level {
    fn new(kind: Kind, places: Places) -> Self {
        Self { kind, places, ..Self::default() }
    }
}

pub(super) fn commands(text: &str, places: &Places, walk: &mut Walk) {
    let is_piped = std::mem::take(&mut walk.is_fed);
    let level = Level { is_piped, ..Level::new(Kind::Commands, places.clone()) };
    let mut scanner = Scanner { text, at: 0, level, outer: Vec::new(), walk };
    while let Some(c) = scanner.take() {
        scanner.step(c);
    }
    scanner.close_all();
}

/// Reads a text in which only substitutions are live, such as a here document.
pub(super) fn substitutions(text: &str, places: &Places, walk: &mut Walk) {
    let level = Level::new(Kind::Quotes, places.clone());
    let outer = vec![Level::new(Kind::Commands, places.clone())];
    let mut scanner = Scanner { text, at: 0, level, outer, walk };
    while let Some(c) = scanner.take() {
        // Quotes mean nothing in such a text.
        if c == '"' && scanner.outer.len() == 1 {
            continue;
        }
        scanner.step(c);
    }
    // Otherwise what is left is text and no command.
    if scanner.outer.len() > 1 {
        scanner.close_all();
    }
}

impl Scanner<'_, '_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take_if(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn draft(&mut self) -> &mut Draft {
        self.level.word.get_or_insert_with(Draft::new)
    }

    fn step(&mut self, c: char) {
        match self.level.kind {
            Kind::Commands | Kind::Array => self.in_commands(c),
            Kind::Quotes => self.in_quotes(c),
            Kind::Braces { in_quotes } => self.in_braces(c, in_quotes),
            Kind::Arithmetic { end } => self.in_arithmetic(c, end),
        }
    }

    fn in_commands(&mut self, c: char) {
        let is_word = self.level.word.is_some();
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' => self.end_line(),
            '#' if !is_word => {
                let rest = self.rest();
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            '\'' => self.single_quoted(),
            '"' => self.open(Kind::Quotes),
            '\\' => self.escaped(),
            '$' => self.dollar(false),
            '`' => self.backquoted(),
            '<' | '>' => self.angle(c),
            ';' | '&' | '|' => self.separator(c),
            '(' => self.parenthesis(),
            ')' => self.close_parenthesis(),
            '~' if !is_word => self.draft().push_home(),
            // A dash closes a descriptor and is a word of its own there.
            '-' if !is_word && matches!(self.level.redirection, Some(">&" | "<&")) => {
                self.draft().push('-', true);
                self.end_word();
            }
            c => self.draft().push(c, true),
        }
    }

    fn in_quotes(&mut self, c: char) {
        match c {
            '"' => self.close(),
            '$' => self.dollar(true),
            '`' => self.backquoted(),
            '\\' => match self.take() {
                Some('\n') | None => {}
                Some(c @ ('$' | '`' | '"' | '\\')) => self.draft().push(c, false),
                Some(c) => {
                    self.draft().push('\\', false);
                    self.draft().push(c, false);
                }
            },
            c => self.draft().push(c, false),
        }
    }

    fn in_braces(&mut self, c: char, in_quotes: bool) {
        match c {
            '}' => self.close(),
            '$' => self.dollar(in_quotes),
            '`' => self.backquoted(),
            '\'' if !in_quotes => self.single_quoted(),
            '"' => self.open(Kind::Quotes),
            '\\' => self.escaped(),
            c => self.draft().push(c, false),
        }
    }

    fn in_arithmetic(&mut self, c: char, end: &str) {
        let is_open = self.level.parentheses > 0;
        match c {
            ']' if end == "]" => self.close(),
            '(' => {
                self.level.parentheses += 1;
                self.draft().push(c, false);
            }
            ')' if is_open => {
                self.level.parentheses -= 1;
                self.draft().push(c, false);
            }
            ')' if self.take_if(")") => self.close(),
            ')' => self.reopen_as_commands(),
            '$' => self.dollar(true),
            '`' => self.backquoted(),
            '"' => self.open(Kind::Quotes),
            c => self.draft().push(c, false),
        }
    }

    /// What looked like arithmetic was a subshell at the start of a substitution.
    fn reopen_as_commands(&mut self) {
        self.level.kind = Kind::Commands;
        let text = self.level.word.take().unwrap_or_default().text();
        self.walk.script(&text, &self.level.places);
    }

    fn open(&mut self, kind: Kind) {
        if self.outer.len() + 1 >= LEVELS_MAX {
            self.walk.note_unseen("it is nested too deeply");
            return self.end_command();
        }
        // The word goes on behind what is opened, also if that is empty.
        if kind != Kind::Commands {
            self.draft();
        }
        if kind == Kind::Quotes {
            self.draft().is_quoted = true;
        }
        let level = Level::new(kind, self.level.places.clone());
        self.outer.push(std::mem::replace(&mut self.level, level));
    }

    /// Ends what was opened last; what it stands for becomes part of the word around it.
    fn close(&mut self) {
        self.end_command();
        let Some(outer) = self.outer.pop() else { return };
        let level = std::mem::replace(&mut self.level, outer);
        let inner = level.word.unwrap_or_default();
        match level.kind {
            Kind::Commands | Kind::Array | Kind::Arithmetic { .. } => {}
            Kind::Quotes => self.draft().append(inner),
            Kind::Braces { in_quotes } => {
                let text = inner.text();
                if text.contains("@P") {
                    self.walk.note_unseen("a variable is expanded like a prompt");
                }
                self.variable(&text, in_quotes);
            }
        }
    }

    fn close_all(&mut self) {
        while !self.outer.is_empty() {
            if self.level.kind != Kind::Commands {
                self.walk.note_unseen("a quote or a brace is not closed");
            }
            self.close();
        }
        self.end_command();
    }

    /// Whether a test goes on behind the present word, which may be the one that ends it.
    fn stays_in_test(&mut self) -> bool {
        if self.level.in_test {
            self.end_word();
        }
        self.level.in_test
    }

    fn separator(&mut self, c: char) {
        while self.take_if("\\\n") {}
        if self.stays_in_test() {
            return;
        }
        if c == '|' && self.level.in_pattern {
            self.end_word();
            return self.level.words.clear();
        }
        if c == '&' && (self.take_if(">>") || self.take_if(">")) {
            self.end_word();
            self.level.redirection = Some(">");
            return;
        }
        let is_double = self.rest().starts_with(c);
        let is_pipe = c == '|' && !is_double;
        if self.level.kind == Kind::Array {
            // Bash stops reading there, and what it makes of the rest is anybody's guess.
            self.walk.note_unseen("a list of values is not closed");
            self.level.kind = Kind::Commands;
        }
        let is_beside = is_pipe || (c == '&' && !is_double);
        self.level.is_uncertain |= is_beside;
        self.end_command();
        if is_beside && !is_pipe {
            // The whole chain ran beside the shell, with what it set.
            self.walk.variables.values.clear();
        }
        self.level.is_uncertain = c != ';' && (is_double || is_pipe);
        if !(c == '&' && is_double) {
            self.end_chain();
        }
        if is_double {
            self.at += 1;
        }
        if c == ';' && (is_double || self.rest().starts_with('&')) {
            self.level.in_pattern = self.level.cases > 0;
        }
        if is_pipe {
            self.take_if("&");
        }
        self.level.is_piped = is_pipe;
    }

    fn angle(&mut self, c: char) {
        while self.take_if("\\\n") {}
        if self.take_if("(") {
            self.draft().push_text(FROM_COMMAND);
            return self.open(Kind::Commands);
        }
        if self.level.in_test || self.level.is_doubled {
            return self.end_word();
        }
        // A number right in front says which descriptor is meant.
        self.level.word.take_if(|word| word.is_descriptor());
        self.end_word();
        let kind = match c {
            '<' if self.take_if("<<") => "<<<",
            '<' if self.take_if("<-") => "<<-",
            '<' if self.take_if("<") => "<<",
            '<' if self.take_if("&") => "<&",
            '<' if self.take_if(">") => "<>",
            '<' => "<",
            _ if self.take_if("&") => ">&",
            _ => {
                let _longer = self.take_if(">") || self.take_if("|");
                ">"
            }
        };
        self.level.redirection = Some(kind);
    }

    fn parenthesis(&mut self) {
        if self.stays_in_test() {
            return;
        }
        if self.level.word.as_ref().is_some_and(Draft::is_array_start) {
            return self.open(Kind::Array);
        }
        if self.level.in_pattern {
            return self.end_word();
        }
        self.pattern_group();
        let is_doubled = self.rest().starts_with('(') || self.level.is_doubled;
        let is_piped = self.level.is_piped && self.level.words.is_empty();
        self.end_command();
        self.open(Kind::Commands);
        self.level.is_doubled = is_doubled;
        self.level.is_piped = is_piped;
    }

    /// A word such as `!(a|b)`, which `extglob` makes a pattern.
    fn pattern_group(&mut self) {
        let level = &mut self.level;
        let Some(word) = level.word.as_mut().filter(|word| word.may_open_group()) else { return };
        // There it is arithmetic, or the opposite of a subshell.
        if !level.words.is_empty() || !(level.is_doubled || word.is_bare("!")) {
            word.push_unknown();
            self.walk.changes_patterns = true;
            self.walk.note_unseen(PATTERNS);
        }
    }

    fn close_parenthesis(&mut self) {
        if self.stays_in_test() {
            return;
        }
        let level = &mut self.level;
        if level.in_pattern {
            level.in_pattern = false;
            level.word = None;
            level.words.clear();
            return;
        }
        if !self.outer.is_empty() {
            return self.close();
        }
        self.end_command();
    }

    fn end_word(&mut self) {
        let level = &mut self.level;
        let Some(word) = level.word.take() else { return };
        if let Some(kind) = level.redirection.take() {
            return self.redirect(kind, word);
        }
        if level.kind == Kind::Array {
            return;
        }
        if level.words.is_empty()
            && !level.is_redirected
            && let Some(bare) = word.bare()
            && self.keyword(&bare)
        {
            return;
        }
        // The word before this one is the name of a coprocess, since a group or a loop follows it.
        let starts = || has_name("{ if while until for case select [[ ((", &word.bare().unwrap_or_default());
        if self.level.in_coprocess && self.level.words.len() == 1 && starts() {
            self.level.words.clear();
            self.level.in_coprocess = false;
            self.level.word = Some(word);
            return self.end_word();
        }
        let level = &mut self.level;
        level.in_test &= !word.is_bare("]]");
        level.words.push(word);
        if level.is_redirected {
            return;
        }
        match &level.words[..] {
            [function, _] if function.is_bare("function") => level.words.clear(),
            [case, _, word] if case.is_bare("case") && word.is_bare("in") => {
                level.words.clear();
                level.cases += 1;
                level.in_pattern = true;
            }
            _ => {}
        }
    }

    /// Takes a word of the grammar where a command begins; whether it was one.
    fn keyword(&mut self, bare: &str) -> bool {
        let level = &mut self.level;
        if bare == "esac" && level.cases > 0 {
            level.cases -= 1;
            level.in_pattern = false;
            return true;
        }
        if level.in_pattern {
            return false;
        }
        match bare {
            "if" | "while" | "until" | "{" => level.blocks += 1,
            "fi" | "done" | "}" => level.blocks = level.blocks.saturating_sub(1),
            "coproc" => {
                level.is_uncertain = true;
                level.in_coprocess = true;
            }
            _ => {}
        }
        level.in_test |= bare == "[[";
        let is_over = bare == "done" && level.blocks == 0;
        if is_over && self.outer.is_empty() && self.walk.depth == 0 {
            // The loop may have run beside the shell.
            self.walk.variables.choices.clear();
        }
        has_name("if then elif else fi do done while until ! { } time coproc -p", bare)
    }

    fn redirect(&mut self, kind: &'static str, word: Draft) {
        self.level.is_redirected |= self.level.words.is_empty();
        if matches!(kind, "<<" | "<<-") {
            let document = Document {
                end: word.text(),
                strips_tabs: kind == "<<-",
                is_live: !word.is_quoted,
                ..Document::default()
            };
            self.level.documents.push(document);
        } else {
            self.level.targets.push(Target { kind, word });
        }
    }

    /// Behind the end of a chain nobody knows whether its commands failed.
    fn end_chain(&mut self) {
        if let Some(fallback) = self.level.fallback.take() {
            self.level.places = fallback.or(&self.level.places);
        }
    }

    fn end_command(&mut self) {
        if matches!(self.level.kind, Kind::Quotes | Kind::Braces { .. } | Kind::Arithmetic { .. }) {
            return;
        }
        self.end_word();
        let level = &mut self.level;
        level.redirection = None;
        level.in_test = false;
        level.in_coprocess = false;
        let is_piped = std::mem::take(&mut level.is_piped);
        let is_redirected = std::mem::take(&mut level.is_redirected);
        let words = std::mem::take(&mut level.words);
        let targets = std::mem::take(&mut level.targets);
        let is_array = level.kind == Kind::Array;
        if is_array || (words.is_empty() && targets.is_empty()) {
            return;
        }
        let header = words.first().and_then(Draft::bare).filter(|_| !is_redirected);
        let level = &mut self.level;
        let is_nested = !self.outer.is_empty();
        let is_certain =
            !(is_nested || is_piped || level.is_uncertain || level.blocks > 0 || level.cases > 0);
        if matches!(header.as_deref(), Some("for" | "select" | "case")) {
            level.blocks += usize::from(header.as_deref() != Some("case"));
            if header.as_deref() == Some("for") {
                self.walk.loop_head(&words, is_certain);
            }
            return;
        }
        let has_document = !level.documents.is_empty();
        let places = &level.places;
        let around = Surroundings { targets: &targets, places, is_piped, is_certain, has_document };
        let result = self.walk.command(&words, &around);
        if let Some(entered) = result.enters {
            let left = std::mem::replace(&mut level.places, entered);
            let fallback = level.fallback.take();
            level.fallback = Some(fallback.map_or_else(|| left.clone(), |other| other.or(&left)));
        }
        for document in &mut level.documents {
            document.input.get_or_insert_default().add(result.input);
            document.keeps.extend(result.keeps.iter().cloned());
        }
    }
}
