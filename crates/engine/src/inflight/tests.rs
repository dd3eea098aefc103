use std::collections::BTreeSet;
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use tokio::time::Instant;
use windlass_core::{Prompt, State};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::{ChangeWatcher, HookRunner, MemoryPrefetch};
use windlass_protocol::{
    AmbientChanges, Block, CompactTrigger, FileSeen, HookAnswer, HookCall, HookEvent, HookScene, LookId,
    MemoryNote, StoreId, Terminal, Transcript,
};
use windlass_tools::{FileChangeWatcher, Read, ReadLimits};

use super::*;
use crate::builder::{Engine, EngineBuilder};
use crate::results::ResultFiles;

/// A scripted model that knows how many of its streams are alive.
struct Watched {
    inner: ScriptModel,
    alive: Arc<AtomicUsize>,
}

struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ModelClient for Watched {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let alive = Alive::new(&self.alive);
        let keep = move |event| {
            let _ = &alive;
            event
        };
        self.inner.stream(request).map(keep).boxed()
    }
}

fn builder(script: &str, alive: &Arc<AtomicUsize>) -> EngineBuilder {
    let model = Watched { inner: ScriptModel::new(Script::parse(script).unwrap()), alive: alive.clone() };
    Engine::builder(Arc::new(model), model_card("scripted"))
}

fn inflight(builder: EngineBuilder) -> Inflight {
    let shared = builder.build().unwrap().shared;
    let config = shared.config.clone();
    let results = Arc::new(ResultFiles::new(shared.ports.results_directory.clone()));
    Inflight::new(SessionParts { shared, results, started: Instant::now() }, config, SessionSeed(7))
}

async fn next(inflight: &mut Inflight) -> Event {
    poll_fn(|cx| inflight.poll_event(None, cx)).await
}

fn fork(inflight: &Inflight, number: u32) -> Effect {
    let state = Box::new(State::new(PathBuf::from("/"), Transcript::default()));
    let prompt = Prompt::from("summarise");
    Effect::Fork { fork: ForkId(number), state, config: inflight.config.clone(), prompt }
}

fn request(number: u32) -> Effect {
    Effect::CallModel(RequestId(number), Arc::default())
}

const ONE_ANSWER: &str =
    r#"{"then": "repeat", "responses": [{"blocks": [{"text": "short"}], "delta_delay_ms": 2}]}"#;

#[tokio::test(start_paused = true)]
async fn a_fork_runs_to_its_end_beside_the_model() {
    let alive = Arc::default();
    let script = r#"{"then": "repeat", "responses": [
        {"blocks": [{"text": "a long answer that takes its time"}], "delta_chars": 1, "delta_delay_ms": 50},
        {"blocks": [{"text": "short"}]}
    ]}"#;
    let mut inflight = inflight(builder(script, &alive));
    inflight.perform(request(1));
    while !matches!(next(&mut inflight).await, Event::Model(_, ModelEvent::Delta { .. })) {}
    let effect = fork(&inflight, 3);
    inflight.perform(effect);
    let mut deltas = 0;
    loop {
        match next(&mut inflight).await {
            Event::Forked(fork, outcome) => {
                assert_eq!((fork, &*outcome.text), (ForkId(3), "short"));
                assert_eq!(outcome.terminal, Terminal::Completed);
                break;
            }
            Event::Model(_, ModelEvent::Ended { .. }) => panic!("the fork waited for the model"),
            _ => deltas += 1,
        }
    }
    assert!(deltas < 5, "{deltas} pieces came first");
    assert!(inflight.stops.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_fork_does_nothing_until_it_is_polled_and_is_gone_when_it_is_cancelled() {
    let alive = Arc::default();
    let mut inflight = inflight(builder(ONE_ANSWER, &alive));
    let (first, second) = (fork(&inflight, 1), fork(&inflight, 2));
    inflight.perform(first);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    let _ = poll_fn(|cx| Poll::Ready(inflight.poll_event(None, cx).is_ready())).await;
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    inflight.perform(Effect::CancelFork(ForkId(1)));
    inflight.perform(second);
    let mut told = Vec::new();
    loop {
        match next(&mut inflight).await {
            Event::ForkSpent(fork, models) => told.push((fork, models.len())),
            Event::Forked(fork, _) => break assert_eq!(fork, ForkId(2), "the other fork goes on"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told.last(), Some(&(ForkId(2), 1)), "it tells what it takes as soon as that is known");
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert!(inflight.effects.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_fork_dropped_at_any_poll_leaves_nothing_behind() {
    const SCRIPT: &str = r#"{"then": "repeat", "responses": [
        {"blocks": [{"tool": "Read", "input": {"file_path": "/etc/hostname"}}, {"text": "so"}], "delta_delay_ms": 2},
        {"fault": {"status": {"code": 529, "message": "busy"}}},
        {"blocks": [{"text": "done"}], "delta_delay_ms": 2}
    ]}"#;
    for polls in 0.. {
        let alive = Arc::default();
        let tools: Vec<Arc<dyn windlass_ports::AnyTool>> = vec![Arc::new(Read::new(ReadLimits::default()))];
        let mut inflight = inflight(builder(SCRIPT, &alive).tools(tools));
        let effect = fork(&inflight, 1);
        inflight.perform(effect);
        let mut done = false;
        for _ in 0..polls {
            let polled = poll_fn(|cx| Poll::Ready(inflight.poll_event(None, cx))).await;
            done = matches!(polled, Poll::Ready(Event::Forked(..)));
            if !done {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        drop(inflight);
        assert_eq!(alive.load(Ordering::SeqCst), 0, "a stream lives on after {polls} polls");
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "a task lives on after {polls} polls");
        if done {
            assert!(polls > 5, "only {polls} polls");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_draws_its_chances_from_the_seed() {
    async fn pause(seed: u128) -> Duration {
        let script = r#"{"responses": [{"fault": {"status": {"code": 529, "message": "busy"}}}, {"blocks": [{"text": "ok"}]}]}"#;
        let mut inflight = inflight(builder(script, &Arc::default()));
        inflight.seed = SessionSeed(seed);
        let effect = fork(&inflight, 1);
        inflight.perform(effect);
        let before = Instant::now();
        while !matches!(next(&mut inflight).await, Event::Forked(..)) {}
        before.elapsed()
    }
    assert_eq!(pause(1).await, pause(1).await);
    assert_ne!(pause(1).await, pause(2).await);
}

/// A runner that does what its first answer says.
enum Hooks {
    Answers,
    Panics,
    PanicsLater,
    Waits(Arc<AtomicUsize>),
}

impl HookRunner for Hooks {
    fn events(&self) -> BTreeSet<HookEvent> {
        [HookEvent::PreCompact].into()
    }

    fn run(&self, call: HookCall, _: HookScene, cancel: CancellationToken) -> BoxFuture<'static, HookAnswer> {
        assert!([HookEvent::PreCompact, HookEvent::UserPromptSubmit].contains(&call.event()));
        match self {
            Self::Answers => {
                async { HookAnswer { stop: Some("no".into()), ..HookAnswer::default() } }.boxed()
            }
            Self::Panics => panic!("on purpose"),
            Self::PanicsLater => async { panic!("on purpose") }.boxed(),
            Self::Waits(alive) => {
                let alive = Alive::new(alive);
                async move {
                    let _alive = alive;
                    cancel.cancelled().await;
                    HookAnswer::default()
                }
                .boxed()
            }
        }
    }
}

fn hooks() -> Effect {
    let call = HookCall::PreCompact { trigger: CompactTrigger::Manual, instructions: "".into() };
    Effect::RunHooks(HookId(4), call, HookScene::default())
}

async fn hooked(hooks_of: Option<Hooks>) -> HookAnswer {
    let mut builder = builder(ONE_ANSWER, &Arc::default());
    if let Some(runner) = hooks_of {
        builder = builder.hooks(Arc::new(runner));
    }
    let mut inflight = inflight(builder);
    inflight.perform(hooks());
    let Event::Hooked(hook, answer) = next(&mut inflight).await else { panic!("no answer") };
    assert_eq!(hook, HookId(4));
    *answer
}

#[tokio::test]
async fn hooks_answer_and_a_runner_that_panics_is_a_notice() {
    assert_eq!(hooked(Some(Hooks::Answers)).await.stop.as_deref(), Some("no"));
    for runner in [Hooks::Panics, Hooks::PanicsLater] {
        let answer = hooked(Some(runner)).await;
        assert_eq!(
            answer.notices,
            ["The runner of the PreCompact hooks panicked. This is a bug in the runner."]
        );
        assert!(answer.stop.is_none() && answer.blocks.is_empty());
    }
    assert!(hooked(None).await.notices.is_empty());
}

#[tokio::test]
async fn a_runner_that_panics_lets_nothing_pass_that_was_to_be_guarded() {
    let mut inflight = inflight(builder(ONE_ANSWER, &Arc::default()).hooks(Arc::new(Hooks::Panics)));
    let call = HookCall::UserPromptSubmit { prompt: "x".into() };
    inflight.perform(Effect::RunHooks(HookId(4), call, HookScene::default()));
    let Event::Hooked(_, answer) = next(&mut inflight).await else { panic!("no answer") };
    assert_eq!(
        answer.blocks,
        ["The runner of the UserPromptSubmit hooks panicked. This is a bug in the runner."]
    );
}

#[tokio::test]
async fn the_events_of_the_runner_are_those_of_the_engine() {
    let engine = builder(ONE_ANSWER, &Arc::default()).hooks(Arc::new(Hooks::Answers)).build().unwrap();
    assert_eq!(engine.shared.config.hooks, [HookEvent::PreCompact].into());
}

#[tokio::test]
async fn hooks_that_are_cancelled_are_gone() {
    let alive = Arc::default();
    let runner = Arc::new(Hooks::Waits(Arc::clone(&alive)));
    let mut inflight = inflight(builder(ONE_ANSWER, &Arc::default()).hooks(runner));
    inflight.perform(hooks());
    let poll = async |inflight: &mut Inflight| {
        poll_fn(|cx| Poll::Ready(inflight.poll_event(None, cx).is_ready())).await
    };
    assert!(!poll(&mut inflight).await);
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    inflight.perform(Effect::CancelHooks(HookId(4)));
    assert!(!poll(&mut inflight).await, "nobody waits for the answer");
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn results_go_to_files_in_the_order_of_the_wish() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap().join("results");
    let mut inflight = inflight(builder(ONE_ANSWER, &Arc::default()).results_directory(place.clone()));
    let result = |id: &str| (Arc::from(id), Block::tool_result(id, &[Block::text(id)], false));
    inflight.perform(Effect::Store(StoreId(2), vec![result("b"), result(""), result("a")]));
    let Event::Stored(store, files) = next(&mut inflight).await else { panic!("not stored") };
    assert_eq!(
        (store, files),
        (StoreId(2), vec![Some(place.join("b.txt")), None, Some(place.join("a.txt"))])
    );
    assert_eq!(std::fs::read_to_string(place.join("b.txt")).unwrap(), "b");
}

struct BrokenWatcher;

impl ChangeWatcher for BrokenWatcher {
    fn look(&self, _: Vec<FileSeen>, _: Vec<(PathBuf, usize)>) -> BoxFuture<'static, AmbientChanges> {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn the_change_watcher_says_what_it_sees_and_a_broken_one_sees_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("f");
    std::fs::write(&path, "now").unwrap();
    let seen = FileSeen {
        path: path.clone(),
        hash: 1,
        lines: [].into(),
        is_whole: true,
        shown: vec![],
        stamp: None,
    };
    let look = async |change_watcher: Option<Arc<dyn ChangeWatcher>>| {
        let mut builder = builder(ONE_ANSWER, &Arc::default());
        if let Some(change_watcher) = change_watcher {
            builder = builder.change_watcher(change_watcher);
        }
        let mut inflight = inflight(builder);
        let (known, show) = (vec![seen.clone()], vec![(path.clone(), 2)]);
        inflight.perform(Effect::LookAround { look: LookId(5), known, show });
        let Event::Looked(look, found) = next(&mut inflight).await else { panic!("nobody looked") };
        assert_eq!(look, LookId(5));
        (found.changed.len(), found.shown.len())
    };
    assert_eq!(look(Some(Arc::new(FileChangeWatcher::default()))).await, (1, 1));
    assert_eq!(look(Some(Arc::new(BrokenWatcher))).await, (0, 0));
    assert_eq!(look(None).await, (0, 0));
}

struct Memory(Vec<MemoryNote>);

impl MemoryPrefetch for Memory {
    fn prefetch(&self, prompt: Arc<str>) -> BoxFuture<'static, Vec<MemoryNote>> {
        assert_eq!(&*prompt, "prompt");
        let notes = self.0.clone();
        async move { notes }.boxed()
    }
}

#[tokio::test]
async fn memory_that_is_found_is_told_and_none_is_not() {
    let prefetched = async |notes: Vec<MemoryNote>| {
        let mut inflight =
            inflight(builder(ONE_ANSWER, &Arc::default()).memory_prefetch(Arc::new(Memory(notes))));
        inflight.perform(Effect::Prefetch("prompt".into()));
        match poll_fn(|cx| Poll::Ready(inflight.poll_event(None, cx))).await {
            Poll::Ready(Event::Prefetched(notes)) => notes.len(),
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => 0,
        }
    };
    let note = MemoryNote { path: "/m".into(), text: "x".into() };
    assert_eq!(prefetched(vec![note.clone(), note]).await, 2);
    assert_eq!(prefetched(vec![]).await, 0);
}
