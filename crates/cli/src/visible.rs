//! Text of which a person sees every character: what is approved is what runs.

use std::fmt::Write as _;

/// More blanks in a row than this are counted instead of shown: something may hide behind them.
const BLANKS_MAX: usize = 20;

/// The text with a mark in place of every character that cannot be seen or that moves others. Line ends stay.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' => {
                let mut count = 1;
                while chars.next_if_eq(&' ').is_some() {
                    count += 1;
                }
                if count > BLANKS_MAX {
                    let _ = write!(shown, "<{count} blanks>");
                } else {
                    shown.extend(std::iter::repeat_n(' ', count));
                }
            }
            '\n' => shown.push('\n'),
            c if is_plain(c) => shown.push(c),
            c => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(c));
            }
        }
    }
    shown
}

/// Whether a character shows itself, takes a place of its own and leaves others where they are.
fn is_plain(c: char) -> bool {
    let hides = c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    let is_odd_blank = c.is_whitespace() && c != ' ';
    !(hides || is_odd_blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_seen() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("git status", "git status");
        check("a\nb", "a\nb");
        check("ls\u{1b}[2K\r", "ls<U+001B>[2K<U+000D>");
        check("a\tb", "a<U+0009>b");
        check("x\u{202e}gnp", "x<U+202E>gnp");
        check("a\u{200b}b\u{a0}c", "a<U+200B>b<U+00A0>c");
        check("\u{e0041}", "<U+E0041>");
        check("é 日本", "é 日本");
        check(&format!("ls{}; sh x", " ".repeat(2000)), "ls<2000 blanks>; sh x");
        check(&format!("a{}b", " ".repeat(20)), &format!("a{}b", " ".repeat(20)));
    }
}
