//! A real file system that is full or read-only: the log says so, loses nothing, and works again as soon as the disk does.
//!
//! Each test runs itself once more in a mount namespace of its own, on a small tmpfs.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use windlass_ports::{AppendProgress, LogError, SessionLog};
use windlass_protocol::{
    Block, Durability, Message, MessageId, Origin, Record, SessionSeed, SessionSnapshot, UserEntry,
};
use windlass_session::{Header, Lease, LeaseError, LogEnd, LogOptions, LogWriter, SessionPaths, load};

const SEED: SessionSeed = SessionSeed(7);
const PLACE: &str = "WINDLASS_TEST_SMALL_DISK";
const CANNOT_MOUNT: i32 = 77;

/// Runs `test` on a tmpfs of 64 KiB, in another process. Returns without having tested anything if that is not permitted.
fn on_a_small_disk(name: &str, test: impl FnOnce(&Path)) {
    if let Some(place) = std::env::var_os(PLACE) {
        return test(Path::new(&place));
    }
    let place = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=64k,mode=700 none \"$0\" || exit 77; exec \"$@\"";
    for unshare in [&["-m"][..], &["-r", "-m"]] {
        let status = Command::new("unshare")
            .args(unshare)
            .args(["sh", "-c", mount])
            .arg(place.path())
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(PLACE, place.path())
            .status();
        match status.map(|status| status.code()) {
            Ok(Some(0)) => return,
            // `unshare` itself says 1 when it is not permitted; a test that fails says 101.
            Ok(Some(1 | CANNOT_MOUNT)) | Err(_) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    println!("SKIPPED {name}: no tmpfs can be mounted here, neither as root nor in a user namespace");
}

fn mount(option: &str, place: &Path) {
    let status = Command::new("mount").args(["-o", option]).arg(place).status().unwrap();
    assert!(status.success(), "mount -o {option}");
}

fn session(place: &Path) -> SessionPaths {
    SessionPaths::of_file(place.join(format!("home/projects/p/{}.jsonl", SEED.session_uuid()))).unwrap()
}

fn create(paths: &SessionPaths) -> LogWriter {
    let options = LogOptions { lease: Some(Lease::of_new(paths.file())), ..LogOptions::default() };
    LogWriter::create(paths, Arc::new(Header::new(SEED, Path::new("/project"), 0)), options)
}

fn message(n: u64) -> Arc<Message> {
    let text = format!("message {n} {}", "x".repeat(1500));
    Arc::new(Message::user(MessageId(n), Origin::Prompt, vec![Block::text(&text)]))
}

fn append(log: &mut LogWriter, record: Record) -> Result<(), LogError> {
    match log.append(&[record], Durability::Synced) {
        AppendProgress::Now(done) => done,
        AppendProgress::Later(_) => panic!("there is no runtime"),
    }
}

fn say(log: &mut LogWriter, n: u64) -> Result<(), LogError> {
    append(log, Record::Said(UserEntry::plain(message(n))))
}

fn restate(log: &mut LogWriter, upto: u64) -> Result<(), LogError> {
    let messages = (1..=upto).map(message).collect();
    append(
        log,
        Record::Snapshot(Box::new(SessionSnapshot {
            messages,
            last_message: MessageId(upto),
            ..SessionSnapshot::default()
        })),
    )
}

/// Which messages a reader finds.
fn messages(paths: &SessionPaths) -> Vec<u64> {
    let mut found = Vec::new();
    for record in load(paths.file(), LogEnd::End).unwrap().records {
        match record {
            Record::Snapshot(snapshot) => {
                found = snapshot.messages.iter().map(|message| message.id.0).collect();
            }
            Record::Said(said) => found.push(said.message.id.0),
            _ => {}
        }
    }
    found
}

/// Takes all the room there is.
fn fill(place: &Path) -> PathBuf {
    let filler = place.join("filler");
    let mut size = 64 * 1024;
    while size > 0 {
        let mut bytes = fs::read(&filler).unwrap_or_default();
        bytes.resize(bytes.len() + size, b'x');
        if fs::write(&filler, &bytes).is_err() {
            size /= 2;
        }
    }
    filler
}

#[test]
fn a_full_disk_is_told_and_survived() {
    on_a_small_disk("a_full_disk_is_told_and_survived", |place| {
        let paths = session(place);
        let mut log = create(&paths);
        let mut said = 0;
        let error = loop {
            match say(&mut log, said + 1) {
                Ok(()) => said += 1,
                Err(error) => break error,
            }
        };
        assert!(said > 5, "{said}");
        assert!(error.0.contains("disk is full") && error.0.contains("Free some space"), "{error}");
        assert!(say(&mut log, said + 2).is_err(), "it is still full");
        let acknowledged: Vec<u64> = (1..=said).collect();
        assert!(messages(&paths).starts_with(&acknowledged));

        mount("remount,size=1m", place);
        assert!(log.wants_snapshot());
        restate(&mut log, said + 2).unwrap();
        assert!(!log.wants_snapshot());
        say(&mut log, said + 3).unwrap();
        assert_eq!(messages(&paths), (1..=said + 3).collect::<Vec<_>>());
    });
}

#[test]
fn a_disk_that_is_full_from_the_start_holds_a_session_later() {
    on_a_small_disk("a_disk_that_is_full_from_the_start_holds_a_session_later", |place| {
        let paths = session(place);
        fs::create_dir_all(paths.side()).unwrap();
        let filler = fill(place);
        let mut log = create(&paths);
        let error = say(&mut log, 1).unwrap_err();
        assert!(error.0.contains("disk is full"), "{error}");
        fs::remove_file(filler).unwrap();
        restate(&mut log, 1).unwrap();
        say(&mut log, 2).unwrap();
        assert_eq!(messages(&paths), [1, 2]);
        let taken = Lease::take(paths.file());
        assert!(matches!(taken, Err(LeaseError::Busy(_))), "the lock needs no room: {taken:?}");
    });
}

#[test]
fn a_torn_end_that_cannot_be_set_aside_stays_until_it_can() {
    on_a_small_disk("a_torn_end_that_cannot_be_set_aside_stays_until_it_can", |place| {
        let paths = session(place);
        let mut log = create(&paths);
        say(&mut log, 1).unwrap();
        drop(log);
        let whole = fs::read(paths.file()).unwrap();
        let torn = b"{\"type\":\"user\",\"mess";
        fs::write(paths.file(), [&whole[..], torn].concat()).unwrap();
        fs::create_dir_all(paths.side()).unwrap();
        let filler = fill(place);

        let loaded = load(paths.file(), LogEnd::End).unwrap();
        let header = Arc::new(Header::new(SEED, Path::new("/project"), 0));
        let mut log = LogWriter::resume(&paths, header, &loaded, LogOptions::default()).unwrap();
        let error = say(&mut log, 2).unwrap_err();
        assert!(error.0.contains("incomplete last line") && error.0.contains("disk is full"), "{error}");
        fs::remove_file(filler).unwrap();
        restate(&mut log, 2).unwrap();
        assert_eq!(fs::read(paths.torn_end(whole.len() as u64)).unwrap(), torn);
        assert_eq!(messages(&paths), [1, 2]);
    });
}

#[test]
fn a_read_only_directory_is_told_and_survived() {
    on_a_small_disk("a_read_only_directory_is_told_and_survived", |place| {
        let paths = session(place);
        mount("remount,ro", place);
        assert!(Lease::take(paths.file()).unwrap_err().to_string().contains("lock"));
        let mut log = create(&paths);
        let error = say(&mut log, 1).unwrap_err();
        assert!(error.0.contains("read-only") && error.0.contains("WINDLASS_HOME"), "{error}");
        assert!(!error.0.contains("filler"));

        mount("remount,rw", place);
        restate(&mut log, 1).unwrap();
        say(&mut log, 2).unwrap();
        drop(log);
        assert_eq!(messages(&paths), [1, 2]);

        // A session that is there can be read, and whoever wants to write it is told at once.
        mount("remount,ro", place);
        let loaded = load(paths.file(), LogEnd::End).unwrap();
        let header = Arc::new(Header::new(SEED, Path::new("/project"), 0));
        let error = LogWriter::resume(&paths, header, &loaded, LogOptions::default()).err().unwrap();
        assert!(error.0.contains("read-only"), "{error}");
    });
}
