//! A log that cannot be written: the run ends, nothing happens behind the record, and the next run makes it good.

use std::collections::BTreeSet;

use windlass_engine::{Session, Terminal, Update};
use windlass_protocol::{Event, Record};

use crate::stage::{Order, Stage, WORK, is_restating, kinds, poll_until, watch};

fn is_notice(update: &Update) -> bool {
    matches!(update, Update::Notice(text) if text.contains("the disk is full"))
}

/// A run that works again: it writes a snapshot first, and the log has everything.
async fn check_next(stage: &Stage, session: &mut Session) {
    stage.desk.order(|_, _| Order::Write);
    let before = stage.desk.appends().len();
    let (_, terminal) = watch(session.run("again"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    let first = &stage.desk.appends()[before];
    assert!(is_restating(first), "{}", kinds(first));
    let failed = |record: &Record| matches!(record, Record::Heard(input) if matches!(input.event, Event::StoreFailed { .. }));
    assert!(first.iter().any(failed), "whoever reads it knows that something is missing");
    stage.desk.check_order(0);
    stage.check_recalled(session);
    stage.check_replay(session);
}

/// Lets the append of this number and all behind it fail; the kinds of its records, or nothing if there is none.
async fn failed_at(number: usize, order: Order) -> Option<Vec<&'static str>> {
    let stage = Stage::new(WORK);
    stage.desk.order(move |this, _| if this < number { Order::Write } else { order });
    let mut session = stage.begin();
    let (updates, terminal) = watch(session.run("go"), &stage.desk).await;
    let appends = stage.desk.appends();
    let failed: Vec<&str> = appends.get(number)?.iter().map(Record::kind).collect();
    assert_eq!(appends.len(), number + 1, "nothing else is tried in this run");
    stage.desk.check_order(0);
    assert_eq!(stage.desk.alive(), 0);
    if terminal == Terminal::Completed {
        assert!(failed == ["ended"] || failed == ["heard", "spent"], "{failed:?}");
        assert_eq!(updates.iter().filter(|update| is_notice(update)).count(), 1, "{updates:#?}");
    } else {
        assert_eq!(terminal, Terminal::StoreFailed, "{failed:?}");
        assert_ne!(failed, ["ended"]);
        let Some(Update::Done(outcome)) = updates.last() else { unreachable!() };
        assert!(format!("{outcome:?}").contains("the disk is full"), "{outcome:?}");
    }
    check_next(&stage, &mut session).await;
    Some(failed)
}

#[tokio::test(start_paused = true)]
async fn an_append_that_fails_ends_the_run_wherever_it_is() {
    for order in [Order::Fail, Order::FailSlowly] {
        let mut seen = BTreeSet::new();
        let mut number = 0;
        while let Some(failed) = failed_at(number, order).await {
            seen.extend(failed);
            number += 1;
        }
        for expected in ["said", "requested", "answered", "intended", "finished", "result", "ended"] {
            assert!(seen.contains(expected), "{expected} among {seen:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_works_again_in_the_same_run_is_left_alone_until_the_next() {
    let stage = Stage::new(WORK);
    stage.desk.order(|this, _| if this == 2 { Order::Fail } else { Order::Write });
    let mut session = stage.begin();
    let (_, terminal) = watch(session.run("go"), &stage.desk).await;
    assert_eq!(terminal, Terminal::StoreFailed);
    assert_eq!(stage.desk.appends().len(), 3);
    check_next(&stage, &mut session).await;
}

#[tokio::test(start_paused = true)]
async fn facts_that_cannot_be_restated_end_the_next_run_too() {
    for order in [Order::Fail, Order::FailSlowly] {
        let stage = Stage::new(WORK);
        stage.desk.order(move |this, _| if this == 0 { Order::Write } else { order });
        let mut session = stage.begin();
        for appends in 2..5 {
            let (_, terminal) = watch(session.run("go"), &stage.desk).await;
            assert_eq!(terminal, Terminal::StoreFailed);
            assert_eq!(stage.desk.appends().len(), appends);
        }
        check_next(&stage, &mut session).await;
        assert_eq!(session.messages().to_json().matches(r#""text":"go""#).count(), 3);
    }
}

/// A snapshot behind the end: the run is over, and its end stays the last word.
#[tokio::test(start_paused = true)]
async fn facts_that_fail_behind_the_end_are_made_good_by_the_next_run() {
    for order in [Order::Fail, Order::FailSlowly] {
        let stage = Stage::new(WORK);
        let desk = stage.desk.clone();
        stage.desk.order(move |_, records| {
            if matches!(records.last(), Some(Record::Ended(_))) {
                desk.want_facts();
            }
            if is_restating(records) { order } else { Order::Write }
        });
        let mut session = stage.begin();
        let (updates, terminal) = watch(session.run("go"), &stage.desk).await;
        assert_eq!(terminal, Terminal::Completed);
        assert!(!updates.iter().any(is_notice), "nothing is lost");
        assert!(is_restating(stage.desk.appends().last().unwrap()));
        check_next(&stage, &mut session).await;
    }
}

/// Fails between runs, and says nothing: the next run makes it good, or says so.
#[tokio::test(start_paused = true)]
async fn a_failure_between_runs_is_made_good_by_the_next() {
    for order in [Order::Fail, Order::FailSlowly] {
        let stage = Stage::new(WORK);
        let mut session = stage.steered_between_runs(order).await;
        if order == Order::FailSlowly {
            // Nobody has waited for it so far.
            let (_, terminal) = watch(session.run("meanwhile"), &stage.desk).await;
            assert_eq!(terminal, Terminal::StoreFailed);
        }
        check_next(&stage, &mut session).await;
        let json = session.messages().to_json();
        assert!(json.contains("one") && json.contains("two"), "{json}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_after_its_log_failed() {
    let stage = Stage::new(WORK);
    stage.desk.order(|_, records| {
        if records.iter().any(|record| matches!(record, Record::Finished(_))) {
            Order::Fail
        } else {
            Order::Write
        }
    });
    let mut session = stage.begin();
    let mut run = session.run("go");
    let has_failed = || stage.desk.appends().last().is_some_and(|last| kinds(last).contains("finished"));
    assert!(!poll_until(&mut run, &stage.desk, has_failed).await.1);
    drop(run);
    assert_eq!(stage.desk.alive(), 0);
    check_next(&stage, &mut session).await;
}
