//! Runs that were dropped, processes that were killed, logs that could not be written.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::poll_fn;
use windlass_engine::{Engine, Terminal, Update};
use windlass_protocol::{Event, Record};

use crate::stage::{Stage, shown};

const WORK: &str = r#"{"blocks": [
        {"text": "I begin with something that takes a while to say."},
        {"tool": "Work", "input": {"ms": 4, "chars": 300}},
        {"tool": "Work", "input": {"ms": 4, "write": "f"}}
    ], "delta_chars": 8, "delta_delay_ms": 1},
    {"blocks": [{"text": "All done."}]}"#;

fn is_end(record: &Record) -> bool {
    matches!(record, Record::Ended(_))
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
async fn a_run_that_is_dropped_at_any_poll() {
    for polls in 0.. {
        let stage = Stage::new();
        let engine = stage.engine(WORK);
        let mut session = stage.begin(&engine);
        let mut dropped = Box::pin(session.run("go"));
        let is_done = poll_times(dropped.as_mut(), polls).await;
        drop(dropped);
        if polls % 2 == 0 {
            session.handle().steer("between the runs").await.unwrap();
        }
        shown(session.run("again")).await;
        shown(session.run("once more")).await;
        let played = stage.play(&engine);
        assert_eq!(played.replay.state().messages().to_json(), session.messages().to_json(), "{polls} polls");
        if is_done {
            assert!(polls > 20, "only {polls} polls");
            break;
        }
    }
}

/// Goes on with a session that ends here, and plays all of it again.
async fn go_on(stage: &Stage, engine: &Engine, prompts: &[&str]) {
    let mut session = stage.resume(engine);
    for prompt in prompts {
        let updates = shown(session.run(*prompt)).await;
        assert!(matches!(updates.last(), Some(Update::Done(_))));
    }
    let played = stage.play(engine);
    assert_eq!(played.replay.state().messages().to_json(), session.messages().to_json());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_process_goes_on_with() {
    let stage = Stage::new();
    let engine = stage.engine(WORK);
    shown(stage.begin(&engine).run("go")).await;
    for _ in 0..2 {
        go_on(&stage, &engine, &["again", "and again"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_killed_between_any_two_lines() {
    let stage = Stage::new();
    let engine = stage.engine(WORK);
    let mut session = stage.begin(&engine);
    shown(session.run("go")).await;
    let log = std::fs::read(stage.file()).unwrap();
    let feeds = (1..).zip(&log).filter(|(_, byte)| **byte == b'\n').map(|(end, _)| end);
    let ends: Vec<u64> = [0].into_iter().chain(feeds).filter(|end| *end < log.len() as u64).collect();
    assert!(ends.len() > 25, "{}", ends.len());
    for end in &ends[1..] {
        go_on(&stage.cut(*end), &engine, &["again"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_written_for_a_while() {
    for after in [0, 12, 25, 40, 60, 80] {
        let stage = Stage::new();
        let engine = stage.engine(WORK);
        let mut session = stage.begin(&engine);
        shown(session.run("go")).await;
        let mut failing = Box::pin(session.run("again"));
        let is_done = poll_times(failing.as_mut(), after).await;
        *stage.log_fails.lock().unwrap() = true;
        // A run whose end is in the log has nothing left to write, though its last update may not have been fetched.
        let ends = stage.play(&engine).records.iter().filter(|record| is_end(record)).count();
        let is_done = is_done || ends == 2;
        let updates = shown(failing).await;
        if let Some(Update::Done(outcome)) = updates.last() {
            assert!(
                is_done || outcome.terminal == Terminal::StoreFailed,
                "{after} polls: {:?}",
                outcome.terminal
            );
        }
        session.handle().steer("nobody notes this").await.unwrap();
        assert_eq!(session.waiting(), 1);
        *stage.log_fails.lock().unwrap() = false;
        shown(session.run("once more")).await;
        shown(session.run("and again")).await;
        let played = stage.play(&engine);
        assert_eq!(played.replay.state().messages().to_json(), session.messages().to_json());
        let failed = |record: &Record| matches!(record, Record::Heard(input) if matches!(input.event, Event::StoreFailed { .. }));
        assert!(played.has(failed), "the log says that something is missing");
        go_on(&stage, &engine, &["in another process"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_calls_that_a_crash_left_open() {
    let stage = Stage::new();
    let engine = stage.engine(WORK);
    let mut session = stage.begin(&engine);
    let mut killed = Box::pin(session.run("go"));
    let is_intended = |record: &Record| matches!(record, Record::Intended(_));
    while !stage.file().exists() || !stage.play(&engine).has(is_intended) {
        assert!(!poll_times(killed.as_mut(), 1).await);
    }
    // As after a crash: the session is not told.
    std::mem::forget(killed);
    let copy = stage.cut(std::fs::metadata(stage.file()).unwrap().len());
    go_on(&copy, &engine, &["again"]).await;
    let played = copy.play(&engine);
    assert!(
        played.has(
            |record| matches!(record, Record::Result(result) if result.result.json().contains("cut off"))
        )
    );
}
