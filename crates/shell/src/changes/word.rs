//! What a word means: its text, or several texts, or a pattern of names.

use super::lex::{Letter, Word};

/// Longer words name no file.
const LETTERS_MAX: usize = 4096;
/// Words that the braces of one word are expanded to.
const EXPANDED_MAX: usize = 64;

/// One argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    /// The text; for an unknown argument, the part that is known.
    pub(super) text: String,
    /// The text with what is no pattern in it escaped, if it is one.
    pub(super) pattern: Option<String>,
    /// It begins with a `~` that stands for the home directory.
    pub(super) home: bool,
    /// Only a running shell knows it.
    pub(super) unknown: bool,
}

impl Argument {
    /// The text, if it is known and no pattern.
    pub(super) fn literal(&self) -> Option<&str> {
        (!self.unknown && self.pattern.is_none()).then_some(&self.text)
    }

    /// The same argument without its first bytes, such as `of=`.
    pub(super) fn without(&self, prefix: &str) -> Option<Self> {
        let text = self.text.strip_prefix(prefix)?.to_owned();
        let pattern = match &self.pattern {
            Some(pattern) => Some(pattern.strip_prefix(prefix)?.to_owned()),
            None => None,
        };
        Some(Self { text, pattern, home: false, unknown: self.unknown })
    }
}

/// The arguments a word becomes: several if there are alternatives in braces.
pub(super) fn expand(word: &Word) -> Vec<Argument> {
    let live = |c: char| word.letters.iter().any(|letter| letter.live && letter.c == c);
    let many = live('{') && live('}');
    if word.unknown || word.letters.len() > LETTERS_MAX {
        return vec![argument(&word.letters, true)];
    }
    if !many {
        return vec![argument(&word.letters, false)];
    }
    let mut pending = vec![word.letters.clone()];
    let mut expanded = Vec::new();
    while let Some(letters) = pending.pop() {
        match alternatives(&letters) {
            Some(parts) if pending.len() + expanded.len() + parts.len() <= EXPANDED_MAX => {
                pending.extend(parts.into_iter().rev());
            }
            Some(_) => expanded.push(argument(&letters, true)),
            None => expanded.push(argument(&letters, is_sequence(&letters))),
        }
    }
    expanded
}

/// The words that the first innermost list in braces stands for.
fn alternatives(letters: &[Letter]) -> Option<Vec<Vec<Letter>>> {
    let live = |at: usize, c: char| letters[at].live && letters[at].c == c;
    let mut open = None;
    let mut comma = false;
    for at in 0..letters.len() {
        if live(at, '{') {
            (open, comma) = (Some(at), false);
        } else if live(at, ',') {
            comma = true;
        } else if live(at, '}')
            && comma
            && let Some(open) = open
        {
            let inner = letters[open + 1..at].split(|letter| letter.live && letter.c == ',');
            let whole = |part: &[Letter]| [&letters[..open], part, &letters[at + 1..]].concat();
            return Some(inner.map(whole).collect());
        }
    }
    None
}

/// Whether `{1..3}` may be in it.
fn is_sequence(letters: &[Letter]) -> bool {
    letters.windows(2).any(|two| two.iter().all(|letter| letter.live && letter.c == '.'))
        && letters.iter().any(|letter| letter.live && letter.c == '{')
}

fn argument(letters: &[Letter], unknown: bool) -> Argument {
    let text: String = letters.iter().map(|letter| letter.c).collect();
    let home = letters.first().is_some_and(|letter| letter.live && letter.c == '~');
    let is_pattern = letters.iter().any(|letter| letter.live && matches!(letter.c, '*' | '?' | '['));
    let pattern = is_pattern.then(|| escaped(letters));
    // Of another user only the system knows the home directory.
    let other_home = home && letters.get(1).is_some_and(|letter| letter.c != '/');
    Argument { text, pattern, home, unknown: unknown || other_home }
}

fn escaped(letters: &[Letter]) -> String {
    let mut pattern = String::with_capacity(letters.len() + 8);
    for letter in letters {
        if !letter.live && matches!(letter.c, '*' | '?' | '[' | ']' | '\\' | '{' | '}' | '!') {
            pattern.push('\\');
        }
        pattern.push(letter.c);
    }
    pattern
}
