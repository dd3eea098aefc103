//! Everything that may produce the next event.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{AbortHandle, Aborted, BoxFuture, FutureExt, abortable};
use futures_util::stream::{BoxStream, FuturesUnordered, Stream, StreamExt};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use windlass_core::{Effect, Event};
use windlass_ports::{ModelClient, ProgressReceiver, ProgressSender, ToolContext, progress_channel};
use windlass_protocol::{
    CallId, Failure, FailureClass, ModelEvent, ModelRequest, RequestId, TimerId, ToolOutcome, ToolUse,
};

use crate::builder::Shared;
use crate::session::Inbox;

/// The model's stream, the running calls, the timers and the inbox.
pub(crate) struct Inflight {
    shared: Arc<Shared>,
    /// Events that are known already.
    ready: VecDeque<Event>,
    model: Option<(RequestId, BoxStream<'static, ModelEvent>)>,
    running: FuturesUnordered<BoxFuture<'static, Result<(CallId, ToolOutcome), Aborted>>>,
    stops: BTreeMap<CallId, Stop>,
    timers: Vec<(TimerId, Pin<Box<Sleep>>)>,
    progress: (ProgressSender, ProgressReceiver),
}

/// The two ways to stop a call: ask it, or drop it.
struct Stop {
    ask: CancellationToken,
    drop: AbortHandle,
}

impl Inflight {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            ready: VecDeque::new(),
            model: None,
            running: FuturesUnordered::new(),
            stops: BTreeMap::new(),
            timers: Vec::new(),
            progress: progress_channel(),
        }
    }

    /// The next thing that happened. The only place where the driver waits.
    pub(crate) fn poll_event(&mut self, inbox: &mut Inbox, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.ready.pop_front() {
            return Poll::Ready(event);
        }
        if let Some(event) = inbox.poll(cx) {
            return Poll::Ready(event);
        }
        if let Some(event) = self.poll_timers(cx) {
            return Poll::Ready(event);
        }
        if let Poll::Ready((call, progress)) = self.progress.1.poll_recv(cx) {
            return Poll::Ready(Event::Progress { call, progress });
        }
        if let Some(event) = self.poll_tools(cx) {
            return Poll::Ready(event);
        }
        self.poll_model(cx)
    }

    /// Starts what an effect asks for; never waits for it.
    pub(crate) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel { request, body } => {
                self.model = Some((request, guarded(&*self.shared.model, body)));
            }
            Effect::CancelModel(request) => {
                self.model.take_if(|(current, _)| *current == request);
            }
            Effect::Examine { call, tool_use, cwd } => {
                let admission = self.shared.toolbox.examine(&tool_use, &cwd, &self.shared.config.roots);
                self.ready.push_back(Event::Examined { call, admission });
            }
            Effect::RunTool { call, tool_use, cwd, decided, seen } => {
                let (roots, progress) = (self.shared.config.roots.clone(), self.progress.0.clone());
                let (tool_use_id, cwd, cancel) =
                    (tool_use.id.clone(), cwd.to_path_buf(), CancellationToken::new());
                let context = ToolContext { call, tool_use_id, cwd, roots, decided, seen, cancel, progress };
                self.run_tool(&tool_use, context);
            }
            Effect::CancelTool(call) => {
                if let Some(stop) = self.stops.get(&call) {
                    stop.ask.cancel();
                }
            }
            Effect::AbandonTool(call) => {
                if let Some(stop) = self.stops.remove(&call) {
                    stop.ask.cancel();
                    stop.drop.abort();
                }
            }
            Effect::StartTimer { timer, after_ms } => {
                self.timers.push((timer, Box::pin(tokio::time::sleep(Duration::from_millis(after_ms)))));
            }
            // The run hands these out itself.
            Effect::Emit(_) => (),
            Effect::Fork { .. }
            | Effect::CancelFork(_)
            | Effect::RunHooks { .. }
            | Effect::CancelHooks(_)
            | Effect::Store { .. }
            | Effect::LookAround { .. }
            | Effect::Prefetch(_) => (),
        }
    }

    fn run_tool(&mut self, tool_use: &ToolUse, context: ToolContext) {
        let call = context.call;
        let Some(tool) = self.shared.toolbox.find(&tool_use.name).cloned() else {
            let outcome = ToolOutcome::error(&format!("There is no tool called {}.", tool_use.name));
            self.ready.push_back(Event::Finished { call, outcome });
            return;
        };
        let ask = context.cancel.clone();
        let input = tool_use.input.clone();
        let work = AssertUnwindSafe(async move { tool.run(input, context).await }).catch_unwind();
        let (work, drop) = abortable(work.map(move |result| {
            (
                call,
                result.unwrap_or_else(|_| ToolOutcome::error("The tool failed: this is a bug in the tool.")),
            )
        }));
        self.stops.insert(call, Stop { ask, drop });
        self.running.push(work.boxed());
    }

    fn poll_timers(&mut self, cx: &mut Context<'_>) -> Option<Event> {
        let place = self.timers.iter_mut().position(|(_, sleep)| sleep.as_mut().poll(cx).is_ready())?;
        Some(Event::Timer(self.timers.swap_remove(place).0))
    }

    fn poll_tools(&mut self, cx: &mut Context<'_>) -> Option<Event> {
        while let Poll::Ready(Some(done)) = Pin::new(&mut self.running).poll_next(cx) {
            // An abandoned call has been answered already.
            let Ok((call, outcome)) = done else { continue };
            self.stops.remove(&call);
            return Some(Event::Finished { call, outcome });
        }
        None
    }

    fn poll_model(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let Some((request, stream)) = &mut self.model else { return Poll::Pending };
        let Poll::Ready(item) = stream.poll_next_unpin(cx) else { return Poll::Pending };
        let request = *request;
        let event = item.unwrap_or_else(|| {
            broken("The model client ended its stream before the response: this is a bug in it.")
        });
        if matches!(event, ModelEvent::Ended { .. } | ModelEvent::Failed(_)) {
            self.model = None;
        }
        Poll::Ready(Event::Model { request, event })
    }
}

/// The client's events. Its panics end the response, not the program.
fn guarded(model: &dyn ModelClient, body: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
    let failed = || broken("The model client failed: this is a bug in it.");
    match std::panic::catch_unwind(AssertUnwindSafe(|| model.stream(body))) {
        Ok(answers) => {
            let answers = AssertUnwindSafe(answers).catch_unwind();
            answers.map(move |item| item.unwrap_or_else(|_| failed())).boxed()
        }
        Err(_) => futures_util::stream::once(async move { failed() }).boxed(),
    }
}

impl Drop for Inflight {
    /// Work on other threads learns from its token that nobody waits any more.
    fn drop(&mut self) {
        for stop in self.stops.values() {
            stop.ask.cancel();
        }
    }
}

/// A client that does not keep its promise has no better answer than a provider that does not.
fn broken(message: &str) -> ModelEvent {
    ModelEvent::Failed(Box::new(Failure::new(FailureClass::Malformed, message)))
}
