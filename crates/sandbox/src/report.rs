//! What the supervisor tells the engine, as bytes.
//!
//! One report per command: a kind, a number, and the final working directory with its length in front.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::process::{Exit, Status};

const HEADER: usize = 9;
const CODE: u8 = b'c';
const SIGNAL: u8 = b's';
const NOT_STARTED: u8 = b'n';

pub(crate) fn encode(exit: &Exit) -> Vec<u8> {
    let (kind, number) = match exit.status {
        Status::Code(code) => (CODE, code),
        Status::Signal(signal) => (SIGNAL, signal),
        Status::NotStarted(errno) => (NOT_STARTED, errno),
        // Only the engine's side finds out that a report is missing.
        Status::Lost => return Vec::new(),
    };
    let cwd = exit.cwd.as_ref().map_or(&b""[..], |cwd| cwd.as_os_str().as_bytes());
    let length = u32::try_from(cwd.len()).unwrap_or(0);
    let mut bytes = vec![kind];
    bytes.extend(number.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(&cwd[..length as usize]);
    bytes
}

/// The report, once all its bytes are there.
pub(crate) fn decode(bytes: &[u8]) -> Option<Exit> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let [kind, n0, n1, n2, n3, l0, l1, l2, l3] = *header;
    let number = i32::from_le_bytes([n0, n1, n2, n3]);
    let cwd = rest.get(..u32::from_le_bytes([l0, l1, l2, l3]) as usize)?;
    let status = match kind {
        CODE => Status::Code(number),
        SIGNAL => Status::Signal(number),
        NOT_STARTED => Status::NotStarted(number),
        _ => Status::Lost,
    };
    let cwd = (!cwd.is_empty()).then(|| PathBuf::from(OsString::from_vec(cwd.to_vec())));
    Some(Exit { status, cwd })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_wire_in_pieces() {
        let check = |status: Status, cwd: Option<&str>| {
            let exit = Exit { status, cwd: cwd.map(PathBuf::from) };
            let bytes = encode(&exit);
            for cut in 0..bytes.len() {
                assert_eq!(decode(&bytes[..cut]), None);
            }
            assert_eq!(decode(&bytes), Some(exit));
        };
        check(Status::Code(0), Some("/a b/ü\n"));
        check(Status::Code(255), None);
        check(Status::Signal(9), None);
        check(Status::NotStarted(2), None);
    }
}
