//! Texts that have to be shorter.

use std::borrow::Cow;

/// The first characters of a text, and a mark such as `…` in place of the rest.
pub fn shorten<'a>(text: &'a str, chars_max: usize, mark: &str) -> Cow<'a, str> {
    match beginning(text, chars_max) {
        None => Cow::Borrowed(text),
        Some(beginning) => Cow::Owned(format!("{beginning}{mark}")),
    }
}

/// The first characters of a text that has more of them.
pub fn beginning(text: &str, chars_max: usize) -> Option<&str> {
    text.char_indices().nth(chars_max).map(|(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let check = |text: &str, expected: &str| assert_eq!(shorten(text, 3, "…"), expected);
        check("", "");
        check("äöü", "äöü");
        check("äöüß", "äöü…");
        assert_eq!(shorten(&"ü".repeat(100), 60, "..."), format!("{}...", "ü".repeat(60)));
        assert_eq!((beginning("abc", 3), beginning("abc", 0)), (None, Some("")));
    }
}
