//! The user's text when the log cannot be written: what happened, to which file, what helps. No full sentence.

use std::io::{self, ErrorKind};
use std::path::Path;

use windlass_ports::LogError;

use crate::disk::FileRefusal;

/// The log itself could not be written.
pub(crate) fn of_log(path: &Path, error: &io::Error) -> LogError {
    LogError(format!("cannot write the session log {}: {}", path.display(), explain(error)))
}

/// The log was written, but the disk did not keep it.
pub(crate) fn of_sync(path: &Path, error: &io::Error) -> LogError {
    let path = path.display();
    LogError(format!("cannot sync the session log {path} to the disk: {}", explain(error)))
}

/// The content of files could not be kept before a call that may change them.
pub(crate) fn of_keeping(path: &Path, error: &io::Error) -> LogError {
    let path = path.display();
    LogError(format!(
        "the call was not started: cannot save the files it may change beside the session log {path}: {}",
        explain(error)
    ))
}

/// A torn tail could not be set aside.
pub(crate) fn of_torn(path: &Path, error: &io::Error) -> LogError {
    let path = path.display();
    LogError(format!(
        "cannot write the session log {path}: its incomplete last line cannot be moved away: {}",
        explain(error)
    ))
}

/// The work was given up before it was done, because the run it belongs to is gone.
pub(crate) fn given_up(path: &Path) -> LogError {
    LogError(format!("the session log {} was not written, because the run was dropped", path.display()))
}

fn explain(error: &io::Error) -> String {
    if let Some(refused) = error.get_ref().and_then(|inner| inner.downcast_ref::<FileRefusal>()) {
        return format!("{refused}. {}", after_refusal(*refused));
    }
    let (what, then) = match error.kind() {
        ErrorKind::StorageFull => ("the disk is full", "Free some space, then send the prompt again"),
        ErrorKind::QuotaExceeded => {
            ("your disk quota is used up", "Free some space, then send the prompt again")
        }
        ErrorKind::ReadOnlyFilesystem => (
            "the file system is read-only",
            "Make it writable, set WINDLASS_HOME to another directory, or keep no log with --no-session-persistence",
        ),
        ErrorKind::PermissionDenied => (
            "permission denied",
            "Make the file and its directory writable, set WINDLASS_HOME to another directory, or keep no log with --no-session-persistence",
        ),
        ErrorKind::FileTooLarge => (
            "the file has reached the size limit",
            "Raise the limit on file sizes, or continue in a copy of the session (--fork-session)",
        ),
        ErrorKind::NotFound => (
            "its directory does not exist",
            "Send the prompt again, and windlass tries to create it; or set WINDLASS_HOME to another directory, or keep no log with --no-session-persistence",
        ),
        ErrorKind::NotADirectory => (
            "a file exists where its directory should be",
            "Move it away, set WINDLASS_HOME to another directory, or keep no log with --no-session-persistence",
        ),
        ErrorKind::WriteZero => {
            ("the disk accepts no more data", "Free some space, then send the prompt again")
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => (
            "the disk reports an error",
            "Check the disk, then send the prompt again; windlass writes the missing lines again",
        ),
        _ => return format!("{error}. Solve that, then send the prompt again"),
    };
    format!("{what} ({error}). {then}")
}

fn after_refusal(refused: FileRefusal) -> &'static str {
    match refused {
        FileRefusal::Link => "Replace the link with a real file or directory",
        FileRefusal::Owner(_) => "Run windlass as that user, or continue in a copy (--fork-session)",
        FileRefusal::Kind => "Move it away",
        FileRefusal::Taken => "Resume that session, or choose another id",
        FileRefusal::Removed => "Send the prompt again; windlass writes what it still has of the session",
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
        check(Errno::IO, &["disk reports an error", "Check the disk"]);
        check(Errno::ROFS, &["read-only", "WINDLASS_HOME", "--no-session-persistence"]);
        check(Errno::ACCESS, &["permission denied", "WINDLASS_HOME", "--no-session-persistence"]);
        check(Errno::PERM, &["permission denied", "WINDLASS_HOME"]);
        check(Errno::FBIG, &["reached the size limit", "copy"]);
        check(Errno::NOENT, &["does not exist", "again", "WINDLASS_HOME", "--no-session-persistence"]);
        check(Errno::NOTDIR, &["where its directory should be", "WINDLASS_HOME"]);
        check(io::ErrorKind::WriteZero, &["accepts no more", "Free some space"]);
        check(Errno::STALE, &["Solve that"]);
        check(FileRefusal::Link, &["symbolic link", "real file"]);
        check(FileRefusal::Owner(7), &["uid 7", "as that user"]);
        check(FileRefusal::Kind, &["not a regular file", "Move it away"]);
        check(FileRefusal::Taken, &["already exists", "another id"]);
        check(FileRefusal::Removed, &["removed, replaced or shortened", "prompt again"]);
    }
}
