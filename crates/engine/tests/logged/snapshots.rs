//! When a snapshot is written.

use windlass_engine::{Session, SessionSeed, Terminal, Transcript};
use windlass_protocol::{Block, Decision, Event, Message, MessageId, Origin, Record};

use crate::stage::{Order, Stage, WORK, is_restating, kinds, poll_until, watch};

fn restated(stage: &Stage) -> usize {
    stage.desk.appends().iter().flatten().filter(|record| matches!(record, Record::Snapshot(_))).count()
}

const COMPACTED: [&str; 3] = [
    r#"{"blocks": [{"text": ""#,
    r#""}]}, {"blocks": [{"text": "<summary>We spoke of a blue gate.</summary>"}]},"#,
    r#"{"blocks": [{"text": "Blue."}]}"#,
];

#[tokio::test(start_paused = true)]
async fn they_are_restated_after_a_compaction_whose_fork_writes_nothing() {
    let long = "The gate is blue. ".repeat(8_000);
    let [before, after, last] = COMPACTED;
    let stage = Stage::new(&format!("{before}{long}{after}{last}"));
    let mut session = stage.begin();
    watch(session.run("Which colour has the gate?"), &stage.desk).await;
    assert_eq!(restated(&stage), 0);
    let first = stage.desk.appends().len();
    let (_, terminal) = watch(session.compact("colours"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    let appends = stage.desk.appends();
    let compacted = |record: &Record| matches!(record, Record::Decided(Decision::Compacted(_)));
    assert!(appends[first..].iter().flatten().any(compacted));
    assert!(is_restating(appends.last().unwrap()), "{:#?}", stage.desk.kinds());
    for record in appends[first..].iter().flatten() {
        let of_fork = match record {
            Record::Said(_) | Record::Answered(_) | Record::Requested(_) | Record::Intended(_) => true,
            Record::Heard(input) => matches!(input.event, Event::Model(..)),
            _ => false,
        };
        assert!(!of_fork, "{record:?}");
    }
    watch(session.run("And now?"), &stage.desk).await;
    assert_eq!(restated(&stage), 1, "once is enough");
    stage.check_recalled(&session);
    stage.check_replay(&session);
}

#[tokio::test(start_paused = true)]
async fn they_are_restated_once_when_the_log_wants_them() {
    let stage = Stage::new(WORK);
    let mut session = stage.begin();
    watch(session.run("go"), &stage.desk).await;
    stage.desk.want_facts();
    let first = stage.desk.appends().len();
    watch(session.run("again"), &stage.desk).await;
    assert_eq!(restated(&stage), 1);
    assert!(is_restating(&stage.desk.appends()[first]), "{:#?}", stage.desk.kinds());
    stage.check_recalled(&session);
    stage.check_replay(&session);
}

/// A log that never has enough gets them again with what is new, not without end.
#[tokio::test(start_paused = true)]
async fn a_log_that_always_wants_them_does_not_stop_the_run() {
    let stage = Stage::new(WORK);
    stage.desk.always_want_facts();
    let mut session = stage.begin();
    let (_, terminal) = watch(session.run("go"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    stage.check_recalled(&session);
}

/// A session whose run was dropped while a call was at work.
async fn dropped_while_working(stage: &Stage) -> Session {
    let mut session = stage.begin();
    let mut run = session.run("go");
    let is_working = || stage.desk.alive() > 0;
    assert!(!poll_until(&mut run, &stage.desk, is_working).await.1);
    drop(run);
    session
}

#[tokio::test(start_paused = true)]
async fn they_are_restated_after_a_run_was_dropped_behind_what_was_heard() {
    let stage = Stage::new(WORK);
    let mut session = dropped_while_working(&stage).await;
    let first = stage.desk.appends().len();
    let (_, terminal) = watch(session.run("again"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    assert!(is_restating(&stage.desk.appends()[first]), "{:#?}", stage.desk.kinds());
    assert_eq!(restated(&stage), 1);
    stage.check_recalled(&session);
    stage.check_replay(&session);
}

#[tokio::test(start_paused = true)]
async fn they_are_restated_behind_the_answers_that_a_cut_off_run_lacks() {
    let stage = Stage::new(WORK);
    let session = dropped_while_working(&stage).await;
    drop(session);
    let recalled = stage.recall();
    assert!(recalled.is_cut_off);
    let missing = recalled.results.len();
    assert!(missing > 0);
    let first = stage.desk.appends().len();
    let mut session = stage.resume();
    let (_, terminal) = watch(session.run("again"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    let expected = format!("{}facts", "result ".repeat(missing));
    assert_eq!(kinds(&stage.desk.appends()[first]), expected);
    stage.check_recalled(&session);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ended_well_goes_on_without_them() {
    let stage = Stage::new(WORK);
    watch(stage.begin().run("go"), &stage.desk).await;
    let mut session = stage.resume();
    watch(session.run("again"), &stage.desk).await;
    assert_eq!(restated(&stage), 0);
    stage.check_recalled(&session);
}

#[tokio::test(start_paused = true)]
async fn a_new_log_is_told_what_was_said_before() {
    let stage = Stage::new(WORK);
    let said = Message::user(MessageId(1), Origin::Prompt, vec![Block::text("We met before.")]);
    let messages: Transcript = [said.into()].into_iter().collect();
    let session = stage.engine.session_with(SessionSeed(9), messages);
    let mut session = session.logged(stage.new_log());
    watch(session.run("go"), &stage.desk).await;
    assert!(is_restating(&stage.desk.appends()[0]), "{:#?}", stage.desk.kinds());
    stage.check_recalled(&session);
}

#[tokio::test(start_paused = true)]
async fn they_are_restated_on_request_behind_what_was_said() {
    for order in [Order::Write, Order::WriteSlowly, Order::SayLate] {
        let stage = Stage::new(WORK);
        let mut session = stage.steered_between_runs(order).await;
        session.restate().await.unwrap();
        assert!(is_restating(stage.desk.appends().last().unwrap()), "{:#?}", stage.desk.kinds());
        let recalled = stage.recall().state;
        assert_eq!(recalled.waiting(), 2);
        assert_eq!(recalled.messages().to_json(), session.messages().to_json());
        stage.check_replay(&session);
        watch(session.run("again"), &stage.desk).await;
        assert_eq!(restated(&stage), 1);
        stage.check_recalled(&session);
        stage.check_replay(&session);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_to_restate_them_that_fails_is_told_and_made_good() {
    for order in [Order::Fail, Order::FailSlowly] {
        let stage = Stage::new(WORK);
        let mut session = stage.begin();
        watch(session.run("go"), &stage.desk).await;
        stage.desk.order(move |_, _| order);
        for _ in 0..2 {
            session.restate().await.unwrap_err();
        }
        stage.desk.forget_wish();
        stage.desk.order(|_, _| Order::Write);
        let first = stage.desk.appends().len();
        let (_, terminal) = watch(session.run("again"), &stage.desk).await;
        assert_eq!(terminal, Terminal::Completed);
        assert!(is_restating(&stage.desk.appends()[first]), "{order:?}: {:#?}", stage.desk.kinds());
        stage.check_recalled(&session);
        stage.check_replay(&session);
        session.restate().await.unwrap();
        assert_eq!(restated(&stage), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_to_restate_them_that_is_given_up_does_no_harm() {
    let stage = Stage::new(WORK);
    let mut session = stage.begin();
    watch(session.run("go"), &stage.desk).await;
    stage.desk.order(|_, _| Order::WriteSlowly);
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(10), session.restate()).await;
    given_up.unwrap_err();
    let (_, terminal) = watch(session.run("again"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    stage.check_recalled(&session);
    stage.check_replay(&session);
}

#[tokio::test]
async fn without_a_log_there_is_nothing_to_restate() {
    let stage = Stage::new(WORK);
    stage.engine.session().restate().await.unwrap();
    assert!(stage.desk.appends().is_empty());
}
