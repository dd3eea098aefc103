//! What a run sets going beside the model and its tools: forks, hooks, files for results, looks around; and what a session
//! knows when a run is over.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::poll_fn;
use futures_util::{FutureExt, Stream, StreamExt};
use windlass_engine::{
    Engine, EngineBuilder, MemoryNote, PermissionMode, Permissions, Prompt, Session, Terminal, Transition,
    Update,
};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::{
    AnyTool, BoxFuture, CancellationToken, ExamineContext, HookRunner, JsonSchema, MemoryPrefetch, Tool,
    ToolContext,
};
use windlass_protocol::{
    Block, CallFacts, CallKind, CompactTrigger, Decision, HookAnswer, HookCall, HookEvent, HookScene,
    Outcome, ToolOutput,
};
use windlass_tools::{FileChangeWatcher, Read, ReadLimits};

/// Says a lot, and writes a file if it is told so.
#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "windlass_ports::schemars")]
struct SayInput {
    /// How many characters.
    chars: usize,
    /// Where to write `changed`.
    #[serde(default)]
    write: Option<String>,
}

struct Say;

impl Tool for Say {
    type Input = SayInput;
    const NAME: &'static str = "Say";

    fn facts(&self, _: &SayInput, _: &ExamineContext) -> Result<CallFacts, String> {
        Ok(CallFacts { is_shared: true, target: "say".into(), ..CallFacts::new(CallKind::Read) })
    }

    async fn run(&self, input: SayInput, cx: ToolContext) -> ToolOutput {
        if let Some(name) = input.write {
            std::fs::write(cx.cwd.join(name), "one\nchanged\n").unwrap();
        }
        ToolOutput::text(&format!("{}end", "x".repeat(input.chars)))
    }
}

fn builder(project: &Path, script: &str) -> EngineBuilder {
    let model = ScriptModel::new(Script::parse(script).unwrap());
    let tools: Vec<Arc<dyn AnyTool>> = vec![Arc::new(Say), Arc::new(Read::new(ReadLimits::default()))];
    Engine::builder(Arc::new(model), model_card("scripted"))
        .tools(tools)
        .working_directory(project.to_owned())
        .with(|config| {
            config.permissions = Permissions { mode: PermissionMode::DontAsk, ..Permissions::default() }
        })
}

fn project() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn outcome(updates: &[Update]) -> &Outcome {
    let Some(Update::Done(outcome)) = updates.last() else { panic!("{updates:?}") };
    outcome
}

async fn run(session: &mut Session, prompt: impl Into<Prompt>) -> Vec<Update> {
    session.run(prompt).collect().await
}

fn with_id(text: &str, id: &str) -> Prompt {
    Prompt { id: Some(id.into()), ..Prompt::from(text) }
}

const REFUSED: &str = r#"{"fault": {"status": {"code": 401, "message": "no key"}}}"#;

#[tokio::test]
async fn prompts_of_a_run_that_did_not_end_well_are_unfinished() {
    let folder = project();
    let script = format!(
        r#"{{"responses": [{REFUSED}, {{"blocks": [{{"text": "ok"}}], "delta_delay_ms": 5}}, {{"blocks": [{{"text": "ok"}}]}}]}}"#
    );
    let mut session = builder(folder.path(), &script).build().unwrap().session();
    assert!(!outcome(&run(&mut session, with_id("go", "p1")).await).terminal.is_success());
    assert_eq!(unfinished(&session), ["p1"]);
    let mut dropped = session.run(with_id("other", "p2"));
    dropped.next().await.unwrap();
    drop(dropped);
    assert_eq!(unfinished(&session), ["p1", "p2"]);
    assert_eq!(session.unfinished_prompts()[1].blocks, [Block::text("other")]);
    assert!(outcome(&run(&mut session, with_id("go", "p1")).await).terminal.is_success());
    assert!(session.unfinished_prompts().is_empty());
}

fn unfinished(session: &Session) -> Vec<String> {
    session.unfinished_prompts().iter().flat_map(|prompt| &prompt.ids).map(ToString::to_string).collect()
}

/// A long answer, a summary of it, and a short answer.
fn compacted() -> String {
    let long = "The gate is blue. ".repeat(8_000);
    format!(
        r#"{{"then": "repeat", "responses": [
            {{"blocks": [{{"text": "{long}"}}]}},
            {{"blocks": [{{"text": "<summary>We spoke of a blue gate.</summary>"}}], "delta_delay_ms": 2}},
            {{"blocks": [{{"text": "Blue."}}]}}
        ]}}"#
    )
}

#[tokio::test]
async fn a_session_is_compacted_on_request_by_a_fork_of_itself() {
    let folder = project();
    let mut session = builder(folder.path(), &compacted()).build().unwrap().session();
    run(&mut session, "Which colour has the gate?").await;
    let updates: Vec<Update> = session.compact("colours").collect().await;
    assert_eq!(outcome(&updates).terminal, Terminal::Completed);
    let compaction = updates.iter().find_map(|update| match update {
        Update::Decided(Decision::Compacted(compaction)) => Some(compaction),
        _ => None,
    });
    let compaction = compaction.unwrap_or_else(|| panic!("{updates:?}"));
    assert_eq!((compaction.trigger, compaction.is_mechanical), (CompactTrigger::Manual, false));
    assert!(!updates.iter().any(|update| matches!(update, Update::Block { .. })), "nobody sees the fork");
    let json = session.messages().to_json();
    assert!(json.contains("We spoke of a blue gate.") && !json.contains("The gate is blue."), "{json}");
    assert_eq!(outcome(&run(&mut session, "And now?").await).text, "Blue.");
}

/// Polls that many times, waiting a little between them; true if the run came to its end.
async fn poll_times(mut run: Pin<&mut impl Stream<Item = Update>>, times: usize) -> bool {
    for _ in 0..times {
        match poll_fn(|cx| Poll::Ready(run.as_mut().poll_next(cx))).await {
            Poll::Ready(None) => return true,
            Poll::Ready(Some(_)) => (),
            Poll::Pending => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
    false
}

#[tokio::test(start_paused = true)]
async fn dropping_a_compaction_at_any_poll_leaves_a_session_that_goes_on() {
    for polls in 0.. {
        let folder = project();
        let mut session = builder(folder.path(), &compacted()).build().unwrap().session();
        run(&mut session, "Which colour has the gate?").await;
        let mut compaction = Box::pin(session.compact(""));
        let finished = poll_times(compaction.as_mut(), polls).await;
        drop(compaction);
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "a task lives on after {polls} polls");
        assert!(outcome(&run(&mut session, "And now?").await).terminal.is_success(), "after {polls} polls");
        if finished {
            assert!(polls > 5, "only {polls} polls");
            break;
        }
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_is_in_a_file_that_can_be_read() {
    let folder = project();
    let results = project();
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Say", "input": {"chars": 60000}}]}, {"blocks": [{"text": "ok"}]}
    ]}"#;
    let engine = builder(folder.path(), script).results_directory(results.path().to_owned()).build().unwrap();
    let mut session = engine.session();
    run(&mut session, "go").await;
    let files: Vec<_> =
        std::fs::read_dir(results.path()).unwrap().flatten().map(|file| file.path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(std::fs::read_to_string(file).unwrap().ends_with("xxend"));
    let json = session.messages().to_json();
    assert!(json.len() < 20_000 && json.contains(file.to_str().unwrap()), "{json}");
}

#[tokio::test]
async fn a_file_that_changed_after_it_was_read_is_told_once() {
    let folder = project();
    std::fs::write(folder.path().join("f"), "one\ntwo\n").unwrap();
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Read", "input": {"file_path": "f"}}]},
        {"blocks": [{"tool": "Say", "input": {"chars": 1, "write": "f"}}]},
        {"blocks": [{"tool": "Say", "input": {"chars": 2}}], "expect": {"contains": "Changed line 2 (was line 2)"}},
        {"blocks": [{"text": "ok"}]}
    ]}"#;
    let engine = builder(folder.path(), script)
        .change_watcher(Arc::new(FileChangeWatcher::default()))
        .build()
        .unwrap();
    let mut session = engine.session();
    assert_eq!(outcome(&run(&mut session, "go").await).terminal, Terminal::Completed);
    assert_eq!(session.messages().to_json().matches("Changed line 2").count(), 1);
}

struct Memory;

impl MemoryPrefetch for Memory {
    fn prefetch(&self, prompt: Arc<str>) -> BoxFuture<'static, Vec<MemoryNote>> {
        let note = MemoryNote { path: "/memory/gate.md".into(), text: format!("About: {prompt}").into() };
        async move { vec![note] }.boxed()
    }
}

#[tokio::test]
async fn memory_that_was_found_goes_in_with_the_next_results() {
    let folder = project();
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Say", "input": {"chars": 1}}]},
        {"blocks": [{"text": "ok"}], "expect": {"contains": "/memory/gate.md"}}
    ]}"#;
    let engine = builder(folder.path(), script).memory_prefetch(Arc::new(Memory)).build().unwrap();
    let updates = run(&mut engine.session(), "the blue gate").await;
    assert_eq!(outcome(&updates).terminal, Terminal::Completed, "{updates:?}");
}

/// Asks a program whether the run may end.
struct Objector;

impl HookRunner for Objector {
    fn events(&self) -> BTreeSet<HookEvent> {
        [HookEvent::Stop].into()
    }

    fn run(&self, call: HookCall, _: HookScene, _: CancellationToken) -> BoxFuture<'static, HookAnswer> {
        async move {
            let HookCall::Stop { is_active, .. } = call else { return HookAnswer::default() };
            let script = if is_active { "exit 0" } else { "echo run the tests first; exit 2" };
            let program = move || Command::new("sh").arg("-c").arg(script).output().unwrap();
            let output = tokio::task::spawn_blocking(program).await.unwrap();
            let objection = String::from_utf8(output.stdout).unwrap();
            let blocks = if output.status.success() { vec![] } else { vec![objection] };
            HookAnswer { blocks, ..HookAnswer::default() }
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_stop_hook_that_objects_makes_the_model_go_on() {
    let folder = project();
    let script = r#"{"responses": [
        {"blocks": [{"text": "done"}]}, {"blocks": [{"text": "tested"}], "expect": {"contains": "run the tests first"}}
    ]}"#;
    let engine = builder(folder.path(), script).hooks(Arc::new(Objector)).build().unwrap();
    let updates = run(&mut engine.session(), "go").await;
    assert_eq!((outcome(&updates).terminal, &*outcome(&updates).text), (Terminal::Completed, "tested"));
    let again = |update: &Update| matches!(update, Update::Continued(Transition::StopHookBlocking));
    assert_eq!(updates.iter().filter(|update| again(update)).count(), 1);
}

/// Takes its time to hear that a run failed.
struct Mourner(Arc<AtomicUsize>, Duration);

impl HookRunner for Mourner {
    fn events(&self) -> BTreeSet<HookEvent> {
        [HookEvent::StopFailure].into()
    }

    fn run(&self, _: HookCall, _: HookScene, _: CancellationToken) -> BoxFuture<'static, HookAnswer> {
        let (heard, time) = (self.0.clone(), self.1);
        async move {
            tokio::time::sleep(time).await;
            heard.fetch_add(1, Ordering::SeqCst);
            HookAnswer::default()
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_of_a_failure_unless_somebody_interrupts() {
    let folder = project();
    let heard = Arc::<AtomicUsize>::default();
    let session = |time| {
        let hooks = Arc::new(Mourner(heard.clone(), time));
        let script = format!(r#"{{"responses": [{REFUSED}]}}"#);
        builder(folder.path(), &script).hooks(hooks).build().unwrap().session()
    };
    let updates = run(&mut session(Duration::from_secs(5)), "go").await;
    assert_eq!(outcome(&updates).terminal, Terminal::ApiError);
    assert_eq!(heard.load(Ordering::SeqCst), 1);
    let mut session = session(Duration::from_hours(24));
    let handle = session.handle();
    let interrupter = async {
        tokio::time::sleep(Duration::from_hours(1)).await;
        handle.interrupt();
    };
    let (updates, ()) = tokio::join!(run(&mut session, "go"), interrupter);
    assert!(!outcome(&updates).terminal.is_success());
    assert_eq!(heard.load(Ordering::SeqCst), 1, "nobody waits for it any more");
}

#[tokio::test]
async fn a_budget_in_the_prompt_makes_the_model_go_on() {
    let folder = project();
    let script = r#"{"then": "repeat", "responses": [{"blocks": [{"text": "a little"}]}]}"#;
    let mut session = builder(folder.path(), script).build().unwrap().session();
    let updates = run(&mut session, "write a lot +500k").await;
    assert_eq!(outcome(&updates).terminal, Terminal::TokenBudgetCompleted);
    let again = |update: &Update| matches!(update, Update::Continued(Transition::TokenBudgetContinuation));
    assert!(updates.iter().any(again));
    assert!(session.messages().to_json().contains("write a lot +500k"), "the text stays as it is");
}

#[tokio::test]
async fn a_session_knows_how_full_it_is_and_what_it_took() {
    let folder = project();
    let script = r#"{"then": "repeat", "responses": [
        {"blocks": [{"text": "ok"}], "usage": {"input_tokens": 1000, "output_tokens": 10}}
    ]}"#;
    let model = ScriptModel::new(Script::parse(script).unwrap());
    let card = model_card("claude-sonnet-4-5");
    let engine = Engine::builder(Arc::new(model), card.clone())
        .working_directory(folder.path().to_owned())
        .build()
        .unwrap();
    let mut session = engine.session();
    assert_eq!(session.cost_usd(), Some(0.0));
    let mut costs = 0.0;
    for _ in 0..2 {
        costs += outcome(&run(&mut session, "go").await).cost_usd().unwrap();
    }
    assert!(costs > 0.0 && session.cost_usd() == Some(costs));
    assert_eq!(session.spending().values().map(|spend| spend.usage.output_tokens).sum::<u64>(), 20);
    let report = session.context_report();
    assert_eq!((&*report.model, report.window), (&*card.id, card.window_tokens));
    assert!(report.used >= 1_010, "{report:?}");
}
