//! Logs to test with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use uuid::Uuid;
use windlass_protocol::{Record, SessionSeed};
use windlass_session::{Encoder, Header, LoadedLog, LogEnd, LogItem, LogItems, Tail, load};

pub(crate) const SESSION: Uuid = Uuid::from_u128(0x1111_2222_3333_4444_5555_6666_7777_8888);
pub(crate) const SEED: SessionSeed = SessionSeed(7);

pub(crate) fn header() -> Arc<Header> {
    let mut header = Header::new(SEED, Path::new("/project"), 1_794_565_230_123);
    header.engine = "0.0.0".into();
    header.into()
}

pub(crate) fn encoder(tail: Tail) -> Encoder {
    Encoder::new(SESSION, header(), tail)
}

/// The bytes of a log.
pub(crate) fn encode(batches: &[Vec<Record>]) -> Vec<u8> {
    let mut encoder = encoder(Tail::default());
    let mut bytes = Vec::new();
    encoder.open(&mut bytes);
    for batch in batches {
        encoder.encode(batch, &mut bytes);
    }
    bytes
}

/// A file of a session in a directory of its own.
pub(crate) struct SessionFile {
    pub(crate) path: PathBuf,
    _directory: TempDir,
}

impl SessionFile {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(format!("{SESSION}.jsonl"));
        std::fs::write(&path, bytes).unwrap();
        Self { path, _directory: directory }
    }

    pub(crate) fn load(&self) -> LoadedLog {
        load(&self.path, LogEnd::End).unwrap()
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }
}

pub(crate) fn load_bytes(bytes: &[u8]) -> LoadedLog {
    SessionFile::new(bytes).load()
}

/// Records as text, to compare them.
pub(crate) fn show<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<String> {
    records.into_iter().map(|record| format!("{record:?}")).collect()
}

/// The records that a log tells.
pub(crate) fn records(log_items: &mut LogItems) -> impl Iterator<Item = Record> + use<'_> {
    log_items.filter_map(|item| match item.unwrap() {
        LogItem::Told(told) => Some(told.record),
        _ => None,
    })
}
