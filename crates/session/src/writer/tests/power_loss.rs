//! The power goes at any moment: what was acknowledged as synced is there, whatever became of the rest.

use super::*;
use crate::disk::tests::simulated_disk::Contents;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

/// Up to so many pieces, each set of lost ones is tried; above, some.
const ALL_SETS_PIECES_MAX: usize = 6;
const SOME_SETS: usize = 48;

/// What was promised, and what was ever handed over.
#[derive(Clone, Default)]
struct Promised {
    synced: Vec<u64>,
    appended: Vec<u64>,
    records: BTreeSet<String>,
}

impl Promised {
    fn take(&mut self, records: &[Record]) {
        self.records.extend(records.iter().map(|record| format!("{record:?}")));
        self.appended = records.iter().fold(self.appended.clone(), |known, record| {
            let more = batches(std::slice::from_ref(record));
            known.into_iter().chain(more).collect::<BTreeSet<_>>().into_iter().collect()
        });
    }
}

/// Whether what is left of a file keeps the promise.
fn check(reader: &Reader, left: &[u8], promised: &Promised) {
    let loaded = reader.load(left);
    let found = batches(&loaded.records);
    let text = || format!("found {found:?} of {:?} in {} bytes", promised.synced, left.len());
    assert!(promised.synced.iter().all(|batch| found.contains(batch)), "{}", text());
    assert!(found.is_sorted_by(|a, b| a < b), "{}", text());
    assert!(found.iter().all(|batch| promised.appended.contains(batch)), "{}", text());
    for record in &loaded.records {
        let record = format!("{record:?}");
        assert!(promised.records.contains(&record), "nobody wrote {record}");
    }
}

/// Sets of pieces that never reached the disk.
fn lost_sets(pieces: &[Range<usize>]) -> Vec<Vec<Range<usize>>> {
    let pick = |chosen: u64| {
        let is_chosen = |(n, _): &(usize, &Range<usize>)| chosen >> (n % 64) & 1 == 1;
        pieces.iter().enumerate().filter(is_chosen).map(|(_, piece)| piece.clone()).collect()
    };
    if pieces.len() <= ALL_SETS_PIECES_MAX {
        return (0..1_u64 << pieces.len()).map(pick).collect();
    }
    (0..SOME_SETS).map(|n| pick(SEED.entropy(n as u64))).chain([pieces.to_vec()]).collect()
}

/// Everything that may be left of the file: it ends anywhere behind what was synced, or has holes.
fn check_all(reader: &Reader, contents: &Contents, from: usize, promised: &Promised) {
    if !contents.named {
        assert!(promised.synced.is_empty(), "the file itself may be missing");
    }
    for end in from.max(contents.synced)..=contents.bytes.len() {
        check(reader, &contents.bytes[..end], promised);
    }
    for unit in [512, 4096] {
        for lost in lost_sets(&contents.unsafe_units(unit)) {
            check(reader, &contents.without(&lost, false), promised);
            check(reader, &contents.without(&lost, true), promised);
        }
    }
}

/// Appends one after the other, and has the power go after each.
fn play(policy: SyncPolicy, steps: &[(Durability, bool)]) {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, policy);
    let reader = Reader::new();
    let mut promised = Promised::default();
    let mut length = 0;
    for (n, &(durability, restate)) in (1..).zip(steps) {
        let mut records = batch(n);
        if restate {
            records.push(snapshot(&(1..=n).collect::<Vec<_>>()));
        }
        promised.take(&records);
        now(log.append(&records, durability)).unwrap();
        if SyncUrgency::of(policy, durability) == SyncUrgency::Now {
            promised.synced.clone_from(&promised.appended);
        }
        let contents = disk.contents().unwrap();
        check_all(&reader, &contents, length, &promised);
        length = contents.bytes.len();
    }
}

fn any_steps() -> impl Strategy<Value = (SyncPolicy, Vec<(Durability, bool)>)> {
    let policy = prop_oneof![
        3 => Just(SyncPolicy::Turn),
        1 => Just(SyncPolicy::Always),
        1 => Just(SyncPolicy::Never),
    ];
    let durability = prop_oneof![2 => Just(Durability::Written), 1 => Just(Durability::Synced)];
    (policy, prop::collection::vec((durability, prop::bool::weighted(0.15)), 1..7))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_acknowledged_is_lost_and_nothing_invented((policy, steps) in any_steps()) {
        play(policy, &steps);
    }
}

/// A sync that failed may have lost anything since the last one, for good. The snapshot makes up for it.
#[test]
fn what_a_failed_sync_lost_is_restated() {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Turn);
    let mut promised = Promised::default();
    let mut put = |log: &mut LogWriter, records: Vec<Record>, works: bool| {
        promised.take(&records);
        assert_eq!(now(log.append(&records, Durability::Synced)).is_ok(), works);
    };
    put(&mut log, batch(1), true);
    disk.fail(disk.operations() + 2, DiskFault::Fails(Errno::IO));
    put(&mut log, batch(2), false);
    assert!(log.wants_snapshot());
    put(&mut log, vec![snapshot(&[1, 2])], true);
    put(&mut log, batch(3), true);
    promised.synced = vec![1, 2, 3];
    let contents = disk.contents().unwrap();
    assert!(!contents.doubtful.is_empty());
    check_all(&Reader::new(), &contents, 0, &promised);
}
