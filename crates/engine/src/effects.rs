//! The effects that a machine sets going: each is a future that comes to an event. Nothing happens before it is polled, and a
//! failure of what stands behind it is an answer, never a crash.

pub(crate) mod redaction;

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_core::{Event, Prompt};
use windlass_ports::{AnyTool, ChangeWatcher, MemoryPrefetch, ToolContext};
use windlass_protocol::{
    AmbientChanges, Block, FileSeen, ForkId, HookAnswer, HookCall, HookEvent, HookScene, LookId, StoreId,
    ToolOutput, ToolUse,
};
use windlass_secrets::Redactor;

use crate::builder::EngineParts;
use crate::machine::Machine;
use crate::results::ResultFiles;

type Work = BoxFuture<'static, Option<Event>>;

/// What comes of some work of others; `failed` says what stands for it if it panics.
async fn shield<T>(work: impl Future<Output = T>, failed: impl FnOnce() -> T) -> T {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| failed())
}

pub(crate) fn tool(
    tool: Option<Arc<dyn AnyTool>>,
    tool_use: &ToolUse,
    context: ToolContext,
    redactor: Redactor,
) -> Work {
    let (call, name, input) = (context.call, tool_use.name.clone(), tool_use.input.json());
    async move {
        let work = async {
            match tool {
                Some(tool) => tool.run(input, context).await,
                None => ToolOutput::error(&format!("Unknown tool {name}.")),
            }
        };
        let failed = || ToolOutput::error("The tool panicked. This is a bug in the tool.");
        let output = redaction::output(&redactor, shield(work, failed).await);
        Some(Event::Finished(call, output))
    }
    .boxed()
}

/// Runs a machine of its own to its end.
pub(crate) fn fork(fork: ForkId, mut machine: Machine, prompt: Prompt, news: mpsc::Sender<Event>) -> Work {
    let mut prompt = Some(prompt);
    // A word that finds no room matters only if the fork is cancelled before the next one.
    let spent = move |models| drop(news.try_send(Event::ForkSpent(fork, models)));
    let outcome = poll_fn(move |cx| {
        if let Some(prompt) = prompt.take() {
            machine.advance(Event::Submit(prompt));
        }
        machine.poll_outcome(&spent, cx)
    });
    outcome.map(move |outcome| Some(Event::Forked(fork, outcome?))).boxed()
}

/// What hooks answer. A runner that fails has said nothing but that, and lets nothing pass that a blocking hook was to see.
pub(crate) fn ask_hooks(
    shared: &EngineParts,
    call: HookCall,
    scene: HookScene,
    cancel: CancellationToken,
) -> impl Future<Output = HookAnswer> + Send + use<> {
    let (runner, redactor) = (shared.ports.hooks.clone(), shared.ports.redactor.clone());
    let event = call.event();
    async move {
        let work = async {
            match runner {
                Some(runner) => runner.run(call, scene, cancel).await,
                None => HookAnswer::default(),
            }
        };
        let failed = || {
            let told =
                format!("The runner of the {} hooks panicked. This is a bug in the runner.", event.name());
            let guards = [HookEvent::UserPromptSubmit, HookEvent::PreToolUse, HookEvent::PermissionRequest];
            let blocks = guards.contains(&event).then(|| told.clone()).into_iter().collect();
            HookAnswer { blocks, notices: vec![told], ..HookAnswer::default() }
        };
        redaction::answer(&redactor, shield(work, failed).await)
    }
}

/// Puts results into files, on a thread that may wait for the disk.
pub(crate) fn store(place: Arc<ResultFiles>, store: StoreId, results: Vec<(Arc<str>, Block)>) -> Work {
    async move {
        let count = results.len();
        let written = tokio::task::spawn_blocking(move || place.store(&results)).await;
        Some(Event::Stored(store, written.unwrap_or_else(|_| vec![None; count])))
    }
    .boxed()
}

pub(crate) fn look(
    change_watcher: Option<Arc<dyn ChangeWatcher>>,
    look: LookId,
    known: Vec<FileSeen>,
    show: Vec<(PathBuf, usize)>,
    redactor: Redactor,
) -> Work {
    async move {
        let work = async {
            match change_watcher {
                Some(change_watcher) => change_watcher.look(known, show).await,
                None => AmbientChanges::default(),
            }
        };
        let found = redaction::surroundings(&redactor, shield(work, AmbientChanges::default).await);
        Some(Event::Looked(look, Box::new(found)))
    }
    .boxed()
}

/// Looks for memory. If there is none, nobody is told.
pub(crate) fn prefetch(memory: Option<Arc<dyn MemoryPrefetch>>, text: Arc<str>) -> Work {
    async move {
        let memory = memory?;
        let notes = shield(async { memory.prefetch(text).await }, Vec::new).await;
        (!notes.is_empty()).then_some(Event::Prefetched(notes))
    }
    .boxed()
}
