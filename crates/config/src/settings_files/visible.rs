//! Text of a project, shown so that nothing in it can pretend to be something else.

use std::fmt::Write as _;

/// The text with everything that cannot be seen written out, as `<U+202E>`.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            let _ = write!(shown, "<U+{:04X}>", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The beginning of a text, for one line.
pub(crate) fn short(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Controls, marks without width, changes of direction, odd blanks and tags.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("Bash(ls -l) ü 漢", "Bash(ls -l) ü 漢");
        check("a\u{1b}]0;x\u{7}\n", "a<U+001B>]0;x<U+0007><U+000A>");
        check("a\u{202e}b\u{200b}c\u{a0}d\u{e0041}", "a<U+202E>b<U+200B>c<U+00A0>d<U+E0041>");
        assert_eq!(short(&"ü".repeat(100)), format!("{}...", "ü".repeat(60)));
        assert_eq!(short("short"), "short");
    }
}
