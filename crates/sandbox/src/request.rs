//! What the engine tells the supervisor: one request per command.
//!
//! The very first byte stands alone, so that the command's standard input can come with it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::RecvFlags;

use crate::passing;
use crate::plan::Confined;
use crate::wire::{self, wire_enum, wire_struct};

/// No argument is longer: the system passes no longer one to a program.
pub(crate) const PART_BYTES_MAX: usize = 128 * 1024 - 1;

/// What a supervisor is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) what: What,
    /// How it is confined, if it is.
    pub(crate) confined: Option<Confined>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Shell(Script),
    /// A program and its arguments.
    Program(Vec<OsString>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) text: OsString,
    pub(crate) track_cwd: bool,
    pub(crate) source: Option<PathBuf>,
}

wire_struct!(Request { what, confined });
wire_enum!(What { 0 => Shell(script), 1 => Program(argv) });
wire_struct!(Script { text, track_cwd, source });

impl What {
    /// Whether the system could pass it to a program.
    pub(crate) fn fits(&self) -> bool {
        match self {
            Self::Shell(script) => script.text.len() <= PART_BYTES_MAX,
            Self::Program(argv) => argv.iter().all(|argument| argument.len() <= PART_BYTES_MAX),
        }
    }
}

/// Sends what goes before the request: the standard input, if there is one. The socket must be new, so that nobody waits.
pub(crate) fn announce(socket: impl AsFd, input: Option<BorrowedFd<'_>>) -> io::Result<()> {
    passing::send(socket, &[u8::from(input.is_some())], input)
}

/// The request with the standard input that came with it; `None` if the other end was closed before all of it came, so
/// nothing is to be run.
pub(crate) fn read(socket: impl AsFd) -> io::Result<Option<(Request, Option<OwnedFd>)>> {
    let (first, input) = passing::receive(&socket, 1, RecvFlags::empty())?;
    if first.is_empty() {
        return Ok(None);
    }
    if (first == [1]) != input.is_some() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(wire::read_message(socket)?.map(|request| (request, input)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_request_comes_with_its_input() {
        let request = Request {
            what: What::Shell(Script {
                text: "echo 'ü\n'\n".into(),
                track_cwd: true,
                source: Some("/a b/env".into()),
            }),
            confined: None,
        };
        for with_input in [false, true] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(b"input").unwrap();
            drop(writer);
            announce(&ours, with_input.then_some(reader.as_fd())).unwrap();
            ours.write_all(&wire::message(&request)).unwrap();
            let (found, input) = read(&theirs).unwrap().unwrap();
            assert_eq!(found, request);
            let mut text = String::new();
            if let Some(input) = input {
                std::fs::File::from(input).read_to_string(&mut text).unwrap();
            }
            assert_eq!(text, if with_input { "input" } else { "" });
        }
    }

    #[test]
    fn nobody_asks_for_anything() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert_eq!(read(&theirs).unwrap().map(|(request, _)| request), None);
    }
}
