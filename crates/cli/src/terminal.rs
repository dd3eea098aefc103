//! An interactive session in plain text: prompts and answers are lines typed at a terminal.

pub(crate) mod keys;
pub(crate) mod line_editor;
pub(crate) mod questions;
pub(crate) mod wakeups;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;
use windlass::config::{SettingsFiles, TrustState};
use windlass::engine::{CallId, Handle, Priority, Question, Session, Speaker, Update};

use crate::arguments::help;
use crate::commands::process::Interrupter;
use crate::display;
use crate::terminal::keys::{KeyboardEvent, Keys};
use crate::terminal::line_editor::EditorEvent;
use crate::terminal::questions::QuestionReply;
use crate::terminal::wakeups::{Wakeup, Wakeups};
use crate::views::screen::Screen;
use crate::views::{layout, trust_question};
use windlass::jobs::{Job, OpenQuestions, QueuedPrompts, TypedPrompts, UnfinishedWork};
use windlass::output::SideOutput;
use windlass::slash_commands::{HELP, PromptEntry};

/// Twice as many as a response can have calls that are asked about side by side: each question is put and settled.
const NEWS_MAX: usize = 128;

/// How long the first Ctrl-C at the prompt waits for the second.
const EXIT_TIME: Duration = Duration::from_secs(2);

/// The person at the terminal.
pub(crate) struct Person {
    keys: Keys,
    /// The keyboard is gone.
    is_gone: bool,
    screen: Screen,
    /// Where what is shown during a run is left, so that it comes in order.
    aside: SideOutput,
    is_running: bool,
    news: mpsc::Receiver<RunNews>,
    interrupter: Interrupter,
    /// Questions that were not shown yet.
    questions: VecDeque<Question>,
    /// A question that was shown and not answered yet.
    open: Option<OpenQuestion>,
    is_at_end: bool,
    bells: Wakeups,
    /// Something was done already.
    has_run: bool,
    /// What was typed during runs.
    typed: TypedPrompts,
    /// Something was left undone, and Enter on an empty line goes on with it.
    can_go_on: bool,
}

/// A question that waits for its answer.
struct OpenQuestion {
    question: Question,
    /// What was being typed when it appeared.
    draft: String,
    /// What hooks may hear while it is open.
    _bell: Wakeup,
}

/// What a run has to say to the person.
enum RunNews {
    Question(Box<Question>),
    /// Whatever was asked about this call, there is nothing to answer any more.
    Settled(CallId),
    /// Prompts with these ids are sent to the model.
    Sent(Vec<Arc<str>>),
}

/// Hands questions to the person, and notes which prompts a run has taken.
pub(crate) struct QuestionRelay {
    news: mpsc::Sender<RunNews>,
    asked: OpenQuestions,
    handed: QueuedPrompts,
}

impl Person {
    /// The person, and who asks.
    pub(crate) fn meet(
        bells: Wakeups,
        interrupter: Interrupter,
        (screen, aside): (Screen, SideOutput),
    ) -> io::Result<(Self, QuestionRelay)> {
        let (sender, news) = mpsc::channel(NEWS_MAX);
        let typed = TypedPrompts::default();
        let relay = QuestionRelay { news: sender, asked: OpenQuestions::default(), handed: typed.queue() };
        let person = Self {
            keys: Keys::new()?,
            is_gone: false,
            screen,
            aside,
            is_running: false,
            news,
            interrupter,
            questions: VecDeque::new(),
            open: None,
            is_at_end: false,
            bells,
            has_run: false,
            typed,
            can_go_on: false,
        };
        Ok((person, relay))
    }

    /// Says which session goes on, if one does, and how to leave, once, before anything else.
    pub(crate) fn greet(&self, resumed: Option<&str>) {
        if let Some(resumed) = resumed {
            self.say(resumed);
        }
        self.say("Leave with Ctrl-D or /exit; /help lists the commands.");
    }

    /// Says what was left undone when the session was left, or by a run that failed; Enter goes on with it.
    pub(crate) fn offer(&mut self, left: UnfinishedWork) {
        self.can_go_on = !left.unfinished.is_empty() || !left.waiting.is_empty();
        for (_, command) in &left.undone {
            self.say(&format!("Not done: {}", display::line(command)));
        }
        for text in &left.unfinished {
            self.say(&format!("Not finished: {}", display::line(text)));
        }
        for (_, text) in &left.waiting {
            self.say(&format!("Not sent yet: {}", display::line(text)));
        }
        if self.can_go_on {
            self.say("Press Enter to go on with it, or type another prompt.");
        }
        self.typed.begin_with(left.waiting);
    }

    /// The prompt or command that a line is; nothing if the line is for the terminal, which has then done what it asks for.
    pub(crate) fn read(&mut self, line: &str) -> Option<Job> {
        match line.trim() {
            "" => {}
            "/help" => self.say(&help::page(HELP)),
            word if is_exit_word(word) => self.is_at_end = true,
            _ => return Some(Job::of_texts(&[line.trim_end().to_owned()])),
        }
        None
    }

    /// What was typed during the last run and is still to be done. Whoever leaves finds it when the session is resumed.
    pub(crate) fn next_queued(&mut self, session: &mut Session) -> Option<Job> {
        if self.is_at_end {
            return None;
        }
        let (texts, job) = self.typed.next_job(session)?;
        for text in &texts {
            self.send(text);
        }
        Some(job)
    }

    /// The next thing to do; nothing when the person is done.
    pub(crate) async fn next_job(&mut self) -> Option<Job> {
        // Somebody who has just begun is there.
        let _idle = self.has_run.then(|| self.bells.idle());
        let mut interrupted: Option<Instant> = None;
        if !self.is_at_end {
            self.say("");
            self.show(Screen::ask_for_prompt);
            // What was typed during the last run and not sent.
            self.show_draft();
        }
        let mut job = None;
        while job.is_none() && !self.is_at_end {
            match self.keys.next().await {
                KeyboardEvent::Key(EditorEvent::Changed) => self.show_draft(),
                KeyboardEvent::Resumed => self.show(Screen::resume),
                KeyboardEvent::Key(EditorEvent::Line(line)) if line.trim().is_empty() && self.can_go_on => {
                    self.echo(&line);
                    job = Some(Job::GoOn);
                }
                KeyboardEvent::Key(EditorEvent::Line(line)) => {
                    self.echo(&line);
                    job = self.read(&line);
                    if job.is_none() && !self.is_at_end {
                        self.show(Screen::ask_for_prompt);
                    }
                }
                KeyboardEvent::Key(EditorEvent::Interrupt)
                    if interrupted.is_some_and(|at| at.elapsed() < EXIT_TIME) =>
                {
                    self.is_at_end = true;
                }
                KeyboardEvent::Key(EditorEvent::Interrupt) => {
                    interrupted = Some(Instant::now());
                    self.say("Press Ctrl-C again to exit.");
                }
                KeyboardEvent::Key(EditorEvent::End) => self.is_at_end = true,
                KeyboardEvent::Gone(why) => self.lose(why),
            }
        }
        self.show(Screen::end_asking);
        self.can_go_on &= job.is_none();
        job
    }

    /// Answers questions while a run goes on; what is typed in between is queued. Can be dropped at any point.
    pub(crate) async fn join(&mut self, handle: Handle) -> Infallible {
        self.has_run = true;
        self.is_running = true;
        loop {
            // A question in the middle of a pasted text would take the rest for its answer.
            if self.open.is_none()
                && !self.keys.editor.is_pasting
                && let Some(question) = self.questions.pop_front()
            {
                self.ask(question, &handle).await;
            }
            let pressed = tokio::select! {
                biased;
                Some(news) = self.news.recv() => {
                    self.hear(news);
                    continue;
                }
                pressed = self.keys.next(), if !self.is_gone => pressed,
                else => return std::future::pending().await,
            };
            match pressed {
                KeyboardEvent::Key(EditorEvent::Changed) => self.show_draft(),
                KeyboardEvent::Resumed => self.show(Screen::resume),
                KeyboardEvent::Key(EditorEvent::Interrupt) => self.interrupter.interrupt(),
                KeyboardEvent::Key(EditorEvent::Line(line)) => self.on_line(&line, &handle).await,
                KeyboardEvent::Key(EditorEvent::End) => {
                    if self.open.is_none() && !self.is_at_end {
                        self.say("Windlass exits when this run ends. /exit ends it at once.");
                    }
                    self.end(&handle).await;
                }
                KeyboardEvent::Gone(why) => {
                    self.lose(why);
                    self.end(&handle).await;
                }
            }
        }
    }

    /// The run is over.
    pub(crate) fn rest(&mut self) {
        self.close();
        self.questions.clear();
        self.is_running = false;
    }

    fn hear(&mut self, news: RunNews) {
        match news {
            RunNews::Question(question) => self.questions.push_back(*question),
            RunNews::Settled(call) => {
                self.questions.retain(|question| question.call != call);
                if self.open.as_ref().is_some_and(|open| open.question.call == call) {
                    self.close();
                }
            }
            RunNews::Sent(ids) => {
                for text in self.typed.take_started(&ids) {
                    self.send(&text);
                }
            }
        }
    }

    /// What was typed before the question appeared cannot have been meant as its answer.
    async fn ask(&mut self, question: Question, handle: &Handle) {
        let draft = self.keys.take_draft();
        let text = questions::question(&question);
        self.show(|screen, out| screen.ask(&text, out));
        let bell = self.bells.on_question(&question.tool_use.name);
        self.open = Some(OpenQuestion { question, draft, _bell: bell });
        if self.is_gone {
            self.end(handle).await;
        }
    }

    /// No question waits any more; what was being typed before it is there again.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if self.keys.editor.draft.is_empty() {
            self.keys.editor.draft = open.draft;
        }
        self.show(Screen::end_asking);
        self.show_draft();
    }

    async fn on_line(&mut self, line: &str, handle: &Handle) {
        let Some(open) = &self.open else { return self.steer(line, handle).await };
        let question = open.question.clone();
        self.echo(line);
        if let PromptEntry::Now(message) = PromptEntry::parse(line) {
            self.close();
            return self.typed.hand_over(&message, (Speaker::User, Priority::Now), handle).await;
        }
        match questions::understand(line, &question) {
            QuestionReply::Unclear(text) => self.say(&text),
            QuestionReply::Leave => {
                self.close();
                self.leave(handle);
            }
            QuestionReply::Answer(answer, updates) => {
                self.close();
                if !updates.is_empty() {
                    // A session that is gone needs no answer.
                    let _ = handle.change_permissions(updates).await;
                }
                let _ = handle.answer(question.call, answer).await;
            }
        }
    }

    /// Nothing more will be typed: an open question is answered with no.
    async fn end(&mut self, handle: &Handle) {
        self.is_at_end = true;
        if self.open.is_some() {
            self.on_line("n", handle).await;
        }
    }

    fn lose(&mut self, why: Option<String>) {
        (self.is_gone, self.is_at_end) = (true, true);
        if let Some(why) = why {
            self.say(&format!("windlass: {why}"));
        }
    }

    /// Ends the run and the session: whoever leaves does not want to wait for either.
    fn leave(&mut self, handle: &Handle) {
        self.is_at_end = true;
        handle.leave();
    }

    /// A line that was typed during a run. A prompt joins the run or follows it, a command waits for its end.
    async fn steer(&mut self, line: &str, handle: &Handle) {
        let line = line.trim();
        self.show(|screen, out| screen.draft("", out));
        match PromptEntry::parse(line) {
            _ if line.is_empty() => {}
            _ if is_exit_word(line) => self.leave(handle),
            _ if line == "/help" => self.say(&help::page(HELP)),
            _ if self.is_at_end => self.say("Not sent: windlass exits when this run ends."),
            PromptEntry::Refused(why) => self.say(&why),
            PromptEntry::Command(_) => {
                self.say(&format!("Queued: {} (runs when this run ends)", display::line(line)));
                self.typed.hand_over(line, (Speaker::Command, Priority::Next), handle).await;
            }
            PromptEntry::Now(message) => {
                self.typed.hand_over(&message, (Speaker::User, Priority::Now), handle).await;
            }
            PromptEntry::Prompt => {
                self.say(&format!("Queued: {}", display::line(line)));
                self.typed.hand_over(line, (Speaker::User, Priority::Next), handle).await;
            }
        }
    }

    fn echo(&self, line: &str) {
        self.show(|screen, out| screen.end_typing(line, out));
    }

    /// Shows a queued line when it is sent.
    fn send(&self, line: &str) {
        self.show(|screen, out| screen.echo(line, out));
    }

    /// Says something in lines of its own.
    fn say(&self, text: &str) {
        self.show(|screen, out| screen.reply(text, out));
    }

    fn show_draft(&self) {
        self.show(|screen, out| screen.draft(&self.keys.editor.draft, out));
    }

    fn show(&self, show: impl FnOnce(&Screen, &mut Vec<u8>)) {
        if self.is_running {
            self.aside.leave(|out| show(&self.screen, out));
        } else {
            self.screen.now(show);
        }
    }
}

/// Whether a line says that the person wants to leave.
pub(crate) fn is_exit_word(line: &str) -> bool {
    matches!(line.trim(), "exit" | "quit" | "/exit" | "/quit")
}

/// Asks whether a project may act, until the answer is clear. Only yes counts.
pub(crate) fn ask_for_trust(files: &SettingsFiles, state: &TrustState) -> bool {
    let question = trust_question::question(files, state);
    let columns = layout::columns(io::stderr());
    say(&layout::wrap(&format!("\n{question}\n"), columns));
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    loop {
        let trust = "Trust this project? Only if you know where it comes from. [y/N]";
        say(&format!("{} ", layout::wrap(trust, columns)));
        let mut line = String::new();
        // Nothing at all comes at the end of the input.
        let Ok(1..) = io::stdin().read_line(&mut line) else { return false };
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return true,
            "" | "n" | "no" => return false,
            _ => say("Answer y or n.\n"),
        }
    }
}

/// Says something to the person, if standard error can be written.
pub(crate) fn say(text: &str) {
    let mut terminal = std::io::stderr();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

impl QuestionRelay {
    /// Takes up what a run tells.
    pub(crate) fn heed(&mut self, update: &Update) {
        for call in self.asked.heed(update) {
            self.tell(RunNews::Settled(call));
        }
        match update {
            Update::Question(question) => self.tell(RunNews::Question(Box::new(question.clone()))),
            Update::PromptsStarted(ids) => self.tell(RunNews::Sent(ids.clone())),
            _ => {}
        }
        self.handed.heed(update);
    }

    fn tell(&self, news: RunNews) {
        // Nobody reads it once the session is left.
        let _ = self.news.try_send(news);
    }
}
