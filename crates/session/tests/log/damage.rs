//! Whatever happens to a file, it can be read, and what is whole in it counts.

use proptest::prelude::*;
use proptest::sample::Index;
use windlass_protocol::{Block, Event, Input, Interrupt, Message, MessageId, Origin, Record, UserEntry};
use windlass_session::{LogEnd, TornEnd, load, log_items};

use crate::strategies::log;
use crate::support::{SessionFile, encode, load_bytes, records, show};

/// One thing that can happen to a file.
#[derive(Clone, Debug)]
enum Harm {
    Cut(Index),
    Flip(Index, u8),
    Overwrite(Index, Vec<u8>),
    DropLine(Index),
    RepeatLine(Index),
    SwapLines(Index, Index),
    Insert(Index, &'static [u8]),
}

fn harm() -> impl Strategy<Value = Harm> {
    let inserted = prop_oneof![
        Just(&b"\n"[..]),
        Just(&b"\0\0\0\0"[..]),
        Just(&b"\xff\xfe"[..]),
        Just(&b"\n{\"type\":\"user\",\"uuid\":7}\n"[..]),
        Just(&b"\n{\"type\":\"windlass\",\"kind\":\"facts\",\"seq\":\"x\"}\n"[..]),
        Just(&b"\n{\"type\":\"assistant\",\"uuid\":\"x\",\"parentUuid\":\"x\",\"message\":[]}\n"[..]),
        Just(&b"\n[1]\n\"text\"\nnull\n"[..]),
    ];
    prop_oneof![
        any::<Index>().prop_map(Harm::Cut),
        (any::<Index>(), 1_u8..).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..60))
            .prop_map(|(at, new)| Harm::Overwrite(at, new)),
        any::<Index>().prop_map(Harm::DropLine),
        any::<Index>().prop_map(Harm::RepeatLine),
        (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Harm::SwapLines(one, other)),
        (any::<Index>(), inserted).prop_map(|(at, new)| Harm::Insert(at, new)),
    ]
}

fn do_harm(bytes: &mut Vec<u8>, harm: &Harm) {
    if bytes.is_empty() {
        return;
    }
    match harm {
        Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Harm::Flip(at, bits) => {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        Harm::Overwrite(at, new) => {
            let at = at.index(bytes.len());
            let end = (at + new.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&new[..end - at]);
        }
        Harm::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Harm::DropLine(_) | Harm::RepeatLine(_) | Harm::SwapLines(..) => {
            let mut lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            match harm {
                Harm::DropLine(at) => drop(lines.remove(at.index(lines.len()))),
                Harm::RepeatLine(at) => {
                    let at = at.index(lines.len());
                    lines.insert(at, lines[at].clone());
                }
                Harm::SwapLines(one, other) => {
                    let (one, other) = (one.index(lines.len()), other.index(lines.len()));
                    lines.swap(one, other);
                }
                _ => {}
            }
            *bytes = lines.concat();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_harmed_file_can_be_read(batches in log(), harms in proptest::collection::vec(harm(), 1..5)) {
        let mut bytes = encode(&batches);
        for harm in &harms {
            do_harm(&mut bytes, harm);
        }
        let file = SessionFile::new(&bytes);
        let loaded = file.load();
        prop_assert_eq!(loaded.length, bytes.len() as u64);
        let all = records(&mut log_items(&file.path).unwrap()).count();
        prop_assert!(loaded.records.len() <= all + 1);
        prop_assert!(log_items(&file.path).unwrap().all(|item| item.is_ok()));
        load(&file.path, LogEnd::Offset(bytes.len() as u64 / 2)).unwrap();
    }

    #[test]
    fn a_file_cut_anywhere_holds_everything_before_the_cut(batches in log(), at in any::<Index>()) {
        let bytes = encode(&batches);
        let cut = at.index(bytes.len() + 1);
        let whole_lines = bytes[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        let file = SessionFile::new(&bytes[..cut]);
        let loaded = file.load();
        prop_assert_eq!(&loaded.damage[..], &[][..]);
        // A line that only lacks its line feed is whole.
        let lacks_feed = cut < bytes.len() && bytes[cut] == b'\n' && whole_lines < cut;
        let torn = (whole_lines < cut && !lacks_feed)
            .then_some(TornEnd { offset: whole_lines as u64, length: (cut - whole_lines) as u64 });
        prop_assert_eq!(loaded.torn, torn);
        prop_assert_eq!(loaded.is_open_ended, whole_lines < cut);
        if !lacks_feed {
            let clean = load_bytes(&bytes[..whole_lines]);
            prop_assert_eq!(show(&loaded.records), show(&clean.records));
            prop_assert_eq!(loaded.tail, clean.tail);
        }
        let told: Vec<_> = records(&mut log_items(&file.path).unwrap()).collect();
        let all = show(batches.iter().flatten());
        prop_assert!(is_beginning(&show(&told), &all), "{:#?}\n{:#?}", told, all);
    }
}

/// Whether these are the first of all, but for things heard whose rest was cut off.
fn is_beginning(some: &[String], all: &[String]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| one == other))
}

fn said(id: u64, text: &str) -> Record {
    let message = Message::user(MessageId(id), Origin::Prompt, vec![Block::text(text)]);
    Record::Said(UserEntry::plain(message.into()))
}

fn heard() -> Record {
    Record::Heard(Box::new(Input::at(5, Event::Interrupt(Interrupt::Stop))))
}

fn small_log() -> Vec<String> {
    let bytes = encode(&[
        vec![heard(), said(1, "one")],
        vec![heard(), said(2, "two")],
        vec![heard(), said(3, "three")],
    ]);
    String::from_utf8(bytes).unwrap().split_inclusive('\n').map(str::to_owned).collect()
}

/// The texts that are left after something was done to the lines `opened`, `heard`, `one`, `heard`, `two`, `heard`, `three`; and
/// what is told about it.
fn check(harm: impl FnOnce(&mut Vec<String>), texts: &[&str], expected: &[&str]) {
    let mut lines = small_log();
    harm(&mut lines);
    let loaded = load_bytes(lines.concat().as_bytes());
    let said = loaded.records.iter().filter_map(|record| match record {
        Record::Said(said) => said.message.blocks[0].as_text(),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), texts);
    let damage: Vec<&str> = loaded.damage.iter().map(|damage| damage.what.as_str()).collect();
    assert_eq!(damage, expected);
}

#[test]
fn what_is_wrong_is_told_and_the_rest_counts() {
    let all = ["one", "two", "three"];
    check(|_| (), &all, &[]);
    check(
        |lines| lines[3] = lines[3].replace("\"at\":5", "\"at\":6"),
        &all,
        &["checksum mismatch", "line 3 is missing"],
    );
    check(|lines| drop(lines.remove(3)), &all, &["line 3 is missing"]);
    check(|lines| drop(lines.drain(1..5)), &["three"], &["lines 2\u{2013}3 are missing"]);
    check(|lines| lines.insert(2, lines[2].clone()), &all, &["duplicate line"]);
    check(|lines| lines.insert(1, lines[1].clone()), &all, &["duplicate line"]);
    check(|lines| lines[4] = "\0\0\0\n".into(), &["one", "three"], &["expected value at line 1 column 1"]);
    check(
        |lines| lines[4] = "[]\n".into(),
        &["one", "three"],
        &["invalid type: sequence, expected an object at line 1 column 0"],
    );
    check(|lines| lines[4] = "{}\n".into(), &["one", "three"], &["the field `type` is missing"]);
    check(|lines| lines.insert(4, "\n".into()), &all, &[]);
    check(|lines| lines.insert(4, "{\"type\":\"tag\",\"tag\":\"x\"}\n".into()), &all, &[]);
    let deep = format!("{}1{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!("{{\"type\":\"user\",\"uuid\":\"x\",\"message\":{}}}\n", deep.trim());
    check(|lines| lines.insert(4, deep), &all, &[]);
}

#[test]
fn a_line_that_somebody_wrote_anew_is_taken_as_it_parses() {
    let anew = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        format!("{}\n", serde_json::to_string_pretty(&value).unwrap().replace('\n', " "))
    };
    check(|lines| lines.iter_mut().for_each(|line| *line = anew(line)), &["one", "two", "three"], &[]);
}

#[test]
fn facts_that_are_damaged_are_passed_over() {
    let snapshot = Record::Snapshot(Box::default());
    let bytes = encode(&[
        vec![heard(), snapshot.clone()],
        vec![said(1, "one")],
        vec![snapshot],
        vec![said(2, "two")],
    ]);
    let text = String::from_utf8(bytes).unwrap();
    let loaded = load_bytes(text.as_bytes());
    assert_eq!((loaded.records.len(), loaded.damage.len()), (2, 0));
    let last = text.rfind("\"total_usd\":0.0").unwrap();
    let harmed = format!("{}\"total_usd\":9.0{}", &text[..last], &text[last + 15..]);
    let loaded = load_bytes(harmed.as_bytes());
    assert_eq!((loaded.records.len(), loaded.damage.len()), (3, 1));
}

#[test]
fn only_a_file_that_cannot_be_read_is_an_error() {
    let file = SessionFile::new(b"");
    let loaded = file.load();
    assert_eq!((loaded.records.len(), loaded.torn, loaded.is_open_ended), (0, None, false));
    let missing = file.beside("missing.jsonl");
    let error = load(&missing, LogEnd::End).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the session log "), "{error}");
    let entry = uuid::Uuid::from_u128(1);
    let error = load(&file.path, LogEnd::Entry(entry)).unwrap_err().to_string();
    assert!(error.starts_with("there is no message 00000000-0000-0000-0000-000000000001 in"), "{error}");
}

#[test]
fn a_log_can_be_read_up_to_an_entry_or_an_offset() {
    let lines = small_log();
    let file = SessionFile::new(lines.concat().as_bytes());
    let entry = crate::support::SEED.message_uuid(MessageId(2));
    let upto_entry = load(&file.path, LogEnd::Entry(entry)).unwrap();
    let length: u64 = lines[..5].iter().map(|line| line.len() as u64).sum();
    assert_eq!((upto_entry.length, upto_entry.tail.parent()), (length, Some(entry)));
    let upto_offset = load(&file.path, LogEnd::Offset(length + 3)).unwrap();
    assert_eq!(show(&upto_offset.records), show(&upto_entry.records));
    assert_eq!((upto_offset.length, upto_offset.torn), (length, None));
}

#[test]
fn numbers_that_nobody_counted_to_are_damage() {
    let line = |seq: u64| {
        format!("{{\"type\":\"windlass\",\"kind\":\"dequeued\",\"seq\":{seq},\"at\":0,\"wall\":0}}\n")
    };
    let loaded = load_bytes([line(1), line(u64::MAX), line(2)].concat().as_bytes());
    assert_eq!((loaded.records.len(), loaded.tail.seq()), (2, 2));
    assert!(loaded.damage[0].what.contains("too large"), "{:?}", loaded.damage);
}
