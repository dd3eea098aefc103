//! Files of other programs, and ours after others wrote them anew.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};
use uuid::Uuid;
use windlass_protocol::{Block, CompactTrigger, Decision, MessageId, Origin, Record};
use windlass_session::{LoadedLog, LogEnd, copy_log, load, prompts};

use crate::golden::session;
use crate::support::{SessionFile, encode, load_bytes};

/// An entry as other programs write it. Ids are small numbers.
fn entry(kind: &str, uuid: u128, parent: u128, more: &Value) -> Value {
    let name = |id: u128| Some(Uuid::from_u128(id).to_string()).filter(|_| id > 0);
    let mut entry = json!({
        "parentUuid": name(parent), "isSidechain": false, "type": kind, "uuid": name(uuid),
        "timestamp": "2026-11-13T10:20:30.123Z", "sessionId": "s", "cwd": "/project",
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

fn user(uuid: u128, parent: u128, text: &str) -> Value {
    entry("user", uuid, parent, &json!({"message": {"role": "user", "content": text}}))
}

fn with(mut entry: Value, key: &str, value: Value) -> Value {
    entry[key] = value;
    entry
}

fn assistant(uuid: u128, parent: u128, response: &str, block: &Value) -> Value {
    let message = json!({"id": response, "type": "message", "role": "assistant", "model": "large", "content": [block],
        "usage": {"input_tokens": 5, "output_tokens": 6}});
    entry("assistant", uuid, parent, &json!({"message": message}))
}

fn says(uuid: u128, parent: u128, response: &str, text: &str) -> Value {
    assistant(uuid, parent, response, &json!({"type": "text", "text": text}))
}

fn calls(uuid: u128, parent: u128, response: &str, id: &str) -> Value {
    assistant(
        uuid,
        parent,
        response,
        &json!({"type": "tool_use", "id": id, "name": "Read", "input": {"b": 1, "a": 2}}),
    )
}

fn result(uuid: u128, parent: u128, id: &str, text: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": text});
    entry(
        "user",
        uuid,
        parent,
        &json!({"message": {"role": "user", "content": [block]}, "toolUseResult": {"x": 1}}),
    )
}

/// A word for each record: who speaks, the message's number and what is said.
fn outline(loaded: &LoadedLog) -> String {
    let mut words = String::new();
    let said = |blocks: &[Block]| match blocks {
        [block] => match block.as_tool_use() {
            Some(call) => format!("call {}", call.id),
            None => block.as_text().unwrap_or(block.json()).to_owned(),
        },
        blocks => format!("{blocks:?}"),
    };
    for record in &loaded.records {
        match record {
            Record::Said(message) => {
                let message = &message.message;
                let who = match message.origin {
                    Origin::Prompt => "user",
                    Origin::Interruption => "interrupted",
                    Origin::Attachment => "note",
                    _ => "?",
                };
                writeln!(words, "{who} {}: {}", message.id.0, said(&message.blocks)).unwrap();
            }
            Record::Answered(answered) => {
                let (id, request, block) =
                    (answered.id.0, answered.request.0, std::slice::from_ref(&answered.block));
                writeln!(
                    words,
                    "{} {id} request {request} #{}: {}",
                    answered.model,
                    answered.index,
                    said(block)
                )
                .unwrap();
            }
            Record::Result(result) => {
                writeln!(words, "result {} by {} of {}", result.id.0, result.asked_by.0, result.name)
                    .unwrap();
            }
            Record::Decided(Decision::Compacted(compaction)) => {
                let tail = compaction.tail.map(|tail| tail.0);
                writeln!(
                    words,
                    "compacted {}: {}, tail {tail:?}",
                    compaction.boundary.id.0,
                    said(&compaction.boundary.blocks)
                )
                .unwrap();
            }
            other => writeln!(words, "{other:?}").unwrap(),
        }
    }
    words
}

fn check(entries: &[Value], expected: &[&str]) -> LoadedLog {
    let text: Vec<String> = entries.iter().map(Value::to_string).collect();
    let text = text.join("\n") + "\n";
    let loaded = load_bytes(text.as_bytes());
    assert_eq!(outline(&loaded).lines().collect::<Vec<_>>(), expected);
    assert!(loaded.is_foreign);
    assert_eq!(loaded.header, None);
    loaded
}

#[test]
fn a_conversation_is_read_from_its_last_entry_back() {
    let loaded = check(
        &[
            json!({"type": "summary", "summary": "earlier", "leafUuid": "x"}),
            user(1, 0, "one"),
            says(2, 1, "m1", "two"),
            user(3, 2, "an old branch"),
            says(4, 3, "m2", "answered there"),
            user(5, 2, "three"),
            entry("progress", 6, 5, &json!({"data": {}})),
            with(user(7, 6, "of a subagent"), "isSidechain", json!(true)),
            with(user(8, 6, "a note"), "isMeta", json!(true)),
            calls(9, 8, "m3", "t1"),
            result(10, 9, "t1", "done"),
            says(11, 10, "m4", "[Request"),
            user(12, 11, "[Request interrupted by user]"),
        ],
        &[
            "user 1: one",
            "large 2 request 1 #0: two",
            "user 3: three",
            "note 4: a note",
            "large 5 request 2 #0: call t1",
            "result 6 by 5 of Read",
            "large 7 request 3 #0: [Request",
            "interrupted 8: [Request interrupted by user]",
        ],
    );
    assert_eq!(loaded.tail.parent(), Some(Uuid::from_u128(12)));
    let Record::Result(result) = &loaded.records[5] else { panic!("{:?}", loaded.records[5]) };
    assert_eq!(result.structured.as_ref().unwrap().0.get(), r#"{"x":1}"#);
    let Record::Answered(answered) = &loaded.records[4] else { panic!("{:?}", loaded.records[4]) };
    assert_eq!(answered.block.as_tool_use().unwrap().input.get(), r#"{"b":1,"a":2}"#);
    assert_eq!(answered.usage.as_ref().unwrap().output_tokens, 6);
}

#[test]
fn parallel_calls_are_put_back() {
    let entries = [
        user(1, 0, "one"),
        says(2, 1, "m1", "both"),
        calls(3, 2, "m1", "t1"),
        calls(4, 3, "m1", "t2"),
        calls(5, 4, "m1", "t3"),
        result(6, 3, "t1", "1"),
        result(7, 5, "t3", "3"),
        result(8, 4, "t2", "2"),
        user(9, 8, "next"),
    ];
    let expected = [
        "user 1: one",
        "large 2 request 1 #0: both",
        "large 3 request 1 #1: call t1",
        "large 4 request 1 #2: call t2",
        "large 5 request 1 #3: call t3",
        "result 6 by 3 of Read",
        "result 7 by 5 of Read",
        "result 8 by 4 of Read",
        "user 9: next",
    ];
    check(&entries, &expected);
}

#[test]
fn what_was_compacted_stays_away() {
    let boundary = json!({"subtype": "compact_boundary", "logicalParentUuid": Uuid::from_u128(2).to_string(),
        "compactMetadata": {"trigger": "manual", "preTokens": 500}});
    let loaded = check(
        &[
            user(1, 0, "one"),
            says(2, 1, "m1", "two"),
            entry("system", 3, 0, &boundary),
            with(user(4, 3, "in short"), "isCompactSummary", json!(true)),
            user(5, 4, "on"),
        ],
        &["compacted 1: in short, tail None", "user 2: on"],
    );
    let Record::Decided(Decision::Compacted(compaction)) = &loaded.records[0] else { panic!() };
    assert_eq!((compaction.trigger, compaction.tokens_before), (CompactTrigger::Manual, 500));
}

#[test]
fn odd_files_of_others_are_read_too() {
    check(&[user(1, 2, "round"), user(2, 1, "and round")], &["user 1: round", "user 2: and round"]);
    check(&[user(1, 1, "self")], &["user 1: self"]);
    check(&[user(2, 1, "an orphan")], &["user 1: an orphan"]);
    check(&[with(user(1, 0, "aside"), "isSidechain", json!(true))], &["user 1: aside"]);
    check(&[user(1, 0, "one"), user(1, 0, "the same id")], &["user 1: the same id"]);
    check(&[entry("user", 1, 0, &json!({"message": 7}))], &[]);
    check(
        &[entry(
            "user",
            1,
            0,
            &json!({"message": {"content": [7, {"type": "text"}, {"type": "text", "text": "x"}]}}),
        )],
        &["user 1: x"],
    );
    check(&[user(1, 0, "one"), result(2, 1, "nobody", "asked")], &["user 1: one", "result 2 by 0 of "]);
    let failed = json!({"message": {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": "API error"}]}});
    check(&[user(1, 0, "one"), entry("assistant", 2, 1, &failed)], &["user 1: one"]);
    check(&[with(user(1, 0, "one"), "uuid", json!("no-uuid"))], &["user 1: one"]);
}

#[test]
fn a_conversation_of_another_can_end_at_any_entry() {
    let lines =
        [user(1, 0, "one"), says(2, 1, "m1", "two"), with(user(3, 1, "a note"), "isMeta", json!(true))];
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = SessionFile::new(lines.concat().as_bytes());
    let check = |loaded: &LoadedLog| assert_eq!(outline(loaded), "user 1: one\nnote 2: a note\n");
    let entry = LogEnd::Entry(Uuid::from_u128(3));
    check(&load(&file.path, entry).unwrap());
    let target = file.beside("copy.jsonl");
    copy_log(&file.path, entry, &target, Uuid::from_u128(9), None).unwrap();
    check(&load(&target, LogEnd::End).unwrap());
}

#[test]
fn a_torn_end_of_anothers_file_is_told() {
    let text = format!("{}\nbroken\n{}\n{{\"type\":\"us", user(1, 0, "one"), user(2, 1, "two"));
    let loaded = load_bytes(text.as_bytes());
    assert_eq!(outline(&loaded), "user 1: one\nuser 2: two\n");
    assert_eq!((loaded.damage.len(), loaded.torn.unwrap().length, loaded.is_open_ended), (1, 11, true));
}

/// What the SDKs' fork leaves of a file of ours: only entries, under new ids, without the source of results.
fn forked_by_sdk(bytes: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(bytes).unwrap().lines();
    let entries: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line.get("uuid").is_some())
        .collect();
    let names: BTreeMap<String, String> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            (entry["uuid"].as_str().unwrap().to_owned(), Uuid::from_u128(index as u128 + 1).to_string())
        })
        .collect();
    let renamed = |mut entry: Value| {
        for key in ["uuid", "parentUuid", "logicalParentUuid"] {
            if let Some(new) = entry.get(key).and_then(Value::as_str).and_then(|old| names.get(old)) {
                entry[key] = json!(new);
            }
        }
        entry.as_object_mut().unwrap().remove("sourceToolAssistantUUID");
        entry["sessionId"] = json!("other");
        entry
    };
    entries.into_iter().map(renamed).collect()
}

#[test]
fn a_fork_by_an_sdk_keeps_what_our_entries_say() {
    let mut batches = session();
    let compacted = batches.pop().unwrap();
    let front =
        r#"user 1: [{"type":"text","text":"<env>date</env>"}, {"type":"text","text":"What is in a?"}]"#;
    let long = format!("small 2 request 1 #0: {}", "long ".repeat(60));
    let before = [
        front,
        &long,
        "small 3 request 1 #1: call t1",
        "small 4 request 1 #2: call t2",
        "result 5 by 3 of Read",
        "result 6 by 4 of Read",
        "note 7: a has changed",
    ];
    check(&forked_by_sdk(&encode(&batches)), &before);
    batches.push(compacted);
    let after = ["note 7: a has changed", "compacted 9: What happened so far, tail Some(7)"];
    let loaded = check(&forked_by_sdk(&encode(&batches)), &after);
    assert!(loaded.records.iter().all(|record| !matches!(record, Record::Snapshot(_))));
}

#[test]
fn numbers_are_given_anew_where_ours_cannot_stand() {
    let mut entries = forked_by_sdk(&encode(&session()[..1]));
    let last = entries.len() as u128;
    entries.push(says(90, last, "m9", "of another program"));
    let ours = with(
        user(91, 90, "again ours"),
        "windlass",
        json!({"is": "said", "n": 1, "origin": {"is": "prompt"}}),
    );
    entries.push(ours);
    let front =
        r#"user 1: [{"type":"text","text":"<env>date</env>"}, {"type":"text","text":"What is in a?"}]"#;
    check(&entries, &[front, "large 2 request 1 #0: of another program", "user 3: again ours"]);
}

#[test]
fn another_program_may_go_on_with_our_file() {
    let mut bytes = encode(&session()[..5]);
    let ours = load_bytes(&bytes);
    let parent = ours.tail.parent().unwrap().as_u128();
    for entry in [user(50, parent, "by another"), says(51, 50, "m9", "as well")] {
        bytes.extend_from_slice(format!("{entry}\n").as_bytes());
    }
    let loaded = load_bytes(&bytes);
    assert!(loaded.is_foreign && !ours.is_foreign);
    assert_eq!(loaded.damage, []);
    let outline = outline(&loaded);
    assert!(outline.ends_with("user 8: by another\nlarge 9 request 2 #0: as well\n"), "{outline}");
    assert_eq!(loaded.tail.parent(), Some(Uuid::from_u128(51)));
    assert_eq!(loaded.records.len(), ours.records.len() + 2);
    assert!(matches!(&loaded.records[1], Record::Said(said) if said.message.id == MessageId(1)));
}

#[test]
fn prompts_say_what_their_messages_do() {
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]);
    let messages =
        [json!({"content": "one"}), json!({"content": blocks}), json!("no object"), json!([1]), Value::Null];
    let mut log = String::new();
    for (uuid, message) in (1..).zip(&messages) {
        let _ = writeln!(log, "{}", entry("user", uuid, uuid - 1, &json!({"message": message})));
    }
    let file = SessionFile::new(log.as_bytes());
    let texts: Vec<String> = prompts(&file.path).unwrap().into_iter().map(|prompt| prompt.text).collect();
    assert_eq!(texts, ["one", "a\nb", "", "", ""]);
}
