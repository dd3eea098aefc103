//! Other programs that a command is told to run: by an option, by a setting, or in the language inside it.
//!
//! A rule with a star means the program that it names, so what is found here has to stand in the rule as well. Whoever looks for
//! what a rule denies looks in `all_commands`, and further: there a wrong guess is a question too many, here it is one in everyday work.

mod builds;
mod git;
mod harmless;
mod languages;
mod options;
mod printed;
#[cfg(test)]
mod tests;

pub(crate) use printed::prints_no_option;

use std::sync::LazyLock;

use crate::Word;
use crate::expansion::may_take_next;
use crate::names::{Sieve, has_name, letter_group};

static MAY_TELL: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(names()));

/// The programs that can be told to run another one.
fn names() -> impl Iterator<Item = &'static str> {
    options::names().chain(ordered()).chain([languages::UNORDERED])
}

/// Those of which not every word is looked at for itself.
fn ordered() -> impl Iterator<Item = &'static str> {
    [git::NAMES, builds::NAMES].into_iter().chain(languages::ORDERED)
}

/// In a loop with more turns nobody looks at each.
const TURNS_MAX: usize = 256;

/// A command that is looked through.
struct Telling<'a> {
    /// The last part of its name.
    base: &'a str,
    words: &'a [Word],
    /// So many words a rule has to spell out.
    spelled: usize,
}

/// How many words of a command a rule has to spell out because another program is named in them; nothing if there is none.
pub(crate) fn spelled(words: &[Word], gets_anything: bool) -> Option<usize> {
    let base = crate::effect::base_name(&words.first()?.text);
    if !MAY_TELL.may_have(base) {
        return None;
    }
    if (gets_anything || words.iter().any(|word| word.is_arbitrary))
        && printed::may_tell(base, words, gets_anything)
    {
        return Some(words.len() + usize::from(gets_anything));
    }
    if let Some(at) = shifting(base, words) {
        return Some(at + 1);
    }
    let written = told(base, words);
    if may_be_told(base, words) { Some(words.len()) } else { written }
}

/// The option that may take one word more or less than it seems to, if a word behind it means something else then. Most programs are judged
/// by each word for itself, up to the dashes that end options. No rule can spell such an option out.
fn shifting(base: &str, words: &[Word]) -> Option<usize> {
    let is_ordered = ordered().any(|names| has_name(names, base));
    let at = words.iter().position(|word| may_take_next(base, &word.text))?;
    (is_ordered || words.iter().any(|word| word.text == "--")).then_some(at)
}

fn told(base: &str, words: &[Word]) -> Option<usize> {
    let mut telling = Telling { base, words, spelled: 0 };
    options::look(&mut telling);
    git::look(&mut telling);
    builds::look(&mut telling);
    languages::look(&mut telling);
    (telling.spelled > 0).then_some(telling.spelled)
}

/// Whether a command of a loop is told to run something by what it goes through.
fn may_be_told(base: &str, words: &[Word]) -> bool {
    let turns = words.iter().map(|word| word.choices.len()).max().unwrap_or(0);
    let varying = words.iter().filter(|word| !word.choices.is_empty()).count();
    let in_turn = |turn: usize| {
        let all: Vec<Word> = words.iter().map(|word| chosen(word, turn)).collect();
        // Words of different loops are in no order, so each is looked at beside unknown ones too.
        let alone = |at: usize| {
            if words[at].choices.is_empty() {
                return false;
            }
            let mut one = words.to_vec();
            one[at] = all[at].clone();
            told(base, &one).is_some()
        };
        told(base, &all).is_some() || (varying > 1 && (1..words.len()).any(alone))
    };
    turns * varying > TURNS_MAX || (0..turns).any(in_turn)
}

fn chosen(word: &Word, turn: usize) -> Word {
    match word.choices.get(turn) {
        Some(choice) => Word::new(choice.marked()),
        None => word.clone(),
    }
}

impl<'a> Telling<'a> {
    /// The arguments with their places, up to the dashes that end options.
    fn options(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.arguments().take_while(|(_, text)| *text != "--")
    }

    fn arguments(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.words.iter().map(|word| word.text.as_str()).enumerate().skip(1)
    }

    fn text(&self, at: usize) -> Option<&'a str> {
        self.words.get(at).map(|word| word.text.as_str())
    }

    /// The word at this place tells what is run.
    fn tells(&mut self, at: usize) {
        self.spelled = self.spelled.max((at + 1).min(self.words.len()));
    }

    /// Every word that runs something tells it.
    fn tells_each(&mut self, runs: impl Fn(&str) -> bool) {
        if let Some((at, _)) = self.arguments().filter(|(_, word)| runs(word)).last() {
            self.tells(at);
        }
    }

    /// The value of an option, if it has one, tells it, unless that is harmless.
    fn tells_value(&mut self, at: usize, value: Option<Value<'_>>, is_harmless: fn(&str) -> bool) {
        let (place, value) = match value {
            None => return,
            Some(Value::InWord(value)) => (at, Some(value)),
            Some(Value::Next) => (at + 1, self.text(at + 1)),
        };
        if !value.is_some_and(is_harmless) {
            self.tells(place);
        }
    }
}

/// Where the value of an option is.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// In the same word.
    InWord(&'a str),
    /// It is the next word, if there is a value.
    Next,
}

impl<'a> Value<'a> {
    /// What stands behind the letter of an option.
    fn behind(letter: &'a str) -> Self {
        if letter.is_empty() { Self::Next } else { Self::InWord(letter) }
    }

    fn in_word(self) -> Option<&'a str> {
        match self {
            Self::InWord(value) => Some(value),
            Self::Next => None,
        }
    }
}

/// The name of an option without dashes, and its value.
fn name_and_value(option: &str) -> (&str, Value<'_>) {
    option.split_once('=').map_or((option, Value::Next), |(name, value)| (name, Value::InWord(value)))
}

/// Options that are no abbreviations of others, though they look like it.
const WHOLE: &str = "checkpoint strip";

/// The value of an option behind two dashes, or of an abbreviation of it.
fn long_option<'a>(word: &'a str, names: &str) -> Option<Value<'a>> {
    let (name, value) = name_and_value(word.strip_prefix("--")?);
    let is_meant = |full: &str| !name.is_empty() && full.starts_with(name) && !has_name(WHOLE, name);
    names.split(' ').any(is_meant).then_some(value)
}

/// The value of the first of some letters in a group behind one dash. Behind a letter that takes a value there is no other.
fn short_option<'a>(word: &'a str, letters: &str, valued: &str) -> Option<Value<'a>> {
    let group = letter_group(word)?;
    let (at, letter) = group.char_indices().find(|(_, c)| letters.contains(*c) || valued.contains(*c))?;
    letters.contains(letter).then(|| Value::behind(&group[at + letter.len_utf8()..]))
}
