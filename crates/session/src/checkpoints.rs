//! File checkpoints: the former content of files that calls may change, and the way back to it.
//!
//! Before a call that may change files, what is at each path it names is taken down, contents included; after it, what became of
//! them. A shell command may also change files it does not name, so those that calls have changed before are compared, too. The
//! manifest of all this is a history of files: what was at a path at the time of a prompt is what the first call after
//! it found there. It begins with the first call that may change files, and with all prompts up to then: where there is no
//! manifest, nothing was changed.
//!
//! ```text
//! <session>/checkpoints/journal.jsonl    prompts, calls, what they found and left
//! <session>/checkpoints/blobs/<sha256>   contents
//! ```

mod apply;
mod blobs;
mod file_states;
mod history;
mod manifest;
mod nofollow;
mod plan;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;
use windlass_protocol::{
    BlockKind, CallIntent, CallKind, FinishedCall, MessageId, RawObject, Record, SessionKey, ToolUse,
    UserEntry,
};

use crate::disk::if_there;
use crate::{PreImageTaker, PromptLine, SessionPaths, prompts};
use blobs::Blobs;
use file_states::{FileLook, LookCache, LookResult};
use manifest::{CheckpointManifest, FileState, ManifestLine, PathChange, PathSnapshot};

pub use apply::{FailedPath, RewindResult};
pub use history::PointInfo;
pub use plan::{CommandRun, RewindAction, RewindChange, RewindPlan, SkippedPath};

const MANIFEST: &str = "journal.jsonl";
const BLOBS: &str = "blobs";
/// Files that calls have changed and that are compared around each command.
const WATCHED_MAX: usize = 256;
/// What was changed so long ago is not compared any more after the session was opened again.
const TAIL_BYTES: u64 = 1 << 20;
/// Characters of prompts and commands that are written down for people.
const TEXT_CHARS_MAX: usize = 200;
/// More is not told at once.
const NOTICES_MAX: usize = 20;

/// The checkpoints of one session. The caller that lets it heed records or apply a plan must hold the session's lease.
pub struct Checkpoints {
    directory: PathBuf,
    log: PathBuf,
    key: SessionKey,
    keeping: Mutex<CheckpointState>,
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindPoint {
    /// When the prompt with this id was given.
    Prompt(Uuid),
    /// When the prompt with this number was given.
    Number(MessageId),
    /// Before files were last brought back.
    Undo,
}

/// Why files are not brought back.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// There is no such point.
    #[error(
        "there is no checkpoint for {0}: it is not a prompt of this session, checkpoints were off at the \
         time, or the record of later changes is incomplete"
    )]
    Unknown(String),
    /// Nothing was brought back yet.
    #[error("there is no rewind to undo in this session")]
    NothingToUndo,
    /// The checkpoints cannot be read or written. No file was touched.
    #[error("cannot use the checkpoints in {}: {}. No file was changed", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

/// What is known while the session runs.
struct CheckpointState {
    blobs: Blobs,
    manifest: CheckpointManifest,
    memory: LookCache,
    /// Prompts of this process, while there is no manifest.
    pending: Vec<ManifestLine>,
    open: BTreeMap<Arc<str>, StartedCall>,
    /// What the calls of the last answers are about.
    about: BTreeMap<Arc<str>, String>,
    /// Files that calls have changed, the latest last, with what was seen last; not read yet if nothing.
    watched: Option<VecDeque<(PathBuf, FileState)>>,
    notices: Vec<String>,
}

struct StartedCall {
    roots: Vec<PathBuf>,
    before: LookResult,
    can_execute: bool,
}

impl Checkpoints {
    /// The checkpoints of a session. Nothing is touched before there is something to keep.
    pub fn new(paths: &SessionPaths, key: SessionKey) -> Self {
        let (directory, log) = (paths.checkpoints(), paths.file().to_owned());
        let keeping = CheckpointState {
            blobs: Blobs::new(directory.join(BLOBS)),
            manifest: CheckpointManifest::new(directory.join(MANIFEST)),
            memory: LookCache::default(),
            pending: Vec::new(),
            open: BTreeMap::new(),
            about: BTreeMap::new(),
            watched: None,
            notices: Vec::new(),
        };
        Self { directory, log, key, keeping: Mutex::new(keeping) }
    }

    /// What could not be kept since the last time, for the user.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.keeping().notices)
    }

    fn keeping(&self) -> MutexGuard<'_, CheckpointState> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io_error(&self, error: io::Error) -> RewindError {
        RewindError::Io(self.directory.clone(), error)
    }

    /// The prompts in the log; none if there is no log.
    fn prompts(&self) -> io::Result<Vec<PromptLine>> {
        Ok(if_there(prompts(&self.log))?.unwrap_or_default())
    }

    /// What a manifest begins with: the prompts so far. Most are in the log by now.
    fn prompts_before(&self, pending: &[ManifestLine]) -> io::Result<Vec<ManifestLine>> {
        let logged = self.prompts()?;
        let is_logged = |line: &&ManifestLine| match line {
            ManifestLine::Prompt { uuid, .. } => logged.iter().any(|prompt| prompt.uuid == *uuid),
            _ => false,
        };
        let pending = pending.iter().filter(|line| !is_logged(line)).cloned();
        Ok(logged.iter().filter(|prompt| prompt.is_kept).map(prompt_line).chain(pending).collect())
    }

    fn prompt(&self, said: &UserEntry) -> ManifestLine {
        let id = said.message.id;
        let uuid = self.key.said_uuid(id, &said.prompts);
        let also = said.prompts.iter().filter_map(|prompt| Uuid::parse_str(prompt).ok());
        let also = also.filter(|other| *other != uuid).collect();
        let texts = said.message.blocks.get(said.context..).unwrap_or_default();
        let text = texts.iter().find_map(|block| block.as_text()).unwrap_or_default();
        ManifestLine::Prompt { n: id.0, uuid, also, text: short(text), wall: crate::time::now_ms() }
    }
}

impl PreImageTaker for Checkpoints {
    fn touches_disk(&self, records: &[Record]) -> bool {
        let keeping = self.keeping();
        records.iter().any(|record| match record {
            Record::Intended(call) => can_change_files(call),
            _ => ended_call(record).is_some_and(|id| keeping.open.contains_key(id)),
        })
    }

    fn take_note(&self, records: &[Record], should_sync: bool) -> io::Result<()> {
        let mut keeping = self.keeping();
        let mut lines = Vec::new();
        let mut starts = false;
        for record in records {
            match record {
                Record::Said(said) if said.is_prompt() || !said.prompts.is_empty() => {
                    keeping.about.clear();
                    let line = self.prompt(said);
                    if keeping.manifest.is_there() { lines.push(line) } else { keeping.pending.push(line) }
                }
                Record::Answered(answered) => {
                    if let Some(ToolUse { id, input, .. }) = answered.block.as_tool_use() {
                        keeping.about.insert(Arc::clone(id), describe(input.get()));
                    }
                }
                Record::Intended(call) if can_change_files(call) => {
                    starts = true;
                    lines.push(keeping.begin_call(call)?);
                }
                record => {
                    if let Some((id, open)) = ended_call(record).and_then(|id| keeping.open.remove_entry(id))
                    {
                        lines.extend(keeping.end_call(&id, &open));
                    }
                }
            }
        }
        let sync = should_sync && starts;
        if sync {
            keeping.blobs.flush()?;
        }
        if !lines.is_empty() && !keeping.manifest.is_there() {
            lines.splice(0..0, self.prompts_before(&keeping.pending)?);
        }
        keeping.manifest.append(&lines, sync)?;
        if !lines.is_empty() {
            keeping.pending.clear();
        }
        Ok(())
    }
}

impl CheckpointState {
    /// Keeps what a call may change.
    fn begin_call(&mut self, call: &CallIntent) -> io::Result<ManifestLine> {
        let can_execute = call.kind == CallKind::Execute;
        let mut look = FileLook::keeping(&mut self.blobs, &mut self.memory);
        let before = look.around(&call.changes)?;
        let mut files: Vec<PathSnapshot> =
            before.states.iter().map(|(path, state)| path_snapshot(path, state)).collect();
        let watched = match &mut self.watched {
            Some(watched) => watched,
            none => none.insert(watched_in(&self.manifest.path)?),
        };
        for (path, known) in watched.iter_mut().filter(|_| can_execute) {
            if let Some(state) = before.states.get(path) {
                known.clone_from(state);
                continue;
            }
            let state = look.state(path)?;
            if !state.is_same(known) {
                files.push(path_snapshot(path, &state));
            }
            *known = state;
        }
        self.tell_of_obstacles(&before);
        let about = self.about.remove(&call.tool_use_id).unwrap_or_default();
        let id = call.tool_use_id.to_string();
        let open = StartedCall { roots: call.changes.clone(), before, can_execute };
        self.open.insert(Arc::clone(&call.tool_use_id), open);
        Ok(ManifestLine::Before { id, tool: call.tool.to_string(), execute: can_execute, about, files })
    }

    fn tell_of_obstacles(&mut self, before: &LookResult) {
        for (path, state) in &before.states {
            let Some(why) = state.obstacle() else { continue };
            let notice = format!("No checkpoint of {}, so it cannot be rewound: {why}.", path.display());
            if self.notices.len() < NOTICES_MAX && !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
        if !before.is_complete {
            let notice = "A command may change more files than a checkpoint can hold. Files without a \
                          checkpoint cannot be rewound.";
            self.notices.push(notice.to_owned());
        }
    }

    /// Takes down what a call changed. If that cannot be done, the manifest looks as after a crash.
    fn end_call(&mut self, id: &str, open: &StartedCall) -> Option<ManifestLine> {
        match self.changed_by(open) {
            Ok(files) => Some(ManifestLine::After { id: id.to_owned(), files }),
            Err(error) => {
                self.notices.push(format!("Cannot record which files a call changed: {error}."));
                None
            }
        }
    }

    fn changed_by(&mut self, open: &StartedCall) -> io::Result<Vec<PathChange>> {
        let mut look = FileLook::keeping(&mut self.blobs, &mut self.memory);
        let mut after = look.around(&open.roots)?.states;
        for path in open.before.states.keys() {
            if !after.contains_key(path) {
                after.insert(path.clone(), look.state(path)?);
            }
        }
        let watched = self.watched.get_or_insert_default();
        let mut files = Vec::new();
        for (path, known) in watched.iter().filter(|_| open.can_execute) {
            if !after.contains_key(path) {
                let now = look.state(path)?;
                files.extend(path_change(path, known, now));
            }
        }
        for (path, now) in after {
            match open.before.states.get(&path) {
                Some(was) => files.extend(path_change(&path, was, now)),
                // In a directory that was seen whole, what was not there is new.
                None if open.before.is_complete => {
                    files.extend(path_change(&path, &FileState::Absent { missing: 0 }, now));
                }
                None => {}
            }
        }
        for file in &files {
            watch(watched, file);
        }
        Ok(files)
    }
}

pub(crate) fn can_change_files(call: &CallIntent) -> bool {
    matches!(call.kind, CallKind::Edit | CallKind::Execute)
}

/// The call that is over with this record.
fn ended_call(record: &Record) -> Option<&str> {
    match record {
        Record::Finished(FinishedCall { tool_use_id, .. }) => Some(tool_use_id),
        Record::Result(result) => match result.result.kind() {
            BlockKind::ToolResult { tool_use_id, .. } => Some(tool_use_id),
            _ => None,
        },
        _ => None,
    }
}

fn prompt_line(prompt: &PromptLine) -> ManifestLine {
    ManifestLine::Prompt {
        n: prompt.number,
        uuid: prompt.uuid,
        also: prompt.also.clone(),
        text: short(&prompt.text),
        wall: prompt.wall_ms.unwrap_or_default(),
    }
}

fn path_snapshot(path: &Path, state: &FileState) -> PathSnapshot {
    PathSnapshot { path: path.to_owned(), state: state.clone() }
}

fn path_change(path: &Path, was: &FileState, now: FileState) -> Option<PathChange> {
    (!was.is_same(&now)).then(|| PathChange { path: path.to_owned(), was: was.clone(), now })
}

fn watch(watched: &mut VecDeque<(PathBuf, FileState)>, file: &PathChange) {
    watched.retain(|(path, _)| *path != file.path);
    watched.push_back((file.path.clone(), file.now.clone()));
    if watched.len() > WATCHED_MAX {
        watched.pop_front();
    }
}

/// The files that calls have changed, from the end of a manifest.
fn watched_in(manifest: &Path) -> io::Result<VecDeque<(PathBuf, FileState)>> {
    let mut watched = VecDeque::new();
    manifest::read(manifest, Some(TAIL_BYTES), |line| {
        if let ManifestLine::After { files, .. } | ManifestLine::Rewound { files } = line {
            for file in &files {
                watch(&mut watched, file);
            }
        }
    })?;
    Ok(watched)
}

/// What a call is about, for people: its command, or its whole input.
fn describe(input: &str) -> String {
    let command: Option<String> = RawObject::parse(input).ok().and_then(|object| object.read("command"));
    short(command.as_deref().unwrap_or(input))
}

fn short(text: &str) -> String {
    text.trim().chars().take(TEXT_CHARS_MAX).collect()
}

/// Copies checkpoints for a copy of the session, in which prompts keep their ids. Contents are shared.
pub fn copy_checkpoints(from: &Path, to: &Path) -> io::Result<()> {
    let Some(manifest) = if_there(fs::read(from.join(MANIFEST)))? else { return Ok(()) };
    let blobs = to.join(BLOBS);
    crate::create_private(&blobs)?;
    for entry in fs::read_dir(from.join(BLOBS)).into_iter().flatten() {
        let entry = entry?;
        let target = blobs.join(entry.file_name());
        if target.exists() || entry.file_name().len() != 64 {
            continue;
        }
        if fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(to.join(MANIFEST))?;
    file.write_all(&manifest)
}
