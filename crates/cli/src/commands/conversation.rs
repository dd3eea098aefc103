//! What a host says over standard input: prompts and requests come as lines, while runs go on and between them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;
use windlass_engine::{Handle, Priority, Prompt, Session, Speaker, Update};
use windlass_protocol::{Block, SessionKey};
use windlass_wire::{InputLine, InputPrompt, control_error, control_success, replay};

use crate::commands::jobs::Job;
use crate::commands::lines::{Lines, Next};
use crate::complain;
use crate::views::output::Aside;
use crate::views::watch_decorator::{Watch, WatchedView};
use crate::views::{Clock, View};
use windlass::slash_commands::PromptEntry;

/// How many prompts wait at most before no more are read.
const WAITING_MAX: usize = 100;

/// What a host sends, in order, until it is done.
pub(crate) struct Conversation {
    lines: Lines,
    aside: Aside,
    clock: Clock,
    key: SessionKey,
    /// Whether prompts are said back.
    replays: bool,
    /// Read, and not handed to the session yet.
    queue: VecDeque<Item>,
    handed: HandedPrompts,
    ended: Option<InputEnd>,
}

/// Something a host wants said or done.
struct Item {
    prompt: Prompt,
    wants_answer: bool,
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// The host is done.
    Closed,
    /// A line could not be understood; it was said.
    Bad,
}

/// Prompts and commands that were handed to the session and are in no run yet, in their order. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct HandedPrompts(Arc<Mutex<Vec<HandedPrompt>>>);

struct HandedPrompt {
    id: Arc<str>,
    /// What it asks for, if it is a command.
    command: Option<String>,
    wants_answer: bool,
}

/// What is to be done about what was handed to the session.
pub(crate) enum PendingWork {
    /// A run that takes every prompt.
    Answer,
    /// This command.
    Command { text: String, id: Arc<str> },
}

impl HandedPrompts {
    /// One more was handed over.
    pub(crate) fn add(&self, prompt: &Prompt, wants_answer: bool) {
        let Some(id) = prompt.id.clone() else { return };
        let is_command = prompt.speaker == Speaker::Command;
        let text = prompt.blocks.first().and_then(Block::as_text);
        let command = text.filter(|_| is_command).map(str::to_owned);
        self.with(|handed| handed.push(HandedPrompt { id, command, wants_answer }));
    }

    /// A run has taken these, or hooks have refused them.
    pub(crate) fn started(&self, ids: &[Arc<str>]) {
        self.with(|handed| handed.retain(|prompt| !ids.contains(&prompt.id)));
    }

    /// Those that are in no run yet.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        self.with(|handed| handed.iter().map(|prompt| prompt.id.clone()).collect())
    }

    /// What is owed first, for the last time: a run that ends without taking prompts must not be followed by others for ever.
    pub(crate) fn pay(&self) -> Option<PendingWork> {
        self.with(|handed| {
            let first = handed.iter().position(|prompt| prompt.wants_answer)?;
            if handed[first].command.is_some() {
                let HandedPrompt { id, command, .. } = handed.remove(first);
                return command.map(|text| PendingWork::Command { text, id });
            }
            for prompt in handed.iter_mut().filter(|prompt| prompt.command.is_none()) {
                prompt.wants_answer = false;
            }
            Some(PendingWork::Answer)
        })
    }

    /// Nothing is owed any more.
    pub(crate) fn forgive(&self) {
        self.with(|handed| handed.iter_mut().for_each(|prompt| prompt.wants_answer = false));
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Vec<HandedPrompt>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notes which prompts a run has taken.
struct Noticing {
    handed: HandedPrompts,
}

impl Conversation {
    pub(crate) fn new(lines: Lines, aside: Aside, key: SessionKey, replays: bool) -> Self {
        let (queue, handed) = (VecDeque::new(), HandedPrompts::default());
        Self { lines, aside, clock: Clock::start(), key, replays, queue, handed, ended: None }
    }

    /// The same view, which also notes which prompts runs have taken.
    pub(crate) fn noticing(&self, inner: Box<dyn View>) -> Box<dyn View> {
        Box::new(WatchedView { watch: Noticing { handed: self.handed.clone() }, inner })
    }

    /// Why nothing more comes, if nothing does.
    pub(crate) fn ended(&self) -> Option<InputEnd> {
        self.ended
    }

    /// What to do between runs, if there is something.
    pub(crate) async fn next_job(&mut self, session: &mut Session) -> Option<Job> {
        loop {
            match self.handed.pay() {
                Some(PendingWork::Command { text, id }) => {
                    session.take_back(id.clone());
                    return Some(Job::of_command(&text, id));
                }
                Some(PendingWork::Answer) => return Some(Job::Run(Prompt::default())),
                None => (),
            }
            let Item { prompt, wants_answer } = self.queue.pop_front()?;
            if wants_answer && prompt.speaker == Speaker::User {
                return Some(Job::Run(prompt));
            }
            self.hand_over(&session.handle(), &prompt, wants_answer).await;
            // Nobody else takes it while nothing runs.
            session.waiting();
        }
    }

    /// Takes one line while nothing runs, and so nothing can be interrupted.
    pub(crate) async fn read(&mut self) {
        self.next_line().await;
    }

    /// Takes lines while a run goes on: prompts join it, an interrupt ends it. Can be dropped at any point.
    pub(crate) async fn join(&mut self, handle: Handle) -> Infallible {
        loop {
            while let Some(Item { prompt, wants_answer }) = self.queue.front() {
                let (prompt, wants_answer) = (prompt.clone(), *wants_answer);
                self.hand_over(&handle, &prompt, wants_answer).await;
                self.queue.pop_front();
            }
            if self.ended.is_some() || self.queue.len() >= WAITING_MAX {
                return std::future::pending().await;
            }
            if self.next_line().await {
                handle.interrupt();
            }
        }
    }

    /// Hands a prompt to the session. It is noted only once it is there.
    async fn hand_over(&self, handle: &Handle, prompt: &Prompt, wants_answer: bool) {
        if handle.steer(prompt.clone()).await.is_ok() {
            self.handed.add(prompt, wants_answer);
        }
    }

    /// Reads a line and does what can be done at once. Says whether it asks for an interrupt.
    async fn next_line(&mut self) -> bool {
        let line = match self.lines.next().await {
            Next::Line(line) => line,
            Next::End => {
                self.ended = Some(InputEnd::Closed);
                return false;
            }
            Next::Bad(problem) => {
                self.give_up(&problem);
                return false;
            }
        };
        match InputLine::parse(&line) {
            Ok(InputLine::Prompt(prompt)) => self.take(prompt),
            Ok(InputLine::Interrupt { request_id, prompt }) => {
                let waiting = self.waiting();
                self.aside.leave(|out| control_success(&request_id, &waiting, out));
                let Some(prompt) = prompt else { return true };
                self.take(prompt);
            }
            Ok(InputLine::Invalid { request_id, problem }) => {
                self.aside.leave(|out| control_error(&request_id, &problem.to_string(), out));
            }
            Ok(InputLine::Unsupported { request_id, subtype }) => {
                let error = format!("control request {subtype} is not supported yet; only interrupt is");
                self.aside.leave(|out| control_error(&request_id, &error, out));
            }
            Ok(InputLine::Ignored) => {}
            Ok(InputLine::Unknown(kind)) => {
                complain(&format!("skipped a line of the unknown type {kind} on standard input."));
            }
            Err(problem) => self.give_up(&format!("invalid line on standard input: {problem}")),
        }
        false
    }

    fn give_up(&mut self, problem: &str) {
        complain(&format!("{problem}. Windlass stops reading and finishes the prompts it has."));
        self.ended = Some(InputEnd::Bad);
    }

    fn take(&mut self, input: InputPrompt) {
        let id = input.uuid.clone().unwrap_or_else(|| Uuid::new_v4().to_string().into());
        if self.replays {
            let at = self.clock.at();
            self.aside.leave(|out| replay(self.key, &id, &input.blocks, at, out));
        }
        let text = input.text().filter(|_| !input.verbatim);
        let entry = text.map_or(PromptEntry::Prompt, PromptEntry::parse);
        let speaker = match entry {
            PromptEntry::Command(_) | PromptEntry::Refused(_) => Speaker::Command,
            PromptEntry::Prompt | PromptEntry::Now(_) => Speaker::User,
        };
        let (blocks, priority) = match entry {
            PromptEntry::Now(message) => (vec![Block::text(&message)], Priority::Now),
            _ => (input.blocks, input.priority.into()),
        };
        // A command always has a result. What is only kept for the next prompt interrupts nothing.
        let wants_answer = input.wants_answer || speaker == Speaker::Command;
        let priority = if wants_answer { priority } else { priority.max(Priority::Next) };
        let prompt = Prompt { blocks, id: Some(id), speaker, priority, ..Prompt::default() };
        self.queue.push_back(Item { prompt, wants_answer });
    }

    /// The prompts that are in no run yet.
    fn waiting(&self) -> Vec<Arc<str>> {
        let mut waiting = self.handed.ids();
        waiting.extend(self.queue.iter().filter_map(|item| item.prompt.id.clone()));
        waiting
    }
}

impl Watch for Noticing {
    fn heed(&mut self, update: &Update) {
        if let Update::PromptsStarted(ids) | Update::PromptsRefused(ids) = update {
            self.handed.started(ids);
        }
    }
}
