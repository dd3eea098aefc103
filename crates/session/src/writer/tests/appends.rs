use super::*;
use std::time::Duration;

fn kind(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    value["kind"].as_str().or(value["type"].as_str()).unwrap().to_owned()
}

#[test]
fn nothing_is_made_before_something_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(&directory.path().join("projects/p"));
    let mut log = LogWriter::create(&paths, header(), options(SyncPolicy::Turn));
    log.marker().mark(SessionMark::Rewound { to: None }, LogTime { at_ms: 0, wall_ms: 0 });
    now(log.append(&[], Durability::Synced)).unwrap();
    assert!(!directory.path().join("projects").exists());
    append(&mut log, 1, Durability::Synced).unwrap();
    let text = std::fs::read_to_string(paths.file()).unwrap();
    let kinds: Vec<String> = text.lines().take(3).map(kind).collect();
    assert_eq!(kinds, ["opened", "rewound", "heard"]);
}

#[test]
fn an_append_is_one_write_and_is_read_back() {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Turn);
    for n in 1..=3 {
        append(&mut log, n, Durability::Written).unwrap();
        assert_eq!(disk.writes(), n);
    }
    let bytes = disk.contents().unwrap().bytes;
    let loaded = load(&bytes);
    assert_eq!(batches(&loaded.records), [1, 2, 3]);
    assert!(loaded.damage.is_empty() && loaded.torn.is_none());
    assert_eq!(lines(&disk).iter().filter(|line| kind(line) == "opened").count(), 1);
}

#[test]
fn the_policy_decides_what_is_on_the_disk_when_an_append_returns() {
    let check = |policy, durability, synced: bool| {
        let disk = SimulatedDisk::default();
        let mut log = on(&disk, policy);
        append(&mut log, 1, durability).unwrap();
        let contents = disk.contents().unwrap();
        let safe = contents.named && contents.synced == contents.bytes.len();
        assert_eq!(safe, synced, "{policy:?} {durability:?}");
    };
    check(SyncPolicy::Always, Durability::Written, true);
    check(SyncPolicy::Always, Durability::Synced, true);
    check(SyncPolicy::Turn, Durability::Synced, true);
    check(SyncPolicy::Turn, Durability::Written, false);
    check(SyncPolicy::Never, Durability::Synced, false);
}

#[test]
fn what_was_only_written_is_synced_soon_and_at_the_end() {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Turn);
    append(&mut log, 1, Durability::Written).unwrap();
    while disk.syncs() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    append(&mut log, 2, Durability::Written).unwrap();
    drop(log);
    let contents = disk.contents().unwrap();
    assert_eq!(contents.synced, contents.bytes.len());
}

#[tokio::test]
async fn the_disk_is_waited_for_elsewhere() {
    let disk = SimulatedDisk::default();
    disk.slow_down(Duration::from_millis(50));
    let mut log = on(&disk, SyncPolicy::Turn);
    let AppendProgress::Later(mut done) = log.append(&batch(1), Durability::Synced) else {
        panic!("it must not block")
    };
    assert!((&mut done).now_or_never().is_none());
    assert!(!disk.contents().unwrap().bytes.is_empty(), "it is written at once");
    done.await.unwrap();
    let contents = disk.contents().unwrap();
    assert_eq!(contents.synced, contents.bytes.len());

    // Nobody waits any more: nothing is lost by that.
    drop(log.append(&batch(2), Durability::Synced));
    append(&mut log, 3, Durability::Written).unwrap();
    assert_eq!(batches(&load(&disk.contents().unwrap().bytes).records), [1, 2, 3]);
}

#[test]
fn lines_of_others_stay_whole() {
    let check = |theirs: &str, expected: usize| {
        let disk = SimulatedDisk::default();
        let mut log = on(&disk, SyncPolicy::Never);
        append(&mut log, 1, Durability::Written).unwrap();
        disk.write_by_others(theirs.as_bytes());
        append(&mut log, 2, Durability::Written).unwrap();
        append(&mut log, 3, Durability::Written).unwrap();
        let loaded = load(&disk.contents().unwrap().bytes);
        assert_eq!(batches(&loaded.records), [1, 2, 3], "{theirs:?}");
        assert_eq!(loaded.damage.len(), expected, "{theirs:?}: {:?}", loaded.damage);
        let whole = theirs.trim_end();
        assert_eq!(lines(&disk).iter().filter(|line| *line == whole).count(), 1, "{theirs:?}");
    };
    let title = r#"{"type":"custom-title","customTitle":"T","sessionId":"S"}"#;
    check(&format!("{title}\n"), 0);
    check(title, 0);
    check(&title[..20], 1);
    check("\0\0\0", 1);
}

#[test]
fn a_title_stays_near_the_end() {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Never);
    append(&mut log, 1, Durability::Written).unwrap();
    let title = r#"{"type":"custom-title","customTitle":"T","sessionId":"S"}"#;
    disk.write_by_others(format!("{title}\n").as_bytes());
    for n in 2..200 {
        append(&mut log, n, Durability::Written).unwrap();
        let contents = disk.contents().unwrap().bytes;
        let tail = &contents[contents.len().saturating_sub(64 * 1024)..];
        assert!(memchr::memmem::find(tail, title.as_bytes()).is_some(), "batch {n}");
    }
    assert!(disk.contents().unwrap().bytes.len() > 128 * 1024);
}

#[test]
fn a_removed_log_is_made_anew() {
    let check = |disk: &SimulatedDisk, somebody: &dyn Fn()| {
        let mut log = on(disk, SyncPolicy::Turn);
        append(&mut log, 1, Durability::Synced).unwrap();
        disk.remove();
        somebody();
        let error = append(&mut log, 2, Durability::Synced).unwrap_err();
        assert!(error.0.contains("removed, replaced or shortened"), "{error}");
        assert!(log.wants_snapshot());
        now(log.append(&[snapshot(&[1, 2])], Durability::Synced)).unwrap();
        append(&mut log, 3, Durability::Synced).unwrap();
        assert!(!log.wants_snapshot());
        let contents = disk.contents().unwrap();
        assert!(contents.named && contents.synced == contents.bytes.len());
        let loaded = load(&contents.bytes);
        assert_eq!(batches(&loaded.records), [1, 2, 3]);
        assert!(lines(disk).iter().any(|line| kind(line) == "opened"));
    };
    let disk = SimulatedDisk::default();
    check(&disk, &|| {});
    let disk = SimulatedDisk::default();
    check(&disk, &|| {
        disk.open(Path::new("s.jsonl"), OpenMode::New).unwrap().append(b"{\"type\":\"summary\"}\n").unwrap();
    });
}
