//! An interactive session in plain text: prompts and answers are lines typed at a terminal.

use std::convert::Infallible;
use std::io::Write as _;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;
use windlass_engine::{Handle, Prompt, Question, Update};

use crate::asking::{self, Said};
use crate::bell::{Bell, Bells};
use crate::commands::HELP;
use crate::complain;
use crate::help;
use crate::lines::{Lines, Next};
use crate::watched::Watch;

/// More questions than a response can have calls that run side by side.
const QUESTIONS_MAX: usize = 64;

/// The person at the terminal.
pub(crate) struct Person {
    lines: Lines,
    questions: mpsc::Receiver<Question>,
    /// A question that was shown and not answered yet.
    open: Option<Question>,
    ended: bool,
    bells: Bells,
    /// What hooks may hear while the question is open.
    bell: Option<Bell>,
    /// Something was done already.
    has_run: bool,
}

/// Hands questions to the person.
pub(crate) struct Asking {
    questions: mpsc::Sender<Question>,
}

impl Person {
    /// The person, and who asks.
    pub(crate) fn meet(bells: Bells) -> (Self, Asking) {
        let (sender, questions) = mpsc::channel(QUESTIONS_MAX);
        let (lines, open, ended) = (Lines::new(), None, false);
        let person = Self { lines, questions, open, ended, bells, bell: None, has_run: false };
        (person, Asking { questions: sender })
    }

    /// The prompt that a line is; nothing if the line is for the terminal, which has then done what it asks for.
    pub(crate) fn read(&mut self, line: &str) -> Option<String> {
        match line.trim() {
            "" => None,
            "/help" => {
                say(&help::page(HELP));
                None
            }
            word if leaves(word) => {
                self.ended = true;
                None
            }
            _ => Some(line.trim_end().to_owned()),
        }
    }

    /// The next prompt; nothing when the person is done.
    pub(crate) async fn prompt(&mut self) -> Option<String> {
        self.close();
        // Somebody who has just begun is there.
        let _idle = self.has_run.then(|| self.bells.idle());
        while !self.ended {
            say("\n> ");
            match self.lines.next().await {
                Next::Line(line) => {
                    if let Some(prompt) = self.read(&line) {
                        return Some(prompt);
                    }
                }
                Next::End => self.ended = true,
                Next::Bad(error) => {
                    complain(&format!("{error}."));
                    self.ended = true;
                }
            }
        }
        None
    }

    /// Answers questions while a run goes on; what is typed in between joins the run. Can be dropped at any point.
    pub(crate) async fn join(&mut self, handle: Handle) -> Infallible {
        self.has_run = true;
        loop {
            let Some(question) = self.open.clone() else {
                tokio::select! {
                    biased;
                    Some(question) = self.questions.recv() => self.show(question),
                    line = self.lines.next(), if !self.ended => self.steer(line, &handle).await,
                    else => return std::future::pending().await,
                }
                continue;
            };
            match self.lines.next().await {
                Next::Line(line) => self.answer(&line, &question, &handle).await,
                Next::End | Next::Bad(_) => {
                    self.ended = true;
                    self.answer("n", &question, &handle).await;
                }
            }
        }
    }

    /// What was typed before the question appeared cannot have been meant as its answer.
    fn show(&mut self, question: Question) {
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        self.lines.forget();
        say(&asking::question(&question));
        self.bell = Some(self.bells.asked(&question.tool_use.name));
        self.open = Some(question);
    }

    /// No question waits any more.
    fn close(&mut self) {
        (self.open, self.bell) = (None, None);
    }

    async fn answer(&mut self, line: &str, question: &Question, handle: &Handle) {
        match asking::understand(line, question) {
            Said::Unclear(text) => say(&format!("{text}\n> ")),
            Said::Leave => {
                self.close();
                self.leave(handle);
            }
            Said::Answer(answer, updates) => {
                self.close();
                if !updates.is_empty() {
                    // A session that is gone needs no answer.
                    let _ = handle.change_permissions(updates).await;
                }
                let _ = handle.answer(question.call, answer).await;
            }
        }
    }

    /// Ends the run and the session: whoever leaves does not want to wait for either.
    fn leave(&mut self, handle: &Handle) {
        self.ended = true;
        handle.interrupt();
    }

    async fn steer(&mut self, line: Next, handle: &Handle) {
        match line {
            Next::Line(line) if leaves(&line) => self.leave(handle),
            Next::Line(line) if line.trim() == "/help" => say(&help::page(HELP)),
            Next::Line(line) if !line.trim().is_empty() => {
                let _ = handle.steer(Prompt::from(line.trim_end().to_owned())).await;
            }
            Next::Line(_) => {}
            Next::End | Next::Bad(_) => self.ended = true,
        }
    }
}

/// Says how to leave, once, before anything else.
pub(crate) fn greet() {
    say("Leave with Ctrl-D or /exit; /help lists the commands.\n");
}

/// Whether a line says that the person wants to leave.
pub(crate) fn leaves(line: &str) -> bool {
    matches!(line.trim(), "exit" | "quit" | "/exit" | "/quit")
}

/// Asks whether a project may act. Only a clear yes counts.
pub(crate) fn agrees(question: &str) -> bool {
    say(&format!("\n{question}\nTrust this project? Only if you know where it comes from. [y/N] "));
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).is_ok();
    read && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Says something to the person. Without a terminal there is nobody.
fn say(text: &str) {
    let mut terminal = std::io::stderr();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

impl Watch for Asking {
    fn heed(&mut self, update: &Update) {
        if let Update::Question(question) = update {
            // Nobody reads questions once the session is left.
            drop(self.questions.try_send(question.clone()));
        }
    }
}
