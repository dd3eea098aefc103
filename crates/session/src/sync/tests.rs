use super::*;
use crate::disk::tests::simulated_disk::{DiskFault, SimulatedDisk};
use crate::disk::{Disk, OpenMode};
use rustix::io::Errno;
use std::path::Path;

struct Bench {
    disk: SimulatedDisk,
    file: Arc<dyn LogFile>,
    commits: Arc<Commits>,
    group: GroupCommit,
}

fn bench() -> Bench {
    let disk = SimulatedDisk::default();
    let file = disk.open(Path::new("s.jsonl"), OpenMode::New).unwrap();
    let commits = Arc::new(Commits::new(PathBuf::from("s.jsonl")));
    let group = GroupCommit::new(Arc::clone(&commits));
    Bench { disk, file, commits, group }
}

impl Bench {
    fn write(&self) -> Ticket {
        self.file.append(b"a line\n").unwrap();
        self.commits.note_append(Arc::clone(&self.file))
    }

    fn write_soon(&mut self) {
        self.group.start();
        let ticket = self.write();
        self.commits.soon(ticket).unwrap();
    }

    /// The file is there already.
    fn named(self) -> Self {
        self.commits.sync(self.write()).unwrap();
        self
    }

    fn unsynced(&self) -> usize {
        let contents = self.disk.contents().unwrap();
        contents.bytes.len() - contents.synced
    }

    fn fail_next(&self, error: Errno) {
        self.disk.fail(self.disk.operations(), DiskFault::Fails(error));
    }

    fn wait_for_syncs(&self, count: u64) {
        while self.disk.syncs() < count {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn the_policy_says_what_waits_for_the_disk() {
    use Durability::{Synced, Written};
    let check = |name: &str, policy: SyncPolicy, written, synced| {
        assert_eq!(
            (SyncUrgency::of(policy, Written), SyncUrgency::of(policy, Synced)),
            (written, synced),
            "{name}"
        );
    };
    check("always", SyncPolicy::Always, SyncUrgency::Now, SyncUrgency::Now);
    check("turn", SyncPolicy::Turn, SyncUrgency::Soon, SyncUrgency::Now);
    check("never", SyncPolicy::Never, SyncUrgency::Never, SyncUrgency::Never);
}

#[test]
fn a_sync_covers_everything_before_it() {
    let bench = bench();
    let (first, second) = (bench.write(), bench.write());
    bench.commits.sync(second).unwrap();
    bench.commits.sync(first).unwrap();
    assert_eq!((bench.unsynced(), bench.disk.syncs()), (0, 1));
}

#[test]
fn the_name_is_synced_once() {
    let bench = bench();
    bench.commits.sync(bench.write()).unwrap();
    assert!(bench.disk.contents().unwrap().named);
    let before = bench.disk.operations();
    bench.commits.sync(bench.write()).unwrap();
    assert_eq!(bench.disk.operations() - before, 2, "a write and a sync of the data");
}

#[test]
fn a_new_file_goes_to_the_disk_sooner() {
    let mut bench = bench();
    let begin = Instant::now();
    bench.write_soon();
    bench.wait_for_syncs(1);
    drop(bench.group);
    assert!(begin.elapsed() < GROUP_WAIT, "{:?}", begin.elapsed());
    assert!(bench.disk.contents().unwrap().named);
}

#[test]
fn what_nobody_waits_for_is_synced_together_and_soon() {
    let mut bench = bench().named();
    let begin = Instant::now();
    for _ in 0..50 {
        bench.write_soon();
    }
    bench.wait_for_syncs(2);
    assert!(begin.elapsed() >= GROUP_WAIT / 2, "it must wait for company");
    drop(bench.group);
    assert_eq!(bench.disk.contents().map(|contents| contents.synced), Some(357));
    assert!(bench.disk.syncs() < 25, "{}", bench.disk.syncs());
}

#[test]
fn the_thread_does_nothing_while_everything_is_on_the_disk() {
    let mut bench = bench().named();
    bench.write_soon();
    bench.commits.sync(bench.write()).unwrap();
    let before = bench.disk.operations();
    thread::sleep(GROUP_WAIT * 3);
    assert_eq!(bench.disk.operations(), before);
    bench.write_soon();
    bench.wait_for_syncs(3);
}

/// An append that was told to be safe stands on everything before it, so it cannot be while that may be lost.
#[test]
fn a_loss_that_nobody_heard_of_is_told_to_the_next_who_waits() {
    let mut bench = bench().named();
    bench.write_soon();
    bench.fail_next(Errno::IO);
    while !bench.commits.has_hole() {
        thread::sleep(Duration::from_millis(1));
    }
    let later = bench.write();
    assert!(bench.commits.sync(later).is_err());
    bench.commits.sync(bench.write()).unwrap();
}

#[test]
fn the_rest_is_synced_at_the_end() {
    let mut bench = bench().named();
    bench.write_soon();
    assert_eq!(bench.unsynced(), 7);
    drop(bench.group);
    assert_eq!(bench.disk.contents().map(|contents| contents.synced), Some(14));
    // Nothing takes care of later writes, so they take care of themselves.
    bench.file.append(b"late\n").unwrap();
    let ticket = bench.commits.note_append(Arc::clone(&bench.file));
    bench.commits.soon(ticket).unwrap();
    assert_eq!(bench.disk.contents().map(|contents| contents.synced), Some(19));
}

#[test]
fn whoever_asks_is_told_when_it_is_on_the_disk() {
    let mut bench = bench();
    assert!(bench.commits.ask(bench.write()).is_none(), "there is nobody to ask yet");
    bench.group.start();
    let told = [bench.write(), bench.write()].map(|ticket| bench.commits.ask(ticket).unwrap());
    for told in told {
        told.blocking_recv().unwrap().unwrap();
    }
    assert_eq!(bench.unsynced(), 0);
    bench.disk.fail(bench.disk.operations() + 1, DiskFault::Fails(Errno::IO));
    let told = bench.commits.ask(bench.write()).unwrap();
    assert!(told.blocking_recv().unwrap().unwrap_err().0.contains("cannot sync the session log"));
    assert_eq!(bench.commits.take_untold(), None, "who asked was told");
}

#[test]
fn what_was_asked_for_is_done_before_the_end() {
    let mut bench = bench();
    bench.disk.slow_down(Duration::from_millis(20));
    bench.group.start();
    let told = bench.commits.ask(bench.write()).unwrap();
    drop(bench.group);
    assert_eq!(bench.disk.contents().map(|contents| contents.synced), Some(7));
    told.blocking_recv().unwrap().unwrap();
}

#[test]
fn the_file_is_let_go_at_the_end() {
    for synced in [true, false] {
        let mut bench = bench();
        bench.group.start();
        let ticket = bench.write();
        if synced {
            bench.commits.sync(ticket).unwrap();
        } else {
            bench.commits.soon(ticket).unwrap();
        }
        let Bench { file, commits, group, .. } = bench;
        drop((group, commits));
        assert_eq!(Arc::strong_count(&file), 1, "{synced}");
    }
}

#[test]
fn a_failed_sync_is_not_made_good_by_a_later_one() {
    let bench = bench();
    let (first, second) = (bench.write(), bench.write());
    bench.fail_next(Errno::IO);
    let error = bench.commits.sync(second).unwrap_err();
    assert!(error.0.contains("cannot sync the session log") && error.0.contains("s.jsonl"), "{error}");
    assert_eq!(bench.commits.take_untold(), None);
    bench.commits.sync(bench.write()).unwrap();
    assert_eq!(bench.commits.sync(first), Err(error.clone()));
    assert_eq!(bench.commits.sync(second), Err(error));
    assert!(bench.commits.has_hole());
    // What was restated before the failure makes nothing good.
    bench.commits.make_good(0);
    assert!(bench.commits.has_hole());
    bench.commits.make_good(bench.commits.failures());
    assert!(!bench.commits.has_hole());
}

#[test]
fn a_failure_in_the_background_is_told_once() {
    let mut bench = bench();
    bench.disk.fail(bench.disk.operations() + 1, DiskFault::Fails(Errno::IO));
    bench.write_soon();
    bench.wait_for_syncs(1);
    drop(bench.group);
    assert!(bench.commits.has_hole());
    assert!(bench.commits.take_untold().is_some_and(|error| error.0.contains("cannot sync the session log")));
    assert_eq!(bench.commits.take_untold(), None);
}

/// The system tells of a failure only once. Whoever else waits for the same bytes must hear of it too.
#[test]
fn all_who_wait_hear_of_a_failure() {
    let bench = bench();
    let (first, second) = (bench.write(), bench.write());
    bench.disk.slow_down(Duration::from_millis(20));
    bench.fail_next(Errno::IO);
    let outcomes = thread::scope(|scope| {
        let commits = &bench.commits;
        let threads = [first, second].map(|ticket| scope.spawn(move || commits.sync(ticket)));
        threads.map(|thread| thread.join().unwrap().is_err())
    });
    assert_eq!(outcomes, [true, true]);
}

#[test]
fn an_interrupted_sync_is_tried_again() {
    let bench = bench();
    let ticket = bench.write();
    bench.fail_next(Errno::INTR);
    bench.commits.sync(ticket).unwrap();
    assert_eq!(bench.disk.syncs(), 2);
}
