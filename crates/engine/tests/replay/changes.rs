//! Every change of a record is noticed, where it is, and by its name.

use std::sync::Arc;

use windlass_engine::{Engine, Terminal};
use windlass_protocol::{
    AnswerBlock, Block, CallIntent, CallResult, CallRuling, Decision, Event, FinishedCall, MessageId, Record,
    RequestEntry, Ruling, RunEnding, SessionMemory, SessionSnapshot, SpendEntry, UserEntry, Verdict,
};

use crate::stage::{Stage, play_records, shown};

/// A log with every kind of record, and the engine that wrote it.
async fn recorded() -> (Stage, Engine, Vec<Record>) {
    let stage = Stage::new();
    let long = "The gate is blue. ".repeat(8_000);
    let cut = r#"{"blocks": [{"text": "Half."}, {"text": "More."}], "delta_chars": 3, "fault": {"cut": {"after_events": 9}}}"#;
    let engine = stage.engine(&format!(
        r#"{{"blocks": [{{"text": "I begin."}}, {{"tool": "Work", "input": {{"ms": 3}}}}, {{"tool": "Work", "input": {{"ms": 1, "write": "f"}}}}]}},
           {cut},
           {{"blocks": [{{"text": "{long}"}}]}},
           {{"blocks": [{{"text": "<summary>We spoke of a blue gate.</summary>"}}]}},
           {{"blocks": [{{"text": "Blue."}}]}}"#
    ));
    let mut session = stage.begin(&engine);
    shown(session.run("go")).await;
    session.handle().steer("also this").await.unwrap();
    shown(session.compact("")).await;
    shown(session.run("And now?")).await;
    let records = stage.play(&engine).records;
    (stage, engine, records)
}

/// The record, changed in one field, and the name of that field.
fn changed(record: &Record) -> Option<(Record, &'static str)> {
    let other = || Block::text("somebody else's words");
    Some(match record {
        Record::Said(said) => {
            let message = Arc::new(said.message.with_blocks(vec![other()]));
            (Record::Said(UserEntry { message, ..said.clone() }), "message.blocks[0]")
        }
        Record::Answered(answered) => {
            (Record::Answered(AnswerBlock { block: other(), ..answered.clone() }), "block")
        }
        Record::Result(result) => {
            let json = result.result.json().replacen("done", "gone", 1);
            let block = Block::from_json(&json).ok()?;
            (Record::Result(CallResult { result: block, ..result.clone() }), "result")
        }
        Record::Retracted(_) => (Record::Retracted(vec![MessageId(1)]), "[0]"),
        Record::Queued(prompt) => {
            let mut prompt = prompt.clone();
            prompt.token_budget = Some(1);
            (Record::Queued(prompt), "token_budget")
        }
        Record::Requested(requested) => {
            (Record::Requested(RequestEntry { attempt: 9, ..requested.clone() }), "attempt")
        }
        Record::Ruled(ruled) => {
            let ruling = Ruling { verdict: Verdict::Deny, ..ruled.ruling.clone() };
            (Record::Ruled(CallRuling { ruling, ..ruled.clone() }), "ruling.verdict")
        }
        Record::Intended(intended) => {
            (Record::Intended(CallIntent { input_hash: 1, ..intended.clone() }), "input_hash")
        }
        Record::Finished(FinishedCall { call, tool_use_id, is_error }) => {
            let finished = Record::Finished(FinishedCall {
                call: *call,
                tool_use_id: tool_use_id.clone(),
                is_error: !is_error,
            });
            (finished, "is_error")
        }
        Record::Decided(Decision::Compacted(compaction)) => {
            let mut compaction = compaction.clone();
            compaction.is_mechanical = !compaction.is_mechanical;
            (Record::Decided(Decision::Compacted(compaction)), "is_mechanical")
        }
        Record::Spent(spent) => {
            (Record::Spent(SpendEntry { is_by_fork: !spent.is_by_fork, ..spent.clone() }), "is_by_fork")
        }
        Record::Ended(RunEnding { rest, .. }) => {
            (Record::Ended(RunEnding { terminal: Terminal::ApiError, rest: rest.clone() }), "terminal")
        }
        Record::Snapshot(snapshot) => {
            let rest =
                SessionMemory { has_been_reached: !snapshot.rest.has_been_reached, ..snapshot.rest.clone() };
            (
                Record::Snapshot(Box::new(SessionSnapshot { rest, ..(**snapshot).clone() })),
                "rest.has_been_reached",
            )
        }
        Record::Heard(_) | Record::Dequeued | Record::Decided(_) | Record::Repaired(_) => return None,
    })
}

/// The number of the event that a record belongs to.
fn event_of(records: &[Record], place: usize) -> u64 {
    records[..=place].iter().filter(|record| matches!(record, Record::Heard(_))).count() as u64
}

#[tokio::test(start_paused = true)]
async fn a_changed_record_is_named_with_its_field() {
    let (_stage, engine, records) = recorded().await;
    let mut kinds = std::collections::BTreeSet::new();
    for (place, record) in records.iter().enumerate() {
        let Some((change, field)) = changed(record) else { continue };
        let mut records = records.clone();
        records[place] = change;
        let (seen, mismatch) = play_records(&engine, &records).map(drop).unwrap_err();
        assert_eq!((seen, &*mismatch.field), (place, field), "{mismatch}");
        assert_eq!(mismatch.event, event_of(&records, place), "{mismatch}");
        kinds.insert(mismatch.kind);
    }
    let expected =
        ["answered", "decided", "ended", "facts", "finished", "intended", "queued", "requested", "result"];
    let more = ["retracted", "ruled", "said", "spent"];
    assert!(expected.iter().chain(&more).eq(&kinds), "{kinds:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_doubled_or_out_of_order_is_noticed() {
    let (_stage, engine, records) = recorded().await;
    let is_heard = |place: usize| records.get(place).is_none_or(|record| matches!(record, Record::Heard(_)));
    for place in 0..records.len() {
        let is_restated = matches!(records[place], Record::Snapshot(_));
        // What had no consequences is not missed, and what is restated says nothing new.
        let is_silent = is_heard(place) && is_heard(place + 1);
        if !is_silent && !is_restated {
            let mut missing = records.clone();
            missing.remove(place);
            let noticed = match play_records(&engine, &missing) {
                Ok(replay) => !replay.is_complete(),
                Err((seen, _)) => seen >= place,
            };
            assert!(noticed, "without {:?}", records[place]);
            let mut doubled = records.clone();
            doubled.insert(place, records[place].clone());
            let (seen, mismatch) = play_records(&engine, &doubled).map(drop).unwrap_err();
            assert!(seen > place, "{mismatch}");
        }
        if !is_heard(place) && !is_heard(place + 1) && !is_restated {
            let mut swapped = records.clone();
            swapped.swap(place, place + 1);
            let (seen, mismatch) = play_records(&engine, &swapped).map(drop).unwrap_err();
            assert_eq!(seen, place, "{mismatch}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_heard_decides_what_follows() {
    let (_stage, engine, mut records) = recorded().await;
    let place = records.iter().position(|record| matches!(record, Record::Result(_))).unwrap();
    let finished = records.iter_mut().find_map(|record| match record {
        Record::Heard(input) => match &mut input.event {
            Event::Finished(_, outcome) => Some(outcome),
            _ => None,
        },
        _ => None,
    });
    finished.unwrap().content = vec![Block::text("never said")];
    let (seen, mismatch) = play_records(&engine, &records).map(drop).unwrap_err();
    assert_eq!((seen, mismatch.kind, &*mismatch.field), (place, "result", "result"));
    assert!(mismatch.logged.contains("done") && mismatch.played.contains("never said"), "{mismatch}");
    let text = mismatch.to_string();
    assert!(text.contains("(the end of a call), `result` at `result`: the log has"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn another_configuration_is_noticed_at_the_first_request() {
    let (stage, _engine, records) = recorded().await;
    let other =
        stage.builder(r#"{"blocks": [{"text": "x"}]}"#).system_prompt("Be brief.".into()).build().unwrap();
    let (_, mismatch) = play_records(&other, &records).map(drop).unwrap_err();
    assert_eq!((mismatch.kind, &*mismatch.field), ("requested", "parts[0]"), "{mismatch}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_heard_at_that_point_is_noticed() {
    let (_stage, engine, records) = recorded().await;
    let first = |is_meant: fn(&Record) -> bool| records.iter().position(is_meant).unwrap();
    let begun = first(|record| matches!(record, Record::Requested(_)));
    let ended = first(|record| matches!(record, Record::Ended(_)));
    let answer = begun + 1;
    assert!(matches!(&records[answer], Record::Heard(input) if matches!(input.event, Event::Model(..))));
    for (moved, behind, expected) in [(answer, ended, "the run ended"), (0, begun, "the run continues")] {
        let mut records = records.clone();
        records.insert(behind + 1, records[moved].clone());
        let (seen, mismatch) = play_records(&engine, &records).map(drop).unwrap_err();
        assert_eq!((seen, mismatch.kind, &*mismatch.played), (behind + 1, "heard", expected), "{mismatch}");
    }
}
