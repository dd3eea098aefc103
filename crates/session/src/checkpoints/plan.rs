//! What would have to be done to bring files back.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag};

use super::file_states::{FileLook, LookCache};
use super::history::PathHistory;
use super::manifest::{FileState, FileStateKind, is_in_repository};
use super::nofollow::NoFollowPath;
use super::{Checkpoints, RewindError, RewindPoint};

/// Entries of a directory that are looked at before it is removed.
const ENTRIES_MAX: usize = 10_000;
/// Comparing stops here and counts more coarsely.
const COMPARE_TIME_MAX: Duration = Duration::from_millis(200);
/// A zero byte in the first part tells a content that has no lines.
const LOOKED_AT_BYTES: usize = 8 << 10;
/// Longer contents count as one that has no lines.
const LINES_MAX: usize = 2_000_000;

/// What bringing files back comes to.
#[derive(Clone, Debug, Default)]
pub struct RewindPlan {
    pub(crate) to: String,
    /// What is done, one path after the other, by name.
    pub changes: Vec<RewindChange>,
    /// What differs and is left as it is.
    pub skipped: Vec<SkippedPath>,
    /// Commands that ran since. What they did beyond the files above is not known and cannot be undone.
    pub commands: Vec<CommandRun>,
    /// How many lines about what calls found and left cannot be read any more.
    pub unread: usize,
}

/// One path that is brought back.
#[derive(Clone, Debug)]
pub struct RewindChange {
    /// The path.
    pub path: PathBuf,
    /// What is done.
    pub action: RewindAction,
    /// Another program changed it since a call did; that change is lost with it, but kept for an undo.
    pub is_changed_by_others: bool,
    /// Lines that come back.
    pub insertions: u64,
    /// Lines that go.
    pub deletions: u64,
    pub(crate) origin: FileState,
    pub(crate) present: FileState,
}

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RewindAction {
    /// The file was made by a call and is removed.
    Delete,
    /// The directory was made by a call, is or becomes empty, and is removed.
    RemoveDirectory,
    /// The directory is made again.
    MakeDirectory,
    /// The former content comes back.
    RestoreContent,
    /// The file comes back.
    Recreate,
    /// The former mode comes back.
    RestoreMode,
}

/// A path that differs and is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPath {
    /// The path.
    pub path: PathBuf,
    /// Why, for people.
    pub reason: String,
    /// Because of a symbolic or hard link.
    pub is_link: bool,
}

/// A command that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRun {
    /// The tool that ran it.
    pub tool: String,
    /// The beginning of its text.
    pub text: String,
    /// Whether it was seen to end.
    pub is_finished: bool,
    pub(crate) id: String,
}

impl Checkpoints {
    /// What would have to be done to bring files back to how they were at a point. Nothing is changed or written.
    pub fn plan(&self, to: RewindPoint) -> Result<RewindPlan, RewindError> {
        let history = self.since(to).map_err(|error| self.io_error(error))?;
        let history = history.ok_or_else(|| match to {
            RewindPoint::Prompt(uuid) => RewindError::Unknown(format!("the message {uuid}")),
            RewindPoint::Number(number) => RewindError::Unknown(format!("message {}", number.0)),
            RewindPoint::Undo => RewindError::NothingToUndo,
        })?;
        let mut memory = LookCache::default();
        let mut look = FileLook::comparing(&mut memory);
        let (to, commands, unread) = (to.to_string(), history.commands, history.unread);
        let mut plan = RewindPlan { to, commands, unread, ..RewindPlan::default() };
        let mut gone = BTreeSet::new();
        // The deepest paths first: a directory goes if everything in it does.
        for (path, past) in history.paths.into_iter().rev() {
            let present = look.state(&path).map_err(|error| self.io_error(error))?;
            match needed_action(&path, &past, &present, &gone) {
                Ok(None) => {}
                Err(skipped) => plan.skipped.push(skipped),
                Ok(Some(action)) => {
                    if matches!(action, RewindAction::Delete | RewindAction::RemoveDirectory) {
                        gone.insert(path.clone());
                    }
                    plan.changes.push(self.change(path, action, past, present));
                }
            }
        }
        plan.changes.reverse();
        plan.skipped.reverse();
        Ok(plan)
    }

    fn change(&self, path: PathBuf, action: RewindAction, past: PathHistory, now: FileState) -> RewindChange {
        let is_changed_by_others = past.is_changed_by_others || !(past.is_open || now.is_same(&past.last));
        let (insertions, deletions) = match action {
            RewindAction::RestoreMode | RewindAction::MakeDirectory | RewindAction::RemoveDirectory => (0, 0),
            _ => self.count(&path, &past.origin, &now).unwrap_or_default(),
        };
        RewindChange {
            path,
            action,
            is_changed_by_others,
            insertions,
            deletions,
            origin: past.origin,
            present: now,
        }
    }

    fn count(&self, path: &Path, origin: &FileState, present: &FileState) -> io::Result<(u64, u64)> {
        let new = match origin {
            FileState::File { sum, .. } => line_hashes(self.keeping().blobs.open(sum)?)?,
            _ => Vec::new(),
        };
        let file = NoFollowPath::open(path).ok().and_then(|place| place.read().ok());
        let old = match (present, file) {
            (FileState::File { .. }, Some(file)) => line_hashes(file)?,
            _ => Vec::new(),
        };
        Ok(compare_lines(&old, &new))
    }
}

/// The action that brings a path back, if it needs one; an error for a path that is left as it is. It is only touched if a call
/// changed it, and nothing is removed that a call did not make.
fn needed_action(
    path: &Path,
    past: &PathHistory,
    present: &FileState,
    gone: &BTreeSet<PathBuf>,
) -> Result<Option<RewindAction>, SkippedPath> {
    use FileStateKind::{Directory, File};
    if present.is_same(&past.origin) || !(past.is_ours || past.is_open) || is_in_repository(path) {
        return Ok(None);
    }
    let skip = |reason: String, is_link| Err(SkippedPath { path: path.to_owned(), reason, is_link });
    for state in [&past.origin, present] {
        if let Some(reason) = state.obstacle() {
            return skip(reason, state.is_link());
        }
    }
    // Something of another kind has to go: only if a call made it, and nobody else put anything into it.
    let obstacle = match present.kind() {
        _ if past.origin.kind() == present.kind() => None,
        File if !past.is_made_by_call => Some("no recorded call created it, so it is not deleted"),
        File if past.is_changed_by_others || !present.same_content(&past.last) => {
            Some("a call created it, but another program changed it later, so it is not deleted")
        }
        Directory if !past.is_made_by_call => Some("it is now a directory that no recorded call created"),
        Directory if !empties(path, gone) => {
            Some("a call created the directory, but it now holds other files")
        }
        _ => None,
    };
    if let Some(reason) = obstacle {
        return skip(reason.to_owned(), false);
    }
    Ok(match (past.origin.kind(), present.kind()) {
        (File, File) if !past.origin.same_content(present) => Some(RewindAction::RestoreContent),
        (File, File) | (Directory, Directory) => Some(RewindAction::RestoreMode),
        (File, _) => Some(RewindAction::Recreate),
        (Directory, _) => Some(RewindAction::MakeDirectory),
        (_, File) => Some(RewindAction::Delete),
        (_, Directory) => Some(RewindAction::RemoveDirectory),
        _ => None,
    })
}

/// Whether nothing is left in a directory when these paths are gone.
fn empties(directory: &Path, gone: &BTreeSet<PathBuf>) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    let mut entries = entries.take(ENTRIES_MAX);
    entries.all(|entry| entry.is_ok_and(|entry| gone.contains(&entry.path())))
}

impl RewindPlan {
    /// Whether there is nothing to bring back.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What links kept from being brought back.
    pub fn skipped_links(&self) -> Vec<&Path> {
        self.skipped.iter().filter(|skipped| skipped.is_link).map(|skipped| skipped.path.as_path()).collect()
    }
}

impl fmt::Display for RewindPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt(uuid) => write!(f, "{uuid}"),
            Self::Number(number) => write!(f, "message {}", number.0),
            Self::Undo => f.write_str("before the last rewind"),
        }
    }
}

/// A hash for each line; none for a content without lines. A part of it is in memory at a time.
fn line_hashes(content: impl Read) -> io::Result<Vec<u64>> {
    let mut reader = BufReader::with_capacity(LOOKED_AT_BYTES, content);
    if reader.fill_buf()?.contains(&0) {
        return Ok(Vec::new());
    }
    let mut hashes = Vec::new();
    let (mut line, mut piece) = (DefaultHasher::new(), Vec::new());
    let mut is_open = false;
    while reader.by_ref().take(LOOKED_AT_BYTES as u64).read_until(b'\n', &mut piece)? > 0 {
        line.write(&piece);
        is_open = !piece.ends_with(b"\n");
        if !is_open {
            hashes.push(std::mem::take(&mut line).finish());
        }
        if hashes.len() > LINES_MAX {
            return Ok(Vec::new());
        }
        piece.clear();
    }
    if is_open {
        hashes.push(line.finish());
    }
    Ok(hashes)
}

/// Lines that come, and lines that go, from one content to another.
fn compare_lines(old: &[u64], new: &[u64]) -> (u64, u64) {
    let deadline = Instant::now() + COMPARE_TIME_MAX;
    let (mut insertions, mut deletions) = (0, 0);
    for op in similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline)) {
        if op.tag() != DiffTag::Equal {
            insertions += op.new_range().len() as u64;
            deletions += op.old_range().len() as u64;
        }
    }
    (insertions, deletions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted() {
        let check = |old: &[u8], new: &[u8], expected: (u64, u64)| {
            let (old_hashes, new_hashes) = (line_hashes(old).unwrap(), line_hashes(new).unwrap());
            assert_eq!(compare_lines(&old_hashes, &new_hashes), expected, "{old:?} {new:?}");
        };
        check(b"", b"", (0, 0));
        check(b"a\nb\n", b"a\nb\n", (0, 0));
        check(b"a\nb\nc\n", b"a\nx\nc\n", (1, 1));
        check(b"", b"a\nb", (2, 0));
        check(b"a\n", b"a\r\n", (1, 1));
        check(b"a\n\0", b"b\n", (1, 0));
        check(&vec![b'x'; 100_000], b"x\n", (1, 1));
    }
}
