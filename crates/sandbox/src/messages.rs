//! Messages between the processes of one command: each is a line of JSON, and a descriptor may come along.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::process::Exit;

/// No message is longer. The environment of a program alone may have a few megabytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 32 << 20;
const PIECE_BYTES: usize = 64 * 1024;

/// What is told upwards about a command: by the process that confines it to the supervisor, and by that to the engine.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CommandReport {
    /// The sandbox stands. Told to the supervisor only.
    Confined,
    /// Here is the socket on which the command will look for its proxy; it comes as a descriptor.
    Listening,
    /// The sandbox does not stand, so nothing was run. Told to the supervisor only.
    Failed(String),
    Ended(Exit),
}

pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    send_bytes(socket, &encode(message)?, descriptor)
}

/// Writes all the bytes; the descriptor goes with the first of them.
pub(crate) fn send_bytes(
    socket: impl AsFd,
    mut bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut descriptors = descriptor.as_slice();
    while !bytes.is_empty() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let piece = [IoSlice::new(bytes)];
        let count =
            rustix::io::retry_on_intr(|| sendmsg(&socket, &piece, &mut control, SendFlags::NOSIGNAL))?;
        bytes = &bytes[count..];
        descriptors = &[];
    }
    Ok(())
}

/// What has arrived on a socket and was not taken yet.
#[derive(Default)]
pub(crate) struct MessageBuffer {
    bytes: Vec<u8>,
    /// How many of them are known to hold no end of a line.
    searched: usize,
    pub(crate) descriptor: Option<OwnedFd>,
}

impl MessageBuffer {
    /// Receives what there is; false at the end.
    pub(crate) fn receive(&mut self, socket: impl AsFd, flags: RecvFlags) -> io::Result<bool> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut piece = vec![0; PIECE_BYTES];
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&socket, &mut [IoSliceMut::new(&mut piece)], &mut control, flags)
        })?;
        self.bytes.extend(&piece[..received.bytes]);
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        self.descriptor = descriptor.or(self.descriptor.take());
        Ok(received.bytes > 0)
    }

    /// Takes the first whole message. Both ends are the same program, so other bytes are an error.
    pub(crate) fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let end = self.bytes[self.searched..].iter().position(|&byte| byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.bytes.len();
            let is_too_long = self.searched > MESSAGE_BYTES_MAX;
            return if is_too_long { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) };
        };
        let message = serde_json::from_slice(&self.bytes[..end])?;
        self.bytes.drain(..=end);
        self.searched = 0;
        Ok(Some(message))
    }

    /// Waits for one message; `None` if the other end was closed before all of it came.
    pub(crate) fn wait<T: DeserializeOwned>(&mut self, socket: impl AsFd) -> io::Result<Option<T>> {
        while self.receive(&socket, RecvFlags::empty())? {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io::Write;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::process::CommandStatus;
    use crate::raw_text;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Point,
        Path(#[serde(with = "raw_text")] Vec<(OsString, Option<OsString>)>),
    }

    fn buffer(bytes: &[u8]) -> MessageBuffer {
        MessageBuffer { bytes: bytes.to_vec(), ..MessageBuffer::default() }
    }

    #[test]
    fn a_message_comes_whole_or_not_at_all() {
        let check = |shape: Shape| {
            let bytes = encode(&shape).unwrap();
            for cut in 0..bytes.len() {
                assert_eq!(buffer(&bytes[..cut]).take::<Shape>().unwrap(), None);
                let (mut ours, theirs) = UnixStream::pair().unwrap();
                ours.write_all(&bytes[..cut]).unwrap();
                drop(ours);
                assert_eq!(MessageBuffer::default().wait::<Shape>(theirs).unwrap(), None);
            }
            let mut buffer = buffer(&[&bytes[..], b"next"].concat());
            assert_eq!(buffer.take().unwrap(), Some(shape));
            assert_eq!(buffer.bytes, b"next");
        };
        check(Shape::Point);
        let raw = OsString::from_vec(vec![255, 0, b'a', b'\n']);
        check(Shape::Path(vec![("ü\n".into(), None), (raw.clone(), Some(raw))]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [&bytes[..], b"\n"].concat();
            let _ = buffer(&bytes).take::<Shape>();
            let _ = buffer(&bytes).take::<crate::launch_plan::SupervisorRequest>();
            let _ = buffer(&bytes).take::<CommandReport>();
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |bytes: &[u8]| assert!(buffer(bytes).take::<Shape>().is_err(), "{bytes:?}");
        check(b"\n");
        check(b"\"Line\"\n");
        check(b"{\"Path\":[[1,null]]}\n");
        check(&vec![b' '; MESSAGE_BYTES_MAX + 1]);
    }

    #[test]
    fn a_report_arrives_in_pieces() {
        let check = |status: CommandStatus, cwd: Option<&str>, reason: Option<&str>| {
            let (cwd, reason) = (cwd.map(PathBuf::from), reason.map(str::to_owned));
            let report = CommandReport::Ended(Exit { cwd, reason, ..Exit::new(status) });
            let (ours, theirs) = UnixStream::pair().unwrap();
            let mut buffer = MessageBuffer::default();
            for byte in encode(&report).unwrap() {
                assert_eq!(buffer.take::<CommandReport>().unwrap(), None);
                send_bytes(&ours, &[byte], None).unwrap();
                buffer.receive(&theirs, RecvFlags::empty()).unwrap();
            }
            assert_eq!(buffer.take().unwrap(), Some(report));
        };
        check(CommandStatus::Code(0), Some("/a b/ü\n"), None);
        check(CommandStatus::Code(255), None, None);
        check(CommandStatus::Signal(9), None, None);
        check(CommandStatus::NotStarted(2), None, Some("no namespaces"));
        check(CommandStatus::Lost, None, None);
    }
}
