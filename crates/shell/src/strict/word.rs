//! From the characters of a word to the arguments it becomes.

use super::is_led;
use crate::effect::taken;
use crate::expansion::{WordLetter, is_unusual_pattern, may_move_tilde};
use crate::{LinePath, NameEnd, Word};

/// More words do not come from the braces of one word.
const EXPANDED_MAX: usize = 64;

/// Most words are not longer.
const USUAL: usize = 16;

/// One character of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) c: char,
    /// Not quoted: it may mean something to the shell.
    pub(super) is_live: bool,
}

/// What a word begins with, if that is a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Root {
    #[default]
    None,
    /// `~` or `$HOME`: the first letter is a `~`.
    Home,
    /// `$PWD`: the first letter is a dot.
    Here,
}

/// A word as it was written.
#[derive(Clone, Debug, Default)]
pub(super) struct RawWord {
    pub(super) letters: Vec<Letter>,
    /// There are quotes or escapes in it.
    pub(super) is_quoted: bool,
    /// It goes on behind the end of a line.
    pub(super) is_continued: bool,
    /// It holds something that is only known at run time, outside quotes.
    pub(super) is_split: bool,
    pub(super) root: Root,
    /// The variable that is the only thing in it which is not known.
    pub(super) variable: Option<String>,
    /// The line itself says what is not known in it, in ways that are not followed.
    pub(super) is_arbitrary: bool,
    /// The files whose names take its place, if it is a substitution that prints names only.
    pub(super) names: Vec<LinePath>,
}

impl RawWord {
    /// An empty word with room for what most words hold.
    pub(super) fn new() -> Self {
        Self { letters: Vec::with_capacity(USUAL), ..Self::default() }
    }

    pub(super) fn push(&mut self, c: char, is_live: bool) {
        self.letters.push(Letter { c, is_live });
    }

    /// Something that is only known at run time.
    pub(super) fn push_unknown(&mut self, in_quotes: bool) {
        self.variable = None;
        self.push('\0', false);
        self.is_split |= !in_quotes;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.letters.is_empty() && !self.is_quoted
    }

    /// The text, if the word is written without any quoting and stands for itself.
    pub(super) fn bare(&self) -> Option<String> {
        (self.is_plain() && self.letters.iter().all(|letter| letter.is_live)).then(|| self.text())
    }

    /// Whether it is this text, without any quoting.
    pub(super) fn is_bare(&self, text: &str) -> bool {
        let letters = text.chars().map(|c| Letter { c, is_live: true });
        self.is_plain() && letters.eq(self.letters.iter().copied())
    }

    fn is_plain(&self) -> bool {
        !self.is_quoted && !self.is_continued && self.root == Root::None
    }

    pub(super) fn text(&self) -> String {
        self.letters.iter().map(|letter| letter.c).collect()
    }

    /// The name and the value, if the word would be an assignment at the start of a command.
    pub(super) fn assignment(&self) -> Option<(String, RawWord)> {
        let at = self.letters.iter().position(|letter| !is_name(*letter))?;
        let starts = at > 0 && !self.letters[0].c.is_ascii_digit();
        if !starts || self.letters[at] != (Letter { c: '=', is_live: true }) {
            return None;
        }
        let name = self.letters[..at].iter().map(|letter| letter.c).collect();
        let value = RawWord { letters: self.letters[at + 1..].to_vec(), ..self.clone() };
        Some((name, value))
    }

    /// Whether bash may take the word for an assignment of another kind: `a+=b`, `a[0]=b`.
    pub(super) fn is_odd_assignment(&self) -> bool {
        let Some(at) = self.letters.iter().position(|letter| !is_name(*letter)) else { return false };
        let next = self.letters[at];
        at > 0
            && next.is_live
            && matches!(next.c, '+' | '[')
            && self.letters[at..].iter().any(|letter| letter.c == '=')
    }

    fn pairs(&self) -> impl Iterator<Item = WordLetter> + Clone + '_ {
        self.letters.iter().map(|letter| (letter.c, letter.is_live))
    }

    /// The arguments that bash makes of the word.
    pub(super) fn expand(mut self) -> Result<Vec<Word>, String> {
        self.settle_root();
        let live = |c: char| self.letters.iter().any(|letter| letter.is_live && letter.c == c);
        if !live('{') || !live('}') || !(live(',') || live('.')) {
            return Ok(vec![self.argument()?]);
        }
        if may_move_tilde(self.pairs()) {
            return Err("it uses `~` with braces".to_owned());
        }
        let mut words = Vec::new();
        for letters in expand_braces(&self.letters)? {
            let word = RawWord { letters, ..self.clone() };
            // A word without letters is left out unless there are quotes.
            if !word.is_empty() {
                words.push(word.argument()?);
            }
        }
        Ok(words)
    }

    /// The one argument that it becomes where bash does not split words nor look for names.
    pub(super) fn argument_or_unknown(mut self) -> Word {
        self.settle_root();
        let text = self.text();
        Word { text, is_arbitrary: self.is_arbitrary, is_home: self.root == Root::Home, ..Word::default() }
    }

    /// `$HOMEx` is not the home directory.
    fn settle_root(&mut self) {
        let is_directory = self.letters.get(1).is_none_or(|letter| letter.c == '/');
        if self.root == Root::None || is_directory {
            return;
        }
        self.letters[0].c = '\0';
        self.is_split |= !self.is_quoted;
        self.root = Root::None;
    }

    fn argument(&self) -> Result<Word, String> {
        let special = |letter: &Letter| matches!(letter.c, '*' | '?' | '[');
        let live = self.letters.iter().filter(|letter| letter.is_live && special(letter)).count();
        // A bracket alone is the name of a command.
        let is_pattern = live > 0 && !(self.letters.len() == 1 && self.letters[0].c == '[');
        if is_pattern && is_unusual_pattern(self.pairs()) {
            return Err("it uses an unusual glob pattern".to_owned());
        }
        let text = self.text();
        let choices: Vec<LinePath> =
            if text == "\0" { taken(&self.names, NameEnd::Word).collect() } else { Vec::new() };
        let is_list = !choices.is_empty();
        Ok(Word {
            text,
            is_pattern,
            is_split: self.is_split,
            is_arbitrary: self.is_arbitrary && !(is_list && choices.iter().all(is_led)),
            is_home: self.root == Root::Home,
            choices,
        })
    }
}

fn is_name(letter: Letter) -> bool {
    letter.is_live && (letter.c.is_ascii_alphanumeric() || letter.c == '_')
}

/// The words that lists and sequences in braces stand for. Braces inside braces are refused.
fn expand_braces(letters: &[Letter]) -> Result<Vec<Vec<Letter>>, String> {
    let mut words = vec![Vec::new()];
    let mut at = 0;
    while at < letters.len() {
        if !is_live(letters[at], '{') {
            for word in &mut words {
                word.push(letters[at]);
            }
            at += 1;
            continue;
        }
        let Some(length) = letters[at + 1..].iter().position(|letter| is_live(*letter, '}')) else {
            return Err("it uses braces in an unusual way".to_owned());
        };
        let inner = &letters[at + 1..at + 1 + length];
        let parts = alternatives(inner)?;
        if words.len() * parts.len() > EXPANDED_MAX {
            return Err("its braces expand to too many words".to_owned());
        }
        words = words.iter().flat_map(|word| parts.iter().map(|part| [&word[..], part].concat())).collect();
        at += length + 2;
    }
    Ok(words)
}

fn is_live(letter: Letter, c: char) -> bool {
    letter.is_live && letter.c == c
}

fn alternatives(inner: &[Letter]) -> Result<Vec<Vec<Letter>>, String> {
    if inner.iter().any(|letter| matches!(letter.c, '{' | '\0' | '\\' | '$')) {
        return Err("it nests braces".to_owned());
    }
    if inner.iter().any(|letter| is_live(*letter, ',')) {
        return Ok(inner.split(|letter| is_live(*letter, ',')).map(<[Letter]>::to_vec).collect());
    }
    let text: String = inner.iter().map(|letter| letter.c).collect();
    if inner.is_empty() || !text.contains("..") {
        // Not a list: the braces stay.
        let brace = |c| Letter { c, is_live: true };
        return Ok(vec![[&[brace('{')], inner, &[brace('}')]].concat()]);
    }
    let numbers = text.split_once("..").and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let Some((first, last)) = numbers.filter(|_| inner.iter().all(|letter| letter.is_live)) else {
        return Err("it uses an unusual sequence in braces".to_owned());
    };
    if first.abs_diff(last) >= EXPANDED_MAX as u64 {
        return Err("its braces expand to too many words".to_owned());
    }
    let numbers: Vec<i64> =
        if first <= last { (first..=last).collect() } else { (last..=first).rev().collect() };
    let letters = |number: &i64| number.to_string().chars().map(|c| Letter { c, is_live: true }).collect();
    Ok(numbers.iter().map(letters).collect())
}

/// A number without a sign and without zeros in front.
fn number(text: &str) -> Option<i64> {
    let plain = text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}
