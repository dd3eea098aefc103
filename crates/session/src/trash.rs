//! Removing sessions without losing them: they are moved aside and can be put back. Nothing is ever deleted.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalogue::SessionInfo;
use crate::layout::{SessionLayout, SessionPaths, create_private, session_id};
use crate::lease::{Lease, LeaseError};

/// Says where a removed session lay.
const NOTE: &str = "removed.json";

/// Why a session was not moved.
#[derive(Debug, thiserror::Error)]
pub enum TrashError {
    /// It is open, or its lock cannot be used.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// There is no such session among the removed ones.
    #[error("no session in the trash has an id that begins with {:?}. The trash is {}.", .0, .1.display())]
    Nothing(String, PathBuf),
    /// More than one session is meant.
    #[error("{query:?} matches {count} sessions in the trash. Give the whole id.")]
    Several {
        /// What was asked for.
        query: String,
        /// How many.
        count: usize,
    },
    /// Something lies where it is to be put back.
    #[error("{} already exists. Move it away, then restore again.", .0.display())]
    Occupied(PathBuf),
    /// The file system refused.
    #[error("cannot move {}: {}. Nothing was changed.", .0.display(), .1)]
    Failed(PathBuf, io::Error),
}

/// A session that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrashedSession {
    /// The session.
    pub id: Uuid,
    /// Where it lies now.
    pub directory: PathBuf,
    /// When it was removed, in milliseconds since 1970.
    pub removed_ms: u64,
    /// Where its log lay.
    pub path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Note {
    /// The folder of its project. Where the home is does not matter: it may be moved.
    project: String,
    /// The name of its log.
    file: String,
    removed_ms: u64,
}

/// Moves a session aside, unless a process has it open. Returns where it lies now.
pub fn remove(layout: &SessionLayout, session: &SessionInfo) -> Result<PathBuf, TrashError> {
    let from = session.paths();
    let lease = Lease::take(from.file())?;
    let (now, directory) = place_for(layout, from.id());
    let failed = |error| TrashError::Failed(from.file().to_owned(), error);
    let note = Note { project: name(from.project()), file: name(from.file()), removed_ms: now };
    create_private(&directory).map_err(failed)?;
    write_note(&directory, &note).map_err(failed)?;
    let to = SessionPaths::new(directory.join(&note.file), from.id());
    if let Err(error) = rename_both(&from, &to) {
        let _ = fs::remove_file(directory.join(NOTE));
        let _ = fs::remove_dir(&directory);
        return Err(failed(error));
    }
    // Where a file stands for the lock, it went along; nobody needs it there.
    drop(lease);
    let _ = fs::remove_file(to.lock());
    let _ = fs::remove_dir(to.side());
    Ok(directory)
}

/// When a session is removed, and where it goes. Two removals of the same session are never at the same time.
fn place_for(layout: &SessionLayout, id: Uuid) -> (u64, PathBuf) {
    let mut now = crate::time::now_ms();
    loop {
        let directory = layout.trash().join(format!("{now}-{id}"));
        if directory.symlink_metadata().is_err() {
            return (now, directory);
        }
        now += 1;
    }
}

/// Puts back the last removal of a session, by its id or the beginning of it. Returns its log.
pub fn restore(layout: &SessionLayout, query: &str) -> Result<PathBuf, TrashError> {
    let query = query.trim().to_ascii_lowercase();
    let mut found = trashed_sessions(layout);
    found.retain(|trashed| !query.is_empty() && trashed.id.to_string().starts_with(&query));
    let Some(last) = found.first() else {
        return Err(TrashError::Nothing(query, layout.trash()));
    };
    let count = found.iter().map(|trashed| trashed.id).collect::<std::collections::BTreeSet<_>>().len();
    if count > 1 {
        return Err(TrashError::Several { query, count });
    }
    put_back(last)
}

fn put_back(trashed: &TrashedSession) -> Result<PathBuf, TrashError> {
    let from = SessionPaths::new(trashed.directory.join(name(&trashed.path)), trashed.id);
    let to = SessionPaths::new(trashed.path.clone(), trashed.id);
    if let Some(path) =
        [to.file().to_owned(), to.side()].into_iter().find(|path| path.symlink_metadata().is_ok())
    {
        return Err(TrashError::Occupied(path));
    }
    let failed = |error| TrashError::Failed(from.file().to_owned(), error);
    to.create().map_err(failed)?;
    rename_both(&from, &to).map_err(failed)?;
    let _ = fs::remove_file(trashed.directory.join(NOTE));
    let _ = fs::remove_dir(&trashed.directory);
    Ok(trashed.path.clone())
}

/// What was removed, the last first.
pub fn trashed_sessions(layout: &SessionLayout) -> Vec<TrashedSession> {
    let entries = fs::read_dir(layout.trash()).into_iter().flatten().flatten();
    let mut found: Vec<TrashedSession> =
        entries.filter_map(|entry| read_note(layout, entry.path())).collect();
    found.sort_by_key(|trashed| std::cmp::Reverse((trashed.removed_ms, trashed.id)));
    found
}

fn read_note(layout: &SessionLayout, directory: PathBuf) -> Option<TrashedSession> {
    let note: Note = serde_json::from_slice(&fs::read(directory.join(NOTE)).ok()?).ok()?;
    let id = session_id(&note.file)?;
    let is_name = Path::new(&note.project).components().eq([Component::Normal(note.project.as_ref())]);
    // Only what lies there counts: a removal that broke off left its session where it was.
    if !is_name || !directory.join(&note.file).is_file() {
        return None;
    }
    let path = layout.projects().join(note.project).join(note.file);
    Some(TrashedSession { id, directory, removed_ms: note.removed_ms, path })
}

fn write_note(directory: &Path, note: &Note) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(directory.join(NOTE))?;
    serde_json::to_writer(&file, note)?;
    file.sync_all()
}

/// Moves the log and, if there is one, the side directory; both or none.
fn rename_both(from: &SessionPaths, to: &SessionPaths) -> io::Result<()> {
    fs::rename(from.file(), to.file())?;
    match fs::rename(from.side(), to.side()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            fs::rename(to.file(), from.file())?;
            Err(error)
        }
        _ => Ok(()),
    }
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
