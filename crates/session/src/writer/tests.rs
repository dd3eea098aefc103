use super::*;
use crate::disk::tests::simulated_disk::{DiskFault, SimulatedDisk};
use rustix::io::Errno;
use std::path::Path;
use uuid::Uuid;
use windlass_protocol::{
    Block, CallId, CallIntent, CallKind, CompactTrigger, Compaction, Event, Input, Message, MessageId,
    Origin, Repair, SessionSeed, SessionSnapshot, TimerId, UserEntry,
};

mod appends;
mod faults;
mod keeping;
mod power_loss;
mod resumed;
mod rewound;
mod snapshot_wanted;

const SEED: SessionSeed = SessionSeed(7);

fn paths(directory: &Path) -> SessionPaths {
    SessionPaths::of_file(directory.join(format!("{}.jsonl", SEED.session_uuid()))).unwrap()
}

fn header() -> Arc<Header> {
    Arc::new(Header::new(SEED, Path::new("/project"), 1_700_000_000_000))
}

fn options(sync: SyncPolicy) -> LogOptions {
    LogOptions { sync, ..LogOptions::default() }
}

/// A new log on a simulated disk.
fn on(disk: &SimulatedDisk, sync: SyncPolicy) -> LogWriter {
    LogWriter::create_on(Arc::new(disk.clone()), &paths(Path::new("/nowhere")), header(), options(sync))
}

/// What the core heard, something that was said, and a call: batch `n`, which the call's hash names.
fn batch(n: u64) -> Vec<Record> {
    let heard = Input::at(n, Event::Timer(TimerId(u32::try_from(n).unwrap())));
    let text = Block::text(&format!("batch {n} {}", "x".repeat(usize::try_from(n * 37 % 400).unwrap())));
    let said = Message::user(MessageId(n), Origin::Prompt, vec![text]);
    vec![Record::Heard(Box::new(heard)), Record::Said(UserEntry::plain(Arc::new(said))), intended(n, &[])]
}

fn intended(n: u64, changes: &[&str]) -> Record {
    Record::Intended(CallIntent {
        call: CallId(u32::try_from(n).unwrap()),
        tool_use_id: format!("toolu_{n}").into(),
        tool: "Bash".into(),
        kind: CallKind::Execute,
        input_hash: n,
        changes: changes.iter().map(PathBuf::from).collect(),
    })
}

/// Everything that counts: the batches so far.
fn snapshot(batches: &[u64]) -> Record {
    Record::Snapshot(Box::new(SessionSnapshot {
        doubtful: batches.to_vec(),
        cwd: "/project".into(),
        ..SessionSnapshot::default()
    }))
}

/// Which batches a reader finds, restated or as they were appended, in order.
fn batches(records: &[Record]) -> Vec<u64> {
    let mut found = Vec::new();
    for record in records {
        match record {
            Record::Snapshot(snapshot) => found.clone_from(&snapshot.doubtful),
            Record::Intended(intended) => found.push(intended.input_hash),
            _ => {}
        }
    }
    found
}

/// Reads logs, from a place of its own.
struct Reader(tempfile::TempDir);

impl Reader {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn load(&self, bytes: &[u8]) -> LoadedLog {
        let paths = paths(self.0.path());
        std::fs::write(paths.file(), bytes).unwrap();
        crate::load(paths.file(), crate::LogEnd::End).unwrap()
    }
}

/// What a reader makes of these bytes.
fn load(bytes: &[u8]) -> LoadedLog {
    Reader::new().load(bytes)
}

fn now(appended: AppendProgress) -> Result<(), LogError> {
    match appended {
        AppendProgress::Now(done) => done,
        AppendProgress::Later(_) => panic!("there is no runtime"),
    }
}

fn append(log: &mut LogWriter, n: u64, durability: Durability) -> Result<(), LogError> {
    now(log.append(&batch(n), durability))
}

fn lines(disk: &SimulatedDisk) -> Vec<String> {
    let bytes = disk.contents().unwrap().bytes;
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}
