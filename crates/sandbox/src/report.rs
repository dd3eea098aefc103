//! What is told upwards about a command: by the process that confines it to the supervisor, and by that to the engine.

use serde::{Deserialize, Serialize};

use crate::process::Exit;

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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use rustix::net::RecvFlags;

    use super::*;
    use crate::messages::{MessageBuffer, encode, send_bytes};
    use crate::process::CommandStatus;

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
