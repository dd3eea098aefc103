//! Fitting text into columns.

use std::os::fd::AsFd;

/// The width of whatever does not tell its own.
const COLUMNS: usize = 80;

/// The height of whatever does not tell its own.
const ROWS: usize = 24;

/// The width of a terminal.
pub(crate) fn columns(terminal: impl AsFd) -> usize {
    size(terminal).0
}

/// The columns and rows of a terminal.
pub(crate) fn size(terminal: impl AsFd) -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(terminal).ok();
    let or = |told: Option<u16>, otherwise| told.filter(|&told| told > 0).map_or(otherwise, usize::from);
    (or(size.map(|size| size.ws_col), COLUMNS), or(size.map(|size| size.ws_row), ROWS))
}

/// Whether terminals here can clear lines and write them again. One without a name, or called `dumb`, takes no escape sequences.
pub(crate) fn can_redraw() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// How many columns a line takes. A character outside ASCII counts as two, which is never too few.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// The same where every terminal agrees on it: text in Latin, Greek or Cyrillic letters with the usual punctuation.
pub(crate) fn certain_width(text: &str) -> Option<usize> {
    let is_narrow = |c: char| {
        matches!(c, ' '..='~' | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{52f}'
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '€')
    };
    text.chars().all(is_narrow).then(|| text.chars().count())
}

/// Cuts a line to a number of columns.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = if columns > 3 { "..." } else { "" };
    let mut used = mark.len();
    let fits = |c: &char| {
        used += char_width(*c);
        used <= columns
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push_str(mark);
    short
}

/// The end of a line that fits into a number of columns.
pub(crate) fn end(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let fits = |(_, c): &(usize, char)| {
        used += char_width(*c);
        used <= columns
    };
    let start = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

/// Cuts two texts so that both show in a number of columns; what one does not need, the other gets.
pub(crate) fn share(first: &str, second: &str, columns: usize) -> (String, String) {
    let rest = columns.saturating_sub(width(first));
    let second = cut(second, rest.max(columns / 2));
    (cut(first, columns.saturating_sub(width(&second))), second)
}

/// Breaks long lines at blanks; the rest hangs behind the indentation or the second column of a table.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, columns)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let indentation = line.len() - line.trim_start().len();
    let (head, rest) = line.split_at(second_column(line, indentation).unwrap_or(indentation));
    let mut wrapped = head.to_owned();
    let mut used = width(head);
    let mut fresh = true;
    let mut hang = used;
    if hang * 5 > columns * 3 {
        hang = (indentation + 4).min(columns / 4);
        wrapped.truncate(head.trim_end().len());
        (used, fresh) = (columns, wrapped.is_empty());
    }
    for word in rest.split(' ').filter(|word| !word.is_empty()) {
        if !fresh && used + 1 + width(word) > columns {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(hang));
            (used, fresh) = (hang, true);
        }
        if !fresh {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += width(word);
        fresh = false;
    }
    wrapped
}

/// Where the second column of a line of a table begins: behind the first run of several blanks.
fn second_column(line: &str, indentation: usize) -> Option<usize> {
    let gap = indentation + line[indentation..].find("  ")?;
    let text = line[gap..].trim_start();
    (!text.is_empty()).then(|| line.len() - text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_terminal() {
        let check = |text: &str, columns, expected: &str| assert_eq!(cut(text, columns), expected);
        check("12345", 5, "12345");
        check("123456", 5, "12...");
        check("日本語", 5, "日...");
        check("abc", 2, "ab");
        check("abc", 0, "");
        check("日本", 3, "日");
    }

    #[test]
    fn the_end_of_a_line_fits_the_terminal() {
        let check = |text: &str, columns, expected: &str| assert_eq!(end(text, columns), expected);
        check("abc", 3, "abc");
        check("abc", 2, "bc");
        check("a日本", 3, "本");
        check("abc", 0, "");
    }

    #[test]
    fn two_texts_share_a_line() {
        let check = |first: &str, second: &str, columns, expected: (&str, &str)| {
            let shared = share(first, second, columns);
            assert_eq!((shared.0.as_str(), shared.1.as_str()), expected);
        };
        check("ab", "cd", 10, ("ab", "cd"));
        check("abcdefghij", "cd", 10, ("abcde...", "cd"));
        check("ab", "cdefghijklmn", 10, ("ab", "cdefg..."));
        check("abcdefghij", "0123456789", 10, ("ab...", "01..."));
        check("abcdefghij", "0123456789", 0, ("", ""));
    }

    #[test]
    fn lines_are_wrapped_below_their_text() {
        let check = |text: &str, columns, expected: &str| assert_eq!(wrap(text, columns), expected);
        check("one two three", 80, "one two three");
        check("one two three", 8, "one two\nthree");
        check("one\n\ntwo  three", 20, "one\n\ntwo  three");
        check("  one two three", 10, "  one two\n  three");
        check("  -a  one two three", 13, "  -a  one two\n      three");
        check("  --a-long-flag  one two", 20, "  --a-long-flag\n     one two");
        check("unbreakable", 4, "unbreakable");
        check("a unbreakable b", 4, "a\nunbreakable\nb");
        check("one two", 0, "one\ntwo");
    }
}
