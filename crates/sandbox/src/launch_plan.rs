//! The messages to the processes between the engine and a command: what to run, and how to confine it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::messages::{self, MessageBuffer};
use crate::policy::{ProtectedPath, ResourceLimits};
use crate::raw_text;

/// How a command is to be confined: the policy as far as other processes need it, and what was found to work here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfinementPlan {
    pub(crate) backend: Backend,
    pub(crate) files: FileAccess,
    pub(crate) network: NetworkReach,
    pub(crate) can_make_unix_sockets: bool,
    pub(crate) limits: ResourceLimits,
}

impl ConfinementPlan {
    /// Whether nothing but Landlock keeps a command from sockets that have a name and no file: they belong to a network.
    pub(crate) fn shares_abstract_sockets(&self) -> bool {
        self.can_make_unix_sockets && self.network == NetworkReach::Open
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileAccess {
    #[serde(with = "raw_text")]
    pub(crate) writable: Vec<PathBuf>,
    #[serde(with = "raw_text")]
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) protected: Vec<ProtectedPath>,
    #[serde(with = "raw_text")]
    pub(crate) hidden: Vec<PathBuf>,
    #[serde(with = "raw_text")]
    pub(crate) temp: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Backend {
    Bubblewrap(Bubblewrap),
    Landlock(Landlock),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bubblewrap {
    #[serde(with = "raw_text")]
    pub(crate) program: PathBuf,
    /// Whether it can make a user namespace. Root can do without.
    pub(crate) has_user_namespace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Landlock {
    /// The version of the kernel's interface.
    pub(crate) version: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NetworkReach {
    Off,
    Proxied,
    Open,
}

/// The message to a process inside the sandbox: how to confine itself, and where the command starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfinedRun {
    pub(crate) plan: ConfinementPlan,
    #[serde(with = "raw_text")]
    pub(crate) cwd: PathBuf,
    #[serde(with = "raw_text")]
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// No argument is longer: the system passes no longer one to a program.
const PART_BYTES_MAX: usize = 128 * 1024 - 1;

/// Goes before a request, with the command's standard input; JSON skips it.
const INPUT_CARRIER: &[u8] = b" ";

/// What the engine tells the supervisor: one request per command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SupervisorRequest {
    pub(crate) command: CommandToRun,
    pub(crate) confined: Option<ConfinedRun>,
    pub(crate) has_input: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CommandToRun {
    Shell(ShellScript),
    Program(#[serde(with = "raw_text")] Vec<OsString>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShellScript {
    pub(crate) text: String,
    pub(crate) should_track_cwd: bool,
    #[serde(with = "raw_text")]
    pub(crate) source: Option<PathBuf>,
}

impl CommandToRun {
    /// Whether the system could pass it to a program.
    pub(crate) fn fits(&self) -> bool {
        match self {
            Self::Shell(script) => script.text.len() <= PART_BYTES_MAX,
            Self::Program(argv) => argv.iter().all(|argument| argument.len() <= PART_BYTES_MAX),
        }
    }
}

/// Sends the standard input that belongs to the request to come. The socket must be new, so that nobody waits.
pub(crate) fn send_input(socket: impl AsFd, input: BorrowedFd<'_>) -> io::Result<()> {
    messages::send_bytes(socket, INPUT_CARRIER, Some(input))
}

/// The request and the standard input that came with it; `None`, to run nothing, if it was cut short.
pub(crate) fn read_request(socket: impl AsFd) -> io::Result<Option<(SupervisorRequest, Option<OwnedFd>)>> {
    let mut buffer = MessageBuffer::default();
    let Some(request) = buffer.wait::<SupervisorRequest>(socket)? else { return Ok(None) };
    if request.has_input != buffer.descriptor.is_some() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Some((request, buffer.descriptor)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_request_comes_with_its_input() {
        for has_input in [false, true] {
            let request = SupervisorRequest {
                command: CommandToRun::Shell(ShellScript {
                    text: "echo 'ü\n'\n".into(),
                    should_track_cwd: true,
                    source: Some("/a b/env".into()),
                }),
                confined: None,
                has_input,
            };
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(b"input").unwrap();
            drop(writer);
            if has_input {
                send_input(&ours, reader.as_fd()).unwrap();
            }
            ours.write_all(&messages::encode(&request).unwrap()).unwrap();
            let (found, input) = read_request(&theirs).unwrap().unwrap();
            assert_eq!(found, request);
            let mut text = String::new();
            if let Some(input) = input {
                std::fs::File::from(input).read_to_string(&mut text).unwrap();
            }
            assert_eq!(text, if has_input { "input" } else { "" });
        }
    }

    #[test]
    fn nobody_asks_for_anything() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert_eq!(read_request(&theirs).unwrap().map(|(request, _)| request), None);
    }
}
