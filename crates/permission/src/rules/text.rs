//! Stars in names of tools, hosts and values.

/// Whether a text is what a pattern says; `*` stands for anything.
pub(crate) fn covers(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether a list with blanks between its names holds a name.
pub(crate) fn is_listed(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// A name as restrictions compare it: without case, in the composed form.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // There and back: some letters have no lower case of their own, and are the same as one that has.
    icu_normalizer::ComposingNormalizerBorrowed::new_nfc().normalize(text).to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        let check = |pattern, text, expected| assert_eq!(covers(pattern, text), expected, "{pattern} {text}");
        check("a", "a", true);
        check("a", "ab", false);
        check("*", "", true);
        check("a*", "a", true);
        check("a*b", "ab", true);
        check("a*b", "axxb", true);
        check("a*a", "a", false);
        check("*s*x", "ssx", true);
        check("*s*x", "sx", true);
        check("*x", "xy", false);
        check("B*h*", "Bash", true);
        check("", "", true);
        check("", "a", false);
    }

    #[test]
    fn names_are_compared_without_case_and_in_one_form() {
        assert_eq!(fold(".ENV"), ".env");
        assert_eq!(fold(".v\u{17f}code"), ".vscode");
        assert_eq!(fold(".hus\u{212a}y"), ".husky");
        assert_eq!(fold("Cafe\u{301}"), fold("CAFÉ"));
    }
}
