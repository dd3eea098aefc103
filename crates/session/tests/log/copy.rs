//! Copies of a log.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use uuid::Uuid;
use windlass_protocol::{MessageId, Record};
use windlass_session::{LogEnd, copy_log, load};

use crate::golden::session;
use crate::support::{SEED, SESSION, SessionFile, encode, show};

const NEW: Uuid = Uuid::from_u128(0x9999_8888_7777_6666_5555_4444_3333_2222);

fn values(bytes: &[u8]) -> Vec<Value> {
    std::str::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_copy_says_the_same_under_another_id() {
    let bytes = encode(&session());
    let file = SessionFile::new(&bytes);
    let target = file.beside(&format!("{NEW}.jsonl"));
    let copied = copy_log(&file.path, LogEnd::End, &target, NEW, None).unwrap();
    assert_eq!(std::fs::read(&file.path).unwrap(), bytes, "the source is not touched");
    let copy = std::fs::read(&target).unwrap();
    assert_eq!(copied, copy.len() as u64);
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    let (old, mut new) = (values(&bytes), values(&copy));
    let mark = new.pop().unwrap();
    assert_eq!((&mark["kind"], &mark["of"]), (&json!("forked"), &json!({"source": SESSION.to_string()})));
    for (old, new) in old.into_iter().zip(&new) {
        let mut expected = old.clone();
        if old.get("sessionId").is_some() {
            expected["sessionId"] = json!(NEW.to_string());
        }
        if let Some(uuid) = old.get("uuid") {
            expected["forkedFrom"] = json!({"sessionId": SESSION.to_string(), "messageUuid": uuid});
        }
        assert_eq!(*new, expected);
    }
    let (source, copy) = (file.load(), load(&target, LogEnd::End).unwrap());
    assert_eq!(show(&copy.records), show(&source.records));
    assert_eq!((&copy.damage[..], copy.tail.seq()), (&[][..], source.tail.seq() + 1));
    assert_eq!(copy.tail.parent(), source.tail.parent());
}

#[test]
fn a_copy_of_a_copy_names_the_session_it_was_made_from() {
    let file = SessionFile::new(&encode(&session()));
    let (first, second) = (file.beside(&format!("{NEW}.jsonl")), file.beside("other.jsonl"));
    copy_log(&file.path, LogEnd::End, &first, NEW, None).unwrap();
    copy_log(&first, LogEnd::End, &second, Uuid::from_u128(5), None).unwrap();
    let copy = String::from_utf8(std::fs::read(&second).unwrap()).unwrap();
    let entry = copy.lines().find(|line| line.contains("\"type\":\"user\"")).unwrap();
    assert_eq!(entry.matches("forkedFrom").count(), 1);
    let entry: Value = serde_json::from_str(entry).unwrap();
    assert_eq!(entry["forkedFrom"]["sessionId"], json!(NEW.to_string()));
    assert_eq!(entry["sessionId"], json!(Uuid::from_u128(5).to_string()));
}

#[test]
fn a_copy_can_end_at_an_entry() {
    let file = SessionFile::new(&encode(&session()));
    let target = file.beside(&format!("{NEW}.jsonl"));
    let entry = SEED.message_uuid(MessageId(3));
    copy_log(&file.path, LogEnd::Entry(entry), &target, NEW, None).unwrap();
    let copy = load(&target, LogEnd::End).unwrap();
    assert!(
        matches!(copy.records.last().unwrap(), Record::Answered(answered) if answered.id == MessageId(3))
    );
    assert_eq!(copy.tail.parent(), Some(entry));
    assert_eq!(copy.damage, []);
}

#[test]
fn a_copy_of_another_programs_file_keeps_what_it_does_not_know() {
    let line = r#"{"parentUuid":null,"message":{"role":"user","content":"\"sessionId\":\"x\""},"type":"user","n":1e400,"uuid":"u1","sessionId":"s1"}"#;
    let bytes = format!("{line}\nno line\n{{\"type\":\"tag\",\"tag\":\"t\",\"sessionId\":\"s1\"}}\n{{\"half");
    let file = SessionFile::new(bytes.as_bytes());
    let target = file.beside("copy.jsonl");
    copy_log(&file.path, LogEnd::End, &target, NEW, None).unwrap();
    let copy = std::fs::read_to_string(&target).unwrap();
    let lines: Vec<&str> = copy.lines().collect();
    let expected = line.replace(
        r#""sessionId":"s1""#,
        &format!(r#""sessionId":"{NEW}","forkedFrom":{{"sessionId":"s1","messageUuid":"u1"}}"#),
    );
    assert_eq!(
        lines[..3],
        [&expected, "no line", &format!(r#"{{"type":"tag","tag":"t","sessionId":"{NEW}"}}"#)]
    );
    assert_eq!(lines.len(), 4);
    assert_eq!(load(&target, LogEnd::End).unwrap().records.len(), 1);
}

#[test]
fn a_copy_never_takes_the_place_of_a_file() {
    let file = SessionFile::new(&encode(&session()));
    let error = copy_log(&file.path, LogEnd::End, &file.path, NEW, None).unwrap_err().to_string();
    assert!(error.starts_with("cannot write the session log"), "{error}");
    let nowhere = file.beside("no/such/directory.jsonl");
    assert!(copy_log(&file.path, LogEnd::End, &nowhere, NEW, None).is_err());
    let left = std::fs::read_dir(file.path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "nothing is left behind");
}
