//! What reaches a session from outside: messages and answers through handles, interrupts, and tasks that have ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::task::AtomicWaker;
use tokio::sync::mpsc;
use windlass_core::{Event, Interrupt, Priority, Prompt, Speaker};
use windlass_ports::{EndedTask, TaskWatch};
use windlass_protocol::{Answer, Block, CallId, PermissionUpdate};

/// How many messages from handles wait at most; further senders wait themselves.
const INBOX_MAX: usize = 16;

/// Reaches a session's run from elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    events: mpsc::Sender<Event>,
    interrupts: Arc<Interrupts>,
}

/// The session has ended; it takes no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended")]
pub struct SessionEnded;

/// The wish to interrupt, beside the inbox: it must never wait behind messages.
#[derive(Debug, Default)]
struct Interrupts {
    wish: Mutex<Option<Interrupt>>,
    waker: AtomicWaker,
}

impl Interrupts {
    /// The strongest wish counts.
    fn ask(&self, kind: Interrupt) {
        let mut wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        *wish = (*wish).max(Some(kind));
        drop(wish);
        self.waker.wake();
    }

    fn take(&self) -> Option<Interrupt> {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn poll(&self, cx: &Context<'_>) -> Option<Interrupt> {
        self.waker.register(cx.waker());
        self.take()
    }
}

/// What others have to say to a session.
pub(crate) struct Inbox {
    events: mpsc::Receiver<Event>,
    interrupts: Arc<Interrupts>,
    tasks: Option<Arc<dyn TaskWatch>>,
}

/// An inbox, and the handle that reaches it.
pub(crate) fn inbox(tasks: Option<Arc<dyn TaskWatch>>) -> (Inbox, Handle) {
    let (sender, events) = mpsc::channel(INBOX_MAX);
    let interrupts = Arc::<Interrupts>::default();
    let handle = Handle { events: sender, interrupts: interrupts.clone() };
    (Inbox { events, interrupts, tasks }, handle)
}

impl Inbox {
    /// The next thing somebody said. What was said before an interrupt goes before it.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Event> {
        let interrupt = self.interrupts.poll(cx);
        if let Poll::Ready(Some(event)) = self.events.poll_recv(cx) {
            if let Some(kind) = interrupt {
                self.interrupts.ask(kind);
            }
            return Some(event);
        }
        interrupt.map(Event::Interrupt).or_else(|| self.poll_tasks(cx))
    }

    fn poll_tasks(&self, cx: &mut Context<'_>) -> Option<Event> {
        match self.tasks.as_ref()?.poll_ended(cx) {
            Poll::Ready(task) => Some(Event::Steer(notification(&task))),
            Poll::Pending => None,
        }
    }

    /// The messages said between runs. An interrupt or answer that came too late means nothing to the next run.
    pub(crate) fn take_messages(&mut self) -> Vec<Event> {
        self.interrupts.take();
        let mut messages = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if matches!(event, Event::Steer(_) | Event::TakeBack(_)) {
                messages.push(event);
            }
        }
        let mut cx = Context::from_waker(Waker::noop());
        messages.extend(std::iter::from_fn(|| self.poll_tasks(&mut cx)));
        messages
    }
}

/// What the model is told about a task that has ended.
fn notification(task: &EndedTask) -> Prompt {
    let EndedTask { id, command, how, output_file } = task;
    let text = format!(
        "<task-notification>\nBackground task {id} has ended: {command}\n{how}\nOutput: {}\n</task-notification>",
        output_file.display()
    );
    let blocks = vec![Block::text(&text)];
    Prompt { blocks, speaker: Speaker::Task, ..Prompt::default() }
}

impl Handle {
    /// Asks the run to stop: every call is answered, the run ends with its terminal. Between runs it means nothing.
    pub fn interrupt(&self) {
        self.interrupts.ask(Interrupt::Stop);
    }

    /// The same because the process is about to end: the run's prompts stay unfinished for the process that resumes the session.
    pub fn leave(&self) {
        self.interrupts.ask(Interrupt::Leave);
    }

    /// Stops the run because the user has said something else, which begins the next run: edits finish, other calls are
    /// cancelled, and the transcript says nothing of an interrupt. The same as to steer a prompt of [`Priority::Now`].
    pub async fn interrupt_with(&self, prompt: impl Into<Prompt>) -> Result<(), SessionEnded> {
        self.steer(Prompt { priority: Priority::Now, ..prompt.into() }).await
    }

    /// Hands the session a message: the model sees it when its priority says, by default with the next results, or in the next
    /// run. Waits while many messages have not been taken; they are taken by a run that is polled.
    pub async fn steer(&self, prompt: impl Into<Prompt>) -> Result<(), SessionEnded> {
        self.send(Event::Steer(prompt.into())).await
    }

    /// Answers a question of the run.
    pub async fn answer(&self, call: CallId, answer: Answer) -> Result<(), SessionEnded> {
        self.send(Event::Answered(call, answer)).await
    }

    /// Changes who may do what, from the next decision on.
    pub async fn change_permissions(&self, updates: Vec<PermissionUpdate>) -> Result<(), SessionEnded> {
        self.send(Event::Permissions(updates)).await
    }

    async fn send(&self, event: Event) -> Result<(), SessionEnded> {
        self.events.send(event).await.map_err(|_| SessionEnded)
    }
}
