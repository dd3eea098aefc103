//! The driver with a scripted model and a tool that leaves traces.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::poll_fn;
use futures_util::{FutureExt, Stream, StreamExt};
use windlass_engine::{
    Answer, Answerer, Block, Config, Engine, EngineBuilder, MessageId, PermissionMode, Permissions, Session,
    Terminal, Update,
};
use windlass_models::{Script, ScriptModel, model_card};
use windlass_ports::{AnyTool, BoxStream, ExamineContext, JsonSchema, ModelClient, Tool, ToolContext};
use windlass_protocol::{
    CallFacts, CallKind, Message, ModelEvent, ModelRequest, Origin, ToolOutput, ToolProfile, ToolProgress,
    ToolSpec,
};

/// Waits, then answers. Leaves a trace of every start and every end, whichever way it ends.
#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "windlass_ports::schemars")]
#[serde(deny_unknown_fields)]
struct WaitInput {
    /// How long.
    ms: u64,
    /// Whether it changes something.
    #[serde(default)]
    acts: bool,
    /// What to do instead of waiting.
    #[serde(default)]
    trick: String,
}

#[derive(Clone, Default)]
struct Wait {
    alive: Arc<AtomicUsize>,
    /// The most that were ever alive at once.
    alive_max: Arc<AtomicUsize>,
    started: Arc<AtomicUsize>,
}

struct Trace(Arc<AtomicUsize>);

impl Drop for Trace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for Wait {
    type Input = WaitInput;
    const NAME: &'static str = "Wait";
    const PROFILE: ToolProfile = ToolProfile { aliases: &["Pause"], ..ToolProfile::DEFAULT };

    fn facts(&self, input: &WaitInput, _: &ExamineContext) -> Result<CallFacts, String> {
        let kind = if input.acts { CallKind::Execute } else { CallKind::Read };
        Ok(CallFacts { is_shared: !input.acts, target: input.ms.to_string(), ..CallFacts::new(kind) })
    }

    async fn run(&self, input: WaitInput, cx: ToolContext) -> ToolOutput {
        let alive = self.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.alive_max.fetch_max(alive, Ordering::SeqCst);
        self.started.fetch_add(1, Ordering::SeqCst);
        let _trace = Trace(self.alive.clone());
        match &*input.trick {
            "panic" => panic!("on purpose"),
            "deaf" => tokio::time::sleep(Duration::from_hours(1)).await,
            "chatty" => {
                for n in 0..100 {
                    cx.progress.send(cx.call, ToolProgress { text: n.to_string() }).await;
                }
            }
            _ => (),
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(input.ms)) => ToolOutput::text("waited"),
            () = cx.cancel.cancelled() => ToolOutput::error("stopped"),
        }
    }
}

fn builder(script: &str, tool: &Wait) -> EngineBuilder {
    let model = ScriptModel::new(Script::parse(script).unwrap());
    Engine::builder(Arc::new(model), model_card("scripted"))
        .tools(vec![Arc::new(tool.clone()) as Arc<dyn AnyTool>])
}

fn session(script: &str, tool: &Wait) -> Session {
    let mode = PermissionMode::BypassPermissions;
    builder(script, tool)
        .with(|config| config.permissions = Permissions { mode, ..Permissions::default() })
        .build()
        .unwrap()
        .session()
}

/// The words of a run: its visible updates, one word each.
async fn words(session: &mut Session, prompt: &str) -> Vec<String> {
    session.run(prompt).filter_map(|update| std::future::ready(word(&update))).collect().await
}

fn word(update: &Update) -> Option<String> {
    Some(match update {
        Update::Requesting { .. } => "request".into(),
        Update::Block { block, is_aborted, .. } => match block.as_text() {
            Some(text) if *is_aborted => format!("aborted:{text}"),
            Some(text) => text.to_owned(),
            None => "call".into(),
        },
        Update::ToolStarted { call, .. } => format!("start{}", call.0),
        Update::ToolResult { call, result, .. } => {
            format!("result{}{}", call.0, if result.json().contains("is_error") { "!" } else { "" })
        }
        Update::Question(question) => format!("ask{}", question.call.0),
        Update::Done(outcome) => format!("={}", outcome.terminal.name()),
        _ => return None,
    })
}

const TWO_TURNS: &str = r#"{"responses": [
    {"blocks": [{"tool": "Wait", "input": {"ms": 20}}, {"text": "talking", "delay_ms": 100}]},
    {"blocks": [{"text": "bye"}]}
]}"#;

#[tokio::test(start_paused = true)]
async fn a_call_starts_and_finishes_while_the_model_talks() {
    let words = words(&mut session(TWO_TURNS, &Wait::default()), "go").await;
    assert_eq!(words, ["request", "call", "start1", "result1", "talking", "request", "bye", "=completed"]);
}

#[tokio::test(start_paused = true)]
async fn ten_shared_calls_overlap_and_no_more() {
    let calls = [r#"{"tool": "Wait", "input": {"ms": 100}}"#; 12].join(", ");
    let script = format!(r#"{{"responses": [{{"blocks": [{calls}]}}, {{"blocks": [{{"text": "bye"}}]}}]}}"#);
    let tool = Wait::default();
    assert_eq!(words(&mut session(&script, &tool), "go").await.last().unwrap(), "=completed");
    assert_eq!(tool.started.load(Ordering::SeqCst), 12);
    assert_eq!(tool.alive_max.load(Ordering::SeqCst), 10);
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_until_somebody_polls() {
    let tool = Wait::default();
    let mut session = session(TWO_TURNS, &tool);
    drop(session.run("never polled"));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(tool.started.load(Ordering::SeqCst), 0);
    assert_eq!(session.waiting(), 1, "a prompt that was never polled waits for the next run");
    assert_eq!(words(&mut session, "go").await.last().unwrap(), "=completed");
    let json = session.messages().to_json();
    assert!(json.contains("never polled"));
    assert_eq!(json.matches("<environment>").count(), 1, "{json}");
}

/// Counts how often its stream is polled for an item.
struct Counting {
    inner: ScriptModel,
    items: Arc<AtomicUsize>,
}

impl ModelClient for Counting {
    fn stream(&self, request: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let items = self.items.clone();
        let count = move |event| {
            items.fetch_add(1, Ordering::SeqCst);
            event
        };
        self.inner.stream(request).map(count).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_stops_the_models_stream() {
    let text = "x".repeat(4_000);
    let script = format!(r#"{{"responses": [{{"blocks": [{{"text": "{text}"}}], "delta_chars": 1}}]}}"#);
    let items = Arc::new(AtomicUsize::new(0));
    let model = Counting { inner: ScriptModel::new(Script::parse(&script).unwrap()), items: items.clone() };
    let engine = Engine::builder(Arc::new(model), model_card("x"))
        .with(|config| config.has_partial_messages = true)
        .build()
        .unwrap();
    let mut session = engine.session();
    let mut run = session.run("go");
    for _ in 0..10 {
        run.next().await.unwrap();
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let read = items.load(Ordering::SeqCst);
    assert!(read <= 10, "{read} items were read for 10 updates");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_answers_every_call_and_ends_once() {
    let script = r#"{"responses": [{"blocks": [
        {"tool": "Wait", "input": {"ms": 60000}}, {"tool": "Wait", "input": {"ms": 1, "acts": true}}, {"text": "never", "delay_ms": 60000}
    ]}]}"#;
    let tool = Wait::default();
    let mut session = session(script, &tool);
    let handle = session.handle();
    let interrupter = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle.interrupt();
    };
    let (words, ()) = tokio::join!(words(&mut session, "go"), interrupter);
    assert_eq!(words, ["request", "call", "start1", "call", "result1!", "result2!", "=aborted_streaming"]);
    assert_eq!(tool.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_listen_is_given_up_after_a_second() {
    let script = r#"{"responses": [{"blocks": [{"tool": "Wait", "input": {"ms": 1, "trick": "deaf"}}]}]}"#;
    let tool = Wait::default();
    let mut session = session(script, &tool);
    let handle = session.handle();
    let before = tokio::time::Instant::now();
    let interrupter = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle.interrupt();
    };
    let (words, ()) = tokio::join!(words(&mut session, "go"), interrupter);
    assert_eq!(words.last().unwrap(), "=aborted_tools");
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    assert_eq!(tool.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_steered_message_is_in_the_very_next_request() {
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Wait", "input": {"ms": 100}}]},
        {"blocks": [{"text": "ok"}], "expect": {"contains": "be quick"}}
    ]}"#;
    let mut session = session(script, &Wait::default());
    let handle = session.handle();
    let steer = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle.steer("be quick").await.unwrap();
    };
    let (words, ()) = tokio::join!(words(&mut session, "go"), steer);
    assert_eq!(words.last().unwrap(), "=completed", "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_too_late_is_part_of_the_next_run() {
    let script = r#"{"responses": [
        {"blocks": [{"text": "one"}]}, {"blocks": [{"text": "two"}], "expect": {"contains": "too late"}}
    ]}"#;
    let mut session = session(script, &Wait::default());
    words(&mut session, "go").await;
    session.handle().steer("too late").await.unwrap();
    session.handle().interrupt();
    assert_eq!(words(&mut session, "again").await, ["request", "two", "=completed"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_before_the_first_poll_counts_and_one_between_runs_does_not() {
    let mut session = session(TWO_TURNS, &Wait::default());
    session.handle().interrupt();
    let run = session.run("go");
    run.handle().interrupt();
    let words: Vec<String> = run.filter_map(|update| std::future::ready(word(&update))).collect().await;
    assert_eq!(words, ["request", "=aborted_streaming"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_user_says_instead_is_the_beginning_of_the_next_run() {
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Wait", "input": {"ms": 60000}}]},
        {"blocks": [{"text": "ok"}], "expect": {"contains": "rather this"}}
    ]}"#;
    let mut session = session(script, &Wait::default());
    let handle = session.handle();
    let interrupter = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle.interrupt_with("rather this").await.unwrap();
    };
    let (seen, ()) = tokio::join!(words(&mut session, "go"), interrupter);
    assert_eq!(seen, ["request", "call", "start1", "result1!", "=aborted_tools"]);
    assert_eq!(session.waiting(), 1);
    assert_eq!(words(&mut session, "please").await, ["request", "ok", "=completed"]);
    assert!(!session.messages().to_json().contains("interrupted while tools"), "the new message says enough");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_ended_stays_ended() {
    let mut session = session(r#"{"responses": [{"blocks": [{"text": "ok"}]}]}"#, &Wait::default());
    let mut run = session.run("go");
    while run.next().await.is_some() {}
    run.handle().steer("too late").await.unwrap();
    assert!(run.next().await.is_none());
}

/// A tool whose input is no object.
struct Odd(&'static str);

impl AnyTool for Odd {
    fn spec(&self) -> ToolSpec {
        let input_schema = windlass_protocol::RawValue::from_string(r#"{"type":"string"}"#.into()).unwrap();
        ToolSpec {
            name: self.0.into(),
            description: "".into(),
            input_schema: input_schema.into(),
            result_chars_max: None,
            profile: windlass_protocol::ToolProfile::named(self.0),
        }
    }

    fn examine(&self, _: &windlass_protocol::RawValue, _: &ExamineContext) -> Result<CallFacts, String> {
        Err("never asked".into())
    }

    fn run(
        self: Arc<Self>,
        _: Arc<windlass_protocol::RawValue>,
        _: ToolContext,
    ) -> futures_util::future::BoxFuture<'static, ToolOutput> {
        std::future::ready(ToolOutput::text("")).boxed()
    }
}

#[test]
fn a_tool_that_no_provider_takes_is_refused_at_once() {
    let check = |name: &'static str, expected: &str| {
        let built = builder(TWO_TURNS, &Wait::default()).tools(vec![Arc::new(Odd(name))]).build();
        assert_eq!(built.err().unwrap().to_string(), expected);
    };
    let name = "a tool name needs 1 to 64 letters, digits, `_` or `-`";
    check("", &format!("invalid tool \"\": {name}"));
    check("my tool", &format!("invalid tool \"my tool\": {name}"));
    check("ok", "invalid tool \"ok\": its input schema must describe an object");
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_through_the_handle() {
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Wait", "input": {"ms": 1, "acts": true}}, {"tool": "Pause", "input": {"ms": 2, "acts": true}}]},
        {"blocks": [{"text": "ok"}]}
    ]}"#;
    let permissions = Permissions { asking: Answerer::Person, ..Permissions::default() };
    let mut session = builder(script, &Wait::default())
        .with(|config| config.permissions = permissions)
        .build()
        .unwrap()
        .session();
    let mut run = session.run("go");
    let handle = run.handle();
    let mut seen = Vec::new();
    while let Some(update) = run.next().await {
        if let Update::Question(question) = &update {
            let answer = if question.call.0 == 1 { Answer::Allow } else { Answer::Deny("not now".into()) };
            handle.answer(question.call, answer).await.unwrap();
        }
        if let Update::Done(outcome) = &update {
            assert_eq!(outcome.denials.len(), 1);
        }
        seen.extend(word(&update));
    }
    let expected = [
        "request",
        "call",
        "ask1",
        "call",
        "start1",
        "result1",
        "ask2",
        "result2!",
        "request",
        "ok",
        "=completed",
    ];
    // The second block may arrive before or after the answer to the first question.
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(seen), sorted(expected.map(String::from).to_vec()));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_is_an_error_result_and_nothing_more() {
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Wait", "input": {"ms": 1, "trick": "panic"}}, {"tool": "Wait", "input": {"ms": 1}}]},
        {"blocks": [{"text": "ok"}]}
    ]}"#;
    let words = words(&mut session(script, &Wait::default()), "go").await;
    assert!(words.contains(&"result1!".into()) && words.contains(&"result2".into()), "{words:?}");
    assert_eq!(words.last().unwrap(), "=completed");
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_an_error_result_that_names_the_field() {
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Wait", "input": {"ms": "soon"}}, {"tool": "Nap", "input": {}}]},
        {"blocks": [{"text": "ok"}]}
    ]}"#;
    let mut session = session(script, &Wait::default());
    words(&mut session, "go").await;
    let json = session.messages().to_json();
    assert!(json.contains("The input of Wait is not valid in `ms`"), "{json}");
    assert!(
        json.contains("<tool_use_error>There is no tool Nap. Available tools: Wait.</tool_use_error>"),
        "{json}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_offered_is_not_named() {
    let script =
        r#"{"responses": [{"blocks": [{"tool": "Nap", "input": {}}]}, {"blocks": [{"text": "ok"}]}]}"#;
    let permissions = Permissions {
        rules: windlass_engine::Rules::about_tools(windlass_engine::Behaviour::Deny, ["Wait"].into_iter()),
        ..Permissions::default()
    };
    let engine =
        builder(script, &Wait::default()).with(|config| config.permissions = permissions).build().unwrap();
    let mut session = engine.session();
    words(&mut session, "go").await;
    let json = session.messages().to_json();
    assert!(json.contains("There is no tool Nap") && !json.contains("Wait"), "{json}");
}

#[tokio::test(start_paused = true)]
async fn progress_is_bounded_and_reaches_the_caller() {
    let script = r#"{"responses": [
        {"blocks": [{"tool": "Wait", "input": {"ms": 1, "trick": "chatty"}}]}, {"blocks": [{"text": "ok"}]}
    ]}"#;
    let mut session = session(script, &Wait::default());
    let progress = |update| std::future::ready(matches!(update, Update::ToolProgress { .. }));
    let count = session.run("go").filter(|update| progress(update.clone())).count().await;
    assert_eq!(count, 100);
}

/// Drops a run after each number of polls that it takes: nothing may be left, and the session must go on.
#[tokio::test(start_paused = true)]
async fn dropping_a_run_at_any_poll_leaves_nothing_behind() {
    const SCRIPT: &str = r#"{"then": "repeat", "responses": [
        {"blocks": [{"text": "hm"}, {"tool": "Wait", "input": {"ms": 30}}, {"tool": "Wait", "input": {"ms": 10}},
                    {"tool": "Wait", "input": {"ms": 10, "acts": true}}, {"text": "so", "delay_ms": 25}], "delta_delay_ms": 1},
        {"fault": {"status": {"code": 529, "message": "busy"}}},
        {"blocks": [{"text": "done"}], "delta_delay_ms": 3}
    ]}"#;
    let mut polls = 0;
    loop {
        polls += 1;
        let tool = Wait::default();
        let mut session = session(SCRIPT, &tool);
        let mut run = Box::pin(session.run("go"));
        let finished = poll_times(run.as_mut(), polls).await;
        drop(run);
        assert_eq!(tool.alive.load(Ordering::SeqCst), 0, "a call lives on after {polls} polls");
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "a task lives on after {polls} polls");
        let mut next = session.messages().clone();
        next.push(Message::user(MessageId(9_999), Origin::Prompt, vec![Block::text("next")]).into());
        assert_eq!(windlass_sim::check_request(&next), Ok(()), "after {polls} polls");
        let seen = words(&mut session, "again").await;
        assert_eq!(seen.last().unwrap(), "=completed", "after {polls} polls: {seen:?}");
        if finished {
            break;
        }
    }
    assert!(polls > 30, "only {polls} polls");
}

/// Polls that many times, waiting for a wake-up between them; true if the run came to its end.
async fn poll_times(mut run: Pin<&mut impl Stream<Item = Update>>, times: usize) -> bool {
    for _ in 0..times {
        let polled = poll_fn(|cx| std::task::Poll::Ready(run.as_mut().poll_next(cx))).await;
        match polled {
            std::task::Poll::Ready(None) => return true,
            std::task::Poll::Ready(Some(_)) => (),
            std::task::Poll::Pending => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_conversation_taken_over_from_elsewhere_is_mended_and_goes_on() {
    let call = Block::from_json(r#"{"type":"tool_use","id":"toolu_x","name":"Wait","input":{}}"#).unwrap();
    let messages = [
        Message::user(MessageId(1), Origin::Prompt, vec![Block::text("hi")]),
        Message::assistant(MessageId(2), "other".into(), vec![call]),
    ];
    let script = r#"{"responses": [{"blocks": [{"text": "ok"}]}]}"#;
    let engine = builder(script, &Wait::default()).build().unwrap();
    let messages = messages.into_iter().map(Arc::new).collect();
    let mut session = engine.session_with(windlass_engine::SessionSeed(1), messages);
    let updates: Vec<Update> = session.run("go on").collect().await;
    assert!(updates.iter().any(|update| matches!(update, Update::Repaired(_))));
    assert!(matches!(updates.last(), Some(Update::Done(outcome)) if outcome.terminal == Terminal::Completed));
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_run_is_that_of_its_last_answer() {
    let script = r#"{"responses": [
        {"blocks": [{"text": "Looking."}, {"tool": "Wait", "input": {"ms": 1}}]}, {"blocks": [], "stop_reason": "end_turn"},
        {"blocks": [], "stop_reason": "end_turn"}
    ]}"#;
    let mut session = session(script, &Wait::default());
    let updates: Vec<Update> = session.run("go").collect().await;
    let Some(Update::Done(outcome)) = updates.last() else { panic!("{updates:?}") };
    assert_eq!(outcome.text, "");
    let requests = updates.iter().filter(|update| matches!(update, Update::Requesting { .. })).count();
    assert_eq!(requests, 3, "it is asked once more");
    assert_eq!(outcome.warnings, ["The last answer of the model is empty."]);
}

/// Answers for ever, with pieces that nobody is shown.
struct Endless;

impl ModelClient for Endless {
    fn stream(&self, _: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let piece = ModelEvent::Delta { index: 0, delta: windlass_protocol::Delta::Text("x".into()) };
        futures_util::stream::repeat(piece).boxed()
    }
}

#[tokio::test]
async fn a_model_that_never_pauses_can_be_interrupted() {
    let engine = Engine::builder(Arc::new(Endless), model_card("x")).build().unwrap();
    let mut session = engine.session();
    let handle = session.handle();
    let interrupter = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        handle.interrupt();
    };
    let (words, ()) = tokio::join!(words(&mut session, "go"), interrupter);
    assert_eq!(words.last().unwrap(), "=aborted_streaming");
}

/// A client that does not keep its promise.
enum Broken {
    PanicsAtOnce,
    PanicsLater,
    SaysNothing,
}

impl ModelClient for Broken {
    fn stream(&self, _: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        match self {
            Self::PanicsAtOnce => panic!("on purpose"),
            Self::PanicsLater => futures_util::stream::poll_fn(|_| panic!("on purpose")).boxed(),
            Self::SaysNothing => futures_util::stream::empty().boxed(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_model_client_ends_the_run_and_nothing_more() {
    for client in [Broken::PanicsAtOnce, Broken::PanicsLater, Broken::SaysNothing] {
        let engine = Engine::builder(Arc::new(client), model_card("x")).build().unwrap();
        assert_eq!(words(&mut engine.session(), "go").await.last().unwrap(), "=model_error");
    }
}

#[test]
fn a_handle_outlives_its_session_without_harm() {
    let script = r#"{"responses": [{"blocks": [{"text": "ok"}]}]}"#;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let handle = runtime.block_on(async { session(script, &Wait::default()).handle() });
    handle.interrupt();
    assert!(handle.steer("x").now_or_never().unwrap().is_err());
}

const SUGGESTED: &str = r#"{"responses": [
    {"blocks": [{"text": "one"}]},
    {"blocks": [{"text": "Run the tests", "delay_ms": 50}]},
    {"blocks": [{"text": "two"}]},
    {"blocks": [{"text": "never", "delay_ms": 3600000}]},
    {"blocks": [{"text": "three"}]}
]}"#;

#[tokio::test(start_paused = true)]
async fn what_begins_at_the_end_of_a_run_goes_on_until_the_next() {
    let small = Some(model_card("small"));
    let engine = builder(SUGGESTED, &Wait::default())
        .config(Config { has_prompt_suggestions: true, ..Config::default() })
        .with(|config| config.small_model = small);
    let mut session = engine.build().unwrap().session();
    assert_eq!(words(&mut session, "a").await, ["request", "one", "=completed"]);
    let after_run = session.spending()["scripted"].usage.output_tokens;
    // It can be left and taken up again.
    let mut background = session.background();
    assert!(background.next().now_or_never().is_none(), "it takes a while");
    drop(background);
    let updates: Vec<Update> = session.background().collect().await;
    let [Update::PromptSuggestion { suggestion }] = &updates[..] else { panic!("{updates:?}") };
    assert_eq!(&**suggestion, "Run the tests");
    assert_eq!(session.spending()["scripted"].usage.output_tokens, after_run + 8, "it is counted");
    assert_eq!(words(&mut session, "b").await, ["request", "two", "=completed"]);
    assert!(session.background().next().now_or_never().is_none());
    assert_eq!(words(&mut session, "c").await, ["request", "three", "=completed"]);
    // Nobody polls what is left, and nobody waits for it.
    drop(session);
}
