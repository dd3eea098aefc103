//! Text of which a person sees every character: what is approved is what runs.

use std::fmt::Write as _;

use windlass_text::invisible::{Invisible, code_point, hides};

/// More blanks in a row than this are counted instead of shown: something may hide behind them.
const BLANKS_MAX: usize = 20;

/// More tabs in a row than this are counted for the same reason; code is seldom deeper.
const TABS_MAX: usize = 8;

/// Where a tab is shown as it is. It looks like blanks, which matters where blanks have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tabs {
    /// Nowhere.
    Marked,
    /// At the beginning of a line: nothing stands before it that it could be taken for a part of.
    Leading,
    /// Everywhere.
    Shown,
}

/// The text with a mark in place of every character that cannot be seen or that moves others. Line ends stay.
pub(crate) fn visible(text: &str) -> String {
    visible_with(text, Tabs::Marked)
}

/// The same for a command line. Between its words a tab could pass for a blank, and `a<tab>b` is not `a b` in quotes.
pub(crate) fn visible_command(text: &str) -> String {
    visible_with(text, Tabs::Leading)
}

/// The same for what stands in files, where tabs are as good as any other character.
pub(crate) fn visible_content(text: &str) -> String {
    visible_with(text, Tabs::Shown)
}

fn visible_with(text: &str, tabs: Tabs) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut at_beginning = true;
    while let Some(c) = chars.next() {
        let shows_tabs = tabs == Tabs::Shown || (tabs == Tabs::Leading && at_beginning);
        at_beginning = c == '\n' || (at_beginning && c == '\t');
        match c {
            ' ' | '\t' if c == ' ' || shows_tabs => {
                let (most, name) = if c == ' ' { (BLANKS_MAX, "blanks") } else { (TABS_MAX, "tabs") };
                let mut count = 1;
                while chars.next_if_eq(&c).is_some() {
                    count += 1;
                }
                if count > most {
                    let _ = write!(shown, "<{count} {name}>");
                } else {
                    shown.extend(std::iter::repeat_n(c, count));
                }
            }
            '\n' => shown.push('\n'),
            c if hides(c, Invisible::Private) => shown.push_str(&code_point(c)),
            c => shown.push(c),
        }
    }
    shown
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
        check("\ta", "<U+0009>a");
        check("x\u{202e}gnp", "x<U+202E>gnp");
        check("a\u{200b}b\u{a0}c", "a<U+200B>b<U+00A0>c");
        check("\u{e0041}", "<U+E0041>");
        check("é 日本", "é 日本");
        check(&format!("ls{}; sh x", " ".repeat(2000)), "ls<2000 blanks>; sh x");
        check(&format!("a{}b", " ".repeat(20)), &format!("a{}b", " ".repeat(20)));
    }

    #[test]
    fn a_tab_is_a_tab_where_it_cannot_deceive() {
        let check = |text: &str, command: &str, content: &str| {
            assert_eq!((visible_command(text).as_str(), visible_content(text).as_str()), (command, content));
        };
        check("all:\n\t\tcc x\r", "all:\n\t\tcc x<U+000D>", "all:\n\t\tcc x<U+000D>");
        check("rm a\tb", "rm a<U+0009>b", "rm a\tb");
        check(" \tx", " <U+0009>x", " \tx");
        check("\t".repeat(9).as_str(), "<9 tabs>", "<9 tabs>");
        check(&format!("a{}b", "\t".repeat(9)), &format!("a{}b", "<U+0009>".repeat(9)), "a<9 tabs>b");
    }
}
