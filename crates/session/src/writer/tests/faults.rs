//! The n-th operation on the disk fails, for all n: what was acknowledged stays, and the log goes on.

use super::*;
use std::collections::BTreeSet;

/// Appends as the driver does: the snapshot comes first when it is wanted.
struct Driver {
    log: LogWriter,
    /// What the core knows, whether or not it could be written.
    known: Vec<u64>,
    acknowledged: Vec<u64>,
    synced: Vec<u64>,
    failures: u64,
    restated: bool,
}

impl Driver {
    fn new(disk: &SimulatedDisk, policy: SyncPolicy) -> Self {
        let log = on(disk, policy);
        Self {
            log,
            known: Vec::new(),
            acknowledged: Vec::new(),
            synced: Vec::new(),
            failures: 0,
            restated: false,
        }
    }

    fn submit(&mut self, n: u64, durability: Durability) {
        if !self.restate() {
            return;
        }
        self.known.push(n);
        match append(&mut self.log, n, durability) {
            Ok(()) => self.acknowledge(vec![n], durability),
            Err(_) => self.failures += 1,
        }
    }

    fn restate(&mut self) -> bool {
        if !self.log.wants_snapshot() {
            return true;
        }
        let restated = now(self.log.append(&[snapshot(&self.known)], Durability::Synced));
        match &restated {
            Ok(()) => {
                self.restated = true;
                self.acknowledge(self.known.clone(), Durability::Synced);
            }
            Err(_) => self.failures += 1,
        }
        restated.is_ok()
    }

    fn acknowledge(&mut self, batches: Vec<u64>, durability: Durability) {
        self.acknowledged.extend(batches);
        self.acknowledged.sort_unstable();
        self.acknowledged.dedup();
        if SyncUrgency::of(self.log.log.options.sync, durability) == SyncUrgency::Now {
            self.synced.clone_from(&self.acknowledged);
        }
    }
}

/// Everything promised is there, once, and nothing else.
fn check(reader: &Reader, bytes: &[u8], promised: &[u64], known: &[u64], what: &str) {
    let found = batches(&reader.load(bytes).records);
    assert!(promised.iter().all(|batch| found.contains(batch)), "{what}: {promised:?} in {found:?}");
    assert!(found.is_sorted_by(|a, b| a < b), "{what}: {found:?} has something twice");
    assert!(found.iter().all(|batch| known.contains(batch)), "{what}: {found:?} of {known:?}");
}

/// Each entry follows one that is there: other programs walk from one to the next.
fn check_chain(bytes: &[u8], what: &str) {
    let mut entries = BTreeSet::new();
    for line in bytes.split(|&byte| byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
        if let Some(parent) = line["parentUuid"].as_str() {
            assert!(entries.contains(parent), "{what}: {line} follows nothing");
        }
        entries.extend(line["uuid"].as_str().map(str::to_owned));
    }
}

/// Runs with these faults; tells how many operations it took.
fn play(reader: &Reader, policy: SyncPolicy, faults: &[(u64, DiskFault)]) -> u64 {
    let what = format!("{policy:?} {faults:?}");
    let disk = SimulatedDisk::default();
    for &(operation, fault) in faults {
        disk.fail(operation, fault);
    }
    let mut driver = Driver::new(&disk, policy);
    for n in 1..=5 {
        driver.submit(n, if n % 3 == 1 { Durability::Written } else { Durability::Synced });
        let Some(contents) = disk.contents() else {
            assert!(driver.acknowledged.is_empty(), "{what}");
            continue;
        };
        check(reader, &contents.bytes, &driver.acknowledged, &driver.known, &what);
        let left = contents.without(&contents.unsafe_units(512), true);
        check(reader, &left, &driver.synced, &driver.known, &what);
    }
    if disk.has_failed() {
        let made_good = driver.log.wants_snapshot() || driver.restated;
        assert!(
            driver.failures > 0 || made_good,
            "{what}: whatever fails is told, or made good before anybody asks"
        );
    } else {
        assert_eq!(driver.failures, 0, "{what}");
    }
    let operations = disk.operations();
    if disk.is_well() {
        // A failure that nobody waited for may still have to be told.
        driver.submit(6, Durability::Synced);
        let failed = driver.failures;
        driver.submit(7, Durability::Synced);
        assert_eq!(driver.failures, failed, "{what}: it must work again");
        let bytes = disk.contents().unwrap().bytes;
        assert_eq!(batches(&reader.load(&bytes).records), driver.known, "{what}");
        check_chain(&bytes, &what);
    }
    operations
}

const FAULTS: [DiskFault; 7] = [
    DiskFault::Fails(Errno::NOSPC),
    DiskFault::Fails(Errno::IO),
    DiskFault::Fails(Errno::INTR),
    DiskFault::Short(1, Errno::NOSPC),
    DiskFault::Short(400, Errno::IO),
    DiskFault::Short(usize::MAX, Errno::NOSPC),
    DiskFault::Short(30, Errno::INTR),
];

#[test]
fn any_operation_may_fail() {
    let reader = Reader::new();
    for policy in [SyncPolicy::Turn, SyncPolicy::Always, SyncPolicy::Never] {
        for fault in FAULTS {
            let mut operation = 0;
            while operation < play(&reader, policy, &[(operation, fault)]) {
                operation += 1;
            }
            assert!(operation > 10, "{policy:?} {fault:?}: only {operation} operations");
        }
    }
}

#[test]
fn two_in_a_row_may_fail() {
    let reader = Reader::new();
    for fault in FAULTS {
        for gap in 1..=3 {
            let mut operation = 0;
            let second = DiskFault::Fails(Errno::IO);
            while operation
                < play(&reader, SyncPolicy::Turn, &[(operation, fault), (operation + gap, second)])
            {
                operation += 1;
            }
        }
    }
}
