//! Text that has to be shorter.

/// The beginning and the end of a text, with a word about what is left out; the whole if it is short enough.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let chars = text.chars().count();
    if chars <= chars_max {
        return text.to_owned();
    }
    let (head, tail) = head_and_tail(text, chars_max);
    format!("{head}\n[… {} characters omitted …]\n{tail}", chars - chars_max)
}

/// The first three quarters and the last quarter of so many characters.
pub(crate) fn head_and_tail(text: &str, chars: usize) -> (&str, &str) {
    let tail_chars = chars / 4;
    let head_end = place_of(text.char_indices(), chars - tail_chars).unwrap_or(text.len());
    let tail_start = match tail_chars {
        0 => text.len(),
        count => text.char_indices().rev().nth(count - 1).map_or(0, |(place, _)| place),
    };
    (&text[..head_end], &text[tail_start.max(head_end)..])
}

fn place_of(mut chars: impl Iterator<Item = (usize, char)>, nth: usize) -> Option<usize> {
    chars.nth(nth).map(|(place, _)| place)
}

/// One line, at most so long.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match place_of(line.char_indices(), chars_max) {
        Some(end) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, chars_max: usize, expected: &str) {
        assert_eq!(clip(text, chars_max), expected);
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        check("äbcdefgh", 8, "äbcdefgh");
        check("äbcdefghijkl", 8, "äbcdef\n[… 4 characters omitted …]\nkl");
        check("abc", 0, "\n[… 3 characters omitted …]\n");
        check("", 0, "");
        assert_eq!(one_line(" a\n b  c ", 9), "a b c");
        assert_eq!(one_line("äöü", 2), "äö…");
    }
}
