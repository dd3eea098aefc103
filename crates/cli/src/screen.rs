//! What changes at the bottom of a terminal, and what stays above it.
//!
//! Text of the model grows at the end of what stays. Below stands at most one line that changes: what a person types, or else
//! what is being waited for. Nothing of it is ever mixed with what stays.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::layout;

/// Clears the line that changes.
const CLEAR: &str = "\r\x1b[K";

/// What stands before the text a person types.
const PROMPT: &str = "> ";

/// The terminal of a run. Cheap to clone; all clones are the same terminal.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<Bottom>>);

struct Bottom {
    target: Target,
    /// The line that changes is there.
    is_drawn: bool,
    /// The text of the model ends within a line.
    is_mid_line: bool,
    /// Text that came while somebody types, as far as its line is not complete.
    held: String,
    /// Typed and not sent.
    draft: String,
    /// Something is asked, so the line that is typed shows although it is empty.
    is_prompting: bool,
}

/// Where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// To standard output, with the result of the run.
    Output,
    /// To standard error: standard output is read elsewhere.
    Error,
}

impl Screen {
    /// Standard output, if that is a terminal.
    pub(crate) fn of_output() -> Option<Self> {
        std::io::stdout().is_terminal().then(|| Self::with(Target::Output))
    }

    /// Standard error.
    pub(crate) fn of_error() -> Self {
        Self::with(Target::Error)
    }

    fn with(target: Target) -> Self {
        let (held, draft) = (String::new(), String::new());
        let bottom = Bottom { target, is_drawn: false, is_mid_line: false, held, draft, is_prompting: false };
        Self(Arc::new(Mutex::new(bottom)))
    }

    /// Whether the result of the run is shown here too.
    pub(crate) fn shows_result(&self) -> bool {
        self.lock().target == Target::Output
    }

    /// Writes lines that stay.
    pub(crate) fn lines(&self, text: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        bottom.clear(out);
        bottom.put(text, out);
        if !text.ends_with('\n') {
            bottom.put("\n", out);
        }
        bottom.draw_draft(out);
    }

    /// Writes more of the model's text. While somebody types, only complete lines appear.
    pub(crate) fn text(&self, piece: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        if !bottom.is_typing() {
            bottom.erase(out);
            return bottom.put_text(piece, out);
        }
        bottom.held.push_str(piece);
        let Some(end) = bottom.held.rfind('\n') else { return };
        let lines: String = bottom.held.drain(..=end).collect();
        bottom.erase(out);
        bottom.put(&lines, out);
        bottom.draw_draft(out);
    }

    /// The text of the model is complete.
    pub(crate) fn end_text(&self, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        let rest = std::mem::take(&mut bottom.held);
        if !rest.is_empty() {
            bottom.erase(out);
            bottom.put_text(&rest, out);
        }
        if std::mem::take(&mut bottom.is_mid_line) {
            bottom.put("\n", out);
        }
        bottom.draw_draft(out);
    }

    /// Shows what is being waited for, unless something better stands there.
    pub(crate) fn status(&self, line: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        if bottom.is_mid_line || bottom.is_typing() {
            return;
        }
        bottom.put(&format!("{CLEAR}{line}"), out);
        bottom.is_drawn = true;
    }

    /// Takes the line that changes away.
    pub(crate) fn erase(&self, out: &mut Vec<u8>) {
        self.lock().erase(out);
    }

    /// Shows what is typed by now.
    pub(crate) fn draft(&self, draft: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        draft.clone_into(&mut bottom.draft);
        bottom.after_typing(out);
    }

    /// Something is asked, or nothing any more.
    pub(crate) fn prompting(&self, is_prompting: bool, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        bottom.is_prompting = is_prompting;
        bottom.after_typing(out);
    }

    /// A line that was typed is complete, and stays as it was typed.
    pub(crate) fn typed(&self, line: &str, out: &mut Vec<u8>) {
        self.lock().draft.clear();
        self.lines(&format!("{PROMPT}{}", shown(line)), out);
    }

    /// Writes at once, for when no run goes on.
    pub(crate) fn now(&self, write: impl FnOnce(&Self, &mut Vec<u8>)) {
        let mut out = Vec::new();
        write(self, &mut out);
        let mut stdout = std::io::stdout();
        // Without a terminal there is nobody.
        let _ = stdout.write_all(&out).and_then(|()| stdout.flush());
    }

    fn lock(&self) -> MutexGuard<'_, Bottom> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bottom {
    fn is_typing(&self) -> bool {
        self.is_prompting || !self.draft.is_empty()
    }

    fn after_typing(&mut self, out: &mut Vec<u8>) {
        if self.is_typing() {
            return self.draw_draft(out);
        }
        self.erase(out);
        let held = std::mem::take(&mut self.held);
        self.put_text(&held, out);
    }

    fn draw_draft(&mut self, out: &mut Vec<u8>) {
        if !self.is_typing() {
            return;
        }
        if std::mem::take(&mut self.is_mid_line) {
            self.put("\n", out);
        }
        let columns = match self.target {
            Target::Output => layout::columns(std::io::stdout()),
            Target::Error => layout::columns(std::io::stderr()),
        };
        let draft = shown(&self.draft);
        let draft = layout::end(&draft, columns.saturating_sub(PROMPT.len() + 1));
        self.put(&format!("{CLEAR}{PROMPT}{draft}"), out);
        self.is_drawn = true;
    }

    fn put_text(&mut self, text: &str, out: &mut Vec<u8>) {
        if !text.is_empty() {
            self.put(text, out);
            self.is_mid_line = !text.ends_with('\n');
        }
    }

    /// Makes room for lines that stay.
    fn clear(&mut self, out: &mut Vec<u8>) {
        self.erase(out);
        if std::mem::take(&mut self.is_mid_line) {
            self.put("\n", out);
        }
    }

    fn erase(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_drawn) {
            self.put(CLEAR, out);
        }
    }

    fn put(&self, text: &str, out: &mut Vec<u8>) {
        match self.target {
            Target::Output => out.extend_from_slice(text.as_bytes()),
            // What cannot be shown is no reason to stop working.
            Target::Error => drop(std::io::stderr().write_all(text.as_bytes())),
        }
    }
}

/// What was typed, without power over the terminal.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal got, with the sequence that clears a line as `<`.
    fn check(play: impl FnOnce(&Screen, &mut Vec<u8>), expected: &str) {
        let (screen, mut out) = (Screen::with(Target::Output), Vec::new());
        play(&screen, &mut out);
        assert_eq!(String::from_utf8_lossy(&out).replace(CLEAR, "<"), expected);
    }

    #[test]
    fn text_grows_and_what_changes_stands_below_what_stays() {
        check(
            |screen, out| {
                screen.status("waiting", out);
                screen.text("Hel", out);
                screen.status("not now", out);
                screen.text("lo.", out);
                screen.end_text(out);
                screen.status("waiting", out);
                screen.lines("Bash ls", out);
            },
            "<waiting<Hello.\n<waiting<Bash ls\n",
        );
    }

    #[test]
    fn what_is_typed_and_what_the_model_says_do_not_mix() {
        check(
            |screen, out| {
                screen.text("Hel", out);
                screen.draft("a", out);
                screen.text("lo.\nMo", out);
                screen.draft("ab", out);
                screen.lines("a line", out);
                screen.typed("ab", out);
                screen.prompting(false, out);
                screen.text("re", out);
                screen.end_text(out);
            },
            "Hel\n<> a<lo.\n<> a<> ab<a line\n<> ab<> ab\nMore\n",
        );
        // Whoever clears the draft sees what was held back.
        check(
            |screen, out| {
                screen.draft("a", out);
                screen.text("Hello", out);
                screen.draft("", out);
                screen.text(".", out);
                screen.draft("b", out);
                screen.text("!", out);
                screen.end_text(out);
            },
            "<> a<Hello.\n<> b<!\n<> b",
        );
    }
}
