//! The one table of characters without a look of their own, for everything that shows text of others.

/// How a character escapes the eye. Ordered: where one is a danger, so are those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invisible {
    /// A control character, also a line end and a tab.
    Control,
    /// Reorders or hides others: marks of direction, separators, blanks without width.
    Reordering,
    /// Is shown only at times, or never: soft hyphens, annotations, tags.
    Unshown,
    /// Takes no place, or that of a blank: joiners, fillers, selectors, every blank but the space.
    Blank,
    /// Looks different everywhere: private characters, musical and shorthand controls.
    Private,
    /// Is a mark for other characters of its script, or no character at all.
    Unassigned,
}

use Invisible::{Blank, Private, Reordering, Unassigned, Unshown};

/// From, to, and how; in order.
const RANGES: [(char, char, Invisible); 39] = [
    ('\u{a0}', '\u{a0}', Blank),
    ('\u{ad}', '\u{ad}', Unshown),
    ('\u{34f}', '\u{34f}', Blank),
    ('\u{600}', '\u{605}', Unassigned),
    ('\u{61c}', '\u{61c}', Reordering),
    ('\u{6dd}', '\u{6dd}', Unassigned),
    ('\u{70f}', '\u{70f}', Unassigned),
    ('\u{115f}', '\u{1160}', Blank),
    ('\u{1680}', '\u{1680}', Blank),
    ('\u{17b4}', '\u{17b5}', Blank),
    ('\u{180b}', '\u{180d}', Blank),
    ('\u{180e}', '\u{180e}', Unshown),
    ('\u{180f}', '\u{180f}', Blank),
    ('\u{2000}', '\u{200a}', Blank),
    ('\u{200b}', '\u{200b}', Reordering),
    ('\u{200c}', '\u{200d}', Blank),
    ('\u{200e}', '\u{200f}', Reordering),
    ('\u{2028}', '\u{202e}', Reordering),
    ('\u{202f}', '\u{202f}', Blank),
    ('\u{205f}', '\u{205f}', Blank),
    ('\u{2060}', '\u{206f}', Reordering),
    ('\u{2800}', '\u{2800}', Private),
    ('\u{3000}', '\u{3000}', Blank),
    ('\u{3164}', '\u{3164}', Blank),
    ('\u{e000}', '\u{f8ff}', Private),
    ('\u{fe00}', '\u{fe0f}', Blank),
    ('\u{feff}', '\u{feff}', Reordering),
    ('\u{ffa0}', '\u{ffa0}', Blank),
    ('\u{fff0}', '\u{fff8}', Blank),
    ('\u{fff9}', '\u{fffb}', Unshown),
    ('\u{fffe}', '\u{ffff}', Unassigned),
    ('\u{110bd}', '\u{110bd}', Unassigned),
    ('\u{13430}', '\u{1345f}', Unassigned),
    ('\u{1bca0}', '\u{1bca3}', Private),
    ('\u{1d159}', '\u{1d159}', Unassigned),
    ('\u{1d173}', '\u{1d17a}', Private),
    ('\u{e0000}', '\u{e007f}', Unshown),
    ('\u{e0080}', '\u{e0fff}', Blank),
    ('\u{e1000}', '\u{10ffff}', Unassigned),
];

/// How a character escapes the eye; `None` if it shows itself, as the space does.
pub fn invisible(c: char) -> Option<Invisible> {
    if c.is_control() {
        return Some(Invisible::Control);
    }
    if c.is_ascii() {
        return None;
    }
    let at = RANGES.partition_point(|(_, last, _)| *last < c);
    RANGES.get(at).filter(|(first, _, _)| *first <= c).map(|(_, _, how)| *how)
}

/// Whether a character is invisible in this way or a worse one.
pub fn hides(c: char, at_most: Invisible) -> bool {
    invisible(c).is_some_and(|how| how <= at_most)
}

/// A text in which everything that hides in this way or a worse one is written out.
pub fn visible(text: &str, at_most: Invisible) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c, at_most) {
            shown.push_str(&code_point(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A character written out: `<U+202E>`.
pub fn code_point(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order_and_every_odd_blank_is_in_them() {
        assert!(RANGES.iter().all(|(first, last, _)| first <= last));
        assert!(RANGES.windows(2).all(|pair| pair[0].1 < pair[1].0));
        let blanks = ('\0'..=char::MAX).filter(|c| c.is_whitespace() && *c != ' ');
        for c in blanks {
            assert!(hides(c, Blank), "{}", code_point(c));
        }
    }

    #[test]
    fn characters_are_where_they_belong() {
        let check = |c: char, expected: Option<Invisible>| assert_eq!(invisible(c), expected, "{c:?}");
        for c in [' ', 'a', '~', 'é', '日', '\u{301}', '\u{fdd0}', '\u{fffd}', '🎉'] {
            check(c, None);
        }
        check('\n', Some(Invisible::Control));
        check('\u{9b}', Some(Invisible::Control));
        check('\u{202e}', Some(Reordering));
        check('\u{feff}', Some(Reordering));
        check('\u{ad}', Some(Unshown));
        check('\u{e0041}', Some(Unshown));
        check('\u{200d}', Some(Blank));
        check('\u{3000}', Some(Blank));
        check('\u{e000}', Some(Private));
        check('\u{10ffff}', Some(Unassigned));
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text, Blank), expected);
        check("Bash(ls -l) ü 漢 \u{e000}", "Bash(ls -l) ü 漢 \u{e000}");
        check("a\u{1b}]0;x\u{7}\n", "a<U+001B>]0;x<U+0007><U+000A>");
        check("a\u{202e}b\u{200b}c\u{a0}d\u{e0041}", "a<U+202E>b<U+200B>c<U+00A0>d<U+E0041>");
    }
}
