//! Taking down what is at a path, with the content kept.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::blobs::{Blobs, digest_of};
use super::manifest::{FileState, is_in_repository};
use super::nofollow::{NoFollowError, NoFollowPath};

/// Larger files are not kept.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// No more than this is read for one call.
const CALL_BYTES_MAX: u64 = 512 << 20;
/// Files and directories below named directories that are looked at for one call.
const ENTRIES_MAX: usize = 2_000;
/// Paths whose looks are remembered.
const REMEMBERED_MAX: usize = 4_096;
/// A file that was changed so shortly before it was looked at may change again and look the same.
const RECENT: i128 = 100_000_000;
/// A file that changes while it is read is read again this often.
const TRIES: u32 = 3;

/// What a file looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatKey {
    device: u64,
    inode: u64,
    size: u64,
    mode: u32,
    links: u64,
    modified: i128,
    changed: i128,
}

impl StatKey {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        clippy::cast_lossless,
        reason = "the widths and signs of these fields differ between systems; all are converted alike"
    )]
    fn new(stat: &Stat) -> Self {
        let time = |seconds: i128, nanos: i128| seconds * 1_000_000_000 + nanos;
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            modified: time(stat.st_mtime as i128, stat.st_mtime_nsec as i128),
            changed: time(stat.st_ctime as i128, stat.st_ctime_nsec as i128),
        }
    }

    fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// Everything found at and below some paths.
#[derive(Debug, Default)]
pub(crate) struct LookResult {
    pub(crate) states: BTreeMap<PathBuf, FileState>,
    /// Whether nothing was left out.
    pub(crate) is_complete: bool,
}

/// What is remembered of paths, so that unchanged files are not read again.
#[derive(Default)]
pub(crate) struct LookCache {
    looks: BTreeMap<PathBuf, (StatKey, FileState)>,
}

impl LookCache {
    fn note(&mut self, path: &Path, stamp: StatKey, state: &FileState) {
        if self.looks.len() >= REMEMBERED_MAX {
            self.looks.clear();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let is_old = stamp.changed.saturating_add(RECENT) < i128::try_from(now).unwrap_or(i128::MAX);
        if is_old {
            self.looks.insert(path.to_owned(), (stamp, state.clone()));
        } else {
            self.looks.remove(path);
        }
    }
}

pub(crate) struct FileLook<'a> {
    /// Where contents are kept; without it they are only compared.
    blobs: Option<&'a mut Blobs>,
    memory: &'a mut LookCache,
    bytes_left: u64,
}

impl<'a> FileLook<'a> {
    /// Keeps every content it sees.
    pub(crate) fn keeping(blobs: &'a mut Blobs, memory: &'a mut LookCache) -> Self {
        Self { blobs: Some(blobs), memory, bytes_left: CALL_BYTES_MAX }
    }

    /// Only looks.
    pub(crate) fn comparing(memory: &'a mut LookCache) -> Self {
        Self { blobs: None, memory, bytes_left: u64::MAX }
    }

    /// What is at these paths, and below those that are directories.
    pub(crate) fn around(&mut self, roots: &[PathBuf]) -> io::Result<LookResult> {
        let mut found = LookResult { is_complete: true, ..LookResult::default() };
        let mut pending: Vec<PathBuf> = roots.iter().rev().cloned().collect();
        while let Some(path) = pending.pop() {
            if found.states.contains_key(&path) {
                continue;
            }
            if found.states.len() >= ENTRIES_MAX + roots.len() {
                found.is_complete = false;
                break;
            }
            let state = self.state(&path)?;
            if matches!(state, FileState::Directory { .. }) {
                found.is_complete &= list(&path, &mut pending);
            }
            found.states.insert(path, state);
        }
        Ok(found)
    }

    /// What is at a path. An error means that it cannot be kept, not that it cannot be read.
    pub(crate) fn state(&mut self, path: &Path) -> io::Result<FileState> {
        if is_in_repository(path) {
            return Ok(FileState::Repository);
        }
        if let Some(state) = self.known_state(path) {
            return Ok(state);
        }
        let place = match NoFollowPath::open(path) {
            Ok(place) => place,
            Err(NoFollowError::Missing(missing)) => return Ok(FileState::Absent { missing }),
            Err(NoFollowError::Link) => return Ok(FileState::Link),
            Err(NoFollowError::Io(error)) => return Ok(unreadable(&error)),
        };
        let mut state = FileState::Absent { missing: 0 };
        for _ in 0..TRIES {
            let stat = match place.stat() {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return Ok(FileState::Absent { missing: 0 }),
                Err(error) => return Ok(unreadable(&error.into())),
            };
            let stamp = StatKey::new(&stat);
            state = self.of_stat(&place, &stat, &stamp)?;
            if place.stat().is_ok_and(|after| StatKey::new(&after) == stamp) {
                self.memory.note(path, stamp, &state);
                return Ok(state);
            }
        }
        Ok(state)
    }

    /// What was found here before, if it still looks the same and, when contents are kept, is kept.
    fn known_state(&self, path: &Path) -> Option<FileState> {
        let stat = rustix::fs::lstat(path).ok()?;
        let (_, state) = self.memory.looks.get(path).filter(|(seen, _)| *seen == StatKey::new(&stat))?;
        match (state, &self.blobs) {
            (FileState::File { sum, .. }, Some(blobs)) if !blobs.path(sum).is_file() => None,
            _ => Some(state.clone()),
        }
    }

    fn of_stat(&mut self, place: &NoFollowPath, stat: &Stat, stamp: &StatKey) -> io::Result<FileState> {
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => FileState::Directory { mode: stamp.permissions() },
            FileType::Symlink => FileState::Link,
            FileType::RegularFile if stamp.links > 1 => FileState::HardLinked,
            FileType::RegularFile if stamp.size > FILE_BYTES_MAX.min(self.bytes_left) => {
                FileState::TooLarge { size: stamp.size }
            }
            FileType::RegularFile => return self.of_file(place, stamp),
            _ => FileState::Special,
        })
    }

    fn of_file(&mut self, place: &NoFollowPath, stamp: &StatKey) -> io::Result<FileState> {
        let mut file = match place.read() {
            Ok(file) => file,
            Err(error) => return Ok(unreadable(&error)),
        };
        let stored = match &mut self.blobs {
            Some(blobs) => blobs.store(&mut file, stamp.size)?,
            None => digest_of(&mut file),
        };
        match stored {
            Ok((sum, size)) => {
                self.bytes_left = self.bytes_left.saturating_sub(size);
                Ok(FileState::File { sum, size, mode: stamp.permissions() })
            }
            Err(error) => Ok(unreadable(&error)),
        }
    }
}

/// Puts what is in a directory behind the paths to look at. Whether all of it was listed.
fn list(directory: &Path, pending: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    let mut paths = Vec::new();
    for entry in entries.take(ENTRIES_MAX + 1) {
        let Ok(entry) = entry else { return false };
        if entry.file_name() != ".git" {
            paths.push(entry.path());
        }
    }
    paths.sort();
    pending.extend(paths.into_iter().rev());
    true
}

fn unreadable(error: &io::Error) -> FileState {
    FileState::Unreadable { why: error.to_string() }
}
