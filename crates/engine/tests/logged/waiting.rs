//! A log that takes its time: nothing passes it, nothing is lost meanwhile.

use std::time::Duration;

use tokio::time::Instant;
use windlass_engine::{Terminal, Update};
use windlass_protocol::{Event, Record};

use crate::stage::{Order, SLOW, Stage, WORK, is_restating, kinds, poll_until, watch};

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_started_or_sent_before_its_record_is_in_the_log() {
    let stage = Stage::new(WORK);
    stage.desk.order(|_, _| Order::WriteSlowly);
    let mut session = stage.begin();
    let begin = Instant::now();
    let (_, terminal) = watch(session.run("go"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    // Two requests, four blocks, two calls noted by the tool and by what is shown, two results, the end.
    stage.desk.check_order(13);
    let appends = u32::try_from(stage.desk.appends().len()).unwrap();
    assert!(begin.elapsed() >= SLOW * appends, "one append after the other");
    stage.check_recalled(&session);
}

/// With the append of this number slow and pending; false if there is none.
async fn interrupted_during(number: usize) -> bool {
    let stage = Stage::new(WORK);
    stage.desk.order(move |this, _| if this == number { Order::WriteSlowly } else { Order::Write });
    let mut session = stage.begin();
    let handle = session.handle();
    let mut run = session.run("go");
    if poll_until(&mut run, &stage.desk, || stage.desk.is_pending()).await.1 {
        return false;
    }
    handle.interrupt();
    let (_, terminal) = watch(run, &stage.desk).await;
    let what = kinds(&stage.desk.appends()[number]);
    // What was heard before the interrupt has ended the run already.
    let is_over = what == "ended" || stage.desk.kinds().get(number + 1).is_some_and(|next| next == "ended");
    let expected = [Terminal::AbortedStreaming, Terminal::AbortedTools];
    assert!(is_over || expected.contains(&terminal), "{terminal:?} after an interrupt during {what}");
    stage.desk.check_order(0);
    stage.check_recalled(&session);
    stage.check_replay(&session);
    true
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_during_an_append_is_not_lost() {
    let mut number = 0;
    while interrupted_during(number).await {
        number += 1;
    }
    assert!(number > 8, "only {number} appends");
}

/// Drops the run while the append of this number is pending, and goes on; false if there is none.
async fn dropped_during(number: usize, order: Order) -> bool {
    let stage = Stage::new(WORK);
    stage.desk.order(move |this, _| if this == number { order } else { Order::Write });
    let mut session = stage.begin();
    let mut run = session.run("go");
    if poll_until(&mut run, &stage.desk, || stage.desk.is_pending()).await.1 {
        return false;
    }
    drop(run);
    assert_eq!(stage.desk.alive(), 0);
    let started = stage.desk.appends().len();
    tokio::time::sleep(SLOW * 10).await;
    assert_eq!(stage.desk.appends().len(), started, "nobody drives it");
    let (_, terminal) = watch(session.run("again"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    let next = &stage.desk.appends()[number + 1];
    // How a run ended is told once the record of that is there, whatever becomes of the snapshot behind it.
    assert!(is_restating(next), "{order:?} of {number}: {:#?}", stage.desk.kinds());
    stage.desk.check_order(0);
    stage.check_recalled(&session);
    stage.check_replay(&session);
    true
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_during_an_append_leaves_nothing_and_the_next_restates_the_facts() {
    for order in [Order::WriteSlowly, Order::SayLate, Order::FailSlowly] {
        let mut number = 0;
        while dropped_during(number, order).await {
            number += 1;
        }
        assert!(number > 8, "only {number} appends");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_between_runs_goes_in_one_behind_the_other() {
    let stage = Stage::new(r#"{"blocks": [{"text": "Yes."}]}"#);
    let mut session = stage.begin();
    watch(session.run("go"), &stage.desk).await;
    stage.desk.order(|_, _| Order::WriteSlowly);
    for text in ["one", "two", "three"] {
        session.handle().steer(text).await.unwrap();
    }
    assert_eq!(session.waiting(), 3);
    drop(session.run("never polled"));
    assert_eq!(session.waiting(), 4);
    let (_, terminal) = watch(session.run("again"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    let records: Vec<Record> = stage.desk.appends().concat();
    let queued = |record: &Record| matches!(record, Record::Queued(_));
    assert_eq!(records.iter().filter(|record| queued(record)).count(), 4);
    for pair in records.windows(2) {
        let [before, Record::Queued(prompt)] = pair else { continue };
        let is_heard = matches!(before, Record::Heard(heard) if matches!(&heard.event, Event::Steer(said) if said == prompt));
        assert!(is_heard, "{before:?}");
    }
    stage.check_recalled(&session);
    stage.check_replay(&session);
}

#[tokio::test(start_paused = true)]
async fn a_message_between_runs_that_nobody_waits_for_is_in_the_log() {
    let stage = Stage::new(r#"{"blocks": [{"text": "Yes."}]}"#);
    let mut session = stage.begin();
    watch(session.run("go"), &stage.desk).await;
    session.handle().steer("later").await.unwrap();
    assert_eq!(session.waiting(), 1);
    drop(session);
    let mut session = stage.resume();
    assert_eq!(session.waiting(), 1);
    let (updates, _) = watch(session.run("again"), &stage.desk).await;
    assert!(updates.iter().any(|update| matches!(update, Update::Requesting { .. })));
    assert!(session.messages().to_json().contains("later"));
}

#[tokio::test(start_paused = true)]
async fn facts_that_are_pending_when_the_run_ends_do_not_hold_up_its_end() {
    let stage = Stage::new(r#"{"blocks": [{"text": "Yes."}]}"#);
    let desk = stage.desk.clone();
    stage.desk.order(move |_, records| match records.last() {
        Some(Record::Ended(_)) => {
            desk.want_facts();
            Order::Write
        }
        Some(Record::Snapshot(_)) => Order::SayLate,
        _ => Order::Write,
    });
    let mut session = stage.begin();
    let begin = Instant::now();
    let mut run = session.run("go");
    let mut ended = false;
    let (shown, _) = poll_until(&mut run, &stage.desk, || {
        ended |= begin.elapsed() > Duration::from_millis(50);
        ended
    })
    .await;
    assert!(matches!(shown.last(), Some(Update::Done(_))), "{shown:?}");
    assert!(stage.desk.is_pending());
    drop(run);
    let (_, terminal) = watch(session.run("again"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    stage.check_recalled(&session);
    stage.check_replay(&session);
}
