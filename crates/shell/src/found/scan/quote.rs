//! Quotes, escapes and whatever a `$` begins.

use super::{Kind, Scanner};
use crate::found::word::ansi_decoded;

impl Scanner<'_, '_> {
    pub(super) fn single_quoted(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.find('\'').unwrap_or(rest.len());
        if length == rest.len() {
            self.walk.note_unseen("a quote is not closed");
        }
        let draft = self.draft();
        draft.is_quoted = true;
        rest[..length].chars().for_each(|c| draft.push(c, false));
        self.at += (length + 1).min(rest.len());
    }

    pub(super) fn escaped(&mut self) {
        match self.take() {
            Some('\n') => {}
            c => {
                let draft = self.draft();
                draft.is_quoted = true;
                draft.push(c.unwrap_or('\\'), false);
            }
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
            self.draft().push_unknown();
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
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match rest.chars().next() {
            Some('0'..='9' | '?' | '$' | '!' | '#' | '@' | '*' | '-') => 1,
            _ => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
        };
        if length == 0 {
            return self.draft().push('$', false);
        }
        let name = rest[..length].to_owned();
        self.at += length;
        let known = self.walk.variable(&name);
        self.draft().push_variable(&name, known.as_deref(), in_quotes);
    }

    pub(super) fn ansi_quoted(&mut self) {
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let mut length = rest.len();
        for (at, c) in rest.char_indices() {
            if c == '\'' && !escaped {
                length = at;
                break;
            }
            escaped = c == '\\' && !escaped;
        }
        let text = ansi_decoded(&rest[..length]);
        let draft = self.draft();
        draft.is_quoted = true;
        text.chars().for_each(|c| draft.push(c, false));
        self.at += (length + 1).min(rest.len());
    }

    /// What stands in backquotes is a text of its own, once its backslashes are taken away.
    pub(super) fn backquoted(&mut self) {
        let mut text = String::new();
        let mut is_closed = false;
        while let Some(c) = self.take() {
            match c {
                '`' => {
                    is_closed = true;
                    break;
                }
                '\\' => match self.take() {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                c => text.push(c),
            }
        }
        if !is_closed {
            self.walk.note_unseen("a backquote is not closed");
        }
        self.draft().push_unknown();
        let places = self.top().places.clone();
        self.walk.script(&text, &places);
    }
}
