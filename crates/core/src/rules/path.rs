//! Patterns of paths, in the manner of ignore files, each with the place it is anchored at.

use std::path::{Path, PathBuf};

use windlass_protocol::{NamedPath, Naming, PathFact, UNKNOWN_TEXT};

use super::text::fold;
use super::{Anchors, Behaviour, Match};

/// A pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// One pattern for each place it may be anchored at.
    forms: Vec<Vec<Token>>,
    /// The same without case: a restriction must hold for every spelling, and for what it says as it is written.
    folded: Vec<Vec<Token>>,
    /// Only what lies below what the pattern names.
    below: bool,
    /// Only directories, and what lies below them.
    directory: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// One character of a name.
    One,
    /// One character of a name out of a set.
    Of {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
    /// Any part of a name.
    Any,
    /// Any number of directories.
    Deep,
}

impl PathPattern {
    /// Reads what stands between the parentheses; the error says what is wrong.
    pub(crate) fn parse(text: &str, behaviour: Behaviour, anchors: &Anchors) -> Result<Self, &'static str> {
        let restricts = behaviour != Behaviour::Allow;
        let (text, directory) = match text.strip_suffix('/') {
            Some(body) if !body.is_empty() && !body.ends_with('/') => (body, true),
            _ => (text, false),
        };
        let (places, body) = places(text, restricts, anchors)?;
        // Directories in a directory are not all that is in it.
        let all = if directory && !restricts { "" } else { body };
        let mut rest = if all == "**" { Some("") } else { all.strip_suffix("/**") };
        while let Some(again) =
            rest.and_then(|rest| if rest == "**" { Some("") } else { rest.strip_suffix("/**") })
        {
            rest = Some(again);
        }
        // A directory that nothing may be read in is not listed either.
        let below = rest.is_some() && !restricts;
        let body = rest.unwrap_or(body);
        let anchored = text.starts_with(['/', '~']) || text.starts_with("./") || text.starts_with("../");
        let floats =
            !anchored && !body.is_empty() && (is_name(text) || restricts && rest.is_some_and(is_name));
        let compiled = |folds: bool| {
            let form = |place: &PathBuf| compile(place, body, floats, folds);
            places.iter().map(form).collect::<Result<Vec<_>, _>>()
        };
        let folded = if restricts { compiled(true)? } else { Vec::new() };
        Ok(Self { forms: compiled(false)?, folded, below, directory })
    }

    /// The same pattern for reading: whoever may read all that is in a directory may list it.
    pub(crate) fn for_reading(mut self) -> Self {
        self.below = false;
        self
    }

    /// A pattern that means this path and no other.
    pub(crate) fn literal(path: &Path) -> Option<String> {
        let text = path.to_str().filter(|text| !text.chars().any(char::is_control))?;
        let special = |c: char| matches!(c, '*' | '?' | '[' | '\\' | '(' | ')');
        let escaped: String =
            text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect();
        Some(format!("/{escaped}"))
    }

    /// Whether an allow rule covers a path, by both of its names.
    pub(crate) fn covers(&self, path: &PathFact) -> bool {
        let covers = |name: &Path| self.meets(name, path.is_directory);
        covers(&path.lexical) && path.resolved.as_deref().is_some_and(covers)
    }

    /// Whether a restriction means a path, by either of its names.
    pub(crate) fn restricts(&self, path: &PathFact) -> bool {
        // What may be a directory by now is taken for one.
        let means = |name: &Path| self.meets(name, true);
        means(&path.lexical) || path.resolved.as_deref().is_some_and(means)
    }

    /// Whether a restriction means a path that a command names, or may mean it.
    pub(crate) fn restricts_named(&self, named: &NamedPath) -> Match {
        match named.naming {
            _ if self.restricts(&named.path) => Match::Yes,
            Naming::Unknown => Match::May,
            Naming::Pattern if self.may_meet(&named.path.lexical, named.recursive) => Match::May,
            Naming::Exact if named.recursive => {
                let names = [Some(&named.path.lexical), named.path.resolved.as_ref()];
                let below = names.into_iter().flatten().any(|name| self.may_meet(name, true));
                if below { Match::May } else { Match::No }
            }
            Naming::Pattern | Naming::Exact => Match::No,
        }
    }

    /// Whether a path, or a directory above it, is what the pattern says.
    fn meets(&self, name: &Path, is_directory: bool) -> bool {
        self.tries(name, |form, text| {
            // Everything there is.
            if form.is_empty() {
                return !self.below || text.len() > 1;
            }
            let mut walk = Walk::new(form);
            let mut chars = text.chars().peekable();
            while let Some(c) = chars.next() {
                if !walk.take(c) {
                    return false;
                }
                let ends = walk.is_over();
                match chars.peek() {
                    Some('/') if ends => return true,
                    None => return ends && !self.below && (is_directory || !self.directory),
                    Some(_) => (),
                }
            }
            false
        })
    }

    /// Whether some name that a pattern of the shell stands for, or that lies below it, is what this pattern says. When in
    /// doubt, it is.
    fn may_meet(&self, name: &Path, recursive: bool) -> bool {
        self.tries(name, |form, text| {
            let mut walk = Walk::new(form);
            let mut before = '/';
            for c in text.chars() {
                let goes_on = match c {
                    '*' | '?' | '[' | ']' => walk.take_some_of_name(before == '/'),
                    UNKNOWN_TEXT => return true,
                    c => walk.take(c),
                };
                if !goes_on {
                    return false;
                }
                if c == '/' && walk.passed_end() {
                    return true;
                }
                before = c;
            }
            walk.is_over() || recursive && walk.take('/')
        })
    }

    /// Whether one of the patterns fits a name, as it is written or without case.
    fn tries(&self, name: &Path, fits: impl Fn(&[Token], &str) -> bool) -> bool {
        let text = name.to_string_lossy();
        if self.forms.iter().any(|form| fits(form, &text)) {
            return true;
        }
        let folded = if self.folded.is_empty() { String::new() } else { fold(&text) };
        self.folded.iter().any(|form| fits(form, &folded))
    }
}

/// Whether a pattern is a single name, which means that name at any depth.
fn is_name(text: &str) -> bool {
    !text.contains('/')
}

/// Where a pattern is anchored, and what of it is left.
fn places<'a>(
    text: &'a str,
    restricts: bool,
    anchors: &Anchors,
) -> Result<(Vec<PathBuf>, &'a str), &'static str> {
    if text.is_empty() || text == "/" {
        return Err("it names no path");
    }
    if text.contains(UNKNOWN_TEXT) {
        return Err("a path cannot hold a NUL character");
    }
    if let Some(rest) = text.strip_prefix("//") {
        return Ok((vec!["/".into()], rest));
    }
    if text == "~" || text.starts_with("~/") {
        let home =
            anchors.home.clone().ok_or("the home directory is not known; give a path that begins with //")?;
        return Ok((vec![home], text.trim_start_matches('~').trim_start_matches('/')));
    }
    if let Some(rest) = text.strip_prefix('/') {
        return Ok((vec![anchors.settings.clone()], rest));
    }
    let mut rest = text.strip_prefix("./").unwrap_or(text);
    // A restriction on a relative path holds in every working directory.
    let roots = if restricts { anchors.roots.clone() } else { vec![anchors.start.clone()] };
    let mut places = if roots.is_empty() { vec![anchors.start.clone()] } else { roots };
    while let Some(above) = rest.strip_prefix("../") {
        rest = above;
        for place in &mut places {
            place.pop();
        }
    }
    Ok((places, rest))
}

fn compile(place: &Path, body: &str, floats: bool, folded: bool) -> Result<Vec<Token>, &'static str> {
    let place = place.to_str().ok_or("its place has a name that is not UTF-8")?;
    let place = place.trim_end_matches('/');
    let place = if folded { fold(place) } else { place.to_owned() };
    let body = if folded { fold(body) } else { body.to_owned() };
    let mut tokens: Vec<Token> = place.chars().map(Token::Char).collect();
    if floats {
        tokens.extend([Token::Char('/'), Token::Deep]);
    }
    for (at, part) in body.split('/').filter(|part| !matches!(*part, "" | ".")).enumerate() {
        if part == ".." {
            return Err("`..` can stand only at its beginning");
        }
        if !(floats && at == 0 || tokens.last() == Some(&Token::Deep)) {
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
    let negated = text.starts_with(['!', '^']);
    let body = if negated { &text[1..] } else { text };
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
    Some((Token::Of { ranges, negated }, &body[end + 1..]))
}

/// The places in a pattern that a path can have come to.
struct Walk<'a> {
    tokens: &'a [Token],
    places: Vec<bool>,
    spare: Vec<bool>,
    before: char,
    passed: bool,
}

impl<'a> Walk<'a> {
    fn new(tokens: &'a [Token]) -> Self {
        let places = vec![false; tokens.len() + 1];
        let mut walk = Self { tokens, places, spare: Vec::new(), before: '/', passed: false };
        walk.enter(0);
        walk
    }

    /// What can stand for nothing is passed at once; any number of directories ends only where a name begins.
    fn enter(&mut self, place: usize) {
        let mut place = place;
        loop {
            if std::mem::replace(&mut self.places[place], true) {
                return;
            }
            match self.tokens.get(place) {
                Some(Token::Any) => place += 1,
                Some(Token::Deep) if self.before == '/' => place += 1,
                _ => return,
            }
        }
    }

    /// Goes on by one character; false if the pattern cannot.
    fn take(&mut self, c: char) -> bool {
        self.passed = self.is_over();
        self.before = c;
        let before = self.turn();
        for (place, token) in self.tokens.iter().enumerate().filter(|(place, _)| before[*place]) {
            match token {
                Token::Char(wanted) if *wanted == c => self.enter(place + 1),
                Token::One if c != '/' => self.enter(place + 1),
                Token::Of { ranges, negated } if c != '/' => {
                    if ranges.iter().any(|&(low, high)| (low..=high).contains(&c)) != *negated {
                        self.enter(place + 1);
                    }
                }
                Token::Any if c != '/' => self.enter(place),
                Token::Deep => self.enter(place),
                Token::Char(_) | Token::One | Token::Of { .. } | Token::Any => (),
            }
        }
        self.spare = before;
        self.places.contains(&true) || self.passed
    }

    /// Goes on by any part of a name. The shell's patterns stand for no hidden name unless they begin with its dot.
    fn take_some_of_name(&mut self, first: bool) -> bool {
        self.passed = false;
        let mut reached = false;
        for place in 0..=self.tokens.len() {
            let blocked = match place.checked_sub(1).map(|before| &self.tokens[before]) {
                Some(Token::Char('/')) => true,
                Some(Token::Char('.')) if first => {
                    matches!(
                        place.checked_sub(2).map(|at| &self.tokens[at]),
                        Some(Token::Char('/') | Token::Deep)
                    )
                }
                _ => false,
            };
            reached = self.places[place] || reached && !blocked;
            self.places[place] = reached;
        }
        self.before = '*';
        reached
    }

    fn turn(&mut self) -> Vec<bool> {
        let before = std::mem::replace(&mut self.places, std::mem::take(&mut self.spare));
        self.places.clear();
        self.places.resize(before.len(), false);
        before
    }

    fn is_over(&self) -> bool {
        self.places.last() == Some(&true)
    }

    /// Whether the pattern was at its end before the last character.
    fn passed_end(&self) -> bool {
        self.passed
    }
}

#[cfg(test)]
mod tests;
