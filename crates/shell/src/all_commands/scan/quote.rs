//! Quotes, here documents, escapes and whatever a `$` begins.

use super::{Document, Kind, Scanner};
use crate::all_commands::word::ansi_decoded;
use crate::names::{find_unescaped, is_name_char};

impl Scanner<'_, '_> {
    pub(super) fn single_quoted(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.find('\'').unwrap_or(rest.len());
        if length == rest.len() {
            self.walk.note_unseen("a quote is not closed");
        }
        self.at += (length + 1).min(rest.len());
        self.push_quoted(&rest[..length]);
    }

    fn push_quoted(&mut self, text: &str) {
        self.draft().is_quoted = true;
        self.draft().push_text(text);
    }

    pub(super) fn escaped(&mut self) {
        match self.take() {
            Some('\n') => {}
            c => self.push_quoted(c.unwrap_or('\\').encode_utf8(&mut [0; 4])),
        }
    }

    /// Whatever a `$` begins.
    pub(super) fn dollar(&mut self, in_quotes: bool) {
        while self.take_if("\\\n") {}
        if self.take_if("((") {
            self.draft().push_unknown();
            return self.open(Kind::Arithmetic { end: "))" });
        }
        if self.take_if("(") {
            let inner = self.rest().get(..12).unwrap_or_else(|| self.rest());
            let is_here = inner.split_once(')').is_some_and(|(inner, _)| is_pwd(inner));
            self.substituted(is_here);
            return self.open(Kind::Commands);
        }
        if self.take_if("{") {
            return self.open(Kind::Braces { in_quotes });
        }
        if self.take_if("[") {
            self.draft().push_unknown();
            return self.open(Kind::Arithmetic { end: "]" });
        }
        if !in_quotes && self.take_if("'") {
            return self.ansi_quoted();
        }
        if !in_quotes && self.rest().starts_with('"') {
            return;
        }
        let rest = self.rest();
        let length = match rest.chars().next() {
            Some('0'..='9' | '?' | '$' | '!' | '#' | '@' | '*' | '-') => 1,
            _ => rest.find(|c| !is_name_char(c)).unwrap_or(rest.len()),
        };
        if length == 0 {
            return self.draft().push('$', false);
        }
        let name = rest[..length].to_owned();
        self.at += length;
        self.variable(&name, in_quotes);
    }

    /// A variable, or what stands between the braces of one.
    pub(super) fn variable(&mut self, text: &str, in_quotes: bool) {
        let known = self.walk.variable(text, in_quotes);
        // What is to be done if there is no such variable does not matter for these.
        let end = text.find([':', '-', '?', '=']).unwrap_or(text.len());
        let (name, default) = text.split_at(end);
        let default = default.strip_prefix(':').unwrap_or(default);
        let name = if default.is_empty() || default.starts_with(['-', '?', '=']) { name } else { text };
        let is_start = self.draft().is_start();
        match name {
            "HOME" if is_start && !self.walk.variables.home_is_set => self.draft().push_root('~'),
            "PWD" if is_start && !self.walk.variables.here_is_set => self.draft().push_root('.'),
            _ => match known {
                Some(value) if !in_quotes && value.contains(is_blank) => self.split(&value),
                Some(value) => self.draft().push_text(&value),
                None => {
                    let choices = self.walk.choices(text);
                    self.draft().push_variable(text);
                    self.draft().choices = choices;
                }
            },
        }
    }

    /// The value of a variable outside quotes becomes several words, but for places where bash does not split.
    fn split(&mut self, value: &str) {
        let level = &self.level;
        let is_whole = level.kind != Kind::Commands
            || level.in_test
            || level.redirection.is_some()
            || level.word.as_ref().is_some_and(|word| word.assignment().is_some());
        if is_whole {
            return self.draft().push_unknown();
        }
        let mut pieces = value.split(is_blank).peekable();
        while let Some(piece) = pieces.next() {
            if !piece.is_empty() {
                self.draft().push_text(piece);
            } else if self.level.word.as_ref().is_some_and(|word| word.is_start() && !word.is_quoted) {
                // Nothing is left of the word.
                self.level.word = None;
            }
            if pieces.peek().is_some() {
                self.end_word();
            }
        }
    }

    fn ansi_quoted(&mut self) {
        let rest = &self.text[self.at..];
        let length = find_unescaped(rest.char_indices(), '\'').unwrap_or(rest.len());
        self.at += (length + 1).min(rest.len());
        self.push_quoted(&ansi_decoded(&rest[..length]));
    }

    /// What stands in backquotes is a text of its own, once its backslashes are taken away.
    pub(super) fn backquoted(&mut self) {
        let mut text = String::new();
        loop {
            match self.take() {
                Some('`') => break,
                Some('\\') => match self.take() {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                Some(c) => text.push(c),
                None => {
                    self.walk.note_unseen("a backquote is not closed");
                    break;
                }
            }
        }
        self.substituted(is_pwd(&text));
        self.walk.script(&text, &self.level.places);
    }

    /// What a command prints: nobody knows, unless that is the working directory.
    fn substituted(&mut self, is_here: bool) {
        if is_here && self.draft().is_start() {
            self.draft().push_root('.');
        } else {
            self.draft().push_unknown();
        }
    }

    pub(super) fn end_line(&mut self) {
        self.end_word();
        if self.level.in_test {
            return;
        }
        if !self.level.in_pattern {
            // A line may go on behind `&&`, `||` and `|`.
            let has_command = !self.level.words.is_empty();
            self.end_command();
            self.end_chain();
            self.level.is_uncertain &= !has_command;
        }
        let documents = std::mem::take(&mut self.level.documents);
        for document in documents {
            self.read_document(&document);
        }
    }

    fn read_document(&mut self, document: &Document) {
        let mut body = String::new();
        let mut is_closed = false;
        while self.at < self.text.len() && !is_closed {
            let rest = &self.text[self.at..];
            let length = rest.find('\n').unwrap_or(rest.len());
            let line =
                if document.strips_tabs { rest[..length].trim_start_matches('\t') } else { &rest[..length] };
            is_closed = line == document.end;
            // Inside a substitution bash goes on behind the end if a parenthesis follows in the line.
            if !is_closed && !self.outer.is_empty() && line.starts_with(&document.end) && line.contains(')') {
                self.walk.note_unseen("a here document has an unusual delimiter");
                self.at += length - line.len() + document.end.len();
                break;
            }
            if !is_closed {
                body.push_str(line);
                body.push('\n');
            }
            self.at += (length + 1).min(rest.len());
        }
        if !is_closed && self.at >= self.text.len() {
            self.walk.note_unseen("a here document is not closed");
        }
        let places = &self.level.places;
        if document.is_live {
            self.walk.substitutions(&body, places);
        }
        // What is for no single command is for those of a group.
        self.walk.taken_in(&body, document.input.unwrap_or(self.walk.input), places);
        for name in &document.keeps {
            self.walk.made.file(name, Some(&body), places);
        }
    }
}

/// What separates words where nothing else was said.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Whether a script prints the working directory.
fn is_pwd(script: &str) -> bool {
    matches!(script.trim(), "pwd" | "pwd -P" | "pwd -L")
}
