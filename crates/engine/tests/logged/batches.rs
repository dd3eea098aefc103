//! What goes into one append, and what waits for the next.

use windlass_engine::Terminal;
use windlass_protocol::{Delta, Event, ModelEvent, Record};

use crate::stage::{Stage, WORK, kinds, poll_until, watch};

#[tokio::test(start_paused = true)]
async fn records_that_follow_each_other_are_one_append() {
    let stage = Stage::new(WORK);
    watch(stage.begin().run("go"), &stage.desk).await;
    let expected = [
        "heard said requested",
        // That the model began to answer had no consequences.
        "heard heard answered",
        "heard answered",
        "heard ruled intended",
        "heard finished result",
        "heard answered",
        "heard ruled intended",
        "heard spent",
        // What is shown stands between the result and what follows from the same event.
        "heard finished result",
        "requested",
        "heard heard answered",
        "heard spent",
        "ended",
    ];
    assert_eq!(stage.desk.kinds(), expected);
}

/// What is heard without consequences is never an append of its own, and nothing stands before what it follows from.
#[tokio::test(start_paused = true)]
async fn every_append_begins_with_what_was_heard_and_has_a_consequence() {
    let stage = Stage::new(WORK);
    let mut session = stage.begin();
    watch(session.run("go"), &stage.desk).await;
    session.handle().steer("also this").await.unwrap();
    watch(session.run("again"), &stage.desk).await;
    for append in stage.desk.appends() {
        let is_heard = |record: Option<&Record>| matches!(record, Some(Record::Heard(_)));
        assert!(!is_heard(append.last()), "{}", kinds(&append));
    }
    let first = stage.desk.appends().swap_remove(0);
    assert!(matches!(&first[0], Record::Heard(input) if matches!(input.event, Event::Submit(_))));
}

/// The pieces that are in the log.
fn pieces(stage: &Stage) -> Vec<String> {
    let appends = stage.desk.appends();
    let heard = appends.iter().flatten().filter_map(|record| match record {
        Record::Heard(input) => Some(&input.event),
        _ => None,
    });
    let pieces = heard.filter_map(|event| match event {
        Event::Model(_, ModelEvent::Delta { delta: Delta::Text(text), .. }) => Some(text.clone()),
        Event::Progress(..) | Event::Model(_, ModelEvent::Delta { .. }) => Some(format!("{event:?}")),
        _ => None,
    });
    pieces.collect()
}

#[tokio::test(start_paused = true)]
async fn pieces_of_blocks_that_are_complete_are_not_logged() {
    let stage = Stage::new(WORK);
    watch(stage.begin().run("go"), &stage.desk).await;
    assert_eq!(pieces(&stage), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_pieces_of_a_block_that_was_cut_short_are_logged_as_one() {
    let stage = Stage::with(WORK, |builder| builder.with(|config| config.has_partial_messages = true));
    let mut session = stage.begin();
    let handle = session.handle();
    let mut run = session.run("go");
    let desk = stage.desk.clone();
    let mut polls = 0;
    let (shown, _) = poll_until(&mut run, &desk, || {
        polls += 1;
        polls > 8
    })
    .await;
    let said: String = shown
        .iter()
        .filter_map(|update| match update {
            windlass_engine::Update::Delta { delta: Delta::Text(text), .. } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert!(!said.is_empty() && said.len() < "I begin.".len(), "{said:?}");
    handle.interrupt();
    let (_, terminal) = watch(run, &desk).await;
    assert_eq!(terminal, Terminal::AbortedStreaming);
    assert_eq!(pieces(&stage), [said]);
    stage.check_recalled(&session);
    stage.check_replay(&session);
}
