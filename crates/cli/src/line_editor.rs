//! The line a person types, from the bytes that a terminal sends: enough to write and correct a line.

use crate::escape::SequenceFilter;

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const CTRL_W: u8 = 0x17;
const DELETE: u8 = 0x7f;

/// What a key press amounts to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The draft is another one.
    Changed,
    /// The draft is complete.
    Line(String),
    /// Ctrl-C, and there was no draft that it could clear.
    Interrupt,
    /// Ctrl-D, and there was no draft.
    End,
}

/// Makes lines of bytes. What is typed and not complete is the draft.
#[derive(Default)]
pub(crate) struct LineEditor {
    draft: String,
    /// The beginning of a character of several bytes.
    partial: Vec<u8>,
    /// Arrows and other keys without a meaning here send escape sequences.
    keys: SequenceFilter,
}

impl LineEditor {
    pub(crate) fn draft(&self) -> &str {
        &self.draft
    }

    /// Takes the draft away.
    pub(crate) fn take(&mut self) -> String {
        self.partial.clear();
        self.keys = SequenceFilter::default();
        std::mem::take(&mut self.draft)
    }

    /// Puts a draft back.
    pub(crate) fn put_back(&mut self, draft: String) {
        self.draft = draft;
    }

    /// Takes one byte; says what it amounts to, if to anything.
    pub(crate) fn feed(&mut self, byte: u8) -> Option<Typed> {
        match byte {
            b'\r' | b'\n' => Some(Typed::Line(self.take())),
            CTRL_C if self.draft.is_empty() => {
                self.take();
                Some(Typed::Interrupt)
            }
            CTRL_C | CTRL_U => {
                self.take();
                Some(Typed::Changed)
            }
            CTRL_D => self.draft.is_empty().then_some(Typed::End),
            CTRL_W => {
                let rest = self.draft.trim_end().trim_end_matches(|c: char| !c.is_whitespace()).len();
                self.draft.truncate(rest);
                Some(Typed::Changed)
            }
            BACKSPACE | DELETE => self.draft.pop().map(|_| Typed::Changed),
            byte => self.insert(byte),
        }
    }

    fn insert(&mut self, byte: u8) -> Option<Typed> {
        self.partial.push(byte);
        let c = match std::str::from_utf8(&self.partial) {
            Ok(text) => text.chars().next(),
            Err(error) if error.error_len().is_none() => return None,
            Err(_) => None,
        };
        self.partial.clear();
        let c = self.keys.pass(c?).filter(|c| *c == '\t' || !c.is_control())?;
        self.draft.push(c);
        Some(Typed::Changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What bytes come to: complete lines and other news, and the draft in the end.
    fn check(bytes: &[u8], news: &[Typed], draft: &str) {
        let mut editor = LineEditor::default();
        let seen =
            bytes.iter().filter_map(|byte| editor.feed(*byte)).filter(|typed| *typed != Typed::Changed);
        assert_eq!(seen.collect::<Vec<_>>(), news, "{bytes:?}");
        assert_eq!(editor.draft(), draft, "{bytes:?}");
    }

    #[test]
    fn bytes_become_lines() {
        let line = |text: &str| Typed::Line(text.into());
        check(b"ab\rc\n", &[line("ab"), line("c")], "");
        check("é 日本".as_bytes(), &[], "é 日本");
        check("日本\x7f\x08é\x7f".as_bytes(), &[], "");
        check(b"one two  \x17", &[], "one ");
        check(b"one\x17\x17", &[], "");
        check(b"one two\x15x", &[], "x");
        check(b"a\xffb\xe2\x28c", &[], "abc");
        check(b"a\x1b[A\x1b[1;5Db\x00\x01", &[], "ab");
    }

    #[test]
    fn an_interrupt_clears_what_is_typed_first() {
        check(b"ab\x03", &[], "");
        check(b"ab\x03\x03", &[Typed::Interrupt], "");
        check(b"\x03", &[Typed::Interrupt], "");
        check(b"a\x04", &[], "a");
        check(b"\x04", &[Typed::End], "");
        // A half sequence does not swallow what is typed next.
        check(b"\x1b]x\x03ab", &[Typed::Interrupt], "ab");
    }
}
