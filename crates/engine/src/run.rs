//! A run: the processing of one submission, as a lazy stream of updates.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::Stream;
use windlass_core::Event;
use windlass_protocol::Update;

use crate::inbox::Handle;
use crate::session::Session;

/// One submission at work: a stream of updates that ends after exactly one [`Update::Done`].
///
/// No poll, no progress: a reader that pauses pauses the model's stream and, once their pipes are full, the tools.
/// Dropping a run stops everything it started and leaves the session ready for the next prompt. What does not wait for the run,
/// such as a summary in the background, ends with the run too; what begins at its end goes on in
/// [`Session::background`].
#[must_use = "a run does nothing until it is polled"]
pub struct Run<'session> {
    pub(crate) session: &'session mut Session,
    /// What it begins with, until it is polled.
    pub(crate) first: Option<Event>,
}

impl Run<'_> {
    /// A handle for other tasks.
    pub fn handle(&self) -> Handle {
        self.session.handle()
    }
}

/// What is at work since a run ended; see [`Session::background`].
#[must_use = "nothing goes on until it is polled"]
pub struct Background<'session> {
    pub(crate) session: &'session mut Session,
}

impl Stream for Background<'_> {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        self.get_mut().session.machine.poll_background(cx)
    }
}

impl Stream for Run<'_> {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        let run = self.get_mut();
        let Session { machine, inbox, .. } = &mut *run.session;
        if let Some(event) = run.first.take() {
            machine.advance(event);
        }
        machine.poll_update(Some(inbox), cx)
    }
}

impl Drop for Run<'_> {
    /// A prompt that was never polled was still said: it waits for the next run.
    fn drop(&mut self) {
        let machine = &mut self.session.machine;
        let unsaid = self.first.take();
        machine.rest();
        if let Some(Event::Submit(prompt)) = unsaid {
            machine.advance(Event::Steer(prompt));
        }
    }
}
