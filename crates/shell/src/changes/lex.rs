//! From a line to words and operators, as far as they are plain to see.
//!
//! Every character is looked at once. What cannot be known without running something — variables, substitutions — makes a
//! word unknown; it still ends where bash would end it.

use std::collections::VecDeque;

/// One piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word.
    Word(Word),
    /// The next word is a file that is written to.
    Write,
    /// The next word belongs to a redirection that writes no file.
    OtherRedirection,
    /// `;`, `&&`, `||` or the end of a line: a pipeline ends.
    End,
    /// `&`: a pipeline ends that goes on in a shell of its own.
    Background,
    /// `|`
    Pipe,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// One word, not yet expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) letters: Vec<Letter>,
    /// A part of it is only known to a running shell.
    pub(super) unknown: bool,
}

/// One character of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) c: char,
    /// Not quoted: it may mean something to the shell.
    pub(super) live: bool,
}

/// A document behind `<<`, whose lines come after the line it stands in.
struct HereDocument {
    end: String,
    strip_tabs: bool,
}

pub(super) struct Lexer<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    tokens: Vec<Token>,
    word: Option<Word>,
    documents: VecDeque<HereDocument>,
    /// The next word ends a here document; whether tabs in front of the lines are left out.
    wants_end: Option<bool>,
}

/// The tokens of a line.
pub(super) fn tokens(line: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: line.chars().peekable(),
        tokens: Vec::new(),
        word: None,
        documents: VecDeque::new(),
        wants_end: None,
    };
    while let Some(c) = lexer.rest.next() {
        lexer.take(c);
    }
    lexer.end_word();
    lexer.tokens
}

impl Lexer<'_> {
    fn take(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' => self.end_line(),
            '#' if self.word.is_none() => self.skip_comment(),
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '\\' => self.escaped(),
            '$' => self.dollar(),
            '`' => self.skip_backquoted(),
            ';' => self.operator(Token::End),
            '&' => self.ampersand(),
            '|' => self.pipe(),
            '(' => self.operator(Token::Open),
            ')' => self.operator(Token::Close),
            '<' => self.less(),
            '>' => self.greater(),
            c => self.push(c, true),
        }
    }

    fn push(&mut self, c: char, live: bool) {
        self.word.get_or_insert_default().letters.push(Letter { c, live });
    }

    fn mark_unknown(&mut self) {
        self.word.get_or_insert_default().unknown = true;
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if let Some(strip_tabs) = self.wants_end.take() {
            let end = word.letters.iter().map(|letter| letter.c).collect();
            self.documents.push_back(HereDocument { end, strip_tabs });
        }
        self.tokens.push(Token::Word(word));
    }

    fn operator(&mut self, token: Token) {
        self.end_word();
        self.wants_end = None;
        self.tokens.push(token);
    }

    fn end_line(&mut self) {
        self.operator(Token::End);
        while let Some(document) = self.documents.pop_front() {
            self.skip_document(&document);
        }
    }

    fn skip_document(&mut self, document: &HereDocument) {
        let mut line = String::new();
        loop {
            line.clear();
            let mut ended = false;
            for c in self.rest.by_ref() {
                if c == '\n' {
                    ended = true;
                    break;
                }
                line.push(c);
            }
            let found = if document.strip_tabs { line.trim_start_matches('\t') } else { &line };
            if !ended || found == document.end {
                return;
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.rest.next_if(|&c| c != '\n').is_some() {}
    }

    fn single_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next() {
            if c == '\'' {
                return;
            }
            self.push(c, false);
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '$' => self.dollar(),
                '`' => self.skip_backquoted(),
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c, false),
                    Some(c) => {
                        self.push('\\', false);
                        self.push(c, false);
                    }
                },
                c => self.push(c, false),
            }
        }
    }

    fn escaped(&mut self) {
        match self.rest.next() {
            // The line goes on.
            Some('\n') | None => {}
            Some(c) => self.push(c, false),
        }
    }

    /// Whatever a `$` begins.
    fn dollar(&mut self) {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                self.skip_parentheses();
            }
            Some('{') => {
                self.rest.next();
                self.skip_until('}');
            }
            Some('\'') => {
                self.rest.next();
                self.skip_until('\'');
            }
            Some(&c) if c.is_alphanumeric() || "_@*#?$!-".contains(c) => {
                while self.rest.next_if(|c| c.is_alphanumeric() || *c == '_').is_some() {}
            }
            _ => return self.push('$', false),
        }
        self.mark_unknown();
    }

    fn skip_until(&mut self, end: char) {
        while let Some(c) = self.rest.next() {
            if c == '\\' {
                self.rest.next();
            } else if c == end {
                return;
            }
        }
    }

    fn skip_backquoted(&mut self) {
        self.skip_until('`');
        self.mark_unknown();
    }

    /// To the end of what a parenthesis opened.
    fn skip_parentheses(&mut self) {
        let mut depth = 1_usize;
        while let Some(c) = self.rest.next() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                '\\' => {
                    self.rest.next();
                }
                '\'' => while self.rest.next().is_some_and(|c| c != '\'') {},
                '"' => self.skip_until('"'),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.mark_unknown();
    }

    fn ampersand(&mut self) {
        if self.rest.next_if_eq(&'&').is_some() {
            self.operator(Token::End);
        } else if self.rest.next_if_eq(&'>').is_some() {
            let _appended = self.rest.next_if_eq(&'>');
            self.operator(Token::Write);
        } else {
            self.operator(Token::Background);
        }
    }

    fn pipe(&mut self) {
        if self.rest.next_if_eq(&'|').is_some() {
            self.operator(Token::End);
        } else {
            let _errors_too = self.rest.next_if_eq(&'&');
            self.operator(Token::Pipe);
        }
    }

    /// A number right in front of a redirection says which descriptor is meant; it is no word.
    fn drop_descriptor(&mut self) {
        let is_descriptor = |word: &mut Word| {
            !word.unknown && word.letters.iter().all(|letter| letter.live && letter.c.is_ascii_digit())
        };
        self.word.take_if(is_descriptor);
    }

    fn less(&mut self) {
        self.drop_descriptor();
        if self.rest.next_if_eq(&'(').is_some() {
            return self.skip_parentheses();
        }
        if self.rest.next_if_eq(&'>').is_some() {
            return self.operator(Token::Write);
        }
        let document = self.rest.next_if_eq(&'<').is_some() && self.rest.next_if_eq(&'<').is_none();
        self.operator(Token::OtherRedirection);
        if document {
            self.wants_end = Some(self.rest.next_if_eq(&'-').is_some());
        } else {
            let _duplicated = self.rest.next_if_eq(&'&');
        }
    }

    fn greater(&mut self) {
        self.drop_descriptor();
        if self.rest.next_if_eq(&'(').is_some() {
            return self.skip_parentheses();
        }
        if self.rest.next_if_eq(&'&').is_some() {
            // `>&2` and `>&-` name a descriptor, `>&file` a file.
            let file = self.rest.peek().is_some_and(|c| !c.is_ascii_digit() && *c != '-');
            return self.operator(if file { Token::Write } else { Token::OtherRedirection });
        }
        let _appended = self.rest.next_if(|&c| c == '>' || c == '|');
        self.operator(Token::Write);
    }
}
