//! What stays on a terminal, with the model's text at its end, and below it at most one line that changes.
//!
//! That line holds what a person types, or else what is awaited; it never mixes with the rest. A terminal that cannot
//! clear lines gets no escape sequences: it shows by itself what is typed, and nothing changes.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::views::layout;

/// Clears the line that changes.
const CLEAR: &str = "\r\x1b[K";

/// What is between them asks for no attention.
const DIM: &str = "\x1b[2m";
const NOT_DIM: &str = "\x1b[22m";

/// What stands before the text a person types.
const PROMPT: &str = "> ";

/// The terminal of a run. Cheap to clone; all clones are the same terminal.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<Bottom>>);

#[derive(Default)]
struct Bottom {
    target: Target,
    /// Lines can be cleared and written again.
    can_redraw: bool,
    /// The line that changes is there.
    is_drawn: bool,
    /// The unfinished last line of the model's text, as far as it is on the screen.
    line: String,
    /// The cursor is below the unfinished line, not at its end.
    is_below_line: bool,
    /// The model's answer as it stands on the screen, as long as nothing else was written below it.
    answer: Option<AnswerText>,
    /// Text of the model that is not on the screen, because somebody types and its line is not complete.
    held: String,
    /// Complete lines that wait for the answer to a question.
    waiting: String,
    /// Typed and not sent.
    draft: String,
    asked: InputRequest,
}

/// What is on the screen of an answer, from the empty line before it on.
struct AnswerText {
    text: String,
    /// Where its last block begins.
    block_from: usize,
    /// How wide the screen was then: a terminal that changed may have broken lines elsewhere.
    columns: usize,
}

/// How much of an answer is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetractedText {
    /// All of it.
    Answer,
    /// Its last block.
    Block,
}

/// What a person is asked for. Where it is something, the line that is typed shows although it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InputRequest {
    #[default]
    Nothing,
    Prompt,
    /// Nothing may come between the question and its answer.
    Answer,
}

/// Where it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Target {
    /// To standard output, with the result of the run.
    #[default]
    Output,
    /// To standard error: standard output is read elsewhere.
    Error,
}

impl Screen {
    /// Standard output, if that is a terminal.
    pub(crate) fn of_output() -> Option<Self> {
        std::io::stdout().is_terminal().then(|| Self::with(Target::Output, layout::can_redraw()))
    }

    /// Standard error.
    pub(crate) fn of_error() -> Self {
        Self::with(Target::Error, layout::can_redraw())
    }

    fn with(target: Target, can_redraw: bool) -> Self {
        Self(Arc::new(Mutex::new(Bottom { target, can_redraw, ..Bottom::default() })))
    }

    /// Whether the result of the run is shown here too, so that both come in one order.
    pub(crate) fn shows_result(&self) -> bool {
        self.lock().target == Target::Output
    }

    /// Writes lines that stay, once no question is open.
    pub(crate) fn lines(&self, text: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        if bottom.asked != InputRequest::Answer {
            return bottom.put_lines(text, out);
        }
        bottom.waiting.push_str(text);
        if !text.ends_with('\n') {
            bottom.waiting.push('\n');
        }
    }

    /// Writes what we say ourselves: as lines that stay, broken between words.
    pub(crate) fn notice(&self, text: &str, out: &mut Vec<u8>) {
        let (columns, _) = self.lock().size();
        self.lines(&layout::wrap(text, columns), out);
    }

    /// Writes what we say ourselves and nobody has to read, dimmed where the terminal can.
    pub(crate) fn hint(&self, text: &str, out: &mut Vec<u8>) {
        let (columns, _) = self.lock().size();
        let text = layout::wrap(text, columns);
        let is_dimmed = self.lock().can_redraw;
        self.lines(&if is_dimmed { format!("{DIM}{text}{NOT_DIM}") } else { text }, out);
    }

    /// Writes such lines for whoever types, at once.
    pub(crate) fn reply(&self, text: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        let (columns, _) = bottom.size();
        bottom.put_lines(&layout::wrap(text, columns), out);
    }

    /// Begins a block of the model's text, below an empty line.
    pub(crate) fn begin_text(&self, is_first_of_answer: bool, out: &mut Vec<u8>) {
        let answer = self.lock().answer.take().filter(|_| !is_first_of_answer);
        self.lines("", out);
        let mut bottom = self.lock();
        if bottom.asked == InputRequest::Answer || !bottom.line.is_empty() {
            return;
        }
        let new = || AnswerText { text: String::new(), block_from: 0, columns: bottom.size().0 };
        let answer = if is_first_of_answer { Some(new()) } else { answer };
        bottom.answer = answer.map(|answer| AnswerText {
            block_from: answer.text.len(),
            text: answer.text + "\n",
            columns: answer.columns,
        });
    }

    /// Takes text of the model off the screen; false if it scrolled away, is not the last, or cannot be cleared.
    pub(crate) fn take_back(&self, what: RetractedText, out: &mut Vec<u8>) -> bool {
        let mut bottom = self.lock();
        let Some(mut answer) = bottom.answer.take() else { return false };
        let from = if what == RetractedText::Answer { 0 } else { answer.block_from };
        let Some(up) = bottom.rows_up_to(&answer, from) else { return false };
        bottom.erase(out);
        bottom.held.clear();
        bottom.line.clear();
        bottom.is_below_line = false;
        bottom.put(&if up == 0 { CLEAR.to_owned() } else { format!("\r\x1b[{up}A\x1b[J") }, out);
        answer.text.truncate(from);
        bottom.answer = (what == RetractedText::Block).then_some(answer);
        bottom.draw_draft(out);
        true
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
        if bottom.asked == InputRequest::Answer {
            return bottom.waiting.push_str(&lines);
        }
        bottom.rejoin(out);
        bottom.put_text(&lines, out);
        bottom.draw_draft(out);
    }

    /// The text of the model is complete.
    pub(crate) fn end_text(&self, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        let mut rest = std::mem::take(&mut bottom.held);
        if rest.is_empty() && bottom.line.is_empty() {
            return;
        }
        rest.push('\n');
        if bottom.asked == InputRequest::Answer {
            return bottom.waiting.push_str(&rest);
        }
        bottom.rejoin(out);
        bottom.put_text(&rest, out);
        bottom.draw_draft(out);
    }

    /// Shows what is being waited for, unless something better stands there.
    pub(crate) fn status(&self, line: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        if !bottom.line.is_empty() || bottom.is_typing() {
            return;
        }
        bottom.put(&format!("{CLEAR}{line}"), out);
        bottom.is_drawn = true;
    }

    /// Takes away what is being waited for.
    pub(crate) fn end_status(&self, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        if !bottom.is_typing() {
            bottom.erase(out);
        }
    }

    /// Takes the line that changes away, whatever it is.
    pub(crate) fn erase(&self, out: &mut Vec<u8>) {
        self.lock().erase(out);
    }

    /// Shows what is typed by now.
    pub(crate) fn draft(&self, draft: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        if bottom.can_redraw {
            draft.clone_into(&mut bottom.draft);
            bottom.after_typing(out);
        }
    }

    /// Asks a question: what others write waits for the answer.
    pub(crate) fn ask(&self, question: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        bottom.clear(out);
        let line = std::mem::take(&mut bottom.line);
        bottom.held.insert_str(0, &line);
        bottom.draft.clear();
        bottom.asked = InputRequest::Answer;
        bottom.put_lines(question, out);
    }

    pub(crate) fn ask_for_prompt(&self, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        bottom.asked = InputRequest::Prompt;
        bottom.draw_draft(out);
    }

    /// Nothing is asked any more. What has waited for an answer appears.
    pub(crate) fn end_asking(&self, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        bottom.asked = InputRequest::Nothing;
        let waiting = std::mem::take(&mut bottom.waiting);
        if !waiting.is_empty() {
            bottom.put_lines(&waiting, out);
        }
        bottom.after_typing(out);
    }

    /// A line that was typed is complete, and stays as it was typed.
    pub(crate) fn end_typing(&self, line: &str, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        bottom.draft.clear();
        if bottom.can_redraw {
            return bottom.put_lines(&prompt_echo(line), out);
        }
        // The terminal has shown it, and the end of its line.
        bottom.is_drawn = false;
    }

    /// A line that was typed earlier is sent now.
    pub(crate) fn echo(&self, line: &str, out: &mut Vec<u8>) {
        self.lines(&prompt_echo(line), out);
    }

    /// Begins anew below what others have written to the terminal.
    pub(crate) fn resume(&self, out: &mut Vec<u8>) {
        let mut bottom = self.lock();
        bottom.answer = None;
        (bottom.is_drawn, bottom.is_below_line) = (false, false);
        if bottom.line_rows().is_none() {
            bottom.line.clear();
        }
        bottom.put(&bottom.line, out);
        bottom.draw_draft(out);
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
        self.asked != InputRequest::Nothing || !self.draft.is_empty()
    }

    fn after_typing(&mut self, out: &mut Vec<u8>) {
        if self.is_typing() {
            return self.draw_draft(out);
        }
        self.rejoin(out);
        let held = std::mem::take(&mut self.held);
        self.put_text(&held, out);
    }

    fn draw_draft(&mut self, out: &mut Vec<u8>) {
        if !self.is_typing() {
            return;
        }
        if !self.line.is_empty() && !self.is_below_line {
            self.put("\n", out);
            self.is_below_line = true;
        }
        if self.can_redraw {
            let (columns, _) = self.size();
            let draft = one_row_text(&self.draft);
            let draft = layout::end(&draft, columns.saturating_sub(PROMPT.len() + 1));
            self.put(&format!("{CLEAR}{PROMPT}{draft}"), out);
        } else if !self.is_drawn {
            self.put(PROMPT, out);
        }
        self.is_drawn = true;
    }

    fn put_text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.put(text, out);
        if let Some(answer) = &mut self.answer {
            answer.text.push_str(text);
        }
        match text.rfind('\n') {
            Some(end) => text[end + 1..].clone_into(&mut self.line),
            None => self.line.push_str(text),
        }
    }

    /// Writes lines above the unfinished line, so that its text goes on in one piece.
    fn put_lines(&mut self, text: &str, out: &mut Vec<u8>) {
        self.answer = None;
        self.clear(out);
        self.put(text, out);
        if !text.ends_with('\n') {
            self.put("\n", out);
        }
        self.put(&self.line, out);
        self.draw_draft(out);
    }

    /// Goes to the end of the unfinished line.
    fn rejoin(&mut self, out: &mut Vec<u8>) {
        match self.end_column() {
            _ if !self.is_below_line => self.erase(out),
            // What has left the screen cannot be taken away, but its last row is still there.
            Some(column) if self.line_rows().is_none() => {
                self.erase(out);
                self.is_below_line = false;
                if column > 0 {
                    self.put(&format!("\x1b[1A\x1b[{column}C"), out);
                }
            }
            _ => {
                self.clear(out);
                self.put(&self.line, out);
            }
        }
    }

    /// Goes to an empty line. The unfinished line is taken away, to be written again; if its size is unknown, it stays.
    fn clear(&mut self, out: &mut Vec<u8>) {
        self.erase(out);
        let is_below = std::mem::take(&mut self.is_below_line);
        if self.line.is_empty() {
            return;
        }
        match self.line_rows().map(|rows| rows - usize::from(!is_below)) {
            Some(0) => self.put(CLEAR, out),
            Some(up) => self.put(&format!("\r\x1b[{up}A\x1b[J"), out),
            None => {
                self.put(if is_below { "" } else { "\n" }, out);
                // A short one is written once more.
                if layout::width(&self.line) > self.size().0 {
                    self.line.clear();
                }
            }
        }
    }

    /// The column behind the unfinished line, if that is certain: 0 if its last row is full.
    fn end_column(&self) -> Option<usize> {
        let (columns, _) = self.size();
        let width = layout::certain_width(&self.line).filter(|_| self.can_redraw)?;
        Some(width % columns.max(1))
    }

    /// How many rows of the screen the unfinished line takes, if that is certain and all of them are in sight.
    fn line_rows(&self) -> Option<usize> {
        let (columns, rows_max) = self.size();
        rows_of(&self.line, columns).filter(|rows| self.can_redraw && *rows < rows_max)
    }

    /// How many rows above the cursor a part of the answer begins, if that is certain and it is in sight.
    fn rows_up_to(&self, answer: &AnswerText, from: usize) -> Option<usize> {
        let (columns, rows_max) = self.size();
        let (complete, _) = answer.text.get(from..)?.rsplit_once('\n')?;
        let complete: usize = complete.split('\n').map(|line| rows_of(line, columns)).sum::<Option<_>>()?;
        let unfinished = match self.line.as_str() {
            "" => 0,
            _ => self.line_rows()? - usize::from(!self.is_below_line),
        };
        let up = complete + unfinished;
        (self.can_redraw && answer.columns == columns && up < rows_max).then_some(up)
    }

    fn size(&self) -> (usize, usize) {
        match self.target {
            Target::Output => layout::size(std::io::stdout()),
            Target::Error => layout::size(std::io::stderr()),
        }
    }

    fn erase(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_drawn) {
            self.put(if self.can_redraw { CLEAR } else { "\n" }, out);
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

/// How many rows a line takes on a screen of this width, if that is certain.
fn rows_of(line: &str, columns: usize) -> Option<usize> {
    let is_one_row = || layout::width(line) <= columns && !line.contains(char::is_control);
    match layout::certain_width(line) {
        Some(width) => Some(width.div_ceil(columns.max(1)).max(1)),
        None => is_one_row().then_some(1),
    }
}

/// What was typed, in one line and without power over the terminal.
fn one_row_text(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' => '⏎',
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(visible).collect()
}

/// What was sent, in its own lines.
fn prompt_echo(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().split('\n').map(one_row_text).collect();
    format!("{PROMPT}{}", lines.join("\n  "))
}

#[cfg(test)]
mod tests;
