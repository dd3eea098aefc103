//! The line a person types, from the bytes of a terminal; a pasted text is part of it (bracketed paste).

use windlass_text::escapes::SequenceFilter;

pub(crate) const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const CTRL_W: u8 = 0x17;
const DELETE: u8 = 0x7f;

/// What a terminal sends before a pasted text: `ESC [ 200 ~`.
const PASTE_BEGINS: u64 = u64::from_be_bytes(*b"\0\0\x1b[200~");
/// And behind it.
const PASTE_ENDS: u64 = u64::from_be_bytes(*b"\0\0\x1b[201~");
/// As many bytes as either has.
const PASTE_MASK: u64 = 0xffff_ffff_ffff;

/// What a key press amounts to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditorEvent {
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
    pub(crate) draft: String,
    /// The beginning of a character of several bytes.
    partial: Vec<u8>,
    /// Arrows and other keys without a meaning here send escape sequences.
    keys: SequenceFilter,
    /// The last bytes, as far as they can tell where a paste begins or ends.
    latest: u64,
    /// What comes is pasted, and only a part of it has come.
    pub(crate) is_pasting: bool,
    /// The last byte was a carriage return in a pasted text, so that a line feed behind it says nothing new.
    is_behind_return: bool,
}

impl LineEditor {
    /// Takes the draft away.
    pub(crate) fn take(&mut self) -> String {
        self.partial.clear();
        self.keys = SequenceFilter::default();
        std::mem::take(&mut self.draft)
    }

    /// Drops an escape character behind which nothing came, unless the rest of a pasted text may still come.
    pub(crate) fn drop_lone_escape(&mut self) {
        if self.keys.has_only_begun() && !self.is_pasting {
            (self.keys, self.latest) = (SequenceFilter::default(), 0);
        }
    }

    /// Takes one byte; says what it amounts to, if to anything. A pasted text amounts to something at its end.
    pub(crate) fn feed(&mut self, byte: u8) -> Option<EditorEvent> {
        self.latest = (self.latest << 8 | u64::from(byte)) & PASTE_MASK;
        match (byte, self.is_pasting) {
            (b'~', false) if self.latest == PASTE_BEGINS => {
                self.insert(byte);
                self.is_pasting = true;
                None
            }
            (b'~', true) if self.latest == PASTE_ENDS => {
                self.insert(byte);
                self.is_pasting = false;
                Some(EditorEvent::Changed)
            }
            (_, true) => {
                self.paste(byte);
                None
            }
            (_, false) => self.key(byte),
        }
    }

    /// Line ends become part of the draft, however they are spelled.
    fn paste(&mut self, byte: u8) {
        let is_behind_return = std::mem::replace(&mut self.is_behind_return, byte == b'\r');
        match byte {
            b'\n' if is_behind_return => {}
            b'\r' | b'\n' => {
                self.partial.clear();
                self.keys.pass('\n');
                self.draft.push('\n');
            }
            byte => drop(self.insert(byte)),
        }
    }

    fn key(&mut self, byte: u8) -> Option<EditorEvent> {
        match byte {
            b'\r' | b'\n' => Some(EditorEvent::Line(self.take())),
            CTRL_C if self.draft.is_empty() => {
                self.take();
                Some(EditorEvent::Interrupt)
            }
            CTRL_C | CTRL_U => {
                self.take();
                Some(EditorEvent::Changed)
            }
            CTRL_D => self.draft.is_empty().then_some(EditorEvent::End),
            CTRL_W => {
                let rest = self.draft.trim_end().trim_end_matches(|c: char| !c.is_whitespace()).len();
                self.draft.truncate(rest);
                Some(EditorEvent::Changed)
            }
            BACKSPACE | DELETE => self.draft.pop().map(|_| EditorEvent::Changed),
            byte => self.insert(byte),
        }
    }

    fn insert(&mut self, byte: u8) -> Option<EditorEvent> {
        self.partial.push(byte);
        let c = match std::str::from_utf8(&self.partial) {
            Ok(text) => text.chars().next(),
            Err(error) if error.error_len().is_none() => return None,
            Err(_) => None,
        };
        self.partial.clear();
        let c = self.keys.pass(c?).filter(|c| *c == '\t' || !c.is_control())?;
        self.draft.push(c);
        Some(EditorEvent::Changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What bytes come to: complete lines and other news, and the draft in the end.
    fn check(bytes: &[u8], news: &[EditorEvent], draft: &str) {
        let mut editor = LineEditor::default();
        let seen =
            bytes.iter().filter_map(|byte| editor.feed(*byte)).filter(|typed| *typed != EditorEvent::Changed);
        assert_eq!(seen.collect::<Vec<_>>(), news, "{bytes:?}");
        assert_eq!(editor.draft, draft, "{bytes:?}");
    }

    #[test]
    fn bytes_become_lines() {
        let line = |text: &str| EditorEvent::Line(text.into());
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
    fn a_pasted_text_is_one_piece_of_the_line() {
        let line = |text: &str| EditorEvent::Line(text.into());
        check(b"\x1b[200~a\nb\r\nc\rd\x1b[201~", &[], "a\nb\nc\nd");
        check(b"x \x1b[200~a\n\n\x1b[201~ y\r", &[line("x a\n\n y")], "");
        // Keys that would clear, send or leave are text without a meaning.
        check(b"\x1b[200~a\x03\x04\x15\x17\x7f\x08\tb\x1b[201~", &[], "a\tb");
        check(b"\x1b[200~a\x1b[31mb\x1b[200~\x1b]0;t\x07\n\x1b[201~\x7f", &[], "ab");
        check("\x1b[200~é\n日本\x1b[201~".as_bytes(), &[], "é\n日本");
        // The end of a paste that never began.
        check(b"a\x1b[201~\r", &[line("a")], "");
    }

    #[test]
    fn a_lone_escape_is_no_beginning() {
        let check = |reads: &[&[u8]], draft: &str| {
            let mut editor = LineEditor::default();
            for read in reads {
                read.iter().for_each(|byte| drop(editor.feed(*byte)));
                editor.drop_lone_escape();
            }
            assert_eq!(editor.draft, draft, "{reads:?}");
        };
        check(&[b"\x1b", b"hello"], "hello");
        check(&[b"a\x1b[A\x1b", b"[200~\x1b[B"], "a[200~");
        check(&[b"a\x1b[", b"Ab"], "ab");
        check(&[b"\x1b[200~a\x1b", b"[201~b"], "ab");
    }

    #[test]
    fn an_interrupt_clears_what_is_typed_first() {
        check(b"ab\x03", &[], "");
        check(b"ab\x03\x03", &[EditorEvent::Interrupt], "");
        check(b"\x03", &[EditorEvent::Interrupt], "");
        check(b"a\x04", &[], "a");
        check(b"\x04", &[EditorEvent::End], "");
        // A half sequence does not swallow what is typed next.
        check(b"\x1b]x\x03ab", &[EditorEvent::Interrupt], "ab");
    }
}
