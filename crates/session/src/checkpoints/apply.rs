//! Bringing files back: one after the other, each as a whole or not at all.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::blobs::{FLUSHED_ALONE_MAX, flush_system};
use super::file_states::FileLook;
use super::manifest::{FileState, ManifestLine, PathChange};
use super::nofollow::{NoFollowError, NoFollowPath, make_directory};
use super::plan::RewindAction::{
    Delete, MakeDirectory, Recreate, RemoveDirectory, RestoreContent, RestoreMode,
};
use super::plan::{RewindChange, RewindPlan};
use super::{CheckpointState, Checkpoints, RewindError, path_snapshot, watch};

/// What became of a plan.
#[derive(Clone, Debug, Default)]
pub struct RewindResult {
    /// The paths that were brought back.
    pub done: Vec<PathBuf>,
    /// The paths that were not. They are as they were.
    pub failed: Vec<FailedPath>,
    /// What the user should know besides.
    pub notices: Vec<String>,
}

/// A path that was not brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPath {
    /// The path.
    pub path: PathBuf,
    /// Why, for people.
    pub reason: String,
}

impl Checkpoints {
    /// Brings files back as planned. What is there now is kept first, so that this can be undone with
    /// [`RewindPoint::Undo`](super::Point::Undo). A path that changed since the plan was made is left as it is.
    pub fn apply(&self, plan: &RewindPlan) -> Result<RewindResult, RewindError> {
        let mut keeping = self.keeping();
        keeping.apply(plan).map_err(|error| self.io_error(error))
    }
}

impl CheckpointState {
    fn apply(&mut self, plan: &RewindPlan) -> io::Result<RewindResult> {
        let mut rewound = RewindResult::default();
        if plan.is_empty() {
            return Ok(rewound);
        }
        let mut changes = self.unchanged_since(plan, &mut rewound)?;
        let files = changes.iter().map(|change| path_snapshot(&change.path, &change.present)).collect();
        self.blobs.flush()?;
        self.manifest.append(&[ManifestLine::Rewind { to: plan.to.clone(), files }], true)?;
        // First what goes, from the bottom up, then what comes, from the top down.
        changes.sort_by(|a, b| {
            let goes = |change: &RewindChange| matches!(change.action, Delete | RemoveDirectory);
            goes(b)
                .cmp(&goes(a))
                .then_with(|| if goes(a) { b.path.cmp(&a.path) } else { a.path.cmp(&b.path) })
        });
        let mut files = Vec::new();
        for (change, result) in self.perform(&changes) {
            if let Err(error) = result {
                rewound.failed.push(FailedPath { path: change.path.clone(), reason: error.to_string() });
                continue;
            }
            rewound.done.push(change.path.clone());
            let (was, now) = (change.present.clone(), change.origin.clone());
            files.push(PathChange { path: change.path.clone(), was, now });
        }
        restore_directory_modes(&mut files, &mut rewound);
        if let Some(watched) = &mut self.watched {
            for file in &files {
                watch(watched, file);
            }
        }
        // The files are back; without this line the manifest looks as if that was never seen to end.
        if let Err(error) = self.manifest.append(&[ManifestLine::Rewound { files }], true) {
            rewound
                .notices
                .push(format!("The files were rewound, but you cannot undo it: cannot record it: {error}."));
        }
        Ok(rewound)
    }

    /// The changes whose paths are still as they were when the plan was made, with what is there kept.
    fn unchanged_since<'a>(
        &mut self,
        plan: &'a RewindPlan,
        rewound: &mut RewindResult,
    ) -> io::Result<Vec<&'a RewindChange>> {
        let mut look = FileLook::keeping(&mut self.blobs, &mut self.memory);
        let mut changes = Vec::new();
        for change in &plan.changes {
            let present = look.state(&change.path)?;
            if present.is_same(&change.present) {
                changes.push(change);
                continue;
            }
            let reason = match present.obstacle() {
                Some(reason) => format!("not rewound, because its present content cannot be saved: {reason}"),
                None => "another program changed it during the rewind".to_owned(),
            };
            rewound.failed.push(FailedPath { path: change.path.clone(), reason });
        }
        Ok(changes)
    }

    /// Brings paths back. New contents are on the disk before any of them takes its place.
    fn perform<'a>(&self, changes: &[&'a RewindChange]) -> Vec<(&'a RewindChange, io::Result<()>)> {
        let comes = |change: &&&RewindChange| matches!(change.action, RestoreContent | Recreate);
        let alone = changes.iter().filter(comes).count() <= FLUSHED_ALONE_MAX;
        let mut results = Vec::new();
        let mut drafts = Vec::new();
        for &change in changes {
            let result = match change.action {
                Delete => delete(change),
                // It may have gone with the last file in it.
                RemoveDirectory if !change.path.exists() => Ok(()),
                RemoveDirectory => open(&change.path).and_then(|place| remove_directory(&place)),
                MakeDirectory => make(change),
                RestoreMode => restore_mode(change),
                RestoreContent | Recreate => match self.draft(change, alone) {
                    Ok(draft) => {
                        drafts.push((change, draft));
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            results.push((change, result));
        }
        let flushed = if alone { Ok(()) } else { flush_systems(&drafts) };
        for (change, draft) in drafts {
            let result = match &flushed {
                Ok(()) => draft.publish(change),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            results.push((change, result));
        }
        results
    }

    /// The former content of a file, beside the file.
    fn draft(&self, change: &RewindChange, should_flush: bool) -> io::Result<FileDraft> {
        let FileState::File { sum, mode, .. } = &change.origin else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let place = NoFollowPath::make(&change.path).map_err(in_the_way)?;
        let (draft, mut file) = FileDraft::new(&change.path, &place)?;
        self.blobs.restore(sum, &mut file)?;
        take_owner(&file, &place);
        rustix::fs::fchmod(&file, Mode::from_raw_mode(*mode))?;
        if should_flush {
            file.sync_data()?;
        }
        Ok(draft)
    }
}

/// Flushes each file system that new contents are on.
fn flush_systems(drafts: &[(&RewindChange, FileDraft)]) -> io::Result<()> {
    let mut systems = BTreeSet::new();
    for (change, _) in drafts {
        let place = open(&change.path)?;
        if systems.insert(rustix::fs::fstat(&place.directory)?.st_dev) {
            flush_system(&place.directory)?;
        }
    }
    Ok(())
}

/// A new file belongs to whom the old one did, as far as this user may decide that.
fn take_owner(file: &File, place: &NoFollowPath) {
    let (Ok(old), Ok(new)) = (place.stat(), rustix::fs::fstat(file)) else { return };
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
        let _ = std::os::unix::fs::fchown(file, Some(old.st_uid), Some(old.st_gid));
    }
}

fn open(path: &Path) -> io::Result<NoFollowPath> {
    NoFollowPath::open(path).map_err(in_the_way)
}

fn in_the_way(error: NoFollowError) -> io::Error {
    match error {
        NoFollowError::Missing(0) => io::Error::other("a file exists where its directory should be"),
        NoFollowError::Missing(_) => io::Error::other("its directory does not exist"),
        NoFollowError::Link => {
            io::Error::other("a directory above it is now a symbolic link; windlass does not follow links")
        }
        NoFollowError::Io(error) => error,
    }
}

/// Removes a file, and the directories above it that were missing at the point and are empty now.
fn delete(change: &RewindChange) -> io::Result<()> {
    let place = open(&change.path)?;
    rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::empty())?;
    let FileState::Absent { missing } = change.origin else { return Ok(()) };
    let above = change.path.ancestors().skip(1).take(usize::try_from(missing).unwrap_or(usize::MAX));
    for directory in above {
        if open(directory).and_then(|place| remove_directory(&place)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Removes a directory if it is empty.
fn remove_directory(place: &NoFollowPath) -> io::Result<()> {
    match rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            Err(io::Error::other("the directory is not empty, so it stays"))
        }
        Err(error) => Err(error.into()),
    }
}

fn make(change: &RewindChange) -> io::Result<()> {
    let FileState::Directory { mode } = change.origin else { return Err(io::ErrorKind::InvalidData.into()) };
    let place = NoFollowPath::make(&change.path).map_err(in_the_way)?;
    if matches!(change.present, FileState::File { .. }) {
        rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::empty())?;
    }
    make_directory(&place.directory, &place.name, mode | 0o700)
}

fn restore_mode(change: &RewindChange) -> io::Result<()> {
    match change.origin {
        FileState::File { mode, .. } => set_mode(&open(&change.path)?, mode),
        // It comes when everything in the directory is back.
        FileState::Directory { .. } => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// A mode may let nothing into a directory, so it comes last, and from the bottom up.
fn restore_directory_modes(files: &mut Vec<PathChange>, rewound: &mut RewindResult) {
    let mut failed = Vec::new();
    for file in files.iter().rev() {
        let FileState::Directory { mode } = file.now else { continue };
        if let Err(error) = open(&file.path).and_then(|place| set_mode(&place, mode)) {
            failed.push(FailedPath { path: file.path.clone(), reason: error.to_string() });
        }
    }
    let has_failed = |path: &Path| failed.iter().any(|failed| failed.path == path);
    files.retain(|file| !has_failed(&file.path));
    rewound.done.retain(|path| !has_failed(path));
    rewound.failed.extend(failed);
}

fn set_mode(place: &NoFollowPath, mode: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(mode);
    match place.read() {
        Ok(file) => rustix::fs::fchmod(file, mode)?,
        // A file that may not be read cannot be opened; what a link leads to must not be changed.
        Err(_) => rustix::fs::chmodat(&place.directory, &place.name, mode, AtFlags::SYMLINK_NOFOLLOW)?,
    }
    Ok(())
}

/// The content that is to take a file's place; gone when it is dropped. There may be many, so none is held open.
struct FileDraft {
    path: PathBuf,
    is_published: bool,
}

static DRAFTS: AtomicU64 = AtomicU64::new(0);

impl FileDraft {
    fn new(target: &Path, place: &NoFollowPath) -> io::Result<(Self, File)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
            let name = format!(".windlass-rewind-{}-{number}", std::process::id());
            match rustix::fs::openat(&place.directory, &name, flags, Mode::from_raw_mode(0o600)) {
                Ok(file) => {
                    return Ok((
                        Self { path: target.with_file_name(name), is_published: false },
                        file.into(),
                    ));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn publish(mut self, change: &RewindChange) -> io::Result<()> {
        let target = open(&change.path)?;
        if matches!(change.present, FileState::Directory { .. }) {
            remove_directory(&target)?;
        }
        let name = self.path.file_name().unwrap_or_default();
        rustix::fs::renameat(&target.directory, name, &target.directory, &target.name)?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        if !self.is_published
            && let Ok(place) = open(&self.path)
        {
            let _ = rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::empty());
        }
    }
}
