//! Everything that may produce the next event.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{AbortHandle, Aborted, BoxFuture, FutureExt, abortable};
use futures_util::stream::{BoxStream, FuturesUnordered, Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use windlass_core::{Config, Effect, Event};
use windlass_ports::{ModelClient, ProgressReceiver, ProgressSender, ToolContext, progress_channel};
use windlass_protocol::{
    CallId, Failure, FailureClass, ForkId, HookId, ModelEvent, ModelRequest, RequestId, SessionSeed, TimerId,
};

use crate::builder::EnginePorts;
use crate::effects;
use crate::inbox::Inbox;
use crate::machine::{Machine, SessionParts};
use crate::toolbox::hidden_paths;

/// The model's stream, the effects, the timers, and what is known already.
pub(crate) struct Inflight {
    session: SessionParts,
    config: Arc<Config>,
    seed: SessionSeed,
    /// Events that are known already.
    ready: VecDeque<Event>,
    model: Option<(RequestId, BoxStream<'static, ModelEvent>)>,
    effects: EffectSet,
    /// Forks, apart from other effects: the core may want some of them to go on after the end of a run.
    forks: EffectSet,
    /// What forks tell before they end.
    fork_news: (mpsc::Sender<Event>, mpsc::Receiver<Event>),
    stops: BTreeMap<Stoppable, Stop>,
    timers: Vec<(TimerId, Pin<Box<Sleep>>)>,
    progress: (ProgressSender, ProgressReceiver),
}

/// As many words of forks wait at most: far more than there are responses of forks at a time.
const FORK_NEWS_MAX: usize = 64;

type EffectSet = FuturesUnordered<BoxFuture<'static, Result<Done, Aborted>>>;

/// An effect that is over: what could have stopped it, and what came of it.
type Done = (Option<Stoppable>, Option<Event>);

/// What the core may want to stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stoppable {
    Call(CallId),
    Fork(ForkId),
    Hooks(HookId),
}

/// The two ways to stop an effect: ask it, or drop it.
struct Stop {
    ask: CancellationToken,
    drop: AbortHandle,
}

impl Inflight {
    pub(crate) fn new(session: SessionParts, config: Arc<Config>, seed: SessionSeed) -> Self {
        Self {
            session,
            config,
            seed,
            ready: VecDeque::new(),
            model: None,
            effects: FuturesUnordered::new(),
            forks: FuturesUnordered::new(),
            fork_news: mpsc::channel(FORK_NEWS_MAX),
            stops: BTreeMap::new(),
            timers: Vec::new(),
            progress: progress_channel(),
        }
    }

    /// The next thing that happened. The only place where the driver waits.
    pub(crate) fn poll_event(&mut self, inbox: Option<&mut Inbox>, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.ready.pop_front() {
            return Poll::Ready(event);
        }
        if let Some(event) = inbox.and_then(|inbox| inbox.poll(cx)) {
            return Poll::Ready(event);
        }
        if let Some(event) = self.poll_timers(cx) {
            return Poll::Ready(event);
        }
        if let Poll::Ready((call, progress)) = self.progress.1.poll_recv(cx) {
            let progress = effects::redaction::progress(&self.session.shared.ports.redactor, progress);
            return Poll::Ready(Event::Progress(call, progress));
        }
        if let Some(event) = poll_set(&mut self.effects, &mut self.stops, cx) {
            return Poll::Ready(event);
        }
        if let Poll::Ready(Some(event)) = self.poll_forks(cx) {
            return Poll::Ready(event);
        }
        self.poll_model(cx)
    }

    /// What the next fork tells, at its end or before; nothing once none is left.
    pub(crate) fn poll_forks(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Poll::Ready(event @ Some(_)) = self.fork_news.1.poll_recv(cx) {
            return Poll::Ready(event);
        }
        match poll_set(&mut self.forks, &mut self.stops, cx) {
            None if !self.forks.is_empty() => Poll::Pending,
            event => Poll::Ready(event),
        }
    }

    /// Starts what an effect asks for; never waits for it.
    pub(crate) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel(request, body) => {
                self.model = Some((request, with_panics_caught(&*self.session.shared.model, body)));
            }
            Effect::CancelModel(request) => {
                self.model.take_if(|(current, _)| *current == request);
            }
            Effect::Examine(call, tool_use, cwd) => {
                let admission = self.session.shared.toolbox.examine(&tool_use, &cwd, &self.config);
                self.ready.push_back(Event::Examined(call, admission));
            }
            Effect::RunTool { call, tool_use, cwd, facts, seen, permissions, is_confined } => {
                let (tool_use_id, cancel) = (tool_use.id.clone(), CancellationToken::new());
                let permissions = permissions.as_deref().unwrap_or(&self.config.permissions);
                let context = ToolContext {
                    call,
                    tool_use_id,
                    cwd: cwd.to_path_buf(),
                    roots: self.config.roots.clone(),
                    hidden: hidden_paths(&permissions.rules, &facts.paths),
                    facts,
                    seen,
                    is_confined,
                    cancel: cancel.clone(),
                    progress: self.progress.0.clone(),
                };
                let tool = self.session.shared.toolbox.find(&tool_use.name).cloned();
                let redactor = self.session.shared.ports.redactor.clone();
                let work = effects::tool(tool, &tool_use, context, redactor);
                self.start(Stoppable::Call(call), cancel, work);
            }
            Effect::CancelTool(call) => self.ask_to_stop(Stoppable::Call(call)),
            Effect::AbandonTool(call) => self.drop_effect(Stoppable::Call(call)),
            Effect::StartTimer { timer, after_ms } => {
                self.timers.push((timer, Box::pin(tokio::time::sleep(Duration::from_millis(after_ms)))));
            }
            Effect::Fork { fork, state, config, prompt } => {
                let machine = Machine::new(self.session.clone(), config, *state, self.seed.fork(fork));
                let work = effects::fork(fork, machine, prompt, self.fork_news.0.clone());
                self.start(Stoppable::Fork(fork), CancellationToken::new(), work);
            }
            Effect::CancelFork(fork) => self.drop_effect(Stoppable::Fork(fork)),
            Effect::RunHooks(hook, call, scene) => {
                let cancel = CancellationToken::new();
                let asked = effects::ask_hooks(&self.session.shared, call, scene, cancel.clone());
                let work = asked.map(move |answer| Some(Event::Hooked(hook, Box::new(answer))));
                self.start(Stoppable::Hooks(hook), cancel, work.boxed());
            }
            Effect::CancelHooks(hook) => self.drop_effect(Stoppable::Hooks(hook)),
            Effect::Store(store, results) => {
                self.start_simple(effects::store(self.session.results.clone(), store, results));
            }
            Effect::LookAround { look, known, show } => {
                let EnginePorts { change_watcher, redactor, .. } = &self.session.shared.ports;
                self.start_simple(effects::look(change_watcher.clone(), look, known, show, redactor.clone()));
            }
            Effect::Prefetch(text) => {
                self.start_simple(effects::prefetch(self.session.shared.ports.prefetch.clone(), text));
            }
            // The machine does these itself.
            Effect::Emit(_) | Effect::Persist(..) => (),
        }
    }

    /// Starts an effect that the core may want to stop.
    fn start(&mut self, effect: Stoppable, ask: CancellationToken, work: BoxFuture<'static, Option<Event>>) {
        let (work, drop) = abortable(work.map(move |event| (Some(effect), event)));
        self.stops.insert(effect, Stop { ask, drop });
        let effects = if matches!(effect, Stoppable::Fork(_)) { &mut self.forks } else { &mut self.effects };
        effects.push(work.boxed());
    }

    /// Starts an effect that is soon over, or that ends with the run.
    fn start_simple(&mut self, work: BoxFuture<'static, Option<Event>>) {
        self.effects.push(work.map(|event| Ok((None, event))).boxed());
    }

    fn ask_to_stop(&self, effect: Stoppable) {
        if let Some(stop) = self.stops.get(&effect) {
            stop.ask.cancel();
        }
    }

    /// Drops an effect; nothing comes of it any more.
    fn drop_effect(&mut self, effect: Stoppable) {
        if let Some(stop) = self.stops.remove(&effect) {
            stop.ask.cancel();
            stop.drop.abort();
        }
    }

    fn poll_timers(&mut self, cx: &mut Context<'_>) -> Option<Event> {
        let place = self.timers.iter_mut().position(|(_, sleep)| sleep.as_mut().poll(cx).is_ready())?;
        Some(Event::Timer(self.timers.swap_remove(place).0))
    }

    fn poll_model(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let Some((request, stream)) = &mut self.model else { return Poll::Pending };
        let Poll::Ready(item) = stream.poll_next_unpin(cx) else { return Poll::Pending };
        let request = *request;
        let event = item.unwrap_or_else(|| {
            broken_stream("The model client ended its stream without a result. This is a bug in the client.")
        });
        if matches!(event, ModelEvent::Ended { .. } | ModelEvent::Failed(_)) {
            self.model = None;
        }
        Poll::Ready(Event::Model(request, event))
    }

    /// Drops everything. Work on other threads learns from its token that nobody waits any more.
    pub(crate) fn clear(&mut self) {
        self.end_run();
        self.stops.clear();
        self.forks = FuturesUnordered::new();
        self.fork_news = mpsc::channel(FORK_NEWS_MAX);
    }

    /// Drops everything but forks: those that the core does not want any more it has cancelled.
    pub(crate) fn end_run(&mut self) {
        self.stops.retain(|effect, stop| {
            let is_fork = matches!(effect, Stoppable::Fork(_));
            if !is_fork {
                stop.ask.cancel();
            }
            is_fork
        });
        self.ready.clear();
        self.model = None;
        self.effects = FuturesUnordered::new();
        self.timers.clear();
        self.progress = progress_channel();
    }
}

impl Drop for Inflight {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What came of the next effect that is over and has something to tell.
fn poll_set(
    set: &mut EffectSet,
    stops: &mut BTreeMap<Stoppable, Stop>,
    cx: &mut Context<'_>,
) -> Option<Event> {
    while let Poll::Ready(Some(done)) = Pin::new(&mut *set).poll_next(cx) {
        // The core does not wait for an effect that it dropped.
        let Ok((effect, event)) = done else { continue };
        if let Some(effect) = effect {
            stops.remove(&effect);
        }
        if event.is_some() {
            return event;
        }
    }
    None
}

/// The client's events. Its panics end the response, not the program.
fn with_panics_caught(model: &dyn ModelClient, body: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
    let failed = || broken_stream("The model client panicked. This is a bug in the client.");
    match std::panic::catch_unwind(AssertUnwindSafe(|| model.stream(body))) {
        Ok(answers) => {
            let answers = AssertUnwindSafe(answers).catch_unwind();
            answers.map(move |item| item.unwrap_or_else(|_| failed())).boxed()
        }
        Err(_) => futures_util::stream::once(async move { failed() }).boxed(),
    }
}

/// A client that does not keep its promise has no better answer than a provider that does not.
fn broken_stream(message: &str) -> ModelEvent {
    ModelEvent::Failed(Box::new(Failure::new(FailureClass::Malformed, message)))
}

#[cfg(test)]
mod tests;
