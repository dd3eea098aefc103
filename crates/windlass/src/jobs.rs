//! What a person or a host wants done next, a prompt or a command, and what was left undone.

use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;
use windlass_engine::{CallId, Handle, Priority, Prompt, Session, Speaker, Update};
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
pub(crate) enum PendingWork {
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
    pub(crate) fn into_job(self, session: &mut Session) -> Job {
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
    pub(crate) async fn hand_over(&self, prompt: Prompt, has_answer_due: bool, handle: &Handle) {
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
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        self.with(|handed| handed.iter().map(|prompt| prompt.id.clone()).collect())
    }

    /// What is owed first, for the last time: a run that ends without taking prompts must not be followed by others for ever.
    pub(crate) fn pay(&self) -> Option<PendingWork> {
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
    fn forgive(&self) {
        self.with(|handed| handed.iter_mut().for_each(|prompt| prompt.has_answer_due = false));
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Vec<HandedPrompt>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a person typed during runs and no run has taken yet, with its texts.
#[derive(Default)]
pub struct TypedPrompts {
    /// Prompts by their ids.
    waiting: Vec<(Arc<str>, String)>,
    handed: QueuedPrompts,
}

impl TypedPrompts {
    /// Begins again with what a session or a failed run has left; nothing else is owed.
    pub fn begin_with(&mut self, waiting: Vec<(Arc<str>, String)>) {
        self.handed.forgive();
        self.waiting = waiting;
    }

    /// What was handed over. It sees every update of the session's runs.
    pub fn queue(&self) -> QueuedPrompts {
        self.handed.clone()
    }

    /// Hands a text to the session. It is noted only once it is there.
    pub async fn hand_over(&mut self, text: &str, (speaker, priority): (Speaker, Priority), handle: &Handle) {
        let id: Arc<str> = Uuid::new_v4().to_string().into();
        let prompt = Prompt { id: Some(id.clone()), speaker, priority, ..Prompt::from(text) };
        if speaker == Speaker::User {
            self.waiting.push((id, text.to_owned()));
        }
        self.handed.hand_over(prompt, /* wants an answer */ true, handle).await;
    }

    /// A run has taken these prompts. Gives their texts.
    pub fn take_started(&mut self, ids: &[Arc<str>]) -> Vec<String> {
        let (started, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(id, _)| ids.contains(id));
        self.waiting = waiting;
        started.into_iter().map(|(_, text)| text).collect()
    }

    /// What is still to be done between runs, with the texts it is made of.
    pub fn next_job(&mut self, session: &mut Session) -> Option<(Vec<String>, Job)> {
        let work = self.handed.pay()?;
        let texts = match &work {
            PendingWork::Answer => {
                let texts = self.take_started(&self.handed.ids());
                self.waiting.clear();
                texts
            }
            PendingWork::Command { text, .. } => vec![text.clone()],
        };
        Some((texts, work.into_job(session)))
    }
}

/// The calls that a person was asked about and that are not settled.
#[derive(Default)]
pub struct OpenQuestions(Vec<CallId>);

impl OpenQuestions {
    /// Takes in an update of a run. Gives the calls about which there is nothing to answer any more.
    pub fn heed(&mut self, update: &Update) -> Vec<CallId> {
        let is_settled = |call: &CallId| match update {
            Update::ToolResult { call: answered, .. } => call == answered,
            Update::Retracted { calls, .. } => calls.contains(call),
            _ => false,
        };
        let (settled, open) = std::mem::take(&mut self.0).into_iter().partition(is_settled);
        self.0 = open;
        if let Update::Question(question) = update {
            self.0.push(question.call);
        }
        settled
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
    /// Commands that were not done. They are taken back and must be given again.
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

    /// The lines about it for hosts.
    pub fn fates(&self) -> Vec<(Arc<str>, Lifecycle)> {
        let undone = self.undone.iter().map(|(id, _)| id);
        let cancelled = self.unfinished_ids.iter().chain(undone).map(|id| (id.clone(), Lifecycle::Cancelled));
        cancelled.chain(self.waiting.iter().map(|(id, _)| (id.clone(), Lifecycle::Queued))).collect()
    }
}
