//! What the engine tells the supervisor, as bytes.
//!
//! One request per command: whether to report the final working directory, the file to source and the script, each of
//! the two with its length in front.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::job::ShellJob;

/// No part is longer: the system passes no longer argument to a program.
pub(crate) const PART_BYTES_MAX: usize = 128 * 1024 - 1;

/// What a supervisor is to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) track_cwd: bool,
    pub(crate) source: Option<PathBuf>,
    pub(crate) script: OsString,
}

pub(crate) fn encode(job: &ShellJob) -> Vec<u8> {
    let source = job.source.as_deref().map_or(&b""[..], |path| path.as_os_str().as_bytes());
    let mut bytes = vec![u8::from(job.track_cwd)];
    for part in [source, job.script.as_bytes()] {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    }
    bytes
}

/// The request; `None` if the other end was closed before all of it came, so nothing is to be run.
pub(crate) fn read(socket: impl AsFd) -> io::Result<Option<Request>> {
    let mut track_cwd = [0];
    if !fill(&socket, &mut track_cwd)? {
        return Ok(None);
    }
    let (Some(source), Some(script)) = (read_part(&socket)?, read_part(&socket)?) else { return Ok(None) };
    let source = (!source.is_empty()).then(|| PathBuf::from(OsString::from_vec(source)));
    Ok(Some(Request { track_cwd: track_cwd != [0], source, script: OsString::from_vec(script) }))
}

fn read_part(socket: impl AsFd) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    if !fill(&socket, &mut length)? {
        return Ok(None);
    }
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > PART_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut part = vec![0; length];
    Ok(fill(&socket, &mut part)?.then_some(part))
}

/// Whether the buffer could be filled before the end.
fn fill(socket: impl AsFd, mut buffer: &mut [u8]) -> io::Result<bool> {
    while !buffer.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::read(&socket, &mut *buffer))? {
            0 => return Ok(false),
            count => buffer = &mut buffer[count..],
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn job(script: &str, source: Option<&str>, track_cwd: bool) -> ShellJob {
        let (script, source) = (script.to_owned(), source.map(PathBuf::from));
        ShellJob { script, cwd: "/".into(), environment: Vec::new(), track_cwd, source }
    }

    fn over_the_wire(bytes: &[u8]) -> Option<Request> {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(bytes).unwrap();
        drop(ours);
        read(theirs).unwrap()
    }

    #[test]
    fn a_request_comes_whole_or_not_at_all() {
        let check = |script: &str, source: Option<&str>, track_cwd: bool| {
            let bytes = encode(&job(script, source, track_cwd));
            for cut in 0..bytes.len() {
                assert_eq!(over_the_wire(&bytes[..cut]), None);
            }
            let expected = Request { track_cwd, source: source.map(PathBuf::from), script: script.into() };
            assert_eq!(over_the_wire(&bytes), Some(expected));
        };
        check("echo 'ü\n'\n", Some("/a b/env"), true);
        check("true", None, false);
        check("", None, true);
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[1, 255, 255, 255, 255, 255, 255, 255, 255]).unwrap();
        assert!(read(theirs).is_err());
    }
}
