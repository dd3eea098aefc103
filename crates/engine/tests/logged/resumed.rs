//! The way back from the log: whatever was shown is there, and the next request is valid.

use std::time::Duration;

use windlass_engine::{Block, Session, Terminal, Update};
use windlass_protocol::{Event, Record};

use crate::stage::{Stage, WORK, poll_until, watch};

/// Blocks and results that were shown.
fn shown_blocks(updates: &[Update]) -> Vec<&Block> {
    let blocks = updates.iter().filter_map(|update| match update {
        Update::Block { block, .. } => Some(block),
        Update::ToolResult { result, .. } => Some(result),
        _ => None,
    });
    blocks.collect()
}

#[track_caller]
fn check_kept(updates: &[Update], session: &Session) {
    let kept: Vec<&Block> = session.messages().iter().flat_map(|message| &message.blocks).collect();
    for block in shown_blocks(updates) {
        assert!(kept.contains(&block), "{block:?} is missing in {kept:#?}");
    }
}

/// Drops run and session after so many polls, and goes on from the file; false if the run was over.
async fn left_after(polls: usize) -> bool {
    let stage = Stage::new(WORK);
    let mut session = stage.begin();
    let mut run = session.run("go");
    let mut left = polls + 1;
    let (before, is_over) = poll_until(&mut run, &stage.desk, || {
        left -= 1;
        left == 0
    })
    .await;
    drop(run);
    drop(session);
    let mut session = stage.resume();
    check_kept(&before, &session);
    if polls > 0 {
        assert!(session.messages().to_json().contains(r#""text":"go""#), "the prompt was said");
    } else {
        assert_eq!(session.waiting(), 1, "the prompt waits");
    }
    // An open question is answered by going on; otherwise somebody has to say something.
    let (after, terminal) = if session.awaits_answer() {
        watch(session.go_on(), &stage.desk).await
    } else {
        watch(session.run("again"), &stage.desk).await
    };
    assert_eq!(terminal, Terminal::Completed, "{polls} polls");
    check_kept(&before, &session);
    check_kept(&after, &session);
    stage.check_recalled(&session);
    let mut again = stage.resume();
    let (_, terminal) = watch(again.run("once more"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    check_kept(&before, &again);
    stage.check_recalled(&again);
    !is_over
}

#[tokio::test(start_paused = true)]
async fn a_session_left_at_any_poll_goes_on_elsewhere() {
    let mut polls = 0;
    while left_after(polls).await {
        polls += 1;
    }
    assert!(polls > 30, "only {polls} polls");
}

#[tokio::test(start_paused = true)]
async fn going_on_asks_the_model_again_and_says_nothing_new() {
    let stage = Stage::new(WORK);
    let mut session = stage.begin();
    assert!(!session.awaits_answer());
    let mut run = session.run("go");
    let has_said = || stage.desk.kinds().iter().any(|kinds| kinds.contains("requested"));
    assert!(!poll_until(&mut run, &stage.desk, has_said).await.1);
    drop(run);
    drop(session);
    let mut session = stage.resume();
    assert!(session.awaits_answer());
    let said = session.messages().len();
    let first = stage.desk.appends().len();
    let (_, terminal) = watch(session.go_on(), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    assert!(!session.awaits_answer());
    let new = &stage.desk.appends()[first..];
    assert!(!new.iter().flatten().any(|record| matches!(record, Record::Said(_))), "{new:#?}");
    let heard =
        |record: &Record| matches!(record, Record::Heard(input) if matches!(input.event, Event::GoOn { .. }));
    assert!(new.iter().flatten().any(heard));
    assert!(session.messages().len() > said);
    stage.check_recalled(&session);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_never_polled_waits_elsewhere_too() {
    let stage = Stage::new(WORK);
    let mut session = stage.begin();
    drop(session.run("never polled"));
    drop(session);
    let mut session = stage.resume();
    assert_eq!(session.waiting(), 1);
    let (_, terminal) = watch(session.run("go"), &stage.desk).await;
    assert_eq!(terminal, Terminal::Completed);
    let json = session.messages().to_json();
    assert!(json.contains("never polled") && json.contains(r#""text":"go""#), "{json}");
    assert_eq!(session.waiting(), 0);
    stage.check_recalled(&session);
}

#[tokio::test(start_paused = true)]
async fn ids_cost_and_directory_come_back() {
    let stage = Stage::new(WORK);
    let mut session = stage.begin();
    watch(session.run("go"), &stage.desk).await;
    let (cost, spent, cwd) = (session.cost_usd(), session.spending().clone(), session.cwd().to_owned());
    let last = session.messages().last().unwrap().id;
    drop(session);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut session = stage.resume();
    assert_eq!((session.cost_usd(), session.spending(), session.cwd()), (cost, &spent, &*cwd));
    let (updates, _) = watch(session.run("again"), &stage.desk).await;
    let new = updates.iter().filter_map(|update| match update {
        Update::Block { id, .. } | Update::ToolResult { id, .. } => Some(*id),
        _ => None,
    });
    assert!(new.min() > Some(last), "no id is used twice");
}
