use super::*;
use std::fs;

fn resume(paths: &SessionPaths) -> (LoadedLog, LogWriter) {
    let loaded = crate::load(paths.file(), crate::LogEnd::End).unwrap();
    let log = LogWriter::resume(paths, header(), &loaded, options(SyncPolicy::Turn)).unwrap();
    (loaded, log)
}

/// The bytes of a log with three batches.
fn three() -> Vec<u8> {
    let disk = SimulatedDisk::default();
    let mut log = on(&disk, SyncPolicy::Never);
    (1..=3).for_each(|n| append(&mut log, n, Durability::Written).unwrap());
    disk.contents().unwrap().bytes
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let bytes = three();
    fs::write(paths.file(), &bytes).unwrap();
    let (_, mut log) = resume(&paths);
    assert_eq!(fs::read(paths.file()).unwrap(), bytes, "opening writes nothing");
    append(&mut log, 4, Durability::Synced).unwrap();
    let after = fs::read(paths.file()).unwrap();
    assert!(after.starts_with(&bytes));
    let loaded = load(&after);
    assert_eq!(batches(&loaded.records), [1, 2, 3, 4]);
    assert!(loaded.damage.is_empty());
    let text = String::from_utf8(after).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("\"kind\":\"opened\"")).count(), 2);
    let numbers: Vec<u64> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64())
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
}

/// Wherever a log was cut: the torn piece is kept, and the session goes on behind it.
#[test]
fn a_log_that_was_cut_anywhere_goes_on() {
    let bytes = three();
    for end in (0..bytes.len()).step_by(13).chain([bytes.len() - 1]) {
        let directory = tempfile::tempdir().unwrap();
        let paths = paths(directory.path());
        fs::write(paths.file(), &bytes[..end]).unwrap();
        let (loaded, mut log) = resume(&paths);
        let before = batches(&loaded.records);
        if let Some(torn) = &loaded.torn {
            let from = usize::try_from(torn.offset).unwrap();
            assert_eq!(fs::read(paths.torn_end(torn.offset)).unwrap(), &bytes[from..end], "cut at {end}");
        }
        append(&mut log, 4, Durability::Synced).unwrap();
        let after = fs::read(paths.file()).unwrap();
        assert!(after.starts_with(&bytes[..end]), "cut at {end}");
        let loaded = load(&after);
        let expected: Vec<u64> = before.into_iter().chain([4]).collect();
        assert_eq!(batches(&loaded.records), expected, "cut at {end}");
        assert!(loaded.torn.is_none(), "cut at {end}");
    }
}

#[test]
fn a_torn_piece_is_kept_once_and_private() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let mut bytes = three();
    let offset = bytes.len() as u64;
    bytes.extend_from_slice(b"{\"type\":\"user\",\"mess");
    fs::write(paths.file(), &bytes).unwrap();
    resume(&paths);
    resume(&paths);
    let part = paths.torn_end(offset);
    assert_eq!(fs::read(&part).unwrap(), b"{\"type\":\"user\",\"mess");
    assert_eq!(fs::metadata(&part).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(paths.side()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_log_that_somebody_cut_tells_everything_anew() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let mut log = LogWriter::create(&paths, header(), options(SyncPolicy::Turn));
    append(&mut log, 1, Durability::Synced).unwrap();
    fs::File::options().write(true).open(paths.file()).unwrap().set_len(10).unwrap();
    let error = append(&mut log, 2, Durability::Synced).unwrap_err();
    assert!(error.0.contains("removed, replaced or shortened"), "{error}");
    now(log.append(&[snapshot(&[1])], Durability::Synced)).unwrap();
    append(&mut log, 2, Durability::Synced).unwrap();
    assert_eq!(batches(&load(&fs::read(paths.file()).unwrap()).records), [1, 2]);
}

#[test]
fn a_torn_piece_is_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    fs::write(paths.file(), [&three()[..], b"{\"type\":\"user\",\"mess"].concat()).unwrap();
    let (loaded, mut log) = resume(&paths);
    assert!(loaded.torn.is_some() && log.wants_snapshot());
    now(log.append(&[snapshot(&[1, 2, 3])], Durability::Synced)).unwrap();
    append(&mut log, 4, Durability::Synced).unwrap();
    let (loaded, log) = resume(&paths);
    assert!(loaded.torn.is_none() && loaded.damage.is_empty() && !log.wants_snapshot(), "{loaded:?}");
}

#[test]
fn a_log_of_somebody_else_wants_a_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    let line = format!(
        r#"{{"type":"user","uuid":"{}","parentUuid":null,"sessionId":"{}","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"hello"}}}}"#,
        Uuid::from_u128(5),
        paths.id()
    );
    fs::write(paths.file(), line + "\n").unwrap();
    let (_, mut log) = resume(&paths);
    assert!(log.wants_snapshot());
    now(log.append(&[snapshot(&[])], Durability::Synced)).unwrap();
    assert!(!log.wants_snapshot());
}

#[test]
fn a_log_that_is_not_ours_to_write_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let paths = paths(directory.path());
    fs::write(directory.path().join("real"), three()).unwrap();
    std::os::unix::fs::symlink(directory.path().join("real"), paths.file()).unwrap();
    let loaded = load(&three());
    let error = LogWriter::resume(&paths, header(), &loaded, options(SyncPolicy::Turn)).err().unwrap();
    assert!(error.0.contains("symbolic link"), "{error}");
}
