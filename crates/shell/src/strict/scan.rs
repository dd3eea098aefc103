//! From characters to tokens, for the closed subset of bash that is understood exactly.

use super::word::{RawWord, Root};
use super::{Reader, Result, no};
use crate::analysis::DEPTH_MAX;
use crate::delegation;
use crate::effect::FROM_COMMAND;
use crate::names::{is_digits, is_name_char};

#[derive(Clone, Debug)]
pub(super) enum Token {
    Word(RawWord),
    /// `;` `&` `&&` `|` `|&` `||` `(` `)` `;;`
    Operator(&'static str),
    Redirection(Redirection),
    Newline,
    End,
}

/// The operator of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Redirection {
    pub(super) has_number: bool,
    pub(super) kind: &'static str,
}

/// A document whose lines come after the line that names it.
#[derive(Clone, Debug)]
pub(super) struct HereDocument {
    end: String,
    strips_tabs: bool,
    is_literal: bool,
}

const REDIRECTIONS: [&str; 11] = ["<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">&", ">|", "&>>", "&>"];
const OPERATORS: [&str; 9] = [";;", ";", "&&", "&", "||", "|&", "|", "(", ")"];

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

impl Reader<'_> {
    pub(super) fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    pub(super) fn char(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.char()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// The next token, without taking it.
    pub(super) fn peek(&mut self) -> Result<&Token> {
        if self.ahead.is_none() {
            let token = self.scan()?;
            self.ahead = Some(token);
        }
        self.ahead.as_ref().ok_or_else(|| no("it ends too early"))
    }

    pub(super) fn next(&mut self) -> Result<Token> {
        self.peek()?;
        self.last_end = self.at;
        let token = self.ahead.take().ok_or_else(|| no("it ends too early"))?;
        if matches!(token, Token::Newline) {
            self.read_documents()?;
        }
        Ok(token)
    }

    fn scan(&mut self) -> Result<Token> {
        self.skip_blanks();
        self.token_start = self.at;
        let Some(c) = self.char() else { return Ok(Token::End) };
        if c == '\n' {
            self.at += 1;
            return Ok(Token::Newline);
        }
        if self.rest().starts_with("<(") {
            return self.process_substitution();
        }
        if c == '>' || c == '<' || self.rest().starts_with("&>") {
            return self.redirection(false);
        }
        if let Some(operator) = self.find_start(&OPERATORS) {
            self.at += operator.len();
            self.refuse_continuation()?;
            if operator == ";" && self.char() == Some('&') {
                return Err(no("it uses `;&`"));
            }
            return Ok(Token::Operator(operator));
        }
        let word = self.word()?;
        if !matches!(self.char(), Some('<' | '>')) {
            return Ok(Token::Word(word));
        }
        if self.rest().starts_with("<(") {
            return Err(no("it uses a process substitution inside a word"));
        }
        let bare = word.bare().unwrap_or_default();
        if is_digits(&bare) {
            if bare.len() > 3 {
                return Err(no("it redirects an unusual file descriptor"));
            }
            return self.redirection(true);
        }
        if bare.starts_with('{') {
            return Err(no("it keeps a file descriptor in a variable"));
        }
        Ok(Token::Word(word))
    }

    fn find_start(&self, table: &[&'static str]) -> Option<&'static str> {
        table.iter().find(|text| self.rest().starts_with(**text)).copied()
    }

    fn redirection(&mut self, has_number: bool) -> Result<Token> {
        // A plain `>` is not in the table, since it would hide the longer ones.
        let kind = self.find_start(&REDIRECTIONS).unwrap_or(">");
        self.at += kind.len();
        self.refuse_continuation()?;
        if matches!(self.char(), Some('(')) {
            return Err(no("it uses a process substitution"));
        }
        Ok(Token::Redirection(Redirection { has_number, kind }))
    }

    /// `<(…)` as a word of its own: the commands inside are read like all others.
    fn process_substitution(&mut self) -> Result<Token> {
        let mut word = RawWord::default();
        self.at += 1;
        self.substitution(&mut word, true)?;
        if self.char().is_some_and(|c| !ends_word(c)) || matches!(self.char(), Some('<' | '>' | '(')) {
            return Err(no("it uses a process substitution inside a word"));
        }
        word.letters.clear();
        FROM_COMMAND.chars().for_each(|c| word.push(c, false));
        word.is_quoted = true;
        Ok(Token::Word(word))
    }

    /// Bash would join an operator with what comes on the next line.
    fn refuse_continuation(&self) -> Result<()> {
        if self.rest().starts_with("\\\n") {
            return Err(no("a line continues in the middle of an operator"));
        }
        Ok(())
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with([' ', '\t']) {
                self.at += 1;
            } else if rest.starts_with("\\\n") {
                self.at += 2;
            } else if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    fn word(&mut self) -> Result<RawWord> {
        let mut word = RawWord::new();
        while let Some(c) = self.char().filter(|c| !ends_word(*c)) {
            self.at += c.len_utf8();
            match c {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => self.escaped(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                '`' => return Err(no("it uses a backquote")),
                '~' => self.tilde(&mut word)?,
                c => word.push(c, true),
            }
        }
        Ok(word)
    }

    fn tilde(&mut self, word: &mut RawWord) -> Result<()> {
        if word.is_empty() {
            if self.char().is_some_and(|c| c != '/' && !ends_word(c)) {
                return Err(no("it names another user's home directory"));
            }
            word.root = Root::Home;
        } else if word.letters.last().is_some_and(|(c, _)| matches!(c, '=' | ':')) {
            return Err(no("it uses `~` inside a word"));
        }
        word.push('~', true);
        Ok(())
    }

    fn escaped(&mut self, word: &mut RawWord) -> Result<()> {
        match self.take() {
            Some('\n') => word.is_continued = true,
            Some(c) => {
                word.push(c, false);
                word.is_quoted = true;
            }
            None => return Err(no("it ends with a backslash")),
        }
        Ok(())
    }

    fn single_quoted(&mut self, word: &mut RawWord) -> Result<()> {
        word.is_quoted = true;
        loop {
            match self.take() {
                Some('\'') => return Ok(()),
                Some(c) => word.push(c, false),
                None => return Err(no("a quote is not closed")),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut RawWord) -> Result<()> {
        word.is_quoted = true;
        loop {
            match self.take() {
                Some('"') => return Ok(()),
                Some('`') => return Err(no("it uses a backquote")),
                Some('$') => self.dollar(word, true)?,
                Some('\\') => match self.take() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c, false),
                    Some(c) => {
                        word.push('\\', false);
                        word.push(c, false);
                    }
                    None => return Err(no("a quote is not closed")),
                },
                Some(c) => word.push(c, false),
                None => return Err(no("a quote is not closed")),
            }
        }
    }

    /// Whatever a `$` begins.
    fn dollar(&mut self, word: &mut RawWord, in_quotes: bool) -> Result<()> {
        let rest = self.rest();
        if rest.starts_with("\\\n") {
            return Err(no("a line continues after a `$`"));
        }
        if let Some(length) = number_arithmetic(rest) {
            self.at += length;
            word.push_unknown(true);
            return Ok(());
        }
        if rest.starts_with("((") || rest.starts_with('[') {
            return Err(no("it uses arithmetic"));
        }
        let name = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        match self.char() {
            Some('(') => self.substitution(word, in_quotes),
            Some('{') => self.braced(word, in_quotes),
            Some('\'') if !in_quotes => self.ansi_quoted(word),
            Some('"') if !in_quotes => Err(no("it uses `$\"`")),
            Some('?' | '$' | '!' | '#' | '@' | '*' | '-' | '0'..='9') => {
                let parameter = self.line.as_bytes()[self.at];
                self.at += 1;
                // A number is one word; all positional parameters can be none at all, also in quotes.
                word.push_unknown(in_quotes || b"?$#".contains(&parameter));
                word.is_split |= matches!(parameter, b'@' | b'*');
                Ok(())
            }
            Some(_) if name > 0 => {
                let name = rest[..name].to_owned();
                self.at += name.len();
                self.variable(word, &name, in_quotes);
                Ok(())
            }
            _ => {
                word.push('$', false);
                Ok(())
            }
        }
    }

    fn variable(&self, word: &mut RawWord, name: &str, in_quotes: bool) {
        word.is_arbitrary |= self.assigned.sets(name);
        let (root, letter) = match name {
            "HOME" if word.letters.is_empty() => (Root::Home, '~'),
            "PWD" if word.letters.is_empty() => (Root::Here, '.'),
            _ => {
                let is_first = word.letters.iter().all(|(c, _)| *c != '\0');
                word.push_unknown(in_quotes);
                word.variable = is_first.then(|| name.to_owned());
                return;
            }
        };
        word.root = root;
        word.push(letter, false);
    }

    /// `${NAME}` and the forms of it that evaluate nothing.
    fn braced(&mut self, word: &mut RawWord, in_quotes: bool) -> Result<()> {
        let Some(length) = self.rest().find('}') else { return Err(no("a brace is not closed")) };
        let inner = self.rest()[1..length].to_owned();
        self.at += length + 1;
        if inner.chars().all(is_name_char) && !inner.is_empty() {
            self.variable(word, &inner, in_quotes);
            return Ok(());
        }
        if !is_harmless_expansion(&inner) {
            return Err(no("it uses `${…}` in an unusual way"));
        }
        let name = inner.trim_start_matches('#').split(|c| !is_name_char(c)).next();
        word.is_arbitrary |= name.is_some_and(|name| self.assigned.sets(name));
        word.push_unknown(in_quotes);
        Ok(())
    }

    /// `$'…'` with the escapes whose meaning is the same everywhere.
    fn ansi_quoted(&mut self, word: &mut RawWord) -> Result<()> {
        self.at += 1;
        word.is_quoted = true;
        loop {
            match self.take() {
                Some('\'') => return Ok(()),
                Some('\\') => match self.take() {
                    Some('n') => word.push('\n', false),
                    Some('t') => word.push('\t', false),
                    Some(c @ ('\\' | '\'' | '"')) => word.push(c, false),
                    _ => return Err(no("it uses an unusual escape in `$'…'`")),
                },
                Some(c) => word.push(c, false),
                None => return Err(no("a quote is not closed")),
            }
        }
    }

    /// `$(…)`: its commands are read like all others; what they print is known only of `cat` with a document.
    fn substitution(&mut self, word: &mut RawWord, in_quotes: bool) -> Result<()> {
        if !self.documents.is_empty() {
            return Err(no("it uses `$(…)` in the same line as a here document"));
        }
        self.at += 1;
        let start = self.token_start;
        let last_end = self.last_end;
        let before = self.commands.len();
        let pipelines = self.pipelines;
        self.printed = None;
        self.substitutions += 1;
        self.nested(|reader| {
            let here = reader.here.clone();
            reader.list(")")?;
            reader.here = here;
            Ok(())
        })?;
        self.substitutions -= 1;
        if !self.documents.is_empty() {
            return Err(no("a here document is not closed"));
        }
        self.token_start = start;
        self.last_end = last_end;
        let printed = self.printed.take().filter(|_| self.commands.len() == before + 1 && in_quotes);
        match printed {
            Some(text) => text.trim_end_matches('\n').chars().for_each(|c| word.push(c, false)),
            None => word.push_unknown(in_quotes),
        }
        // Names are words of their own only if nothing else was printed, and nothing else is in the word.
        let is_one = self.pipelines == pipelines + 1;
        word.is_arbitrary |= !(is_one && self.commands.last().is_some_and(delegation::prints_no_option));
        let is_list = is_one && !in_quotes && word.letters.len() == 1;
        word.names = if is_list { std::mem::take(&mut self.listed) } else { Vec::new() };
        Ok(())
    }

    /// Goes one level deeper.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(no("it is nested too deeply"));
        }
        let result = inner(self)?;
        self.depth -= 1;
        Ok(result)
    }

    /// Takes the word that ends a document, behind `<<` or `<<-`.
    pub(super) fn document(&mut self, kind: &str) -> Result<()> {
        let Token::Word(word) = self.next()? else { return Err(no("a here document has no delimiter")) };
        let end = word.text();
        let plain = !end.is_empty()
            && end.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.!".contains(&byte));
        if !plain || word.is_continued || end.starts_with('-') {
            return Err(no("a here document has an unusual delimiter"));
        }
        self.documents.push(HereDocument { end, strips_tabs: kind == "<<-", is_literal: word.is_quoted });
        Ok(())
    }

    fn read_documents(&mut self) -> Result<()> {
        for document in std::mem::take(&mut self.documents) {
            let body = self.document_body(&document)?;
            if !document.is_literal && body.contains(['$', '`', '\\']) {
                return Err(no("an unquoted here document contains expansions"));
            }
            self.body = Some(body);
        }
        Ok(())
    }

    fn document_body(&mut self, document: &HereDocument) -> Result<String> {
        let mut body = String::new();
        while self.at < self.line.len() {
            let rest = self.rest();
            let length = rest.find('\n').unwrap_or(rest.len());
            let line =
                if document.strips_tabs { rest[..length].trim_start_matches('\t') } else { &rest[..length] };
            let is_end = line == document.end;
            // Inside a substitution bash ends the document there if a parenthesis follows in the line.
            if !is_end && self.substitutions > 0 && line.starts_with(&document.end) {
                return Err(no("a line of a here document begins like its delimiter"));
            }
            if !is_end {
                body.push_str(line);
                body.push('\n');
            }
            self.at += (length + 1).min(rest.len());
            if is_end {
                return Ok(body);
            }
        }
        Err(no("a here document is not closed"))
    }
}

/// The length of `((…))` in which there are only numbers: names would be evaluated, and what they hold as well.
fn number_arithmetic(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("((")?;
    let length = inner.find(|c: char| !c.is_ascii_digit() && !" +-*/%".contains(c))?;
    (length > 0 && inner[length..].starts_with("))")).then_some(length + 4)
}

/// `${#NAME}`, and a name with a default, a pattern to cut off, a replacement, a piece or another case, all of it plain text.
fn is_harmless_expansion(inner: &str) -> bool {
    let is_name = |text: &str| {
        let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        starts && text.chars().all(is_name_char)
    };
    if let Some(name) = inner.strip_prefix('#') {
        return is_name(name);
    }
    let (name, operation) = inner.split_at(inner.find(|c| !is_name_char(c)).unwrap_or(inner.len()));
    if !is_name(name) {
        return false;
    }
    let plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-*?:,+%#".contains(&byte));
    if matches!(operation, "^" | "^^" | "," | ",,") {
        return true;
    }
    if let Some(default) = operation.strip_prefix(":-").or_else(|| operation.strip_prefix(":+")) {
        return plain(default);
    }
    match operation.as_bytes().first() {
        Some(b'-' | b'+' | b'#' | b'%' | b'/') => plain(&operation[1..]),
        Some(b':') => operation[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b':'),
        _ => false,
    }
}
