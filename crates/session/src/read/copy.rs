//! Copying a log, or its beginning, for a session of its own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use uuid::Uuid;

use super::lines::LineReader;
use super::load::end;
use super::{LoadError, LogEnd};
use crate::Lease;
use crate::disk::sync_directory;
use crate::format::{BEGINNING, LogTime, SessionMark, decode_line};
use crate::preview::members;

/// What is written at once.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Copies a log up to there into a new file, for the session of this id. The file is complete or not there, and the lease is held
/// before anybody can find it; the source is not touched. Returns how many bytes the copy has.
pub fn copy_log(
    source: &Path,
    upto: LogEnd,
    target: &Path,
    session: Uuid,
    lease: Option<&Lease>,
) -> Result<u64, LoadError> {
    let read = |error| LoadError::Read(source.to_owned(), error);
    let write = |error| LoadError::Write(target.to_owned(), error);
    let file = File::open(source).map_err(read)?;
    let end = end(source, &file, upto)?;
    if target.exists() {
        return Err(write(io::ErrorKind::AlreadyExists.into()));
    }
    let mut lines = LineReader::new(file, 0, end).map_err(read)?;
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let draft = NamedTempFile::new_in(folder).map_err(write)?;
    let copy = draft.as_file();
    let mut out = BufWriter::with_capacity(CHUNK_BYTES, copy);
    let mut seq = 0;
    while let Some(raw) = lines.next().map_err(read)? {
        let is_whole = |bytes: &&[u8]| raw.is_ended || decode_line(bytes).is_ok();
        let Some(bytes) = raw.bytes.filter(is_whole) else { continue };
        let readdressed = if bytes.starts_with(BEGINNING.as_bytes()) {
            // Lines of our own name no session.
            seq = seq.max(members(bytes).and_then(|members| members.read("seq")).unwrap_or(0));
            None
        } else {
            readdress(bytes, session)
        };
        let line = readdressed.as_deref().map_or(bytes, str::as_bytes);
        out.write_all(line).and_then(|()| out.write_all(b"\n")).map_err(write)?;
    }
    let from = source.file_stem().and_then(|stem| Uuid::parse_str(stem.to_str()?).ok()).unwrap_or_default();
    let at = LogTime { at_ms: 0, wall_ms: crate::time::now_ms() };
    let mut line = Vec::new();
    SessionMark::Forked { source: from, entry: upto.entry() }.put(seq + 1, at, &mut line);
    out.write_all(&line).and_then(|()| out.flush()).and_then(|()| copy.sync_all()).map_err(write)?;
    drop(out);
    let length = copy.metadata().map_err(write)?.len();
    lease.map_or(Ok(()), |lease| lease.cover(copy)).map_err(write)?;
    draft.persist_noclobber(target).map_err(|error| write(error.error))?;
    File::open(folder).and_then(|folder| sync_directory(&folder)).map_err(write)?;
    Ok(length)
}

/// A line as one of this session, with a word about where it came from; nothing if it names no session.
fn readdress(line: &[u8], session: Uuid) -> Option<String> {
    let object = members(line)?;
    let old = object.get("sessionId")?.get();
    let mut fields = vec![("sessionId", format!("\"{}\"", session.hyphenated()))];
    if let Some(uuid) = object.get("uuid") {
        let from = format!(r#"{{"sessionId":{old},"messageUuid":{}}}"#, uuid.get());
        fields.push(("forkedFrom", from));
    }
    Some(object.with(&fields))
}
