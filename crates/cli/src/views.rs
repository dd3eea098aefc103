//! The forms in which people see a run, and what is shown beside them.

pub(crate) mod call_panels;
pub(crate) mod layout;
pub(crate) mod progress;
pub(crate) mod rewind_report;
pub(crate) mod screen;
pub(crate) mod trust_question;
pub(crate) mod visible;

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass::engine::{MessageId, Outcome, Terminal, Update};
use windlass::job_runner::JobView;
use windlass::protocol::{Delta, ToolUse};

use crate::views::progress::Progress;
use crate::views::screen::{RetractedText, Screen};
use crate::{complain, display};
use windlass::display::Paragraph;

/// How many denials are told one by one.
const DENIALS_MAX: usize = 5;

/// As much of a call is told where only its name matters.
const SUBJECT_COLUMNS: usize = 60;

/// What a run is shown with.
pub(crate) struct RunView {
    pub(crate) form: Box<dyn JobView>,
    /// What is happening, on standard error beside the form or on the same screen.
    pub(crate) progress: Option<Progress>,
}

impl RunView {
    fn is_progress_beside(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| !progress.screen.shows_result())
    }
}

impl JobView for RunView {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.form.begin(out);
    }

    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        let is_beside = self.is_progress_beside();
        // What the answer took stands behind it.
        let is_last = matches!(update, Update::Done(_));
        if let Some(progress) = self.progress.as_mut().filter(|_| is_beside && !is_last) {
            progress.update(update, out);
        }
        let before = out.len();
        self.form.update(update, out);
        match &mut self.progress {
            Some(progress) if !is_beside => progress.update(update, out),
            // Standard output may end up on the same terminal, as in `windlass | cat`.
            Some(progress) if is_last || out.len() > before => progress.hide(out),
            _ => {}
        }
    }

    fn note_written(&mut self, done: &Update) {
        let is_beside = self.is_progress_beside();
        if let Some(progress) = self.progress.as_mut().filter(|_| is_beside) {
            progress.update(done, &mut Vec::new());
        }
    }

    fn next_tick(&self) -> Option<Duration> {
        let of_progress = self.progress.as_ref().and_then(Progress::next_tick);
        [of_progress, self.form.next_tick()].into_iter().flatten().min()
    }

    fn tick(&mut self, out: &mut Vec<u8>) {
        if let Some(progress) = &mut self.progress {
            progress.redraw(out);
        }
        self.form.tick(out);
    }

    fn refuse(&mut self, error: &str, prompt: Option<&Arc<str>>, out: &mut Vec<u8>) {
        self.form.refuse(error, prompt, out);
    }
}

/// Tells on standard error of hooks that failed, each way of failing once, where no progress is shown.
pub(crate) fn hook_failures() -> impl FnMut(&Update) + Send {
    let mut told = BTreeSet::new();
    move |update: &Update| {
        if let Update::HookFailed(failure) = update
            && told.insert((failure.hook.clone(), failure.kind))
        {
            complain(&failure.text);
        }
    }
}

/// The result: the final text, or what went wrong.
pub(crate) struct TextView {
    is_for_terminal: bool,
}

impl TextView {
    pub(crate) fn new() -> Self {
        Self { is_for_terminal: std::io::stdout().is_terminal() }
    }

    /// A text of its own lines; nothing if there is none.
    fn paragraph(&self, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let clean = self.is_for_terminal.then(|| display::paragraph(text));
        out.extend_from_slice(clean.as_deref().unwrap_or(text).as_bytes());
        if !text.ends_with('\n') {
            out.push(b'\n');
        }
    }
}

impl JobView for TextView {
    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        let Update::Done(outcome) = update else { return };
        self.paragraph(&outcome.text, out);
        self.paragraph(&complaint(outcome).unwrap_or_default(), out);
    }

    fn refuse(&mut self, error: &str, _: Option<&Arc<str>>, out: &mut Vec<u8>) {
        self.paragraph(error, out);
    }
}

/// For a person at a terminal: everything the model says, as it comes.
pub(crate) struct TalkView {
    text: TextView,
    /// Where standard output is a terminal.
    screen: Option<Screen>,
    /// The block that is being said.
    open: Option<OpenText>,
    /// What the model has said in this run and still stands.
    said: Vec<MessageId>,
    /// Text of the response that goes on is on the screen.
    has_begun: bool,
}

/// A block of text that is on the screen as far as it came.
struct OpenText {
    index: u32,
    text: Paragraph,
}

/// What to say about text on the screen that is no part of the conversation.
const DISCARDED: &str = "(Ignore the text above: that answer was not completed.)";

impl TalkView {
    pub(crate) fn new(screen: Option<Screen>) -> Self {
        Self { text: TextView::new(), screen, open: None, said: Vec::new(), has_begun: false }
    }

    fn on_text(&mut self, index: u32, piece: &str, out: &mut Vec<u8>) {
        let Some(screen) = &self.screen else { return };
        if self.open.as_ref().is_none_or(|open| open.index != index) {
            let has_begun = std::mem::replace(&mut self.has_begun, true);
            screen.begin_text(!has_begun, out);
            self.open = Some(OpenText { index, text: Paragraph::default() });
        }
        if let Some(open) = &mut self.open {
            screen.text(&open.text.push(piece), out);
        }
    }

    fn on_block(&mut self, index: u32, text: &str, out: &mut Vec<u8>) {
        let streamed = self.open.take_if(|open| open.index == index).is_some();
        match &self.screen {
            Some(screen) if streamed => screen.end_text(out),
            Some(_) => self.paragraph(&format!("\n{text}"), out),
            None => self.paragraph(text, out),
        }
    }

    fn end_open(&mut self, out: &mut Vec<u8>) -> bool {
        let was_open = self.open.take().is_some();
        if let Some(screen) = self.screen.as_ref().filter(|_| was_open) {
            screen.end_text(out);
        }
        was_open
    }

    /// What was begun is not completed any more.
    fn discard_open(&mut self, out: &mut Vec<u8>) {
        if self.open.is_some() {
            self.retract(RetractedText::Block, out);
        }
    }

    /// Takes text off the screen; where that is not possible, says that it does not stand.
    fn retract(&mut self, what: RetractedText, out: &mut Vec<u8>) {
        if self.screen.as_ref().is_some_and(|screen| screen.take_back(what, out)) {
            self.open = None;
            return;
        }
        self.end_open(out);
        self.paragraph(DISCARDED, out);
    }

    fn paragraph(&self, text: &str, out: &mut Vec<u8>) {
        match &self.screen {
            Some(screen) if !text.is_empty() => screen.lines(&display::paragraph(text), out),
            _ => self.text.paragraph(text, out),
        }
    }

    /// A paragraph that is not the model's.
    fn notice(&self, text: &str, out: &mut Vec<u8>) {
        match &self.screen {
            Some(screen) if !text.is_empty() => screen.notice(&display::paragraph(text), out),
            _ => self.text.paragraph(text, out),
        }
    }
}

impl JobView for TalkView {
    fn begin(&mut self, _: &mut Vec<u8>) {
        self.said.clear();
    }

    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        match update {
            Update::Delta { index, delta: Delta::Text(piece) } => self.on_text(*index, piece, out),
            Update::Delta { delta: Delta::Stop, .. } => drop(self.end_open(out)),
            Update::Block { id, index, block, .. } => {
                if let Some(text) = block.as_text() {
                    self.said.push(*id);
                    self.on_block(*index, text, out);
                }
            }
            Update::Retracted { messages, .. } => {
                let before = self.said.len();
                self.said.retain(|id| !messages.contains(id));
                if self.open.is_some() || self.said.len() < before {
                    self.retract(RetractedText::Answer, out);
                }
            }
            Update::Requesting { .. } | Update::Retrying { .. } | Update::FellBack { .. } => {
                self.discard_open(out);
                self.has_begun = false;
            }
            Update::Done(outcome) => {
                self.discard_open(out);
                if self.said.is_empty() {
                    self.paragraph(&outcome.text, out);
                }
                self.notice(&complaint(outcome).unwrap_or_default(), out);
            }
            _ => {}
        }
    }

    fn refuse(&mut self, error: &str, _: Option<&Arc<str>>, out: &mut Vec<u8>) {
        self.notice(error, out);
    }
}

/// Which calls were denied and why, a line for each that differs. The reasons say what would allow them.
pub(crate) fn denials(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for denial in &outcome.denials {
        let line = format!("{}: {}", about(&denial.tool_use), denial.reason);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(DENIALS_MAX);
    lines.truncate(DENIALS_MAX);
    if more > 0 {
        lines.push(format!("and {more} more; --verbose names each."));
    }
    lines
}

/// A call in a few words: its tool, and what its input names first of all.
fn about(tool_use: &ToolUse) -> String {
    let input: Value = serde_json::from_str(tool_use.input.get()).unwrap_or_default();
    let named =
        ["command", "file_path", "url", "path", "pattern"].iter().find_map(|name| input[name].as_str());
    let subject = display::line(named.unwrap_or_default());
    format!("{} {}", tool_use.name, layout::cut(&subject, SUBJECT_COLUMNS)).trim_end().to_owned()
}

/// What went wrong, as one line.
pub(crate) fn complaint(outcome: &Outcome) -> Option<String> {
    let speaks_for_itself = match outcome.terminal {
        Terminal::Refused => !outcome.text.is_empty(),
        terminal => terminal.is_success(),
    };
    (!speaks_for_itself).then(|| match outcome.error_text() {
        text if text.is_empty() => format!("The run ended with {}.", outcome.terminal.name()),
        text => display::line(&text),
    })
}
