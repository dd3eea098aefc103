//! The ends of regular expressions, and brackets in them, which may hold the character that would end one.

/// The text behind the next delimiter without a backslash in front; nothing if the line ends before.
pub(super) fn skip_to(mut text: &str, delimiter: char, has_brackets: bool) -> Option<&str> {
    loop {
        let c = text.chars().next()?;
        text = &text[c.len_utf8()..];
        match c {
            '\\' => text = &text[text.chars().next()?.len_utf8()..],
            '\n' => return None,
            c if c == delimiter => return Some(text),
            '[' if has_brackets => text = skip(text, delimiter)?,
            _ => {}
        }
    }
}

/// The text behind a bracket expression whose `[` was taken; nothing if programs read the expression differently.
fn skip(text: &str, delimiter: char) -> Option<&str> {
    let text = text.strip_prefix('^').unwrap_or(text);
    // A bracket that comes first means itself.
    let mut rest = text.strip_prefix(']').unwrap_or(text);
    loop {
        let c = rest.chars().next()?;
        let tail = &rest[c.len_utf8()..];
        rest = match c {
            ']' => return Some(tail),
            '\n' => return None,
            c if c == delimiter => return None,
            '\\' if tail.starts_with([']', '\\', '[']) => return None,
            '[' if tail.starts_with(':') => {
                let name = tail[1..].find(|c: char| !c.is_ascii_lowercase())?;
                tail[1 + name..].strip_prefix(":]")?
            }
            '[' if tail.starts_with(['.', '=']) => return None,
            _ => tail,
        };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn brackets_end_where_they_end() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(super::skip(text, '/'), expected, "{text:?}");
        check("abc]d", Some("d"));
        check("^abc]d", Some("d"));
        check("]a]d", Some("d"));
        check("^]a]d", Some("d"));
        check("[:space:]_]d", Some("d"));
        check("[a]]d", Some("]d"));
        check("\\n]d", Some("d"));
        for refused in ["a/b]", "abc", "\\]]", "[:space", "[:space:/]", "[.a.]]", "a\n]", ""] {
            check(refused, None);
        }
    }
}
