//! Words, as far as they are known.

use crate::expansion::{EXPANDED_MAX, USUAL_LENGTH, WordLetter, is_unusual_pattern, may_move_tilde, text_of};
use crate::names::{is_digits, is_name_char};

/// A word that is being read.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// Characters, and whether they may mean something to the shell. A NUL stands for what is only known at run time.
    letters: Vec<WordLetter>,
    pub(super) is_quoted: bool,
    /// The first letter is a `~` that stands for the home directory.
    is_home: bool,
    /// The first letter is a dot that stands for the working directory.
    is_here: bool,
    /// What the one unknown part may be, if the line tells.
    pub(super) choices: Vec<String>,
    /// The unknown part is more than one thing.
    is_mixed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) text: String,
    pub(super) is_pattern: bool,
    pub(super) is_home: bool,
    /// It may begin with the home directory of another user.
    pub(super) is_other_home: bool,
    /// The unknown part at its end is the name of something that is there, and never empty.
    pub(super) is_below: bool,
    /// What the one NUL in the text may stand for; nothing if that is not known.
    pub(super) choices: Vec<String>,
}

impl Argument {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A part of a word, as a word of its own.
    pub(super) fn part(&self, text: &str) -> Self {
        let is_home = text.starts_with("~/");
        Self { text: text.to_owned(), is_pattern: self.is_pattern, is_home, ..Self::default() }
    }

    /// One of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self::new("\0")
    }
}

impl Draft {
    /// An empty word with room for what most words hold.
    pub(super) fn new() -> Self {
        Self { letters: Vec::with_capacity(USUAL_LENGTH), ..Self::default() }
    }

    pub(super) fn push(&mut self, c: char, is_live: bool) {
        self.letters.push((c, is_live));
    }

    pub(super) fn push_home(&mut self) {
        self.is_home = self.letters.is_empty();
        self.letters.push(('~', true));
    }

    pub(super) fn push_unknown(&mut self) {
        if self.letters.last() == Some(&('\0', false)) {
            self.is_mixed = true;
        } else {
            self.push('\0', false);
        }
    }

    pub(super) fn is_start(&self) -> bool {
        self.letters.is_empty()
    }

    /// A variable or a substitution that is the home directory, `~`, or the working directory, a dot.
    pub(super) fn push_root(&mut self, root: char) {
        self.is_home = root == '~';
        self.is_here = root == '.';
        self.push(root, false);
    }

    /// A text in which nothing means anything to the shell.
    pub(super) fn push_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c, false));
    }

    /// A variable of which the line does not tell what it holds.
    pub(super) fn push_variable(&mut self, text: &str) {
        self.push_unknown();
        // A default may be what it stands for.
        let default =
            text.split_once(":-").or_else(|| text.split_once('-')).or_else(|| text.split_once(":="));
        self.push_text(default.map_or("", |(_, default)| default));
    }

    pub(super) fn append(&mut self, mut other: Self) {
        let is_start = self.letters.is_empty();
        if !is_start && (other.is_home || other.is_here) {
            other.letters[0].0 = '\0';
        }
        self.is_mixed |= other.is_mixed;
        if self.choices.is_empty() {
            self.choices = std::mem::take(&mut other.choices);
        }
        self.is_home |= is_start && other.is_home;
        self.is_here |= is_start && other.is_here;
        self.letters.extend(other.letters.into_iter().map(|(c, _)| (c, false)));
    }

    pub(super) fn text(&self) -> String {
        text_of(&self.letters)
    }

    /// Whether it is this text, and nothing in it is quoted or unknown.
    pub(super) fn is_bare(&self, text: &str) -> bool {
        !self.is_quoted && text.chars().map(|c| (c, true)).eq(self.letters.iter().copied())
    }

    /// The text, if nothing in it is quoted or unknown.
    pub(super) fn bare(&self) -> Option<String> {
        let plain = !self.is_quoted && self.letters.iter().all(|(_, is_live)| *is_live);
        plain.then(|| self.text())
    }

    pub(super) fn is_descriptor(&self) -> bool {
        let text = self.bare().unwrap_or_default();
        is_digits(&text) || (text.starts_with('{') && text.ends_with('}') && !text.contains(','))
    }

    /// `a=` in front of a parenthesis.
    pub(super) fn is_array_start(&self) -> bool {
        self.letters.last() == Some(&('=', true)) && self.assignment().is_some()
    }

    /// Whether a parenthesis behind it would make it a pattern.
    pub(super) fn may_open_group(&self) -> bool {
        matches!(self.letters.last(), Some(('!' | '@' | '+' | '*' | '?', true)))
    }

    /// The name and the value, if the word is an assignment of any kind.
    pub(super) fn assignment(&self) -> Option<(String, String)> {
        let equals = self.letters.iter().position(|letter| *letter == ('=', true))?;
        let name = text_of(&self.letters[..equals]);
        let name = name.strip_suffix('+').unwrap_or(&name);
        let name = name.split('[').next().unwrap_or_default();
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let fits = starts && name.chars().all(is_name_char);
        fits.then(|| (name.to_owned(), text_of(&self.letters[equals + 1..])))
    }

    /// The arguments it becomes: several if there are alternatives in braces.
    pub(super) fn expand(&self) -> Vec<Argument> {
        let live = |c: char| self.letters.contains(&(c, true));
        if !live('{') || !live('}') {
            return vec![self.argument(&self.letters)];
        }
        if (live(',') || live('.')) && may_move_tilde(self.letters.iter().copied()) {
            return vec![Argument::unknown()];
        }
        let mut pending = vec![self.letters.clone()];
        let mut expanded = Vec::new();
        while let Some(letters) = pending.pop() {
            match alternatives(&letters) {
                Some(parts) if pending.len() + expanded.len() + parts.len() <= EXPANDED_MAX => {
                    pending.extend(parts.into_iter().rev().filter(|part| !part.is_empty()));
                }
                Some(_) => expanded.push(Argument::unknown()),
                None => expanded.push(self.argument(&letters)),
            }
        }
        expanded
    }

    fn argument(&self, letters: &[WordLetter]) -> Argument {
        if is_sequence(letters) || (is_pattern(letters) && is_unusual_pattern(letters.iter().copied())) {
            return Argument::unknown();
        }
        // `~+` is the working directory.
        if self.is_home
            && letters.get(1) == Some(&('+', true))
            && letters.get(2).is_none_or(|(c, _)| *c == '/')
        {
            let below = &letters[2..];
            let (text, is_pattern) = (format!(".{}", text_of(below)), is_pattern(below));
            return Argument { text, is_pattern, ..Argument::default() };
        }
        let is_one = !self.is_mixed && letters.iter().filter(|(c, _)| *c == '\0').count() == 1;
        let is_directory =
            letters.first().is_some_and(|(c, _)| *c == '~') && letters.get(1).is_none_or(|(c, _)| *c == '/');
        Argument {
            text: text_of(letters),
            choices: if is_one { self.choices.clone() } else { Vec::new() },
            is_pattern: is_pattern(letters),
            is_home: self.is_home && is_directory,
            is_other_home: self.is_home && !is_directory,
            is_below: false,
        }
    }
}

/// Whether `{1..3}` may be in it.
fn is_sequence(letters: &[WordLetter]) -> bool {
    letters.windows(2).any(|two| two == [('.', true), ('.', true)])
        && letters.contains(&('{', true))
        && letters.contains(&('}', true))
}

/// Whether bash looks for names that fit. Brackets alone are names of commands.
fn is_pattern(letters: &[WordLetter]) -> bool {
    let is_test = letters.iter().all(|letter| *letter == ('[', true)) && letters.len() <= 2;
    !is_test && letters.iter().any(|(c, is_live)| *is_live && matches!(c, '*' | '?' | '['))
}

/// The words that the first innermost list in braces stands for.
fn alternatives(letters: &[WordLetter]) -> Option<Vec<Vec<WordLetter>>> {
    let mut open = None;
    let mut has_comma = false;
    for (at, letter) in letters.iter().enumerate() {
        match letter {
            ('{', true) => (open, has_comma) = (Some(at), false),
            (',', true) => has_comma = true,
            ('}', true) if has_comma => {
                let Some(open) = open else { continue };
                let inner = letters[open + 1..at].split(|letter| *letter == (',', true));
                let whole = |part: &[WordLetter]| [&letters[..open], part, &letters[at + 1..]].concat();
                return Some(inner.map(whole).collect());
            }
            ('}', true) => open = None,
            _ => {}
        }
    }
    None
}

/// The text of `$'…'`.
pub(super) fn ansi_decoded(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            decoded.push(c);
            continue;
        }
        let Some(escape) = chars.next() else { break };
        let mut digits = |radix: u32, most: usize, first: Option<char>| {
            let mut value = first.and_then(|c| c.to_digit(radix)).unwrap_or(0);
            for _ in 0..most {
                let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
                value = value.wrapping_mul(radix).wrapping_add(digit);
                chars.next();
            }
            char::from_u32(value)
        };
        let c = match escape {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'e' | 'E' => Some('\x1b'),
            'f' => Some('\x0c'),
            'v' => Some('\x0b'),
            'x' => digits(16, 2, None),
            'u' => digits(16, 4, None),
            'U' => digits(16, 8, None),
            '0'..='7' => digits(8, 2, Some(escape)),
            '\\' | '\'' | '"' | '?' => Some(escape),
            // The backslash of an escape that has no meaning stays.
            _ => {
                decoded.push('\\');
                Some(escape)
            }
        };
        decoded.extend(c);
    }
    decoded
}
