//! What a page will tell, against what was recorded.

use windlass_protocol::{
    CallKind, Event, FailureClass, HookAnswer, ModelEvent, Origin, Record, StopReason, Terminal,
};

use crate::activities::{Activity, LongThresholds, time_saved, time_spent};
use crate::page::{TracedItem, shown_items};
use crate::record_reader::Trace;
use crate::tape::{Tape, eventful, long, usage};
use crate::traced_session::SessionProcess;
use crate::traced_session::{MarkKind, TracedSession};

fn trace(tape: &Tape) -> Trace {
    let mut trace = Trace::default();
    tape.records.iter().for_each(|record| trace.take(record));
    trace
}

fn told(tape: &Tape) -> TracedSession {
    trace(tape).story
}

fn requests(story: &TracedSession) -> Vec<String> {
    let line = |request: &crate::traced_session::TracedRequest| {
        let times = (request.sent, request.first, request.end);
        let (turn, attempt) = (request.turn, request.attempt);
        format!("run {} turn {turn}.{attempt} {times:?} {:?}", request.run + 1, request.outcome)
    };
    story.requests.iter().map(line).collect()
}

fn calls(story: &TracedSession) -> Vec<String> {
    let line = |call: &crate::traced_session::TracedCall| {
        let times = (call.asked, call.started, call.ended);
        format!("run {} {} {} {times:?} {}", call.run + 1, call.name, call.target, call.outcome.name())
    };
    story.calls.iter().map(line).collect()
}

fn marks(story: &TracedSession) -> Vec<String> {
    let line = |mark: &crate::traced_session::TraceMark| {
        format!(
            "run {} {}-{} {}: {}",
            mark.run + 1,
            mark.from.unwrap_or(mark.at),
            mark.at,
            mark.name,
            mark.about
        )
    };
    story.marks.iter().filter(|mark| mark.kind != MarkKind::Prompt).map(line).collect()
}

/// A run that has begun with a request that is being answered.
fn answering() -> Tape {
    let mut tape = Tape::new();
    tape.submit("go").wait(5).request(1, &[("prompts", 10)]);
    tape.wait(100).started();
    tape
}

#[test]
fn an_eventful_session_is_told_with_its_times() {
    let story = told(&eventful());
    assert_eq!(
        requests(&story),
        [
            r#"run 1 turn 1.1 (0, Some(652), Some(1866)) Stopped("tool_use")"#,
            r#"run 1 turn 2.1 (6186, Some(7100), Some(8750)) Stopped("tool_use")"#,
            r#"run 1 turn 3.1 (11472, Some(12055), Some(14505)) Stopped("tool_use")"#,
            r#"run 1 turn 4.1 (14505, Some(15207), Some(16107)) Stopped("end_turn")"#,
            r#"run 2 turn 5.1 (0, None, Some(1205)) Failed(Overloaded, "The provider is overloaded (529).")"#,
            r#"run 2 turn 5.2 (3045, Some(3885), Some(4805)) Stopped("tool_use")"#,
            r#"run 2 turn 6.1 (9805, Some(10571), Some(11689)) Stopped("tool_use")"#,
            "run 2 turn 7.1 (11689, Some(12383), Some(14583)) Interrupted",
            r#"run 3 turn 8.1 (0, Some(805), Some(1405)) Stopped("tool_use")"#,
            r#"run 4 turn 9.1 (0, Some(1056), Some(1504)) Stopped("tool_use")"#,
            r#"run 4 turn 10.1 (1504, Some(2227), Some(3027)) Stopped("end_turn")"#,
        ]
    );
    assert_eq!(
        calls(&story),
        [
            "run 1 Read src/checkout/voucher.rs (1232, Some(1232), Some(1246)) succeeded",
            "run 1 Grep apply_voucher (1486, Some(1486), Some(2286)) succeeded",
            "run 1 Glob tests/**/*voucher* (1616, Some(1616), Some(1866)) succeeded",
            "run 1 Bash cargo test -p checkout (1806, Some(2286), Some(6186)) failed",
            "run 1 Edit src/checkout/voucher.rs (8750, Some(11450), Some(11472)) succeeded",
            "run 1 Bash cargo test -p checkout (12405, Some(12405), Some(14505)) succeeded",
            "run 2 Bash rm -rf target && make release (4805, None, None) denied",
            "run 2 Read src/checkout/gift.rs (11191, Some(11191), Some(11222)) succeeded",
            "run 2 Read src/checkout/mod.rs (11342, Some(11342), Some(11360)) succeeded",
            "run 2 Read CHANGELOG.md (11480, Some(11480), Some(11489)) succeeded",
            "run 3 Bash make publish-docs (1405, Some(1405), Some(4005)) outcome unknown",
            "run 4 Bash git log -1 --format=%cd docs (1456, Some(1456), Some(1504)) succeeded",
        ]
    );
    assert_eq!(
        marks(&story),
        [
            "run 1 16197-16197 hooks: formatter: 1 file reformatted",
            "run 2 1205-3045 pause before a retry: The provider is overloaded (529).",
            "run 2 6405-6405 message during the run: leave the release alone",
            "run 2 6425-9805 fork: completed",
            "run 2 6415-9805 compaction: automatic: 121,800 to about 21,400 tokens",
            "run 2 14583-14583 interrupted: stop",
        ]
    );
    let ends: Vec<_> = story.runs.iter().map(|run| (run.process, run.length_ms, run.end.name())).collect();
    assert_eq!(
        ends,
        [
            (0, 16197, "completed"),
            (0, 14583, "aborted_streaming"),
            (0, 4005, "cut off"),
            (1, 3027, "completed"),
        ]
    );
}

#[test]
fn a_question_stands_before_the_start_of_its_call() {
    let story = told(&eventful());
    let questions: Vec<_> =
        story.calls.iter().filter_map(|call| Some((&*call.name, call.question?))).collect();
    assert_eq!(questions, [("Edit", (8750, 11450)), ("Bash", (4805, 6405))]);
}

#[test]
fn cost_and_context_belong_to_their_requests() {
    let story = told(&eventful());
    let retried = &story.requests[5];
    assert_eq!(
        (retried.cost_usd, retried.forks_usd, retried.usage.output_tokens),
        (Some(0.4031), 0.2210, 220)
    );
    assert_eq!(retried.context(), 3_200 + 9_800 + 1_800 + 13_111 + 8_428 + 118_000);
    assert_eq!(story.requests[4].cost_usd, None);
    let sum: f64 =
        story.requests.iter().map(|request| request.cost_usd.unwrap_or_default() + request.forks_usd).sum();
    assert!((sum - story.total_usd.unwrap()).abs() < 1e-9, "{sum} {:?}", story.total_usd);
    assert_eq!(story.windows.values().copied().collect::<Vec<_>>(), [200_000]);
    assert!(story.unpriced.is_empty());
}

#[test]
fn a_run_is_charged_what_was_spent_in_it() {
    let mut tape = answering();
    tape.stopped(StopReason::EndTurn, usage(1, 0, 0, 1), Some(0.25)).end(Terminal::Completed);
    tape.wait(10).heard(Event::Compact { focus: String::new() });
    tape.wait(10).forked(10).spent(usage(1, 0, 0, 1), Some(0.5), true).end(Terminal::Completed);
    let costs: Vec<_> = told(&tape).runs.iter().map(|run| run.cost_usd.to_string()).collect();
    assert_eq!(costs, ["0.25", "0.5"]);
}

#[test]
fn an_unknown_price_is_not_zero() {
    let mut tape = answering();
    tape.stopped(StopReason::EndTurn, usage(1, 0, 0, 1), None).end(Terminal::Completed);
    let story = told(&tape);
    assert_eq!(story.requests[0].cost_usd, None);
    assert_eq!(story.unpriced.len(), 1);
}

#[test]
fn forks_before_the_first_request_are_paid_for_too() {
    let mut tape = Tape::new();
    tape.submit("go").wait(9).forked(9).spent(usage(1, 0, 0, 1), Some(0.5), true);
    tape.request(1, &[]);
    assert!((told(&tape).requests[0].forks_usd - 0.5).abs() < 1e-9);
}

#[test]
fn time_is_split_without_a_rest() {
    let story = told(&eventful());
    let sums = time_spent(&story);
    let seen: Vec<_> = Activity::ALL.into_iter().zip(sums).map(|((_, _, name), ms)| (name, ms)).collect();
    assert_eq!(
        seen,
        [
            ("waiting for the model", 8_940),
            ("streaming", 9_700),
            ("streaming while tools run", 2_600),
            ("tools", 6_942),
            ("waiting for approval", 4_300),
            ("compacting", 3_390),
            ("pausing before retries", 1_840),
            ("other", 100),
        ]
    );
    assert_eq!(sums.iter().sum::<u64>(), story.runs.iter().map(|run| run.length_ms).sum::<u64>());
    assert_eq!(time_saved(&story), 2_850);
}

#[test]
fn two_tools_beside_each_other_save_time() {
    let mut tape = answering();
    let first = tape.tool("Read", "a", CallKind::Read);
    let second = tape.tool("Read", "b", CallKind::Read);
    tape.stopped(StopReason::ToolUse, usage(1, 0, 0, 1), None);
    tape.intended(first.0, "Read", CallKind::Read).intended(second.0, "Read", CallKind::Read);
    tape.wait(500).finished(first.0, "", false).wait(100).finished(second.0, "", false);
    assert_eq!(time_saved(&told(&tape)), 500);
}

#[test]
fn long_is_measured_by_what_is_usual() {
    let mut tape = answering();
    for ms in [400, 500, 600, 1_400, 1_600] {
        tape.run_tool("Bash", "x", CallKind::Execute, ms);
    }
    assert_eq!(LongThresholds::of(&told(&tape)).call_ms, 1_800);
    assert_eq!(LongThresholds::of(&TracedSession::default()).call_ms, 1_000);
}

#[test]
fn calls_that_did_not_run_say_so() {
    let check = |act: &dyn Fn(&mut Tape), expected: &str| {
        let mut tape = answering();
        act(&mut tape);
        assert_eq!(told(&tape).calls[0].outcome.name(), expected);
    };
    check(
        &|tape| {
            tape.tool("Read", "x", CallKind::Read);
        },
        "open",
    );
    check(
        &|tape| {
            let made = tape.tool("Read", "x", CallKind::Read);
            tape.result(made, "Read", "a rule says no", true);
        },
        "not run",
    );
    check(
        &|tape| {
            let made = tape.tool("Bash", "x", CallKind::Execute);
            tape.intended(made.0, "Bash", CallKind::Execute).wait(9).interrupt();
            tape.result(made, "Bash", "interrupted", true);
        },
        "stopped",
    );
    check(
        &|tape| {
            let made = tape.tool("Bash", "x", CallKind::Execute);
            tape.failed(FailureClass::Cut, "cut").push(Record::Retracted(vec![made.1]));
        },
        "retracted",
    );
    check(
        &|tape| {
            let made = tape.tool("Read", "x", CallKind::Read);
            tape.intended(made.0, "Read", CallKind::Read).restart(1_000).submit("again");
        },
        "stopped",
    );
    check(
        &|tape| {
            tape.tool("Read", "x", CallKind::Read);
            tape.restart(1_000).submit("again");
        },
        "not run",
    );
}

#[test]
fn a_result_that_comes_after_a_crash_does_not_hide_that_the_outcome_is_unknown() {
    let mut tape = answering();
    let made = tape.tool("Bash", "make", CallKind::Execute);
    tape.intended(made.0, "Bash", CallKind::Execute).wait(50).heard(Event::Prefetched(vec![]));
    let mut trace = trace(&tape);
    trace.on_opened(SessionProcess { wall_ms: tape.wall_ms + 9_000, ..SessionProcess::default() });
    let before = tape.records.len();
    tape.result(made, "Bash", "Nobody knows how far it came.", true);
    tape.records[before..].iter().for_each(|record| trace.take(record));
    let call = &trace.story.calls[0];
    assert_eq!((call.outcome.name(), &*call.complaint), ("outcome unknown", "Nobody knows how far it came."));
    assert_eq!(call.ended, Some(155));
}

#[test]
fn ids_of_another_process_are_others() {
    let mut tape = answering();
    tape.run_tool("Read", "first", CallKind::Read, 10).stopped(StopReason::EndTurn, usage(1, 0, 0, 1), None);
    tape.end(Terminal::Completed).restart(60_000).submit("again").request(1, &[]);
    tape.wait(70).started().run_tool("Read", "second", CallKind::Read, 20);
    let story = told(&tape);
    assert_eq!(
        calls(&story),
        [
            "run 1 Read first (105, Some(105), Some(115)) succeeded",
            "run 2 Read second (70, Some(70), Some(90)) succeeded",
        ]
    );
    assert_eq!(story.processes.len(), 2);
}

#[test]
fn a_cure_is_no_turn() {
    let mut tape = answering();
    tape.stopped(StopReason::MaxTokens, usage(1, 0, 0, 1), None);
    tape.said(Origin::Continuation, "Go on where you stopped.").request(1, &[]);
    tape.wait(10).started().stopped(StopReason::EndTurn, usage(1, 0, 0, 1), None);
    let turns: Vec<_> = told(&tape).requests.iter().map(|request| request.turn).collect();
    assert_eq!(turns, [1, 1]);
}

#[test]
fn hooks_without_a_word_are_not_told() {
    let mut tape = answering();
    tape.hooked(HookAnswer::default());
    tape.hooked(HookAnswer {
        blocks: vec!["no".into()],
        stop: Some("enough".into()),
        ..HookAnswer::default()
    });
    assert_eq!(marks(&told(&tape)), ["run 1 105-105 hooks: stop: enough; blocked: no"]);
}

#[test]
fn news_without_a_beginning_still_has_a_place() {
    let mut tape = Tape::new();
    tape.wait(10).timer().request(1, &[]);
    tape.wait(10).model(ModelEvent::Ended { stop: StopReason::EndTurn, usage: Box::default() });
    let story = told(&tape);
    assert_eq!((story.runs.len(), story.runs[0].length_ms), (1, 10));
}

#[test]
fn a_session_without_times_has_messages_only() {
    let mut tape = eventful();
    tape.records.retain(|record| {
        matches!(record, Record::Said(_) | Record::Answered(_) | Record::Result(_) | Record::Decided(_))
    });
    let story = told(&tape);
    assert_eq!((story.runs.len(), story.calls.len(), story.marks.len()), (0, 0, 0));
    assert!(
        story.messages.first.len() > 20 && story.messages.first.iter().all(|message| message.run.is_none())
    );
}

#[test]
fn of_many_messages_the_first_and_the_last_are_kept() {
    let story = told(&long(100));
    assert_eq!((story.messages.first.len(), story.messages.last.len()), (60, 140));
    assert_eq!(60 + 140 + story.messages.dropped, 1 + 100 * 5);
}

#[test]
fn of_many_things_those_that_failed_or_took_long_are_shown() {
    let mut tape = answering();
    for ms in [1, 900, 1, 800, 1] {
        tape.run_tool("Bash", "x", CallKind::Execute, ms);
    }
    let failed = tape.tool("Bash", "x", CallKind::Execute);
    tape.result(failed, "Bash", "no", true);
    let story = told(&tape);
    let (items, left_out) = shown_items(&story, 5);
    let names = items.iter().map(|item| match item {
        TracedItem::Request(at, _) => format!("request {at}"),
        TracedItem::Call(at, _) => format!("call {at}"),
        TracedItem::Mark(at, _) => format!("mark {at}"),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["mark 0", "request 0", "call 1", "call 3", "call 5"]);
    assert_eq!(left_out, 3);
    assert_eq!(shown_items(&story, 8).1, 0);
}
