//! What is told upwards about a command: by the process that confines it to the supervisor, and by that to the engine.

use crate::network::Refused;
use crate::process::{Exit, Status};
use crate::wire::{Wire, wire_enum};

/// What is told upwards about a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The sandbox stands. Told to the supervisor only.
    Confined,
    /// Here is the socket on which the command will look for its proxy; it comes as a descriptor.
    Listening,
    /// The sandbox does not stand, so nothing was run. Told to the supervisor only.
    Failed(String),
    /// How the command ended.
    Ended(Exit),
}

wire_enum!(Message { 0 => Confined, 1 => Listening, 2 => Failed(reason), 3 => Ended(exit) });
wire_enum!(Status { 0 => Code(code), 1 => Signal(signal), 2 => NotStarted(errno), 3 => Lost });

impl Wire for Exit {
    fn put(&self, bytes: &mut Vec<u8>) {
        let Self { status, cwd, reason, refused: _ } = self;
        status.put(bytes);
        cwd.put(bytes);
        reason.put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            status: Wire::take(bytes)?,
            cwd: Wire::take(bytes)?,
            reason: Wire::take(bytes)?,
            // Only the engine, whose proxy it is, knows these.
            refused: Vec::<Refused>::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::wire::{message, take_message};

    #[test]
    fn a_report_survives_the_wire_in_pieces() {
        let check = |status: Status, cwd: Option<&str>, reason: Option<&str>| {
            let (cwd, reason) = (cwd.map(PathBuf::from), reason.map(str::to_owned));
            let report = Message::Ended(Exit { cwd, reason, ..Exit::new(status) });
            let bytes = message(&report);
            for cut in 0..bytes.len() {
                assert_eq!(take_message::<Message>(&mut bytes[..cut].to_vec()).unwrap(), None);
            }
            assert_eq!(take_message(&mut bytes.clone()).unwrap(), Some(report));
        };
        check(Status::Code(0), Some("/a b/ü\n"), None);
        check(Status::Code(255), None, None);
        check(Status::Signal(9), None, None);
        check(Status::NotStarted(2), None, Some("no namespaces"));
        check(Status::Lost, None, None);
    }
}
