//! The conversation with a host: decides which line is which job, and what waits for which run.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::{Handle, Priority, Prompt, Session, Speaker};
use windlass_protocol::{Block, SessionKey};
use windlass_text::time::now_ms;
use windlass_wire::{InputLine, InputPrompt, control_error, control_success, replay};

use crate::jobs::{Job, QueuedPrompts};
use crate::output::SideOutput;
use crate::slash_commands::PromptEntry;

/// How many prompts wait at most before no more are read.
const WAITING_MAX: usize = 100;

/// Where the lines of a host come from.
pub trait HostInput: Send {
    /// What users call it.
    const SOURCE: &'static str;
    /// The next line. Can be dropped at any point and called again: nothing is lost.
    fn next_line(&mut self) -> impl Future<Output = HostLine> + Send;
    /// Tells the user, beside the protocol, what is wrong with what the host sends.
    fn complain(&self, problem: &str);
}

/// What comes from a host next.
#[derive(Debug, PartialEq, Eq)]
pub enum HostLine {
    /// A line.
    Text(String),
    /// Nothing more.
    End,
    /// Something that cannot be read as a line, and why. Nothing more comes.
    Unreadable(String),
}

/// What a host sends, in order, until it is done.
pub struct HostConversation<I> {
    input: I,
    /// Where lines for the host are left.
    replies: SideOutput,
    key: SessionKey,
    /// Whether prompts are said back.
    should_replay: bool,
    /// Read, and not handed to the session yet.
    queue: VecDeque<HostPrompt>,
    /// What was handed to the session. It sees every update of the session's runs.
    pub(crate) handed: QueuedPrompts,
    /// Why nothing more comes, if nothing does.
    pub(crate) end: Option<InputEnd>,
}

struct HostPrompt {
    prompt: Prompt,
    has_answer_due: bool,
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// The host is done.
    Closed,
    /// A line could not be understood; the user was told.
    Invalid,
}

impl<I: HostInput> HostConversation<I> {
    /// A conversation about one session; `should_replay` says whether prompts are said back. What the host is told besides runs is
    /// left at `replies`.
    pub fn new(input: I, replies: SideOutput, key: SessionKey, should_replay: bool) -> Self {
        Self {
            input,
            replies,
            key,
            should_replay,
            queue: VecDeque::new(),
            handed: QueuedPrompts::default(),
            end: None,
        }
    }

    /// What to do between runs, if there is something.
    pub(crate) async fn next_job(&mut self, session: &mut Session) -> Option<Job> {
        loop {
            if let Some(work) = self.handed.pay() {
                return Some(work.into_job(session));
            }
            let HostPrompt { prompt, has_answer_due } = self.queue.pop_front()?;
            if has_answer_due && prompt.speaker == Speaker::User {
                return Some(Job::Run(prompt));
            }
            self.handed.hand_over(prompt, has_answer_due, &session.handle()).await;
            // Nobody else takes it while nothing runs.
            session.waiting();
        }
    }

    /// Takes lines while a run goes on: prompts join it, an interrupt ends it. Can be dropped at any point.
    pub(crate) async fn join(&mut self, handle: Handle) -> Infallible {
        loop {
            while let Some(HostPrompt { prompt, has_answer_due }) = self.queue.front() {
                self.handed.hand_over(prompt.clone(), *has_answer_due, &handle).await;
                self.queue.pop_front();
            }
            if self.end.is_some() || self.queue.len() >= WAITING_MAX {
                return std::future::pending().await;
            }
            if self.read().await {
                handle.interrupt();
            }
        }
    }

    /// Reads a line and does what can be done at once. Says whether it asks for an interrupt of the run.
    pub(crate) async fn read(&mut self) -> bool {
        let line = match self.input.next_line().await {
            HostLine::Text(line) => line,
            HostLine::End => {
                self.end = Some(InputEnd::Closed);
                return false;
            }
            HostLine::Unreadable(problem) => return self.give_up(&problem),
        };
        match InputLine::parse(&line) {
            Ok(InputLine::Prompt(prompt)) => self.take(prompt),
            Ok(InputLine::Interrupt { request_id, prompt }) => {
                self.replies.leave(|out| control_success(&request_id, &self.waiting(), out));
                let Some(prompt) = prompt else { return true };
                self.take(prompt);
            }
            Ok(InputLine::Invalid { request_id, problem }) => {
                self.replies.leave(|out| control_error(&request_id, &problem.to_string(), out));
            }
            Ok(InputLine::Unsupported { request_id, subtype }) => {
                let error = format!("control request {subtype} is not supported yet; only interrupt is");
                self.replies.leave(|out| control_error(&request_id, &error, out));
            }
            Ok(InputLine::Ignored) => {}
            Ok(InputLine::Unknown(kind)) => {
                self.input.complain(&format!("skipped a line of the unknown type {kind} on {}.", I::SOURCE));
            }
            Err(problem) => return self.give_up(&format!("invalid line on {}: {problem}", I::SOURCE)),
        }
        false
    }

    /// Reads no more. No interrupt is asked for.
    fn give_up(&mut self, problem: &str) -> bool {
        let problem = format!("{problem}. Windlass stops reading and finishes the prompts it has.");
        self.input.complain(&problem);
        self.end = Some(InputEnd::Invalid);
        false
    }

    fn take(&mut self, input: InputPrompt) {
        let id = input.uuid.clone().unwrap_or_else(|| Uuid::new_v4().to_string().into());
        if self.should_replay {
            self.replies.leave(|out| replay(self.key, &id, &input.blocks, now_ms(), out));
        }
        let text = input.text().filter(|_| !input.is_verbatim);
        let entry = text.map_or(PromptEntry::Prompt, PromptEntry::parse);
        let speaker = match entry {
            PromptEntry::Command(_) | PromptEntry::Refused(_) => Speaker::Command,
            PromptEntry::Prompt | PromptEntry::Now(_) => Speaker::User,
        };
        let (blocks, priority) = match entry {
            PromptEntry::Now(message) => (vec![Block::text(&message)], Priority::Now),
            _ => (input.blocks, input.priority),
        };
        // A command always has a result. What is only kept for the next prompt interrupts nothing.
        let has_answer_due = input.has_answer_due || speaker == Speaker::Command;
        let priority = if has_answer_due { priority } else { priority.max(Priority::Next) };
        let prompt = Prompt { blocks, id: Some(id), speaker, priority, ..Prompt::default() };
        self.queue.push_back(HostPrompt { prompt, has_answer_due });
    }

    /// The prompts that are in no run yet.
    fn waiting(&self) -> Vec<Arc<str>> {
        let mut waiting = self.handed.ids();
        waiting.extend(self.queue.iter().filter_map(|waits| waits.prompt.id.clone()));
        waiting
    }
}
