//! A pattern at one place, and the walk of a path through it.

use std::path::Path;

use crate::rules::position_set::PositionSet;
use crate::rules::subject::NameText;
use crate::rules::text::fold;

/// A pattern at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternForm {
    tokens: Vec<Token>,
    /// It is without case.
    pub(super) is_folded: bool,
    /// The characters it begins with.
    head: String,
    /// So many tokens are the head.
    literal: usize,
    /// The longest run of characters behind the head: most paths are told apart by it without a walk.
    landmark: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// One character of a name.
    One,
    /// One character of a name out of a set.
    Of {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
    /// Any part of a name.
    Any,
    /// Any number of directories.
    Deep,
}

impl PatternForm {
    /// Reads what stands behind the place. What floats may be at any depth.
    pub(super) fn compile(
        place: &Path,
        body: &str,
        is_floating: bool,
        is_folded: bool,
    ) -> Result<Self, &'static str> {
        let tokens = tokens(place, body, is_floating, is_folded)?;
        let is_backwards = |token: &Token| matches!(token, Token::Of { ranges, .. } if ranges.iter().any(|(low, high)| low > high));
        if tokens.iter().any(is_backwards) {
            return Err("a range in brackets runs backwards; write it as [a-z]");
        }
        let head = characters(&tokens);
        let literal = head.chars().count();
        let is_char = |token: &Token| matches!(token, Token::Char(_));
        let runs = tokens[literal..].split(|token| !is_char(token)).map(characters);
        let landmark = runs.max_by_key(String::len).unwrap_or_default();
        Ok(Self { tokens, is_folded, head, literal, landmark })
    }

    /// Whether it means everything there is.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The walk behind the head, and the rest of the path. `None` if the pattern means nothing at or above it.
    pub(super) fn begin<'a, 'b>(&'a self, path: NameText<'b>) -> Option<(Walk<'a>, &'b str)> {
        let rest = path.start.strip_prefix(&*self.head)?;
        if !rest.contains(&*self.landmark) && !path.more.iter().any(|piece| piece.contains(&*self.landmark)) {
            return None;
        }
        let begins_name = self.head.is_empty() || self.head.ends_with('/');
        Some((Walk::new(&self.tokens, self.literal, begins_name), rest))
    }

    /// Whether a name that the shell finds by a pattern may be the last one that is meant, or lie in the directory that is.
    pub(super) fn can_end_in(&self, pattern: &str) -> bool {
        let is_between = |token: &Token| matches!(token, Token::Char('/') | Token::Deep);
        let last = self.tokens.rsplit(is_between).next().unwrap_or_default();
        let plain = last.iter().rev().take_while(|token| matches!(token, Token::Char(_))).count();
        let end = characters(&last[last.len() - plain..]);
        let is_whole = plain == last.len();
        if is_whole && end.starts_with('.') && !pattern.starts_with('.') {
            return false;
        }
        let ending = pattern.rsplit(['*', '?', ']']).next().unwrap_or_default();
        let may_be_directory = is_whole && !end.trim_start_matches('.').contains('.');
        may_be_directory || end.ends_with(ending) || ending.ends_with(&end)
    }

    /// The walk of a path from its beginning.
    pub(super) fn walk(&self) -> Walk<'_> {
        Walk::new(&self.tokens, 0, true)
    }
}

/// The characters that tokens begin with.
fn characters(tokens: &[Token]) -> String {
    let chars = tokens.iter().map_while(|token| match token {
        Token::Char(c) => Some(*c),
        Token::One | Token::Of { .. } | Token::Any | Token::Deep => None,
    });
    chars.collect()
}

/// The tokens of a body at a place.
fn tokens(place: &Path, body: &str, is_floating: bool, is_folded: bool) -> Result<Vec<Token>, &'static str> {
    let place = place.to_str().ok_or("its place has a name that is not UTF-8")?;
    let place = place.trim_end_matches('/');
    let place = if is_folded { fold(place) } else { place.to_owned() };
    let body = if is_folded { fold(body) } else { body.to_owned() };
    let mut tokens: Vec<Token> = place.chars().map(Token::Char).collect();
    if is_floating {
        tokens.extend([Token::Char('/'), Token::Deep]);
    }
    for (at, part) in body.split('/').filter(|part| !matches!(*part, "" | ".")).enumerate() {
        if part == ".." {
            return Err("`..` can stand only at its beginning");
        }
        if !(is_floating && at == 0 || tokens.last() == Some(&Token::Deep)) {
            tokens.push(Token::Char('/'));
        }
        if part == "**" {
            tokens.push(Token::Deep);
        } else {
            name(part, &mut tokens);
        }
    }
    if tokens.last() == Some(&Token::Deep) {
        tokens.push(Token::Any);
    }
    Ok(tokens)
}

fn name(part: &str, tokens: &mut Vec<Token>) {
    let mut rest = part;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '*' => tokens.push(Token::Any),
            '?' => tokens.push(Token::One),
            '\\' => {
                let c = rest.chars().next().unwrap_or('\\');
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
                tokens.push(Token::Char(c));
            }
            '[' => match set(rest) {
                Some((token, after)) => {
                    tokens.push(token);
                    rest = after;
                }
                None => tokens.push(Token::Char('[')),
            },
            c => tokens.push(Token::Char(c)),
        }
    }
}

/// A set of characters behind `[`, and what follows it; `None` if it does not end.
fn set(text: &str) -> Option<(Token, &str)> {
    let is_negated = text.starts_with(['!', '^']);
    let body = if is_negated { &text[1..] } else { text };
    // A bracket that comes first is one of the set.
    let first = body.chars().next()?.len_utf8();
    let end = first + body.get(first..)?.find(']')?;
    let chars: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&low) = chars.get(at) {
        if let (Some('-'), Some(&high)) = (chars.get(at + 1), chars.get(at + 2)) {
            ranges.push((low, high));
            at += 3;
        } else {
            ranges.push((low, low));
            at += 1;
        }
    }
    Some((Token::Of { ranges, is_negated }, &body[end + 1..]))
}

/// How far in a pattern a path can have come.
pub(super) struct Walk<'a> {
    tokens: &'a [Token],
    places: PositionSet,
    /// A name begins here.
    is_at_name: bool,
    /// The pattern was at its end before the last character.
    pub(super) has_passed_end: bool,
}

impl<'a> Walk<'a> {
    fn new(tokens: &'a [Token], place: usize, is_at_name: bool) -> Self {
        let places = PositionSet::empty_below(tokens.len() + 1);
        let mut walk = Self { tokens, places, is_at_name, has_passed_end: false };
        walk.enter(place);
        walk
    }

    /// What can stand for nothing is passed at once; any number of directories ends only where a name begins.
    fn enter(&mut self, place: usize) {
        let mut place = place;
        while self.places.insert(place) {
            match self.tokens.get(place) {
                Some(Token::Any) => place += 1,
                Some(Token::Deep) if self.is_at_name => place += 1,
                _ => return,
            }
        }
    }

    /// Goes on by one character, or by `None`, what only a pattern fits; false if the pattern cannot.
    pub(super) fn take(&mut self, c: Option<char>) -> bool {
        let is_slash = c == Some('/');
        self.has_passed_end = self.is_over();
        self.is_at_name = is_slash;
        let before = self.places.take();
        for place in before.iter() {
            match self.tokens.get(place) {
                Some(Token::Char(wanted)) if Some(*wanted) == c => self.enter(place + 1),
                Some(Token::One) if !is_slash => self.enter(place + 1),
                Some(Token::Of { ranges, is_negated }) if !is_slash => {
                    let is_in = |&(low, high): &(char, char)| c.is_some_and(|c| (low..=high).contains(&c));
                    if ranges.iter().any(is_in) != *is_negated {
                        self.enter(place + 1);
                    }
                }
                Some(Token::Any) if !is_slash => self.enter(place),
                Some(Token::Deep) => self.enter(place),
                Some(Token::Char(_) | Token::One | Token::Of { .. } | Token::Any) | None => (),
            }
        }
        !self.places.is_empty() || self.has_passed_end
    }

    /// Goes on by any part of a name. The shell's patterns stand for no hidden name unless they begin with its dot.
    pub(super) fn take_some_of_name(&mut self, is_first: bool) -> bool {
        self.has_passed_end = false;
        let mut reached = false;
        for place in 0..=self.tokens.len() {
            let before = |count: usize| place.checked_sub(count).map(|at| &self.tokens[at]);
            let blocked = match before(1) {
                Some(Token::Char('/')) => true,
                Some(Token::Char('.')) if is_first => {
                    matches!(before(2), Some(Token::Char('/') | Token::Deep))
                }
                _ => false,
            };
            reached = self.places.contains(place) || reached && !blocked;
            if reached {
                self.places.insert(place);
            }
        }
        self.is_at_name = false;
        reached
    }

    pub(super) fn is_over(&self) -> bool {
        self.places.contains(self.tokens.len())
    }
}
