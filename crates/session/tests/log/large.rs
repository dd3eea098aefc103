//! Large files: what counts is the live part.

use std::io::Write;
use std::time::{Duration, Instant};

use windlass_protocol::{
    Block, Event, Input, Message, MessageId, Origin, Record, SessionSnapshot, TimerId, UserEntry,
};
use windlass_session::{LogEnd, Tail, copy_log, load, log_items};

use crate::support::{SESSION, SessionFile, encoder, records};

const SIZE: u64 = 200 * 1024 * 1024;
const BETWEEN_SNAPSHOTS: u64 = 16 * 1024 * 1024;

fn write_large(file: &SessionFile) -> u64 {
    let mut out = std::io::BufWriter::new(std::fs::File::create(&file.path).unwrap());
    let mut encoder = encoder(Tail::default());
    let (mut written, mut since, mut id) = (0, 0, 0);
    let mut lines = Vec::new();
    encoder.open(&mut lines);
    let text = Block::text(&"All work and some play. ".repeat(2000));
    while written < SIZE {
        id += 1;
        let message = Message::user(MessageId(id), Origin::Prompt, vec![text.clone()]);
        let mut batch = vec![
            Record::Heard(Box::new(Input::at(id, Event::Timer(TimerId(1))))),
            Record::Said(UserEntry::plain(message.into())),
        ];
        if since > BETWEEN_SNAPSHOTS {
            batch.push(Record::Snapshot(Box::new(SessionSnapshot {
                last_message: MessageId(id),
                ..SessionSnapshot::default()
            })));
            since = 0;
        }
        encoder.encode(&batch, &mut lines);
        out.write_all(&lines).unwrap();
        written += lines.len() as u64;
        since += lines.len() as u64;
        lines.clear();
    }
    out.flush().unwrap();
    id
}

#[test]
fn a_large_file_opens_by_its_end() {
    let file = SessionFile::new(b"");
    let last = write_large(&file);
    let began = Instant::now();
    let loaded = file.load();
    let opened = began.elapsed();
    assert!(matches!(&loaded.records[0], Record::Snapshot(_)));
    assert!(loaded.since_snapshot <= BETWEEN_SNAPSHOTS + 100_000, "{}", loaded.since_snapshot);
    assert_eq!(loaded.damage, []);
    assert!(opened < Duration::from_secs(10), "{opened:?}");
    let early = crate::support::SEED.message_uuid(MessageId(3));
    assert_eq!(load(&file.path, LogEnd::Entry(early)).unwrap().tail.parent(), Some(early));
    let target = file.beside("copy.jsonl");
    copy_log(&file.path, LogEnd::End, &target, SESSION, None).unwrap();
    assert_eq!(load(&target, LogEnd::End).unwrap().tail.parent(), loaded.tail.parent());
    let mut log_items = log_items(&file.path).unwrap();
    let said = records(&mut log_items).filter(|record| matches!(record, Record::Said(_)));
    assert_eq!(said.count() as u64, last);
}
