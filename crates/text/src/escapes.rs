//! Text without escape sequences: whole sequences go, not only the character that begins them.

/// Where in a sequence a text is.
#[derive(Clone, Copy, Default)]
enum State {
    /// In none.
    #[default]
    Text,
    /// Behind the escape character.
    Begun,
    /// In one that ends with its first letter or digit, such as the choice of a character set.
    Short,
    /// In a control sequence: parameters, then a letter.
    Control,
    /// In a string for the terminal, such as a title or a link.
    String,
}

/// Drops every escape sequence, in both spellings; a string without an end goes up to the end of its line.
pub fn without_sequences(text: &str) -> String {
    let mut filter = SequenceFilter::default();
    text.chars().filter_map(|c| filter.pass(c)).collect()
}

/// Does so for text that comes in pieces.
#[derive(Clone, Copy, Default)]
pub struct SequenceFilter(State);

impl SequenceFilter {
    /// The character, unless it is part of a sequence.
    pub fn pass(&mut self, c: char) -> Option<char> {
        let (next, stays) = step(self.0, c);
        self.0 = next;
        stays.then_some(c)
    }

    /// Whether nothing of a sequence has come but the character that begins it.
    pub fn has_only_begun(self) -> bool {
        matches!(self.0, State::Begun)
    }
}

/// What a character leads to, and whether it is part of the text.
fn step(state: State, c: char) -> (State, bool) {
    match (state, c) {
        (_, '\x1b') => (State::Begun, false),
        (State::Begun, '[') | (State::Control, ' '..='?') => (State::Control, false),
        (State::Begun, ']' | 'P' | 'X' | '^' | '_') => (State::String, false),
        (State::Begun | State::Short, ' '..='/') => (State::Short, false),
        (State::Begun | State::Short, '0'..='~')
        | (State::Control, '@'..='~')
        | (State::String, '\x07' | '\x18' | '\x1a' | '\u{9c}') => (State::Text, false),
        (State::String, c) if c != '\n' => (State::String, false),
        (_, '\u{9b}') => (State::Control, false),
        (_, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => (State::String, false),
        _ => (State::Text, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sequences_are_dropped() {
        let check = |text: &str, expected: &str| assert_eq!(without_sequences(text), expected, "{text:?}");
        check("a\x1b[1;31mb\x1b[0mc", "abc");
        check("a\u{9b}2Jb", "ab");
        check("a\x1b[?25l\x1b[38:2::1:2:3mb", "ab");
        check("a\x1b]0;title\x07b", "ab");
        check("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
        check("a\u{9d}0;t\u{9c}b", "ab");
        check("a\x1bPq#0\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde");
        check("a\u{90}q\u{9c}b\u{9f}x\u{9c}c", "abc");
        check("a\x1b7b\x1bcc\x1b(Bd\x1b=e", "abcde");
    }

    #[test]
    fn what_is_no_sequence_stays() {
        let check = |text: &str, expected: &str| assert_eq!(without_sequences(text), expected, "{text:?}");
        check("plain [31m ] text\n", "plain [31m ] text\n");
        check("a\x1b", "a");
        check("a\x1b\u{e9}", "a\u{e9}");
        check("a\x1b[1\nb", "a\nb");
        check("a\x1b[12\u{e9}", "a\u{e9}");
        check("a\x1b]no end\nb", "a\nb");
        check("a\x1b[1\x1b[2mb", "ab");
    }
}
