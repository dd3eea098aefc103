//! Lists of names with blanks between them, and whether a name is in one.

/// In a longer list it pays to look for the letters of a name first, wherever they stand.
const SHORT: usize = 128;

/// Whether a list with blanks between its names holds a name.
pub(crate) fn has_name(names: &str, name: &str) -> bool {
    if names.len() > SHORT && !names.contains(name) {
        return false;
    }
    let (names, name) = (names.as_bytes(), name.as_bytes());
    if name.is_empty() || name.contains(&b' ') {
        return false;
    }
    let mut rest = names;
    loop {
        let is_end = |at: usize| rest.get(at).is_none_or(|byte| *byte == b' ');
        if rest.first() == name.first() && rest.starts_with(name) && is_end(name.len()) {
            return true;
        }
        let Some(blank) = rest.iter().position(|byte| *byte == b' ') else { return false };
        rest = &rest[blank + 1..];
    }
}

/// Whether a character may stand in the name of a variable.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A text in front of an equals sign and behind it, if there is one.
pub(crate) fn name_and_value(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

/// The letters behind one dash, with what is attached to them.
pub(crate) fn letter_group(word: &str) -> Option<&str> {
    word.strip_prefix('-').filter(|group| !group.starts_with('-'))
}

/// The text behind the first of some letters in a group of them.
pub(crate) fn behind_letter<'a>(word: &'a str, letters: &str) -> Option<&'a str> {
    letter_group(word)?.split_once(|c| letters.contains(c)).map(|(_, behind)| behind)
}

/// Whether a text is a number without a sign.
pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where a text begins in another. Faster than looking for it in the usual way, which first studies what it looks for.
pub(crate) fn find_text(text: &str, wanted: &str) -> Option<usize> {
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    let first = *wanted.first()?;
    let last = text.len().checked_sub(wanted.len())?;
    (0..=last).find(|at| text[*at] == first && text[*at..].starts_with(wanted))
}

/// What stands in front of a text and behind it.
pub(crate) fn split_at_text<'a>(text: &'a str, wanted: &str) -> Option<(&'a str, &'a str)> {
    let at = find_text(text, wanted)?;
    Some((&text[..at], &text[at + wanted.len()..]))
}

/// Where a character first stands that no backslash is in front of.
pub(crate) fn find_unescaped(letters: impl Iterator<Item = (usize, char)>, wanted: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in letters {
        if c == wanted && !is_escaped {
            return Some(at);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

const BITS: usize = 1024;

/// Tells quickly that a name is in none of some lists, as most names are: each name of a list sets a bit.
pub(crate) struct Sieve([u64; BITS / 64]);

impl Sieve {
    /// One for the names of some lists.
    pub(crate) fn of<'a>(lists: impl IntoIterator<Item = &'a str>) -> Self {
        let mut bits = [0; BITS / 64];
        for bit in lists.into_iter().flat_map(|names| names.split(' ')).map(bit) {
            bits[bit / 64] |= 1 << (bit % 64);
        }
        Self(bits)
    }

    /// False only if the name is in none of the lists.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        let bit = bit(name);
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }
}

fn bit(name: &str) -> usize {
    let hash = name.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(0x9E37).wrapping_add(byte.into()));
    (hash ^ (hash >> 10)) % BITS
}

/// The names that rows of a table begin with.
pub(crate) fn firsts(rows: &'static [(&str, &str)]) -> impl Iterator<Item = &'static str> {
    rows.iter().map(|(names, _)| *names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "abcdefghij bcdefghijk cdefghijkl defghijklm efghijklmn fghijklmno ghijklmnop hijklmnopq ijklmnopqr jklmnopqrs \
        klmnopqrst lmnopqrstu mnopqrstuv";

    #[test]
    fn a_list_holds_its_names_and_nothing_else() {
        let check = |names: &str, name: &str, expected: bool| {
            assert_eq!(has_name(names, name), expected, "{name:?} in {names:?}");
            let may = Sieve::of([names]).may_have(name);
            assert!(may || !expected, "{name:?} falls through the sieve of {names:?}");
        };
        check("a bc d", "a", true);
        check("a bc d", "bc", true);
        check("a bc d", "d", true);
        check("a bc d", "b", false);
        check("a bc d", "c", false);
        check("a bc d", "bcd", false);
        check("a bc d", "a bc", false);
        check("a bc d", "", false);
        check("", "", false);
        check("", "a", false);
        check("a", "ab", false);
        check("ab a", "a", true);
        check("é e", "é", true);
        check(LONG, "mnopqrstuv", true);
        check(LONG, "defghijklm", true);
        check(LONG, "defghijkl", false);
        check(LONG, "defghijklm efghijklmn", false);
    }

    #[test]
    fn a_sieve_holds_back_most_names() {
        let sieve = Sieve::of([LONG]);
        let words = (0..1_000).map(|n| format!("word{n}"));
        assert!(words.filter(|word| sieve.may_have(word)).count() < 100);
    }

    #[test]
    fn a_text_is_found_where_it_first_stands() {
        let check = |text: &str, wanted: &str, expected: Option<(&str, &str)>| {
            assert_eq!(split_at_text(text, wanted), expected, "{wanted:?} in {text:?}");
        };
        check("a=ext::b=ext::c", "=ext::", Some(("a", "b=ext::c")));
        check("exec=", "exec=", Some(("", "")));
        check("exec", "exec=", None);
        check("éé=x", "=x", Some(("éé", "")));
        check("", "a", None);
    }
}
