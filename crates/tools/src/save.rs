//! Writes a file so that a crash at any instant leaves the old content or the new, never a part.
//!
//! The content goes to a new file in the same directory, is flushed to disk, takes over mode, owner and extended
//! attributes, and is renamed over the target, which is checked right before; then the directory, opened without
//! following links, is flushed. Refused is what a rename would get around or break: a file that this user may not write
//! to, and one with further hard links, which would keep the old content. Writing into such a file would not be atomic.

mod draft;

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use windlass_ports::CancellationToken;
use windlass_protocol::FileStamp;

use crate::open::{open_without_links, stamp};
use draft::{NewFile, ReplacedFile};

/// Why a file was not written. Nothing of the target changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    /// Somebody else wrote to it between the check and the write.
    #[error("was changed by another program at the same moment. Read it again, then repeat the change")]
    Raced,
    #[error("was not written: the call was cancelled")]
    Cancelled,
    /// Its owner, or whoever is asking, did not mean it to be changed.
    #[error(
        "was not changed: it is read-only for this user (mode {mode:04o}). If it may be changed, make it \
         writable first, for example with `chmod u+w` through Bash"
    )]
    ReadOnly { mode: rustix::fs::RawMode },
    /// Replacing it would leave its other names with the old content.
    #[error(
        "was not changed: it has {count} names (hard links), and the others would keep the old content. To \
         change all of them, write into it through Bash, for example `cat NEW > FILE`; to separate it, `cp \
         -p FILE COPY && mv COPY FILE` and repeat the change"
    )]
    HardLinked { count: u64 },
    #[error("was not written: {step}: {error}")]
    Io { step: &'static str, error: io::Error },
}

fn io_error<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> SaveError {
    move |error| SaveError::Io { step, error: error.into() }
}

/// Replaces a file that looks as `expected`, or makes one where none may be; returns its new look.
pub(crate) fn save(
    resolved: &Path,
    expected: Option<FileStamp>,
    content: &[u8],
    cancel: &CancellationToken,
) -> Result<Option<FileStamp>, SaveError> {
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(io_error("the path has no file name")(Errno::ISDIR));
    };
    let directory = match expected {
        Some(_) => open_directory(parent).map_err(io_error("cannot open its directory"))?,
        None => make_directories(parent)?,
    };
    let old = expected.map(|stamp| replaceable(&directory, name, stamp)).transpose()?;
    let mut draft = NewFile::create(&directory, old.is_some())?;
    draft.fill(content, old.as_ref())?;
    // Under its final name somebody else could write to it first.
    let stamp = draft.stamp();
    if cancel.is_cancelled() {
        return Err(SaveError::Cancelled);
    }
    if let Some(expected) = expected {
        current(&directory, name, expected)?;
        draft.replace(name)?;
    } else {
        draft.publish_new(name)?;
    }
    // Some file systems cannot flush a directory; the content itself is on disk.
    let _ = rustix::fs::fsync(&directory);
    Ok(stamp)
}

/// The file that is to be replaced, if it may be.
fn replaceable(directory: &OwnedFd, name: &OsStr, expected: FileStamp) -> Result<ReplacedFile, SaveError> {
    let meta = current(directory, name, expected)?;
    check_writable(directory, name, &meta)?;
    if meta.nlink() > 1 {
        return Err(SaveError::HardLinked { count: meta.nlink() });
    }
    Ok(ReplacedFile::open(directory, name, meta))
}

/// A rename asks only whether the directory may be changed.
fn check_writable(directory: &OwnedFd, name: &OsStr, meta: &Metadata) -> Result<(), SaveError> {
    match rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS) {
        // Systems that cannot tell.
        Ok(()) | Err(Errno::NOSYS) => Ok(()),
        Err(Errno::ACCESS | Errno::PERM) => Err(SaveError::ReadOnly { mode: meta.mode() & 0o7777 }),
        Err(error) => Err(io_error("it is not writable")(error)),
    }
}

/// The file as it is now, if it is still the one that was checked.
fn current(directory: &OwnedFd, name: &OsStr, expected: FileStamp) -> Result<Metadata, SaveError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Err(SaveError::Raced),
        opened => opened.map(File::from).map_err(io_error("cannot look at it"))?,
    };
    let meta = file.metadata().map_err(io_error("cannot look at it"))?;
    if stamp(&meta) == expected { Ok(meta) } else { Err(SaveError::Raced) }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    match open_without_links(path, flags | OFlags::RDONLY) {
        // Search permission is enough to create a file; only the flush needs more.
        Err(Errno::ACCESS) => open_without_links(path, flags | OFlags::PATH),
        result => result,
    }
}

fn make_directories(path: &Path) -> Result<OwnedFd, SaveError> {
    match open_directory(path) {
        Err(Errno::NOENT) => {}
        result => return result.map_err(io_error("cannot open its directory")),
    }
    let mut directory = open_directory(Path::new("/")).map_err(io_error("cannot open the root directory"))?;
    for part in path.components() {
        let Component::Normal(name) = part else { continue };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = |access| rustix::fs::openat(&directory, name, flags | access, Mode::empty());
        let mut next = open(OFlags::PATH);
        if next.as_ref().err() == Some(&Errno::NOENT) {
            match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(io_error("cannot create its directory")(error)),
            }
            next = open(OFlags::RDONLY);
        }
        directory = next.map_err(io_error("cannot open its directory"))?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::fixture::Fixture;

    fn names(fixture: &Fixture) -> Vec<String> {
        let names = fs::read_dir(&fixture.root).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn put(path: &Path, expected: Option<FileStamp>, content: &str) -> Result<Option<FileStamp>, SaveError> {
        save(path, expected, content.as_bytes(), &CancellationToken::new())
    }

    fn version_of(path: &Path) -> Option<FileStamp> {
        fs::metadata(path).ok().map(|meta| crate::open::stamp(&meta))
    }

    #[test]
    fn creates_with_directories_and_replaces_with_mode_kept() {
        let fixture = Fixture::new(&[]);
        let path = fixture.path("a/b/c.txt");
        put(&path, None, "one").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        put(&path, version_of(&path), "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
    }

    /// Runs as somebody who is not root, on a thread of its own.
    #[cfg(target_os = "linux")]
    fn as_ordinary_user<T: Send>(root: &Path, work: impl FnOnce() -> T + Send) -> T {
        use rustix::fs::{Gid, Uid};
        const NOBODY: u32 = 65_534;
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            for entry in fs::read_dir(root).unwrap() {
                std::os::unix::fs::chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            std::os::unix::fs::chown(root, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let run = move || {
            if is_root {
                let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            }
            work()
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_may_not_be_written_is_not_replaced() {
        let fixture = Fixture::one("f", b"one");
        let path = fixture.path("f");
        let check = |mode: u32, expected: Option<&str>| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let saved = as_ordinary_user(&fixture.root, || put(&path, version_of(&path), "two"));
            let error = saved.err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{mode:o}: {error:?}");
            assert!(error.unwrap_or_default().contains(expected.unwrap_or_default()), "{mode:o}");
        };
        check(0o444, Some("was not changed: it is read-only for this user (mode 0444). If"));
        check(0o466, Some("mode 0466"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        check(0o644, None);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }

    #[test]
    fn further_names_of_a_file_are_not_left_behind() {
        let fixture = Fixture::one("f", b"one");
        fs::hard_link(fixture.path("f"), fixture.path("g")).unwrap();
        let path = fixture.path("f");
        let error = put(&path, version_of(&path), "two").unwrap_err().to_string();
        assert!(
            error.starts_with("was not changed: it has 2 names (hard links)")
                && error.contains("`cat NEW > FILE`"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        fs::remove_file(fixture.path("g")).unwrap();
        put(&path, version_of(&path), "two").unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn extended_attributes_are_kept() {
        use rustix::fs::{XattrFlags, getxattr, listxattr, setxattr};
        let fixture = Fixture::one("f", b"one");
        let path = fixture.path("f");
        // Not every file system has them.
        if setxattr(&path, "user.origin", b"here", XattrFlags::empty()).is_err() {
            return;
        }
        setxattr(&path, "user.large", &[7; 2000], XattrFlags::empty()).unwrap();
        put(&path, version_of(&path), "two").unwrap();
        let value = |name: &str| {
            let mut value = vec![0; 4096];
            let len = getxattr(&path, name, &mut value[..]).unwrap();
            value[..len].to_vec()
        };
        assert_eq!((value("user.origin"), value("user.large")), (b"here".to_vec(), vec![7; 2000]));
        put(&fixture.path("new"), None, "x").unwrap();
        let mut names = [0; 64];
        assert_eq!(listxattr(fixture.path("new"), &mut names[..]).unwrap(), 0);
    }

    #[test]
    fn a_change_in_between_is_noticed() {
        let fixture = Fixture::new(&[]);
        let path = fixture.path("f");
        fs::write(&path, "one").unwrap();
        let version = version_of(&path);
        fs::write(&path, "someone else").unwrap();
        assert!(matches!(put(&path, version, "two"), Err(SaveError::Raced)));
        assert!(matches!(put(&path, None, "two"), Err(SaveError::Raced)), "exists by now");
        fs::remove_file(&path).unwrap();
        assert!(matches!(put(&path, version, "two"), Err(SaveError::Raced)));
        assert_eq!(names(&fixture), Vec::<String>::new());
    }

    #[test]
    fn links_that_appear_later_are_not_followed() {
        let fixture = Fixture::new(&[]);
        fs::create_dir(fixture.path("real")).unwrap();
        symlink("real", fixture.path("dir")).unwrap();
        assert!(put(&fixture.path("dir/f"), None, "x").is_err());
        assert!(put(&fixture.path("dir/sub/f"), None, "x").is_err());
        fs::write(fixture.path("victim"), "v").unwrap();
        let version = version_of(&fixture.path("victim"));
        symlink("victim", fixture.path("link")).unwrap();
        assert!(matches!(put(&fixture.path("link"), version, "x"), Err(SaveError::Raced)));
        assert_eq!(fs::read_to_string(fixture.path("victim")).unwrap(), "v");
    }

    #[test]
    fn a_cancelled_call_changes_nothing() {
        let fixture = Fixture::new(&[]);
        let cancel = CancellationToken::new();
        cancel.cancel();
        let saved = save(&fixture.path("f"), None, b"x", &cancel);
        assert!(matches!(saved, Err(SaveError::Cancelled)));
        assert_eq!(names(&fixture), Vec::<String>::new());
    }

    #[test]
    fn a_reader_never_sees_a_part() {
        let fixture = Fixture::new(&[]);
        let path = fixture.path("f");
        let contents = ["a".repeat(300_000), "b".repeat(200_000)];
        put(&path, None, &contents[0]).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut reads = 0;
                while !done.load(Ordering::Relaxed) {
                    let seen = fs::read_to_string(&path).unwrap();
                    assert!(contents.contains(&seen), "a part of {} bytes", seen.len());
                    reads += 1;
                }
                reads
            });
            for round in 1..100 {
                put(&path, version_of(&path), &contents[round % 2]).unwrap();
            }
            done.store(true, Ordering::Relaxed);
            assert!(reader.join().unwrap() > 0);
        });
        assert_eq!(names(&fixture), ["f"]);
    }
}
