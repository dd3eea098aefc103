use super::*;

fn compacted() -> Record {
    let boundary = Message::user(MessageId(9), Origin::Boundary, vec![Block::text("summary")]);
    Record::Decided(Decision::Compacted(Box::new(Compaction {
        trigger: CompactTrigger::Auto,
        boundary: Arc::new(boundary),
        tail: None,
        is_unbound: false,
        is_mechanical: false,
        tokens_before: 2,
        tokens_after: 1,
        duration_ms: 0,
    })))
}

fn check(records: &[Record], expected: bool) {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Never);
    assert!(!log.wants_snapshot());
    now(log.append(records, Durability::Written)).unwrap();
    assert_eq!(log.wants_snapshot(), expected, "{records:?}");
    append(&mut log, 2, Durability::Written).unwrap();
    assert_eq!(log.wants_snapshot(), expected, "it stays so: {records:?}");
    now(log.append(&[snapshot(&[])], Durability::Written)).unwrap();
    assert!(!log.wants_snapshot(), "{records:?}");
}

#[test]
fn after_a_boundary_and_a_repair() {
    check(&batch(1), false);
    check(&[compacted()], true);
    check(&[compacted(), snapshot(&[])], false);
    check(&[snapshot(&[]), compacted()], true);
    check(&[Record::Repaired(vec![Repair::AddedResult { tool_use_id: "t".into() }])], true);
}

#[test]
fn after_much_was_written() {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Never);
    let text = "x".repeat(1 << 20);
    let mut megabytes = 0;
    while !log.wants_snapshot() {
        megabytes += 1;
        let said = Message::user(MessageId(megabytes), Origin::Prompt, vec![Block::text(&text)]);
        now(log.append(&[Record::Said(UserEntry::plain(Arc::new(said)))], Durability::Written)).unwrap();
    }
    assert_eq!(megabytes, 16);
    now(log.append(&[snapshot(&[])], Durability::Written)).unwrap();
    assert!(!log.wants_snapshot());
}

#[test]
fn after_a_failure_until_they_are_restated() {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Turn);
    append(&mut log, 1, Durability::Synced).unwrap();
    disk.fail(disk.operations() + 1, DiskFault::Fails(Errno::NOSPC));
    let error = append(&mut log, 2, Durability::Synced).unwrap_err();
    assert!(error.0.contains("disk is full"), "{error}");
    append(&mut log, 3, Durability::Synced).unwrap();
    assert!(log.wants_snapshot());
    // Snapshot that did not reach the disk do not count.
    disk.fail(disk.operations() + 2, DiskFault::Fails(Errno::IO));
    let error = now(log.append(&[snapshot(&[1, 2, 3])], Durability::Synced)).unwrap_err();
    assert!(error.0.contains("cannot sync the session log"), "{error}");
    assert!(log.wants_snapshot());
    now(log.append(&[snapshot(&[1, 2, 3])], Durability::Synced)).unwrap();
    assert!(!log.wants_snapshot());
    assert_eq!(batches(&load(&disk.contents().unwrap().bytes).records), [1, 2, 3]);
}

/// What the background could not sync is the next append's failure, unless that one makes it good.
#[test]
fn after_a_failure_that_nobody_waited_for() {
    let check = |next: Vec<Record>, works: bool| {
        let disk = SimulatedDisk::default();
        let mut log = on(&disk, SyncPolicy::Turn);
        append(&mut log, 1, Durability::Synced).unwrap();
        disk.fail(disk.operations() + 2, DiskFault::Fails(Errno::IO));
        append(&mut log, 2, Durability::Written).unwrap();
        while !log.wants_snapshot() {
            std::thread::yield_now();
        }
        let writes = disk.writes();
        assert_eq!(now(log.append(&next, Durability::Synced)).is_ok(), works);
        assert_eq!(disk.writes() > writes, works);
        assert_eq!(log.wants_snapshot(), !works);
        append(&mut log, 4, Durability::Synced).unwrap();
    };
    check(batch(3), false);
    check(vec![snapshot(&[1, 2])], true);
}
