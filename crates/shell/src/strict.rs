//! The strict reading: a closed subset of bash in which every command is what it looks like.
//!
//! Whatever is not understood exactly makes the line not plain, also where bash would do nothing bad with it.

mod assigned;
mod compound;
mod scan;
mod strip;
#[cfg(test)]
mod tests;
mod word;

use crate::analysis::BYTES_MAX;
use crate::delegation;
use crate::effect::{self, Facts};
use crate::names::is_digits;
use crate::places::{Places, named, path_text};
use crate::visible;
use crate::{LineEffect, LinePath, StrictCommand, Word};
use assigned::Assigned;
use compound::Binding;
use scan::{HereDocument, Redirection, Token};
pub(crate) use strip::{Stripped, WRAPPERS, is_harmless_setting, is_locale, is_plain_locale};
use word::RawWord;

pub(crate) use compound::is_loop_variable;

type Result<T> = std::result::Result<T, String>;

/// Words that bash treats as grammar when they stand where a command name would.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

fn no(reason: &str) -> String {
    reason.to_owned()
}

/// Every command of a line, or why it is not plain.
pub(crate) fn read(line: &str) -> Result<Vec<StrictCommand>> {
    if line.len() > BYTES_MAX {
        return Err(format!("it is longer than {BYTES_MAX} bytes"));
    }
    visible::check(line)?;
    let mut reader = Reader { line, ..Reader::default() };
    reader.list("")?;
    if !reader.documents.is_empty() {
        return Err(no("a here document is not closed"));
    }
    if reader.commands.is_empty() {
        return Err(no("it contains no command"));
    }
    Ok(reader.commands)
}

/// The state of reading a line.
#[derive(Default)]
struct Reader<'a> {
    line: &'a str,
    at: usize,
    ahead: Option<Token>,
    /// Where the token that was looked at last begins.
    token_start: usize,
    /// Where the token that was taken last ends.
    last_end: usize,
    /// Here documents whose lines are still to come.
    documents: Vec<HereDocument>,
    /// The here document that was read last.
    body: Option<String>,
    /// What the last command prints, if it is `cat` with a here document.
    printed: Option<String>,
    /// Where the next command may run.
    here: Places,
    /// What variables of loops hold.
    bindings: Vec<Binding>,
    /// What the line sets variables to.
    assigned: Assigned,
    /// Whether the next command runs depends on another one, or it runs beside others.
    may_skip: bool,
    /// What the stage of a pipeline before the next command prints names of, if it does.
    names: Vec<LinePath>,
    /// The same for the condition of a loop, which may read them.
    incoming: Vec<LinePath>,
    /// What the last pipeline prints names of, if it does.
    listed: Vec<LinePath>,
    /// How many pipelines there were.
    pipelines: usize,
    depth: usize,
    /// How many of these levels are substitutions.
    substitutions: usize,
    commands: Vec<StrictCommand>,
}

/// Where the shell may be after a command, by whether it succeeded.
#[derive(Clone)]
struct After {
    success: Places,
    failure: Places,
}

impl After {
    fn same(places: &Places) -> Self {
        Self { success: places.clone(), failure: places.clone() }
    }

    fn any(&self) -> Places {
        self.success.or(&self.failure)
    }
}

/// A simple command as far as it was read.
#[derive(Default)]
struct Parts {
    command: StrictCommand,
    /// It sets a variable for a program, or that of the shell.
    has_assignment: bool,
    /// Variables that it sets to something that programs may not be told.
    sets: Vec<(String, RawWord)>,
    has_document: bool,
    has_redirection: bool,
    sets_separator: bool,
}

impl Parts {
    /// Takes one more word: an assignment, the name, or an argument.
    fn take_word(&mut self, word: RawWord, reader: &Reader<'_>) -> Result<()> {
        let words = &mut self.command.words;
        if !words.is_empty() {
            words.extend(reader.expand(word)?);
            return Ok(());
        }
        if let Some((name, value)) = word.assignment() {
            if name == "IFS" && value.letters.is_empty() {
                self.sets_separator = true;
            } else if !is_harmless_setting(&name, &value.text()) {
                self.sets.push((name, value));
            }
            self.has_assignment = true;
            return Ok(());
        }
        if word.is_odd_assignment() {
            return Err(no("it sets a variable"));
        }
        let is_continued = word.is_continued;
        *words = word.expand()?;
        check_name(words.first().ok_or_else(|| no("the name of a command is missing"))?)?;
        if is_continued || words.len() > 1 {
            return Err(no("the name of a command is unusual"));
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// Takes the next token if it is one of these; whether it was.
    fn take_if(&mut self, is_meant: impl FnOnce(&Token) -> bool) -> Result<bool> {
        let is_next = is_meant(self.peek()?);
        if is_next {
            self.next()?;
        }
        Ok(is_next)
    }

    fn take_operator(&mut self, operator: &str) -> Result<bool> {
        self.take_if(|token| matches!(token, Token::Operator(text) if *text == operator))
    }

    /// Takes a word of the grammar.
    fn take_keyword(&mut self, keyword: &str) -> Result<bool> {
        self.take_if(|token| matches!(token, Token::Word(word) if word.is_bare(keyword)))
    }

    /// Takes a word of the grammar that must come now.
    fn keyword(&mut self, keyword: &str) -> Result<()> {
        if self.take_keyword(keyword)? { Ok(()) } else { Err(format!("`{keyword}` is missing")) }
    }

    fn take_newline(&mut self) -> Result<bool> {
        self.take_if(|token| matches!(token, Token::Newline))
    }

    fn skip_newlines(&mut self) -> Result<()> {
        while self.take_newline()? {}
        Ok(())
    }

    /// Whether a list ends here: at `)`, at the end of the text, or at one of some words of the grammar.
    fn is_end(&mut self, ends: &str) -> Result<bool> {
        let token = self.peek()?;
        Ok(match token {
            Token::End => ends.is_empty(),
            Token::Operator(operator) => ends.split(' ').any(|end| end == *operator),
            Token::Word(word) => ends.split(' ').any(|end| word.is_bare(end)),
            _ => false,
        })
    }

    /// Commands up to one of the ends, separated by spaces in `ends`; none means the end of the text. Takes `)`; leaves
    /// every other end.
    fn list(&mut self, ends: &str) -> Result<After> {
        let mut after = After::same(&self.here);
        let mut is_empty = true;
        loop {
            self.skip_newlines()?;
            if self.is_end(ends)? {
                break;
            }
            is_empty = false;
            let start = self.here.clone();
            let assigned = self.assigned.count();
            after = self.and_or()?;
            if self.take_operator("&")? {
                if self.assigned.count() > assigned {
                    return Err(no("it sets a variable in the background"));
                }
                after = After::same(&start);
            } else if !(self.take_operator(";")? || self.take_newline()? || self.is_end(ends)?) {
                return Err(no("something unexpected follows a command"));
            }
            self.here = after.any();
        }
        if is_empty && !ends.is_empty() {
            return Err(no("a list of commands is empty"));
        }
        if ends == ")" {
            self.next()?;
        }
        Ok(after)
    }

    fn and_or(&mut self) -> Result<After> {
        self.may_skip = false;
        let mut after = self.pipeline()?;
        loop {
            self.may_skip = true;
            if self.take_operator("&&")? {
                self.here = after.success.clone();
                self.skip_newlines()?;
                let next = self.pipeline()?;
                after = After { failure: after.failure.or(&next.failure), success: next.success };
            } else if self.take_operator("||")? {
                self.here = after.failure.clone();
                self.skip_newlines()?;
                let next = self.pipeline()?;
                after = After { success: after.success.or(&next.success), failure: next.failure };
            } else {
                return Ok(after);
            }
        }
    }

    fn pipeline(&mut self) -> Result<After> {
        let is_timed = self.take_keyword("time")?;
        if is_timed {
            self.take_keyword("-p")?;
            let misread = matches!(self.peek()?, Token::Word(word) if word.text().starts_with('-'));
            if misread || !matches!(self.peek()?, Token::Word(_) | Token::Operator("(")) {
                return Err(no("it uses `time` in an unusual way"));
            }
        }
        let is_negated = self.take_keyword("!")?;
        if is_negated && (is_timed || self.take_keyword("!")?) {
            return Err(no("it uses `!` in an unusual way"));
        }
        let start = self.here.clone();
        self.names.clear();
        let mut after = self.command()?;
        while self.take_operator("|")? || self.take_operator("|&")? {
            self.here = start.clone();
            self.skip_newlines()?;
            self.may_skip = true;
            self.command()?;
            after = After::same(&start);
        }
        self.listed = std::mem::take(&mut self.names);
        self.pipelines += 1;
        if is_negated {
            after = After { success: after.failure, failure: after.success };
        }
        Ok(after)
    }

    fn command(&mut self) -> Result<After> {
        let start = self.here.clone();
        if self.take_operator("(")? {
            if self.rest().starts_with('(') {
                return Err(no("it uses arithmetic"));
            }
            self.nested(|reader| reader.list(")"))?;
            self.here = start.clone();
            self.compound_redirections()?;
            return Ok(After::same(&start));
        }
        let keyword = match self.peek()? {
            Token::Word(word) => RESERVED.into_iter().find(|reserved| word.is_bare(reserved)),
            _ => None,
        };
        let Some(keyword) = keyword else { return self.simple() };
        let command_start = self.token_start;
        self.next()?;
        let after = self.nested(|reader| match keyword {
            "{" => reader.group(),
            "if" => reader.if_clause(),
            "while" | "until" => reader.loop_clause(),
            "for" => reader.for_clause(),
            "case" => reader.case_clause(),
            "[[" => reader.test_clause(command_start),
            keyword => Err(format!("it uses `{keyword}`")),
        })?;
        self.here = start;
        self.compound_redirections()?;
        Ok(after)
    }

    /// Redirections behind `)`, `}`, `fi` or `done`.
    fn compound_redirections(&mut self) -> Result<()> {
        let mut parts = Parts::default();
        let mut start = None;
        while let Token::Redirection(redirection) = self.peek()?.clone() {
            start.get_or_insert(self.token_start);
            self.next()?;
            self.redirect(redirection, &mut parts)?;
        }
        let Some(start) = start else { return Ok(()) };
        self.push(start, parts.command, Facts { effect: LineEffect::Looks, ..Facts::default() });
        Ok(())
    }

    fn simple(&mut self) -> Result<After> {
        let mut parts = Parts::default();
        self.peek()?;
        let start = self.token_start;
        let names = std::mem::take(&mut self.names);
        while matches!(self.peek()?, Token::Word(_) | Token::Redirection(_)) {
            match self.next()? {
                Token::Word(word) => parts.take_word(word, self)?,
                Token::Redirection(redirection) => self.redirect(redirection, &mut parts)?,
                _ => {}
            }
        }
        if parts.command.words.is_empty() && parts.has_assignment {
            return self.assign(parts);
        }
        if parts.command.words.is_empty() && !parts.has_redirection {
            return Err(no("a command is missing"));
        }
        if let Some((name, _)) = parts.sets.first() {
            return Err(format!("it sets {name}"));
        }
        self.finish(start, parts, &names)
    }

    fn finish(&mut self, start: usize, mut parts: Parts, names: &[LinePath]) -> Result<After> {
        let command = &mut parts.command;
        if parts.sets_separator && command.words.first().is_none_or(|name| name.text != "read") {
            return Err(no("it sets IFS"));
        }
        self.bind_read(&command.words)?;
        let stripped = strip::wrappers(&command.words);
        command.whole = command.words.clone();
        command.words.drain(..stripped.skip);
        command.has_more_from_input = stripped.gets_more;
        effect::refuse_shell_changes(&command.words)?;
        self.assigned.refuse_others(&command.words)?;
        let facts =
            effect::judge(&command.words, &effect::Context { here: &self.here, stripped: &stripped, names });
        self.names.clone_from(&facts.names);
        // Behind these words come others, of which nobody knows whether they are options.
        let gets_anything = stripped.gets_more && (names.is_empty() || !names.iter().all(is_led));
        command.spelled = delegation::spelled(&command.words, gets_anything);
        let after = match &facts.enters {
            Some(target) if stripped.in_shell && target.one() == crate::CommandDirectory::Unknown => {
                After::same(target)
            }
            Some(target) if stripped.in_shell => {
                After { success: target.clone(), failure: self.here.clone() }
            }
            _ => After::same(&self.here),
        };
        let prints = command.whole.len() == 1 && command.whole[0].text == "cat" && parts.has_document;
        let only_document =
            command.reads.is_empty() && command.writes.is_empty() && command.network.is_none();
        self.body = None;
        self.push(start, parts.command, facts);
        if prints && only_document && matches!(self.peek()?, Token::Newline) {
            // Taking the end of the line reads the document; the list would take it next.
            self.next()?;
            self.printed = self.body.take();
            self.ahead = Some(Token::Newline);
        } else {
            self.printed = None;
        }
        Ok(after)
    }

    fn push(&mut self, start: usize, mut command: StrictCommand, facts: Facts) {
        command.source = start..self.last_end;
        command.is_exact_only = facts.exact_only;
        // A connection is more than looking.
        command.effect = if command.network.is_some() { LineEffect::Unknown } else { facts.effect };
        command.reads.extend(facts.reads);
        command.writes.extend(facts.writes);
        command.shows = facts.shows;
        command.directory = facts.directory.unwrap_or_else(|| self.here.one());
        self.commands.push(command);
    }

    fn redirect(&mut self, redirection: Redirection, parts: &mut Parts) -> Result<()> {
        parts.has_redirection = true;
        let kind = redirection.kind;
        if matches!(kind, "<<" | "<<-") {
            // Two documents for one command, or one for another descriptor, are rare and easy to misread.
            if redirection.has_number || parts.has_document {
                return Err(no("it uses here documents in an unusual way"));
            }
            parts.has_document = true;
            return self.document(kind);
        }
        let Token::Word(raw) = self.next()? else { return Err(no("a redirection has no target")) };
        if kind == "<<<" {
            raw.expand()?;
            return Ok(());
        }
        let bare = raw.bare().unwrap_or_default();
        let is_descriptor = bare == "-" || is_digits(&bare);
        if matches!(kind, ">&" | "<&") {
            if is_descriptor {
                return Ok(());
            }
            // Bash ends the target behind a dash that comes first.
            if kind == "<&" || redirection.has_number || bare.ends_with('-') || raw.text().starts_with('-') {
                return Err(no("it duplicates a file descriptor in an unusual way"));
            }
        }
        let [target] = &self.expand(raw)?[..] else {
            return Err(no("a redirection has several targets"));
        };
        // What a loop goes through can be read.
        if kind == "<" && !target.choices.is_empty() && !target.is_split {
            parts.command.reads.extend(target.choices.iter().cloned());
            return Ok(());
        }
        if target.is_unknown() || target.is_pattern || target.text.is_empty() {
            return Err(no("the target of a redirection is not a plain path"));
        }
        self.target(kind, target, parts);
        Ok(())
    }

    fn target(&self, kind: &str, target: &Word, parts: &mut Parts) {
        if ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&target.text.as_str()) {
            return;
        }
        if ["/dev/tcp/", "/dev/udp/"].iter().any(|device| target.text.starts_with(device)) {
            parts.command.network = Some(target.text.clone());
        }
        let mut paths = named(&path_text(target), false, &self.here);
        for path in &mut paths {
            path.is_redirected = true;
        }
        if kind != "<" {
            parts.command.writes.extend(paths.clone());
        }
        if matches!(kind, "<" | "<>") {
            parts.command.reads.extend(paths);
        }
    }
}

/// Whether a name that comes in is no option.
fn is_led(name: &LinePath) -> bool {
    let start = name.text.start();
    let is_path = !start.starts_with(['-', '*', '?', '[']) && (!start.is_empty() || name.text.is_known());
    is_path && name.handed.as_ref().is_none_or(|handed| handed.is_led)
}

/// A command name that means the program or builtin of that name, or a path.
fn check_name(name: &Word) -> Result<()> {
    let text = name.text.as_str();
    if name.is_unknown() {
        return Err(no("the name of a command is only known at run time"));
    }
    // `%` names a job, and an `=` could make the word an assignment.
    let misread = text.is_empty() || text.starts_with('%') || (text.contains('=') && !text.contains('/'));
    if name.is_pattern || misread || RESERVED.contains(&text) {
        return Err(no("the name of a command is unusual"));
    }
    Ok(())
}
