//! Writing a file so that a crash at any instant leaves the old content or the new, never a part.
//!
//! The content goes to a new file in the same directory, is flushed to disk, takes over mode and owner, and is
//! renamed over the target; then the directory is flushed. The directory is opened without following links, and
//! the target is checked once more right before the rename.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use windlass_ports::CancellationToken;

use crate::open::open_without_links;

/// The file that is to be replaced, as it was when its content was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl From<&Metadata> for Version {
    fn from(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }
}

/// Why a file was not written. Nothing of the target changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    /// Somebody else wrote to it between the check and the write.
    #[error("was changed by something else at this very moment. Read it again, then repeat the change")]
    Raced,
    /// The call was cancelled before anything changed.
    #[error("was not written: the call was cancelled")]
    Cancelled,
    /// The system refused one of the steps.
    #[error("was not written: {step}: {error}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

fn failed(step: &'static str) -> impl Fn(Errno) -> SaveError {
    move |error| SaveError::Io { step, error: error.into() }
}

/// Writes `parts`, one after the other, as the content of the file at a resolved path. `expected` is the file to
/// replace; without it the file must not exist, and missing directories are made.
pub(crate) fn save(
    resolved: &Path,
    expected: Option<Version>,
    parts: &[&[u8]],
    cancel: &CancellationToken,
) -> Result<(), SaveError> {
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(failed("the path names no file")(Errno::ISDIR));
    };
    let directory = match expected {
        Some(_) => open_directory(parent).map_err(failed("cannot open its directory"))?,
        None => make_directories(parent)?,
    };
    let old = match expected {
        Some(version) => Some(current(&directory, name, version)?),
        None => None,
    };
    let mut draft = Draft::create(&directory, old.as_ref())?;
    draft.fill(parts, old.as_ref())?;
    if cancel.is_cancelled() {
        return Err(SaveError::Cancelled);
    }
    if let Some(version) = expected {
        current(&directory, name, version)?;
        let rename = rustix::fs::renameat(&directory, &draft.name, &directory, name);
        rename.map_err(failed("cannot replace it"))?;
    } else {
        draft.publish_new(name)?;
    }
    draft.published = true;
    // Some file systems cannot flush a directory; the content itself is on disk.
    let _ = rustix::fs::fsync(&directory);
    Ok(())
}

/// The file as it is now, if it is still the one that was checked.
fn current(directory: &OwnedFd, name: &OsStr, expected: Version) -> Result<Stat, SaveError> {
    let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Err(SaveError::Raced),
        Err(error) => return Err(failed("cannot look at it")(error)),
    };
    if version(&stat) == expected { Ok(stat) } else { Err(SaveError::Raced) }
}

#[expect(
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "the widths and signs of these fields differ between systems; both sides convert alike"
)]
fn version(stat: &Stat) -> Version {
    Version {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        size: stat.st_size as u64,
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
    }
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
        result => return result.map_err(failed("cannot open its directory")),
    }
    let mut directory = open_directory(Path::new("/")).map_err(failed("cannot open the root directory"))?;
    for part in path.components() {
        let Component::Normal(name) = part else { continue };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let open = |access| rustix::fs::openat(&directory, name, flags | access, Mode::empty());
        let mut next = open(OFlags::PATH);
        if next.as_ref().err() == Some(&Errno::NOENT) {
            match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("cannot make its directory")(error)),
            }
            next = open(OFlags::RDONLY);
        }
        directory = next.map_err(failed("cannot open its directory"))?;
    }
    Ok(directory)
}

/// The new content under a name of its own; removed again unless it was published.
struct Draft<'a> {
    directory: &'a OwnedFd,
    name: OsString,
    file: File,
    published: bool,
}

impl<'a> Draft<'a> {
    fn create(directory: &'a OwnedFd, old: Option<&Stat>) -> Result<Self, SaveError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Until it has the mode of the old file, nobody else may read what might be private.
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!(".windlass-{:x}-{count:x}.tmp", std::process::id()));
            match rustix::fs::openat(directory, &name, flags, mode) {
                Ok(descriptor) => {
                    return Ok(Self { directory, name, file: descriptor.into(), published: false });
                }
                // Left behind by a process that had this id and died.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("cannot write in its directory")(error)),
            }
        }
    }

    fn fill(&mut self, parts: &[&[u8]], old: Option<&Stat>) -> Result<(), SaveError> {
        let step = |step| move |error| SaveError::Io { step, error };
        for part in parts {
            self.file.write_all(part).map_err(step("cannot write"))?;
        }
        if let Some(old) = old {
            self.take_over(old)?;
        }
        self.file.sync_all().map_err(step("cannot flush it to disk"))
    }

    /// Owner first: changing it clears special mode bits.
    fn take_over(&self, old: &Stat) -> Result<(), SaveError> {
        let own = rustix::fs::fstat(&self.file).map_err(failed("cannot look at the new file"))?;
        if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid) {
            let owner = rustix::fs::Uid::from_raw(old.st_uid);
            let group = rustix::fs::Gid::from_raw(old.st_gid);
            // Only root may give files away; a group one belongs to can be kept without that.
            if rustix::fs::fchown(&self.file, Some(owner), Some(group)).is_err() {
                let _ = rustix::fs::fchown(&self.file, None, Some(group));
            }
        }
        let mode = Mode::from_raw_mode(old.st_mode & 0o7777);
        rustix::fs::fchmod(&self.file, mode).map_err(failed("cannot keep its mode"))
    }

    /// Gives the draft its name unless that exists by now.
    fn publish_new(&self, name: &OsStr) -> Result<(), SaveError> {
        let directory = self.directory;
        let renamed = rename_new(directory, &self.name, name);
        match renamed {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(SaveError::Raced),
            // File systems without this kind of rename: a link fails in the same way if the name exists.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match rustix::fs::linkat(directory, &self.name, directory, name, AtFlags::empty()) {
                    Ok(()) => {
                        let _ = rustix::fs::unlinkat(directory, &self.name, AtFlags::empty());
                        Ok(())
                    }
                    Err(Errno::EXIST) => Err(SaveError::Raced),
                    Err(error) => Err(failed("cannot create it")(error)),
                }
            }
            Err(error) => Err(failed("cannot create it")(error)),
        }
    }
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn rename_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn rename_new(_: &OwnedFd, _: &OsStr, _: &OsStr) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.published {
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::fixture::Fixture;

    fn names(fixture: &Fixture) -> Vec<String> {
        let names = fs::read_dir(&fixture.root).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn put(path: &Path, expected: Option<Version>, content: &str) -> Result<(), SaveError> {
        save(path, expected, &[content.as_bytes()], &CancellationToken::new())
    }

    fn version_of(path: &Path) -> Option<Version> {
        fs::metadata(path).ok().as_ref().map(Version::from)
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
        let saved = save(&fixture.path("f"), None, &[b"x"], &cancel);
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
