use super::*;
use crate::{LogEnd, LogItem, load, load_back, log_items};

/// A log of three batches, and where the second one begins.
fn three(paths: &SessionPaths) -> u64 {
    let mut log = LogWriter::create(paths, header(), options(SyncPolicy::Turn));
    append(&mut log, 1, Durability::Synced).unwrap();
    let end = std::fs::metadata(paths.file()).unwrap().len();
    append(&mut log, 2, Durability::Synced).unwrap();
    append(&mut log, 3, Durability::Synced).unwrap();
    end
}

fn check(upto: impl Fn(u64) -> LogEnd, kept: &[u64]) {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let upto = upto(three(&paths));
    let loaded = load_back(paths.file(), upto).unwrap();
    assert_eq!((&*batches(&loaded.records), loaded.is_cut), (kept, true), "{upto:?}");
    assert_eq!(loaded.last_left_out, MessageId(3), "{upto:?}");
    let mut log = LogWriter::resume(&paths, header(), &loaded, options(SyncPolicy::Turn)).unwrap();
    assert!(log.wants_snapshot(), "{upto:?}");
    now(log.append(&[snapshot(&[1])], Durability::Synced)).unwrap();
    append(&mut log, 4, Durability::Synced).unwrap();
    assert!(!log.wants_snapshot(), "{upto:?}");
    drop(log);
    let again = load(paths.file(), LogEnd::End).unwrap();
    assert_eq!((batches(&again.records), again.is_cut), (vec![1, 4], false), "{upto:?}");
    let items: Vec<LogItem> = log_items(paths.file()).unwrap().map(Result::unwrap).collect();
    let back =
        items.iter().filter(|item| matches!(item, LogItem::Marked(SessionMark::Rewound { to: Some(_) })));
    assert_eq!(back.count(), 1, "{upto:?}");
    assert!(!items.iter().any(|item| matches!(item, LogItem::Damaged(_))), "{upto:?} {items:?}");
}

#[test]
fn a_session_that_goes_back_leaves_the_rest_out_for_good() {
    check(LogEnd::Offset, &[1]);
    let said = SEED.message_uuid(MessageId(1));
    check(|_| LogEnd::Entry(said), &[]);
}
