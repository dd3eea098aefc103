//! The very bytes of a small session. Other programs and older files depend on them.

use std::sync::Arc;

use serde_json::value::RawValue;
use windlass_protocol::*;

use crate::support::encode;

fn heard(at_ms: u64, event: Event) -> Record {
    Record::Heard(Box::new(Input { at_ms, wall_ms: 1_794_565_230_123 + at_ms, entropy: 9, event }))
}

fn answered(id: u64, block: Block) -> Record {
    Record::Answered(AnswerBlock {
        id: MessageId(id),
        request: RequestId(1),
        message_id: "msg_1".into(),
        model: "small".into(),
        answered_by: "small-2".into(),
        index: u32::try_from(id).unwrap() - 2,
        block,
        usage: Some(Box::new(Usage { input_tokens: 12, output_tokens: 3, ..Usage::default() })),
        is_aborted: false,
    })
}

fn result(id: u64, asked_by: u64, tool_use_id: &str, text: &str) -> Record {
    let structured = RawValue::from_string(format!(r#"{{"lines":{}}}"#, text.len())).unwrap();
    Record::Result(CallResult {
        id: MessageId(id),
        call: CallId(1),
        asked_by: MessageId(asked_by),
        name: "Read".into(),
        result: Block::tool_result(tool_use_id, &[Block::text(text)], false),
        structured: Some(Arc::new(RawValueEq(structured))),
    })
}

pub(crate) fn session() -> Vec<Vec<Record>> {
    let raw = |json: &str| RawValue::from_string(json.into()).unwrap();
    let call = |id: &str| Block::tool_use(id, "Read", raw(r#"{"file_path":"/project/a"}"#));
    let prompt = Message::user(
        MessageId(1),
        Origin::Prompt,
        vec![Block::text("<env>date</env>"), Block::text("What is in a?")],
    );
    let said = UserEntry { message: prompt.into(), context: 1, prompts: Vec::new(), taken: 0 };
    let long = Block::text(&"long ".repeat(60));
    let spend = ModelSpend { cost_usd: Some(0.1), window_tokens: 200_000, ..ModelSpend::default() };
    let boundary = Message::user(MessageId(9), Origin::Boundary, vec![Block::text("What happened so far")]);
    let note = Message::user(MessageId(7), Origin::Attachment, vec![Block::text("a has changed")]);
    vec![
        vec![
            heard(1, Event::Submit("What is in a?".into())),
            Record::Said(said),
            Record::Requested(RequestEntry {
                request: RequestId(1),
                model: "small".into(),
                attempt: 1,
                parts: vec![("prompt".into(), 20)],
            }),
        ],
        vec![
            heard(2, Event::Model(RequestId(1), ModelEvent::Block { index: 0, block: long.clone() })),
            answered(2, long),
        ],
        vec![heard(3, Event::Timer(TimerId(3))), answered(3, call("t1")), answered(4, call("t2"))],
        vec![Record::Intended(CallIntent {
            call: CallId(1),
            tool_use_id: "t1".into(),
            tool: "Read".into(),
            kind: CallKind::Read,
            input_hash: 77,
            changes: Vec::new(),
        })],
        vec![
            heard(4, Event::Finished(CallId(1), ToolOutput::text("one"))),
            Record::Finished(FinishedCall { call: CallId(1), tool_use_id: "t1".into(), is_error: false }),
            result(5, 3, "t1", "one"),
            result(6, 4, "t2", "two"),
            Record::Said(UserEntry::plain(note.into())),
        ],
        vec![
            Record::Spent(SpendEntry { model: "small".into(), spend, is_by_fork: false, total_usd: 0.1 }),
            Record::Decided(Decision::Compacted(Box::new(Compaction {
                trigger: CompactTrigger::Auto,
                boundary: boundary.into(),
                tail: Some(MessageId(7)),
                is_unbound: false,
                is_mechanical: false,
                tokens_before: 1000,
                tokens_after: 100,
                duration_ms: 5,
            }))),
            Record::Ended(RunEnding { terminal: Terminal::Completed, rest: Box::default() }),
            Record::Snapshot(Box::default()),
        ],
    ]
}

#[test]
fn a_small_session_is_these_lines() {
    let text = String::from_utf8(encode(&session())).unwrap();
    let expected = include_str!("golden.jsonl");
    for (line, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{text}");
}
