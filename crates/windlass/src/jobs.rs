//! What a person or a host wants done next, a prompt or a command, and what was left undone.

use std::sync::{Arc, Mutex, PoisonError};

use windlass_engine::{Handle, Prompt, Session, Speaker, Update};
use windlass_protocol::Block;
use windlass_wire::Lifecycle;

use crate::slash_commands::{PromptEntry, SlashCommand};

/// What to do next with a session.
pub enum Job {
    /// Run this prompt, and whatever waits before it.
    Run(Prompt),
    /// Go on where the session was cut off.
    GoOn,
    /// Do this; the id is the prompt's, if it has one.
    Command(SlashCommand, Option<Arc<str>>),
    /// Say why nothing is done about this prompt.
    Refuse(String, Option<Arc<str>>),
}

impl Job {
    /// What the texts of a whole prompt ask for.
    pub fn of_texts(texts: &[String]) -> Self {
        let blocks = texts.iter().map(|text| Block::text(text)).collect();
        Self::of(&texts.join("\n\n"), Prompt { blocks, ..Prompt::default() })
    }

    /// What a text asks for; this prompt, if it is no command.
    fn of(text: &str, prompt: Prompt) -> Self {
        match PromptEntry::parse(text) {
            PromptEntry::Command(command) => Self::Command(command, prompt.id),
            PromptEntry::Refused(why) => Self::Refuse(why, prompt.id),
            PromptEntry::Now(message) => Self::Run(Prompt { blocks: vec![Block::text(&message)], ..prompt }),
            PromptEntry::Prompt => Self::Run(prompt),
        }
    }
}

/// Prompts and commands that were handed to a session during its runs and are in no run yet, in their order. Cheap to clone.
#[derive(Clone, Default)]
pub struct QueuedPrompts(Arc<Mutex<Vec<HandedPrompt>>>);

struct HandedPrompt {
    id: Arc<str>,
    /// What it asks for, if it is a command.
    command: Option<String>,
    has_answer_due: bool,
}

/// What is to be done about prompts that were handed over.
pub enum PendingWork {
    /// A run that takes every prompt.
    Answer,
    /// This command.
    Command {
        /// As it was written.
        text: String,
        /// Its prompt's.
        id: Arc<str>,
    },
}

impl PendingWork {
    /// The job it is; a command no longer waits in the session then.
    pub fn into_job(self, session: &mut Session) -> Job {
        match self {
            Self::Answer => Job::Run(Prompt::default()),
            Self::Command { text, id } => {
                session.take_back(id.clone());
                Job::of(&text, Prompt { id: Some(id), ..text.as_str().into() })
            }
        }
    }
}

impl QueuedPrompts {
    /// Hands a prompt to the session. It is noted only once it is there.
    pub async fn hand_over(&self, prompt: Prompt, has_answer_due: bool, handle: &Handle) {
        let id = prompt.id.clone();
        let command = prompt.blocks.first().filter(|_| prompt.speaker == Speaker::Command);
        let command = command.and_then(Block::as_text).map(str::to_owned);
        if let (Ok(()), Some(id)) = (handle.steer(prompt).await, id) {
            self.with(|handed| handed.push(HandedPrompt { id, command, has_answer_due }));
        }
    }

    /// Forgets what a run has taken, or hooks have refused.
    pub fn heed(&self, update: &Update) {
        if let Update::PromptsStarted(ids) | Update::PromptsRefused(ids) = update {
            self.with(|handed| handed.retain(|prompt| !ids.contains(&prompt.id)));
        }
    }

    /// Those that are in no run yet.
    pub fn ids(&self) -> Vec<Arc<str>> {
        self.with(|handed| handed.iter().map(|prompt| prompt.id.clone()).collect())
    }

    /// What is owed first, for the last time: a run that ends without taking prompts must not be followed by others for ever.
    pub fn pay(&self) -> Option<PendingWork> {
        self.with(|handed| {
            let first = handed.iter().position(|prompt| prompt.has_answer_due)?;
            if handed[first].command.is_some() {
                let HandedPrompt { id, command, .. } = handed.remove(first);
                return command.map(|text| PendingWork::Command { text, id });
            }
            for prompt in handed.iter_mut().filter(|prompt| prompt.command.is_none()) {
                prompt.has_answer_due = false;
            }
            Some(PendingWork::Answer)
        })
    }

    /// Nothing is owed any more.
    pub fn forgive(&self) {
        self.with(|handed| handed.iter_mut().for_each(|prompt| prompt.has_answer_due = false));
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Vec<HandedPrompt>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Prompts and commands left undone by the end of a session or a run that failed, in the user's words.
#[derive(Default)]
pub struct UnfinishedWork {
    /// Prompts of runs that did not finish.
    pub unfinished: Vec<String>,
    /// The ids their senders gave them.
    unfinished_ids: Vec<Arc<str>>,
    /// Prompts that no run has taken, with their ids.
    pub waiting: Vec<(Arc<str>, String)>,
    /// Commands that were not done. They are taken back: whoever wants them says so again.
    pub undone: Vec<(Arc<str>, String)>,
}

impl UnfinishedWork {
    /// Takes the commands back; prompts keep waiting.
    pub fn of(session: &mut Session) -> Self {
        let mut left = Self::default();
        for prompt in session.unfinished_prompts() {
            left.unfinished.extend(Some(Block::texts(&prompt.blocks)).filter(|text| !text.is_empty()));
            left.unfinished_ids.extend(prompt.ids);
        }
        let named = |prompt: &Prompt| Some((prompt.id.clone()?, Block::texts(&prompt.blocks)));
        for prompt in session.waiting_prompts() {
            match prompt.speaker {
                Speaker::User => left.waiting.extend(named(prompt)),
                Speaker::Command => left.undone.extend(named(prompt)),
                Speaker::Task => (),
            }
        }
        for (id, _) in &left.undone {
            session.take_back(id.clone());
        }
        left
    }

    /// What hosts are told of it.
    pub fn fates(&self) -> Vec<(Arc<str>, Lifecycle)> {
        let undone = self.undone.iter().map(|(id, _)| id);
        let cancelled = self.unfinished_ids.iter().chain(undone).map(|id| (id.clone(), Lifecycle::Cancelled));
        cancelled.chain(self.waiting.iter().map(|(id, _)| (id.clone(), Lifecycle::Queued))).collect()
    }
}
