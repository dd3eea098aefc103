use super::*;

fn compacted() -> Record {
    let boundary = Message::user(MessageId(9), Origin::Boundary, vec![Block::text("summary")]);
    Record::Decided(Decision::Compacted(Box::new(Compaction {
        trigger: CompactTrigger::Auto,
        boundary: Arc::new(boundary),
        tail: None,
        unbound: false,
        mechanical: false,
        tokens_before: 2,
        tokens_after: 1,
        duration_ms: 0,
    })))
}

fn check(records: &[Record], expected: bool) {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Never);
    assert!(!log.wants_facts());
    now(log.append(records, Durability::Written)).unwrap();
    assert_eq!(log.wants_facts(), expected, "{records:?}");
    append(&mut log, 2, Durability::Written).unwrap();
    assert_eq!(log.wants_facts(), expected, "it stays so: {records:?}");
    now(log.append(&[facts(&[])], Durability::Written)).unwrap();
    assert!(!log.wants_facts(), "{records:?}");
}

#[test]
fn after_a_boundary_and_a_repair() {
    check(&batch(1), false);
    check(&[compacted()], true);
    check(&[compacted(), facts(&[])], false);
    check(&[facts(&[]), compacted()], true);
    check(&[Record::Repaired(vec![Repair::AddedResult { tool_use_id: "t".into() }])], true);
}

#[test]
fn after_much_was_written() {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Never);
    let text = "x".repeat(1 << 20);
    let mut megabytes = 0;
    while !log.wants_facts() {
        megabytes += 1;
        let said = Message::user(MessageId(megabytes), Origin::Prompt, vec![Block::text(&text)]);
        now(log.append(&[Record::Said(UserEntry::plain(Arc::new(said)))], Durability::Written)).unwrap();
    }
    assert_eq!(megabytes, 16);
    now(log.append(&[facts(&[])], Durability::Written)).unwrap();
    assert!(!log.wants_facts());
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
    assert!(log.wants_facts());
    // Facts that did not reach the disk do not count.
    disk.fail(disk.operations() + 2, DiskFault::Fails(Errno::IO));
    let error = now(log.append(&[facts(&[1, 2, 3])], Durability::Synced)).unwrap_err();
    assert!(error.0.contains("cannot sync the session log"), "{error}");
    assert!(log.wants_facts());
    now(log.append(&[facts(&[1, 2, 3])], Durability::Synced)).unwrap();
    assert!(!log.wants_facts());
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
        while !log.wants_facts() {
            std::thread::yield_now();
        }
        let writes = disk.writes();
        assert_eq!(now(log.append(&next, Durability::Synced)).is_ok(), works);
        assert_eq!(disk.writes() > writes, works);
        assert_eq!(log.wants_facts(), !works);
        append(&mut log, 4, Durability::Synced).unwrap();
    };
    check(batch(3), false);
    check(vec![facts(&[1, 2])], true);
}
