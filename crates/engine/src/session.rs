//! A session: one conversation, one prompt after the other.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

use tokio::sync::mpsc;
use tokio::time::Instant;
use windlass_core::{Event, Interrupt, Prompt, State};
use windlass_protocol::{Answer, CallId, SessionSeed, Transcript};

use crate::builder::Shared;
use crate::prompt::environment_note;
use crate::run::Run;

/// A conversation with an id. It takes submissions one after the other.
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: State,
    pub(crate) seed: SessionSeed,
    /// How many inputs the machine has had: the position in the session's randomness.
    pub(crate) inputs: u64,
    pub(crate) started: Instant,
    pub(crate) inbox: Inbox,
    /// Whether a prompt has told the model where it is.
    introduced: bool,
    handle: Handle,
}

/// Reaches a session's run from elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    events: mpsc::Sender<Event>,
    interrupts: Arc<Interrupts>,
}

/// The session is gone, so nobody can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended")]
pub struct SessionEnded;

/// The wish to interrupt, beside the inbox: it must never wait behind messages.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    wish: Mutex<Option<Interrupt>>,
    waker: AtomicWaker,
}

impl Interrupts {
    fn ask(&self, kind: Interrupt) {
        *self.wish.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
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

/// What handles have to say.
pub(crate) struct Inbox {
    events: mpsc::Receiver<Event>,
    interrupts: Arc<Interrupts>,
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
        interrupt.map(Event::Interrupt)
    }
}

/// How many messages from handles wait at most; further senders wait themselves.
const INBOX_MAX: usize = 16;

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, seed: SessionSeed, messages: Transcript) -> Self {
        let (events, inbox) = mpsc::channel(INBOX_MAX);
        let interrupts = Arc::<Interrupts>::default();
        Self {
            introduced: !messages.is_empty(),
            state: State::new(shared.cwd.clone(), messages),
            shared,
            seed,
            inputs: 0,
            started: Instant::now(),
            inbox: Inbox { events: inbox, interrupts: interrupts.clone() },
            handle: Handle { events, interrupts },
        }
    }

    /// Starts a run. Nothing happens until it is polled.
    ///
    /// What was steered during the last run and never reached the model goes in first, in order.
    pub fn run(&mut self, prompt: impl Into<Prompt>) -> Run<'_> {
        self.drain_inbox();
        let mut prompt = prompt.into();
        if !std::mem::replace(&mut self.introduced, true) {
            prompt.blocks.insert(0, environment_note(&self.shared.cwd));
        }
        Run::new(self, prompt)
    }

    /// A handle for other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The session's seed; its ids follow from it.
    #[must_use]
    pub fn seed(&self) -> SessionSeed {
        self.seed
    }

    /// The conversation so far. Between runs it can be sent to a model as it is.
    #[must_use]
    pub fn messages(&self) -> &Transcript {
        self.state.messages()
    }

    /// The working directory of the next call.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        self.state.cwd()
    }

    /// How many messages were steered that no request has carried yet. They are part of the next run.
    pub fn waiting(&mut self) -> usize {
        self.drain_inbox();
        self.state.waiting()
    }

    /// Keeps what was typed between runs; an interrupt or answer that came too late means nothing to the next run.
    fn drain_inbox(&mut self) {
        self.inbox.interrupts.take();
        while let Ok(event) = self.inbox.events.try_recv() {
            if matches!(event, Event::Steer(_)) {
                self.advance_at_rest(event);
            }
        }
    }
}

impl Handle {
    /// Asks the run to stop: every call is answered, the run ends with its terminal. Between runs it means nothing.
    pub fn interrupt(&self) {
        self.interrupts.ask(Interrupt::Stop);
    }

    /// Stops the run because the user has said something else, which waits for the next run.
    pub async fn interrupt_with(&self, prompt: impl Into<Prompt>) -> Result<(), SessionEnded> {
        self.steer(prompt).await?;
        self.interrupts.ask(Interrupt::Replace);
        Ok(())
    }

    /// Hands the session a message: the model sees it with the next results, or in the next run. Waits while many
    /// messages have not been taken; they are taken by a run that is polled.
    pub async fn steer(&self, prompt: impl Into<Prompt>) -> Result<(), SessionEnded> {
        self.send(Event::Steer(prompt.into())).await
    }

    /// Answers a question of the run.
    pub async fn answer(&self, call: CallId, answer: Answer) -> Result<(), SessionEnded> {
        self.send(Event::Answered { call, answer }).await
    }

    async fn send(&self, event: Event) -> Result<(), SessionEnded> {
        self.events.send(event).await.map_err(|_| SessionEnded)
    }
}
