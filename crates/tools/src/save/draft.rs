//! The new content before it takes the place of the old.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use windlass_protocol::FileStamp;

use super::{SaveError, io_error};
use crate::open::stamp;

pub(super) struct ReplacedFile {
    meta: Metadata,
    /// Open for its attributes, if it can be.
    file: Option<OwnedFd>,
}

impl ReplacedFile {
    pub(super) fn open(directory: &OwnedFd, name: &OsStr, meta: Metadata) -> Self {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Self { meta, file: rustix::fs::openat(directory, name, flags, Mode::empty()).ok() }
    }
}

/// The new content, nameless while it is written, so that a killed process leaves nothing. Where that cannot be (file
/// system, no `/proc`) it has a name, removed unless published. After a kill that stays: a directory can be shared with
/// invisible processes, so who might still be writing cannot be told.
pub(super) struct NewFile<'a> {
    directory: &'a OwnedFd,
    file: File,
    /// A name that is to be removed in the end.
    name: Option<OsString>,
}

impl<'a> NewFile<'a> {
    /// `replaces` says that it will take the place of a file, whose mode it gets in the end.
    pub(super) fn create(directory: &'a OwnedFd, is_replacement: bool) -> Result<Self, SaveError> {
        // Until it has the mode of the old file, nobody else may read what might be private.
        let mode = Mode::from_raw_mode(if is_replacement { 0o600 } else { 0o666 });
        if let Some(file) = create_nameless(directory, mode) {
            return Ok(Self { directory, file, name: None });
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |name: &OsStr| rustix::fs::openat(directory, name, flags, mode);
        let (name, descriptor) = with_fresh_name(open).map_err(io_error("cannot write in its directory"))?;
        Ok(Self { directory, file: descriptor.into(), name: Some(name) })
    }

    pub(super) fn fill(&mut self, content: &[u8], old: Option<&ReplacedFile>) -> Result<(), SaveError> {
        self.file.write_all(content).map_err(io_error("cannot write"))?;
        if let Some(old) = old {
            self.take_over(old)?;
        }
        self.file.sync_all().map_err(io_error("cannot flush it to disk"))
    }

    pub(super) fn stamp(&self) -> Option<FileStamp> {
        self.file.metadata().ok().map(|meta| stamp(&meta))
    }

    /// Owner first: changing it clears special mode bits. Attributes last: they may say more than the mode.
    fn take_over(&self, old: &ReplacedFile) -> Result<(), SaveError> {
        // What a directory gives to new files is not what the old one had.
        let _ = rustix::fs::fremovexattr(&self.file, "system.posix_acl_access");
        let meta = &old.meta;
        let own = self.file.metadata().map_err(io_error("cannot look at the new file"))?;
        if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
            let owner = rustix::fs::Uid::from_raw(meta.uid());
            let group = rustix::fs::Gid::from_raw(meta.gid());
            // Only root may give files away; a group one belongs to can be kept without that.
            if rustix::fs::fchown(&self.file, Some(owner), Some(group)).is_err() {
                let _ = rustix::fs::fchown(&self.file, None, Some(group));
            }
        }
        let mode = Mode::from_raw_mode(meta.mode() & 0o7777);
        rustix::fs::fchmod(&self.file, mode).map_err(io_error("cannot keep its mode"))?;
        if let Some(from) = &old.file {
            copy_attributes(from, &self.file);
        }
        Ok(())
    }

    /// Takes the place of the file of this name.
    pub(super) fn replace(&mut self, name: &OsStr) -> Result<(), SaveError> {
        let link = |draft: &OsStr| link_nameless(&self.file, self.directory, draft);
        let draft = match self.name.take() {
            Some(draft) => draft,
            None => with_fresh_name(link).map_err(io_error("cannot name the new file"))?.0,
        };
        let renamed = rustix::fs::renameat(self.directory, &draft, self.directory, name);
        if renamed.is_err() {
            self.name = Some(draft);
        }
        renamed.map_err(io_error("cannot replace it"))
    }

    /// Gets this name unless that exists by now.
    pub(super) fn publish_new(&mut self, name: &OsStr) -> Result<(), SaveError> {
        let directory = self.directory;
        let published = match &self.name {
            None => link_nameless(&self.file, directory, name),
            Some(draft) => {
                match rustix::fs::renameat_with(directory, draft, directory, name, RenameFlags::NOREPLACE) {
                    // File systems without this kind of rename: a link fails in the same way if the name exists.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                        let linked = rustix::fs::linkat(directory, draft, directory, name, AtFlags::empty());
                        if linked.is_ok() {
                            let _ = rustix::fs::unlinkat(directory, draft, AtFlags::empty());
                        }
                        linked
                    }
                    result => result,
                }
            }
        };
        match published {
            Ok(()) => {
                self.name = None;
                Ok(())
            }
            Err(Errno::EXIST) => Err(SaveError::Raced),
            Err(error) => Err(io_error("cannot create it")(error)),
        }
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}

/// Tries names until one does not exist.
fn with_fresh_name<T>(make: impl Fn(&OsStr) -> rustix::io::Result<T>) -> rustix::io::Result<(OsString, T)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".windlass-{:x}-{count:x}.tmp", std::process::id()));
        match make(&name) {
            Ok(made) => return Ok((name, made)),
            // Left behind by a process that had this id and died.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A file without a name that can be given one later; `None` where there is no such thing.
fn create_nameless(directory: &OwnedFd, mode: Mode) -> Option<File> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, ".", flags, mode).ok()?);
    let seen = rustix::fs::statat(CWD, proc_name(&file), AtFlags::empty()).ok()?;
    let own = rustix::fs::fstat(&file).ok()?;
    ((seen.st_dev, seen.st_ino) == (own.st_dev, own.st_ino)).then_some(file)
}

fn proc_name(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn link_nameless(file: &File, directory: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::linkat(CWD, proc_name(file), directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// Copies extended attributes where permitted, but none that vouch for the content: writing ends them.
fn copy_attributes(from: &OwnedFd, to: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fsetxattr};
    const ABOUT_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];
    let Ok(size @ 1..) = flistxattr_query(from) else { return };
    let mut names = vec![0; size];
    let Ok(size) = flistxattr(from, &mut names[..]) else { return };
    let names = names[..size].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    for name in names.filter(|name| !ABOUT_CONTENT.contains(name)) {
        let mut value = vec![0; fgetxattr_query(from, name).unwrap_or(0)];
        if let Ok(size) = fgetxattr(from, name, &mut value[..]) {
            let _ = fsetxattr(to, name, &value[..size], XattrFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn what_is_being_written_has_no_name() {
        let fixture = Fixture::new(&[]);
        let directory = OwnedFd::from(File::open(&fixture.root).unwrap());
        let names = || std::fs::read_dir(&fixture.root).unwrap().count();
        // Not every file system can do it.
        if create_nameless(&directory, Mode::RUSR).is_none() {
            return;
        }
        let mut draft = NewFile::create(&directory, /*replaces*/ false).unwrap();
        draft.fill(b"new", None).unwrap();
        assert_eq!(names(), 0, "a kill at this moment leaves nothing");
        draft.publish_new(OsStr::new("f")).unwrap();
        assert_eq!((names(), fixture.content("f")), (1, b"new".to_vec()));
        let mode = |name: &str| std::fs::metadata(fixture.path(name)).unwrap().permissions().mode();
        File::create(fixture.path("g")).unwrap();
        assert_eq!(mode("f"), mode("g"), "as any new file");
        std::fs::remove_file(fixture.path("g")).unwrap();
        let again = NewFile::create(&directory, /*replaces*/ false).unwrap().publish_new(OsStr::new("f"));
        assert!(matches!(again, Err(SaveError::Raced)));
        NewFile::create(&directory, /*replaces*/ true).unwrap().replace(OsStr::new("f")).unwrap();
        assert_eq!((names(), fixture.content("f")), (1, Vec::new()));
    }

    #[test]
    fn a_draft_with_a_name_is_published_or_removed() {
        let fixture = Fixture::new(&[]);
        let directory = OwnedFd::from(File::open(&fixture.root).unwrap());
        let named = |name: &str| NewFile {
            directory: &directory,
            file: File::create(fixture.path(name)).unwrap(),
            name: Some(name.into()),
        };
        let names = || {
            let names = std::fs::read_dir(&fixture.root).unwrap();
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        named("a").publish_new(OsStr::new("f")).unwrap();
        assert_eq!(names(), ["f"]);
        named("b").replace(OsStr::new("f")).unwrap();
        assert!(matches!(named("c").publish_new(OsStr::new("f")), Err(SaveError::Raced)));
        drop(named("d"));
        assert_eq!(names(), ["f"]);
    }
}
