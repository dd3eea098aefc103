//! Words that bash expands in ways that are not followed: a line with one is not plain, an argument unknown.

use crate::names::{has_name, letter_group};

/// A character of a word, and whether it may mean something to the shell.
pub(crate) type WordLetter = (char, bool);

/// More words do not come from the braces of one word.
pub(crate) const EXPANDED_MAX: usize = 64;

/// Most words are not longer.
pub(crate) const USUAL_LENGTH: usize = 16;

pub(crate) fn text_of(letters: &[WordLetter]) -> String {
    letters.iter().map(|(c, _)| *c).collect()
}

/// Whether braces could move a `~` to the start of a word, where it names a home directory: `{~/a,b}`, `{,x}~/a`.
pub(crate) fn may_move_tilde(mut letters: impl Iterator<Item = WordLetter>) -> bool {
    letters.any(|letter| letter == ('{', true)) && letters.any(|letter| letter == ('~', true))
}

/// Whether an option behind one dash may turn out to have no value in its own word, so that it takes the next one: `-F"$x"`.
pub(crate) fn may_take_next(program: &str, word: &str) -> bool {
    let Some((known, _)) = letter_group(word).and_then(|letters| letters.split_once('\0')) else {
        return false;
    };
    // No option is one of these characters, so that they are part of a value. Behind `-j`, `make` takes numbers only.
    let has_value = known.contains(['=', '/', ':', ',', '.', ' ']);
    let is_jobs = known == "j" && has_name("make gmake", program);
    !has_value && !is_jobs
}

/// Whether the meaning of a pattern depends on the locale or the program: `[[:lower:]]`, braces, quotes, `é`.
pub(crate) fn is_unusual_pattern(letters: impl Iterator<Item = WordLetter> + Clone) -> bool {
    let has_set = letters.clone().any(|letter| letter == ('[', true));
    let mut before = ' ';
    for (c, is_live) in letters {
        // A NUL stands for what is only known at run time, and is taken for that elsewhere.
        let is_quoted = !is_live && c != '\0' && (has_set || matches!(c, '*' | '?' | '[' | ']'));
        let is_class = before == '[' && matches!(c, ':' | '=' | '.');
        if is_quoted || is_class || !c.is_ascii() || matches!(c, '{' | '}' | '\\') {
            return true;
        }
        before = c;
    }
    false
}

/// The same for a pattern that a program reads.
pub(crate) fn is_unusual_text(pattern: &str) -> bool {
    is_unusual_pattern(pattern.chars().map(|c| (c, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between apostrophes is what was quoted.
    fn letters(word: &str) -> Vec<WordLetter> {
        let pieces = word.split('\'').enumerate();
        pieces.flat_map(|(at, piece)| piece.chars().map(move |c| (c, at % 2 == 0))).collect()
    }

    #[test]
    fn a_tilde_behind_a_brace_may_come_first() {
        let check = |word: &str, expected: bool| {
            assert_eq!(may_move_tilde(letters(word).into_iter()), expected, "{word}");
        };
        for word in ["{~,x}", "{x,~/a}", "{,x}~/a", "a{~,b}", "{{~,a},b}"] {
            check(word, true);
        }
        for word in ["~/{a,b}", "HEAD~1:{a,b}", "{'~',x}", "{a,b}", "~", "'{'~,x}"] {
            check(word, false);
        }
    }

    #[test]
    fn patterns_that_mean_the_same_everywhere_are_usual() {
        let check = |word: &str, expected: bool| {
            assert_eq!(is_unusual_pattern(letters(word).into_iter()), expected, "{word}");
        };
        for word in ["*", "src/*.rs", "a?b", "[a-z]*", "*.[ch]", "[!a]x", "[^a]x", "'my dir'/*", "\0/*"] {
            check(word, false);
        }
        for word in [
            "[[:lower:]]x",
            "[[=k=]]x",
            "[[.k.]]x",
            "[^[:space:]]*",
            "é*",
            "[é]",
            "{a}*",
            "'{'*",
            "'*'?",
            "['!'a]x",
            "[a'-'z]",
            "'['a]*",
            "'\\'*",
        ] {
            check(word, true);
        }
        assert!(is_unusual_text("\\*.c") && !is_unusual_text("*.[ch]"));
    }
}
