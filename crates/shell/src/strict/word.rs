//! From the characters of a word to the arguments it becomes.

use super::is_led;
use crate::effect::taken;
use crate::expansion::{EXPANDED_MAX, USUAL_LENGTH, WordLetter, is_unusual_pattern, may_move_tilde, text_of};
use crate::names::{is_digits, is_name_char};
use crate::{LinePath, NameEnd, Word};

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
    pub(super) letters: Vec<WordLetter>,
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
        Self { letters: Vec::with_capacity(USUAL_LENGTH), ..Self::default() }
    }

    pub(super) fn push(&mut self, c: char, is_live: bool) {
        self.letters.push((c, is_live));
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
        (self.is_plain() && self.letters.iter().all(|(_, is_live)| *is_live)).then(|| self.text())
    }

    /// Whether it is this text, without any quoting.
    pub(super) fn is_bare(&self, text: &str) -> bool {
        self.is_plain() && text.chars().map(|c| (c, true)).eq(self.letters.iter().copied())
    }

    fn is_plain(&self) -> bool {
        !self.is_quoted && !self.is_continued && self.root == Root::None
    }

    pub(super) fn text(&self) -> String {
        text_of(&self.letters)
    }

    /// The name and the value, if the word would be an assignment at the start of a command.
    pub(super) fn assignment(&self) -> Option<(String, RawWord)> {
        let at = self.letters.iter().position(|letter| !is_name(*letter))?;
        if at == 0 || self.letters[0].0.is_ascii_digit() || self.letters[at] != ('=', true) {
            return None;
        }
        let name = text_of(&self.letters[..at]);
        let value = RawWord { letters: self.letters[at + 1..].to_vec(), ..self.clone() };
        Some((name, value))
    }

    /// Whether bash may take the word for an assignment of another kind: `a+=b`, `a[0]=b`.
    pub(super) fn is_odd_assignment(&self) -> bool {
        let Some(at) = self.letters.iter().position(|letter| !is_name(*letter)) else { return false };
        let is_operator = matches!(self.letters[at], ('+' | '[', true));
        at > 0 && is_operator && self.letters[at..].iter().any(|(c, _)| *c == '=')
    }

    /// The arguments that bash makes of the word.
    pub(super) fn expand(mut self) -> Result<Vec<Word>, String> {
        self.settle_root();
        let live = |c: char| self.letters.contains(&(c, true));
        if !live('{') || !live('}') || !(live(',') || live('.')) {
            return Ok(vec![self.argument()?]);
        }
        if may_move_tilde(self.letters.iter().copied()) {
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
        let is_directory = self.letters.get(1).is_none_or(|(c, _)| *c == '/');
        if self.root == Root::None || is_directory {
            return;
        }
        self.letters[0].0 = '\0';
        self.is_split |= !self.is_quoted;
        self.root = Root::None;
    }

    fn argument(&self) -> Result<Word, String> {
        let has_special = self.letters.iter().any(|letter| matches!(letter, ('*' | '?' | '[', true)));
        // A bracket alone is the name of a command.
        let is_pattern = has_special && !matches!(self.letters[..], [('[', _)]);
        if is_pattern && is_unusual_pattern(self.letters.iter().copied()) {
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

fn is_name((c, is_live): WordLetter) -> bool {
    is_live && is_name_char(c)
}

/// The words that lists and sequences in braces stand for. Braces inside braces are refused.
fn expand_braces(letters: &[WordLetter]) -> Result<Vec<Vec<WordLetter>>, String> {
    let mut words = vec![Vec::new()];
    let mut at = 0;
    while at < letters.len() {
        if letters[at] != ('{', true) {
            for word in &mut words {
                word.push(letters[at]);
            }
            at += 1;
            continue;
        }
        let Some(length) = letters[at + 1..].iter().position(|letter| *letter == ('}', true)) else {
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

fn alternatives(inner: &[WordLetter]) -> Result<Vec<Vec<WordLetter>>, String> {
    if inner.iter().any(|(c, _)| matches!(c, '{' | '\0' | '\\' | '$')) {
        return Err("it nests braces".to_owned());
    }
    if inner.contains(&(',', true)) {
        return Ok(inner.split(|letter| *letter == (',', true)).map(<[WordLetter]>::to_vec).collect());
    }
    let text = text_of(inner);
    if inner.is_empty() || !text.contains("..") {
        // Not a list: the braces stay.
        return Ok(vec![[&[('{', true)], inner, &[('}', true)]].concat()]);
    }
    let numbers = text.split_once("..").and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let Some((first, last)) = numbers.filter(|_| inner.iter().all(|(_, is_live)| *is_live)) else {
        return Err("it uses an unusual sequence in braces".to_owned());
    };
    if first.abs_diff(last) >= EXPANDED_MAX as u64 {
        return Err("its braces expand to too many words".to_owned());
    }
    let numbers: Vec<i64> =
        if first <= last { (first..=last).collect() } else { (last..=first).rev().collect() };
    let letters = |number: &i64| number.to_string().chars().map(|c| (c, true)).collect();
    Ok(numbers.iter().map(letters).collect())
}

/// A number without a sign and without zeros in front.
fn number(text: &str) -> Option<i64> {
    let is_plain = text.len() <= 9 && is_digits(text) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}
