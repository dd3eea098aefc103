//! What the user reads when the log cannot be written: what happened, to which file, and what helps. Whoever shows it begins and
//! ends the sentence.

use std::io::{self, ErrorKind};
use std::path::Path;

use windlass_ports::LogError;

use crate::disk::Refused;

/// The log itself could not be written.
pub(crate) fn of_log(path: &Path, error: &io::Error) -> LogError {
    LogError(format!("the session's log {} cannot be written: {}", path.display(), explain(error)))
}

/// The log was written, but the disk did not keep it.
pub(crate) fn of_sync(path: &Path, error: &io::Error) -> LogError {
    let path = path.display();
    LogError(format!(
        "what was written to the session's log {path} did not reach the disk: {}",
        explain(error)
    ))
}

/// The content of files could not be kept before a call that may change them.
pub(crate) fn of_keeping(path: &Path, error: &io::Error) -> LogError {
    let path = path.display();
    LogError(format!(
        "the files that the call may change could not be kept beside the session's log {path}, so it was not started: {}",
        explain(error)
    ))
}

/// A torn tail could not be set aside.
pub(crate) fn of_torn(path: &Path, error: &io::Error) -> LogError {
    let path = path.display();
    LogError(format!(
        "the torn end of the session's log {path} could not be set aside, so nothing is written behind it: {}",
        explain(error)
    ))
}

/// The work was given up before it was done, because the run it belongs to is gone.
pub(crate) fn given_up(path: &Path) -> LogError {
    LogError(format!("the session's log {} was not written: the run was given up", path.display()))
}

fn explain(error: &io::Error) -> String {
    if let Some(refused) = error.get_ref().and_then(|inner| inner.downcast_ref::<Refused>()) {
        return format!("{refused}. {}", after_refusal(*refused));
    }
    let (what, then) = match error.kind() {
        ErrorKind::StorageFull => ("the disk is full", "Free some space, then send the prompt again"),
        ErrorKind::QuotaExceeded => {
            ("your quota on this disk is used up", "Free some space, then send the prompt again")
        }
        ErrorKind::ReadOnlyFilesystem => (
            "the file system is read-only",
            "Make it writable, or set WINDLASS_HOME to a directory elsewhere",
        ),
        ErrorKind::PermissionDenied => (
            "permission is denied",
            "Make the file and its directory writable for you, or set WINDLASS_HOME to a directory elsewhere",
        ),
        ErrorKind::FileTooLarge => (
            "the file is as large as it may get",
            "Raise the limit on file sizes, or go on in a copy of the session (--fork-session)",
        ),
        ErrorKind::NotFound => {
            ("its directory is not there any more", "Send the prompt again to make it anew")
        }
        ErrorKind::NotADirectory => (
            "something that is no directory stands where its directory belongs",
            "Move it away, or set WINDLASS_HOME to a directory elsewhere",
        ),
        ErrorKind::WriteZero => ("the disk takes no more", "Free some space, then send the prompt again"),
        _ if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => (
            "the disk reports an error",
            "Look at the disk; if it works again, send the prompt again. What the session still knows is written anew",
        ),
        _ => return format!("{error}. Send the prompt again when that is solved"),
    };
    format!("{what} ({error}). {then}")
}

fn after_refusal(refused: Refused) -> &'static str {
    match refused {
        Refused::Link => "Put a real file or directory in its place; logs are not written through links",
        Refused::Owner(_) => "Run as that user, or go on in a copy of the session (--fork-session)",
        Refused::Kind => "Move away what stands in its place",
        Refused::Taken => "Resume it, or choose another id",
        Refused::Removed => "Send the prompt again to write down anew what the session still knows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    fn check(error: impl Into<io::Error>, expected: &[&str]) {
        let LogError(text) = of_log(Path::new("/home/u/s.jsonl"), &error.into());
        for part in expected {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(text.contains("/home/u/s.jsonl"), "{text}");
        assert!(!text.ends_with('.'), "whoever shows it ends the sentence: {text}");
    }

    #[test]
    fn each_trouble_says_what_happened_and_what_helps() {
        check(Errno::NOSPC, &["disk is full", "Free some space"]);
        check(Errno::DQUOT, &["quota", "Free some space"]);
        check(Errno::IO, &["disk reports an error", "Look at the disk"]);
        check(Errno::ROFS, &["read-only", "WINDLASS_HOME"]);
        check(Errno::ACCESS, &["permission is denied", "WINDLASS_HOME"]);
        check(Errno::PERM, &["permission is denied", "WINDLASS_HOME"]);
        check(Errno::FBIG, &["as large as it may get", "copy"]);
        check(Errno::NOENT, &["not there any more", "again"]);
        check(Errno::NOTDIR, &["no directory", "WINDLASS_HOME"]);
        check(io::ErrorKind::WriteZero, &["takes no more", "Free some space"]);
        check(Errno::STALE, &["when that is solved"]);
        check(Refused::Link, &["symbolic link", "real file"]);
        check(Refused::Owner(7), &["uid 7", "Run as that user"]);
        check(Refused::Kind, &["not a regular file", "Move away"]);
        check(Refused::Taken, &["already a session", "another id"]);
        check(Refused::Removed, &["removed, replaced or cut", "anew"]);
    }
}
