//! Copying a log, or its beginning, for a session of its own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use memchr::memmem;
use uuid::Uuid;
use windlass_protocol::RawObject;

use super::file::LineReader;
use super::load::end;
use super::{LoadError, Upto};
use crate::Lease;
use crate::disk::sync_directory;
use crate::draft::DraftFile;
use crate::format::{BEGINNING, LogTime, SessionMark, decode_line};

/// What is written at once.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Copies a log up to there into a new file, for the session of this id. The file is complete or not there, and the lease is held
/// before anybody can find it; the source is not touched. Returns how many bytes the copy has.
pub fn copy_log(
    source: &Path,
    upto: Upto,
    target: &Path,
    session: Uuid,
    lease: Option<&Lease>,
) -> Result<u64, LoadError> {
    let read = |error| LoadError::Read { path: source.to_owned(), source: error };
    let write = |error| LoadError::Write { path: target.to_owned(), source: error };
    let file = File::open(source).map_err(read)?;
    let end = end(source, &file, upto)?;
    if target.exists() {
        return Err(write(io::ErrorKind::AlreadyExists.into()));
    }
    let lines = LineReader::new(file, 0, end).map_err(read)?;
    let from = source.file_stem().and_then(|stem| Uuid::parse_str(stem.to_str()?).ok()).unwrap_or_default();
    let mark = SessionMark::Forked { source: from, entry: upto.entry() };
    let draft = DraftFile::create(|number| target.with_extension(format!("{number}.part"))).map_err(write)?;
    let length = copy(lines, &draft.file, session, &mark, (&read, &write))?;
    lease.map_or(Ok(()), |lease| lease.cover(&draft.file)).map_err(write)?;
    draft.take_free_name(target).and_then(|()| sync_name(target)).map_err(write)?;
    Ok(length)
}

fn sync_name(target: &Path) -> io::Result<()> {
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(&File::open(directory.unwrap_or(Path::new(".")))?)
}

type Fault<'a> = &'a dyn Fn(io::Error) -> LoadError;

fn copy(
    mut lines: LineReader,
    to: &File,
    session: Uuid,
    mark: &SessionMark,
    (read, write): (Fault<'_>, Fault<'_>),
) -> Result<u64, LoadError> {
    let mut out = BufWriter::with_capacity(CHUNK_BYTES, to);
    let (mut line, mut length, mut seq) = (Vec::new(), 0, 0);
    while let Some(raw) = lines.next().map_err(read)? {
        let is_whole = |bytes: &&[u8]| raw.is_ended || decode_line(bytes).is_ok();
        let Some(bytes) = raw.bytes.filter(is_whole) else { continue };
        seq = number(bytes).unwrap_or(seq).max(seq);
        line.clear();
        readdress(bytes, session, &mut line);
        line.push(b'\n');
        length += line.len() as u64;
        out.write_all(&line).map_err(write)?;
    }
    line.clear();
    let at = LogTime { at_ms: 0, wall_ms: crate::time::now_ms() };
    mark.put(seq + 1, at, &mut line);
    length += line.len() as u64;
    out.write_all(&line).and_then(|()| out.flush()).and_then(|()| to.sync_all()).map_err(write)?;
    Ok(length)
}

/// The number of a line of our own.
fn number(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(BEGINNING.as_bytes())?;
    let at = memmem::find(rest.get(..rest.len().min(100))?, b"\"seq\":")?;
    let digits = rest[at + 6..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number: Option<u64>, digit| {
        number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Appends a line as one of this session. Lines of our own name no session.
fn readdress(line: &[u8], session: Uuid, out: &mut Vec<u8>) {
    if line.starts_with(BEGINNING.as_bytes()) {
        return out.extend_from_slice(line);
    }
    if readdress_in_place(line, session, out).is_none() && rewrite(line, session, out).is_none() {
        out.extend_from_slice(line);
    }
}

const SESSION_KEY: &[u8] = br#""sessionId":""#;
const UUID_KEY: &[u8] = br#""uuid":""#;
const FORKED_KEY: &[u8] = br#","forkedFrom":{"#;
const UUID_LENGTH: usize = 36;

/// How far into a line the session is looked for before the line is parsed.
const HEAD_BYTES: usize = 2048;

/// A line as we write them: the session stands before anything that somebody said, and only plain fields before it.
fn readdress_in_place(line: &[u8], session: Uuid, out: &mut Vec<u8>) -> Option<()> {
    let beginning = line.get(..line.len().min(HEAD_BYTES))?;
    let key = memmem::find(beginning, SESSION_KEY)?;
    let (head, value) = (&line[..key], &line[key + SESSION_KEY.len()..]);
    let (old, rest) = value.split_at_checked(UUID_LENGTH)?;
    let rest = rest.strip_prefix(b"\"")?;
    if head.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() != 1
        || Uuid::try_parse_ascii(old).is_err()
    {
        return None;
    }
    out.extend_from_slice(head);
    out.extend_from_slice(SESSION_KEY);
    out.extend_from_slice(session.hyphenated().to_string().as_bytes());
    out.push(b'"');
    let uuid = memmem::find(head, UUID_KEY).and_then(|at| head[at + UUID_KEY.len()..].get(..UUID_LENGTH));
    if let Some(uuid) = uuid {
        out.extend_from_slice(br#","forkedFrom":{"sessionId":""#);
        out.extend_from_slice(old);
        out.extend_from_slice(br#"","messageUuid":""#);
        out.extend_from_slice(uuid);
        out.extend_from_slice(br#""}"#);
    }
    out.extend_from_slice(without_origin(rest));
    Some(())
}

/// What follows the session, without an earlier copy's word about where it came from.
fn without_origin(rest: &[u8]) -> &[u8] {
    let origin = rest.strip_prefix(FORKED_KEY);
    let end = origin.and_then(|origin| Some(&origin[memchr::memchr(b'}', origin)? + 1..]));
    end.unwrap_or(rest)
}

/// Any other line that names a session.
fn rewrite(line: &[u8], session: Uuid, out: &mut Vec<u8>) -> Option<()> {
    let object = RawObject::parse(std::str::from_utf8(line).ok()?).ok()?;
    let old = object.get("sessionId")?.get();
    let mut fields = vec![("sessionId", format!("\"{}\"", session.hyphenated()))];
    if let Some(uuid) = object.get("uuid") {
        let from = format!(r#"{{"sessionId":{old},"messageUuid":{}}}"#, uuid.get());
        fields.push(("forkedFrom", from));
    }
    out.extend_from_slice(object.with(&fields).as_bytes());
    Some(())
}
