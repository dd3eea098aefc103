//! Runs of every kind, played again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use windlass_engine::{
    Answer, Answerer, Block, Engine, Permissions, Session, Terminal, Update, answer_schema,
};
use windlass_models::model_card;
use windlass_ports::{BoxStream, ModelClient};
use windlass_protocol::{Decision, Delta, Event, ModelEvent, ModelRequest, Record, RunEnding};

use crate::stage::{Hooks, Played, Stage, shown};

/// Everything shown live is shown by the replay, in the same order and with the same content.
#[track_caller]
fn check_shown(live: &[Update], played: &Played) {
    for (live, played) in live.iter().zip(&played.updates) {
        assert_eq!(format!("{live:?}"), format!("{played:?}"));
    }
    assert_eq!(live.len(), played.updates.len());
    assert!(played.replay.is_complete());
}

fn terminal(updates: &[Update]) -> Terminal {
    let Some(Update::Done(outcome)) = updates.last() else { panic!("{updates:?}") };
    outcome.terminal
}

fn ended(terminal: Terminal) -> impl Fn(&Record) -> bool {
    move |record| matches!(record, Record::Ended(RunEnding { terminal: seen, .. }) if *seen == terminal)
}

async fn run(session: &mut Session, prompt: &str) -> Vec<Update> {
    shown(session.run(prompt)).await
}

const CALLS: &str = r#"{"blocks": [
    {"thinking": "Three things.", "signature": "c2ln"},
    {"text": "I begin."},
    {"tool": "Work", "input": {"ms": 30}},
    {"tool": "Work", "input": {"ms": 10, "chars": 900}},
    {"tool": "Work", "input": {"ms": 5, "write": "f"}},
    {"tool": "Work", "input": {"ms": "soon"}},
    {"tool": "Nothing", "input": {}}
]}, {"blocks": [{"text": "All done."}]}"#;

#[tokio::test(start_paused = true)]
async fn calls_side_by_side_and_several_runs() {
    let stage = Stage::new();
    let engine = stage.engine(CALLS);
    let mut session = stage.begin(&engine);
    let mut live = run(&mut session, "go").await;
    live.extend(run(&mut session, "again").await);
    live.extend(shown(session.go_on()).await);
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert_eq!(played.replay.state().messages().to_json(), session.messages().to_json());
    let heard = played.records.iter().filter(|record| matches!(record, Record::Heard(_))).count();
    assert_eq!(played.replay.events(), heard as u64);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_answer_and_interrupted_calls() {
    let stage = Stage::new();
    let engine = stage.engine(
        r#"{"blocks": [{"text": "A long answer that nobody waits for."}], "delta_chars": 4, "delta_delay_ms": 50},
           {"blocks": [{"tool": "Work", "input": {"ms": 60000}}, {"tool": "Work", "input": {"ms": 60000, "write": "f"}}]}"#,
    );
    let mut session = stage.begin(&engine);
    let mut live = Vec::new();
    for expected in [Terminal::AbortedStreaming, Terminal::AbortedTools] {
        let handle = session.handle();
        let interrupt = async {
            tokio::time::sleep(Duration::from_millis(220)).await;
            handle.interrupt();
        };
        let (updates, ()) = tokio::join!(run(&mut session, "go"), interrupt);
        assert_eq!(terminal(&updates), expected);
        live.extend(updates);
    }
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert!(played.has(|record| matches!(record, Record::Answered(answered) if answered.is_aborted)));
}

/// Says pieces of two blocks in turns, and never comes to an end.
struct Muddled;

impl ModelClient for Muddled {
    fn stream(&self, _: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        let (message_id, model, usage) = ("m1".into(), "scripted".into(), Box::default());
        let said = [
            ModelEvent::Started { message_id, model, usage },
            ModelEvent::Delta { index: 0, delta: Delta::Text("Some ".into()) },
            ModelEvent::Delta { index: 1, delta: Delta::Thinking("Hm.".into()) },
            ModelEvent::Delta { index: 0, delta: Delta::Text("words.".into()) },
            ModelEvent::Delta { index: 1, delta: Delta::Thinking("So.".into()) },
        ];
        futures_util::stream::iter(said).chain(futures_util::stream::pending()).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn pieces_of_blocks_in_turns() {
    let stage = Stage::new();
    let engine = Engine::builder(Arc::new(Muddled), model_card("scripted")).build().unwrap();
    let mut session = stage.begin(&engine);
    let handle = session.handle();
    let interrupt = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        handle.interrupt();
    };
    let (live, ()) = tokio::join!(run(&mut session, "go"), interrupt);
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert!(session.messages().to_json().contains("Some words."));
}

#[tokio::test(start_paused = true)]
async fn failed_requests_and_a_model_that_takes_over() {
    let stage = Stage::new();
    let overloaded = r#"{"fault": {"status": {"code": 529}}}"#;
    let cut = r#"{"blocks": [{"text": "Half of an answer."}, {"text": "More."}], "delta_chars": 3, "fault": {"cut": {"after_events": 9}}}"#;
    let responses = format!(
        r#"{cut}, {overloaded}, {{"blocks": [{{"text": "At last."}}]}},
           {}, {{"blocks": [{{"text": "Instead."}}]}}"#,
        [overloaded; 4].join(", ")
    );
    let engine = stage
        .builder(&responses)
        .with(|config| config.fallbacks = [model_card("other")].into())
        .build()
        .unwrap();
    let mut session = stage.begin(&engine);
    let mut live = run(&mut session, "go").await;
    live.extend(run(&mut session, "again").await);
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert!(played.has(|record| matches!(record, Record::Retracted(_))));
    assert!(played.has(|record| matches!(record, Record::Requested(requested) if requested.attempt > 1)));
    assert!(
        played.has(|record| matches!(record, Record::Requested(requested) if &*requested.model == "other"))
    );
}

#[tokio::test(start_paused = true)]
async fn compactions_by_forks_with_facts_behind_them() {
    let stage = Stage::new();
    let long = "The gate is blue. ".repeat(8_000);
    let engine = stage.engine(&format!(
        r#"{{"blocks": [{{"text": "{long}"}}]}},
           {{"blocks": [{{"text": "<summary>We spoke of a blue gate.</summary>"}}]}},
           {{"blocks": [{{"text": "Blue."}}]}}"#
    ));
    let mut session = stage.begin(&engine);
    let mut live = run(&mut session, "Which colour has the gate?").await;
    live.extend(shown(session.compact("colours")).await);
    live.extend(run(&mut session, "And now?").await);
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert!(played.has(|record| matches!(record, Record::Decided(Decision::Compacted(_)))));
    assert!(played.has(|record| matches!(record, Record::Snapshot(_))));
}

#[tokio::test(start_paused = true)]
async fn hooks_large_results_and_changed_files() {
    let stage = Stage::new();
    std::fs::write(stage.project().join("f"), "one\ntwo\n").unwrap();
    let responses = r#"{"blocks": [{"tool": "Read", "input": {"file_path": "f"}}]},
        {"blocks": [{"tool": "Work", "input": {"ms": 1, "write": "f", "chars": 60000}}]},
        {"blocks": [{"text": "Done."}]}, {"blocks": [{"text": "Looked again."}]}"#;
    let engine = stage.builder(responses).hooks(Arc::new(Hooks)).build().unwrap();
    let mut session = stage.begin(&engine);
    let live = run(&mut session, "go").await;
    let played = stage.play(&engine);
    check_shown(&live, &played);
    let heard = |is_meant: fn(&Event) -> bool| {
        played.has(|record| matches!(record, Record::Heard(input) if is_meant(&input.event)))
    };
    assert!(heard(|event| matches!(event, Event::Hooked(..))));
    assert!(heard(|event| matches!(event, Event::Stored(..))));
    assert!(heard(|event| matches!(event, Event::Looked(..))));
    assert!(session.messages().to_json().contains("Changed line 2"));
}

#[tokio::test(start_paused = true)]
async fn messages_typed_meanwhile() {
    let stage = Stage::new();
    let engine = stage.engine(
        r#"{"blocks": [{"tool": "Work", "input": {"ms": 500}}]}, {"blocks": [{"text": "Yes."}], "end_delay_ms": 500}"#,
    );
    let mut session = stage.begin(&engine);
    let handle = session.handle();
    let steer = async {
        for text in ["also this", "and that", "too late"] {
            tokio::time::sleep(Duration::from_millis(200)).await;
            handle.steer(text).await.unwrap();
        }
    };
    let (mut live, ()) = tokio::join!(run(&mut session, "go"), steer);
    session.handle().steer("between the runs").await.unwrap();
    drop(session.run("never polled, so it waits"));
    let handle = session.handle();
    let replace = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        handle.interrupt_with("something else").await.unwrap();
    };
    let (updates, ()) = tokio::join!(run(&mut session, "more"), replace);
    live.extend(updates);
    live.extend(run(&mut session, "the end").await);
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert!(played.has(|record| matches!(record, Record::Queued(_))));
    assert_eq!(played.replay.state().waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn limits_and_budgets() {
    let stage = Stage::new();
    let calls = r#"{"blocks": [{"text": "So."}, {"tool": "Work", "input": {"ms": 1}}]}"#;
    let engine = stage.builder(calls).with(|config| config.turns_max = Some(2)).build().unwrap();
    let mut session = stage.begin(&engine);
    let live = run(&mut session, "go").await;
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert!(played.has(ended(Terminal::MaxTurns)));

    let stage = Stage::new();
    let engine = stage.engine(r#"{"blocks": [{"text": "a little"}]}"#);
    let live = run(&mut stage.begin(&engine), "write a lot +500k").await;
    let played = stage.play(&engine);
    check_shown(&live, &played);
    assert!(played.has(ended(Terminal::TokenBudgetCompleted)));
}

#[tokio::test(start_paused = true)]
async fn answers_of_a_given_form_and_caps_on_output() {
    let stage = Stage::new();
    let responses = r#"{"blocks": [{"text": "Two."}]}, {"blocks": [{"text": "{\"tests\": "}], "stop_reason": "max_tokens"},
        {"blocks": [{"text": "{\"tests\": 2}"}]}"#;
    let form = answer_schema(r#"{"type": "object", "required": ["tests"]}"#, 5).unwrap();
    let engine = stage.builder(responses).with(|config| config.answer = Some(form)).build().unwrap();
    let live = run(&mut stage.begin(&engine), "count").await;
    assert_eq!(terminal(&live), Terminal::Completed);
    check_shown(&live, &stage.play(&engine));
}

#[tokio::test(start_paused = true)]
async fn questions_and_their_answers() {
    let stage = Stage::new();
    let call = r#"{"blocks": [{"tool": "Work", "input": {"ms": 1, "write": "f"}}]}"#;
    let permissions = Permissions { asking: Answerer::Person, ..Permissions::default() };
    let responses = format!(r#"{call}, {call}, {{"blocks": [{{"text": "ok"}}]}}"#);
    let engine = stage.builder(&responses).with(|config| config.permissions = permissions).build().unwrap();
    let mut session = stage.begin(&engine);
    let handle = session.handle();
    let mut answers = vec![Answer::Deny("not now".into()), Answer::Allow];
    let answering = session.run("go").then(|update| {
        let (handle, asked) =
            (handle.clone(), if let Update::Question(asked) = &update { Some(asked.call) } else { None });
        let answer = asked.and_then(|call| Some((call, answers.pop()?)));
        async move {
            if let Some((call, answer)) = answer {
                handle.answer(call, answer).await.unwrap();
            }
            update
        }
    });
    let live = shown(answering).await;
    let played = stage.play(&engine);
    check_shown(&live, &played);
    let answered = |record: &Record| matches!(record, Record::Heard(input) if matches!(input.event, Event::Answered(..)));
    assert!(played.has(answered) && answers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_begins_with_messages() {
    let stage = Stage::new();
    let engine = stage.engine(CALLS);
    let mut former = engine.session();
    run(&mut former, "go").await;
    let mut session = stage.begin_with(&engine, former.messages().clone());
    let live = run(&mut session, "again").await;
    let records = stage.records();
    let mut replay = engine.replay();
    let updates = records.iter().flat_map(|record| replay.take(record).unwrap()).collect();
    check_shown(&live, &Played { replay, records, updates });
}

#[tokio::test(start_paused = true)]
async fn a_prompt_with_blocks_and_an_empty_answer() {
    let stage = Stage::new();
    let engine = stage.engine(
        r#"{"blocks": [{"text": "  "}]}, {"blocks": [{"redacted_thinking": "c2VjcmV0"}, {"text": "Here."}]}"#,
    );
    let mut session = stage.begin(&engine);
    let blocks = vec![Block::text("one"), Block::text("two")];
    let prompt = windlass_engine::Prompt { blocks, id: Some("p1".into()), ..Default::default() };
    let mut live = shown(session.run(prompt)).await;
    live.extend(run(&mut session, "").await);
    let played = stage.play(&engine);
    check_shown(&live, &played);
    let ended = |record: &Record| matches!(record, Record::Heard(input) if matches!(input.event, Event::Model(_, ModelEvent::Ended { .. })));
    assert!(played.has(ended));
}
