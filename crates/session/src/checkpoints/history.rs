//! What the manifest tells about files since a point in time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use super::manifest::{self, FileState, FileStateKind, ManifestLine, PathChange, PathSnapshot};
use super::plan::CommandRun;
use super::{Checkpoints, RewindError, RewindPoint, prompt_line};

/// A prompt that one can go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointInfo {
    /// Its id.
    pub uuid: String,
    /// Its number in the session.
    pub number: u64,
    /// The beginning of its text.
    pub text: String,
    /// How many files the calls that followed it changed, up to the next prompt.
    pub files: usize,
    /// How many commands ran, up to the next prompt.
    pub commands: usize,
}

/// What happened to one path since the point.
#[derive(Clone, Debug)]
pub(crate) struct PathHistory {
    /// What was there at the point.
    pub(crate) origin: FileState,
    /// What was seen last.
    pub(crate) last: FileState,
    /// A call changed it.
    pub(crate) is_ours: bool,
    /// A call put something of the present kind there.
    pub(crate) is_made_by_call: bool,
    /// Something else changed it between calls.
    pub(crate) is_changed_by_others: bool,
    /// A call that could change it was never seen to end.
    pub(crate) is_open: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FileHistory {
    pub(crate) paths: BTreeMap<PathBuf, PathHistory>,
    pub(crate) commands: Vec<CommandRun>,
    /// Lines that cannot be read any more: something may be missing.
    pub(crate) unread: usize,
    /// Calls that have begun, and the paths they named.
    open: BTreeMap<String, Vec<PathBuf>>,
}

const REWIND: &str = "rewind";

impl FileHistory {
    fn take(&mut self, line: ManifestLine) {
        match line {
            ManifestLine::Prompt { .. } => {}
            ManifestLine::Before { id, tool, execute, about, files } => {
                if execute {
                    self.commands.push(CommandRun { tool, text: about, is_finished: false, id: id.clone() });
                }
                self.begin(id, files);
            }
            ManifestLine::After { id, files } => {
                if let Some(command) = self.commands.iter_mut().rfind(|command| command.id == id) {
                    command.is_finished = true;
                }
                self.end(&id, files);
            }
            ManifestLine::Rewind { files, .. } => self.begin(REWIND.to_owned(), files),
            ManifestLine::Rewound { files } => self.end(REWIND, files),
        }
    }

    fn begin(&mut self, id: String, files: Vec<PathSnapshot>) {
        let mut paths = Vec::new();
        for PathSnapshot { path, state } in files {
            paths.push(path.clone());
            self.see(path, state);
        }
        self.open.insert(id, paths);
    }

    /// What is at a path when a call begins.
    fn see(&mut self, path: PathBuf, state: FileState) -> &mut PathHistory {
        let new = || PathHistory {
            origin: state.clone(),
            last: state.clone(),
            is_ours: false,
            is_made_by_call: false,
            is_changed_by_others: false,
            is_open: false,
        };
        let past = self.paths.entry(path).or_insert_with(new);
        past.is_changed_by_others |= !past.last.is_same(&state);
        past.last = state;
        past
    }

    fn end(&mut self, id: &str, files: Vec<PathChange>) {
        self.open.remove(id);
        for PathChange { path, was, now } in files {
            let made = was.kind() != now.kind();
            let past = self.see(path, was);
            past.is_ours = true;
            past.is_made_by_call =
                if now.kind() == FileStateKind::Absent { false } else { past.is_made_by_call || made };
            // What others did to something that is gone does not count any more.
            past.is_changed_by_others &= now.kind() != FileStateKind::Absent;
            past.last = now;
        }
    }

    fn finish(mut self) -> Self {
        for path in std::mem::take(&mut self.open).into_values().flatten() {
            if let Some(past) = self.paths.get_mut(&path) {
                past.is_open = true;
            }
        }
        self
    }
}

fn is_point(line: &ManifestLine, point: RewindPoint) -> bool {
    match (line, point) {
        (ManifestLine::Prompt { uuid, also, .. }, RewindPoint::Prompt(wanted)) => {
            *uuid == wanted || also.contains(&wanted)
        }
        (ManifestLine::Prompt { n, .. }, RewindPoint::Number(wanted)) => *n == wanted.0,
        (ManifestLine::Rewind { .. }, RewindPoint::Undo) => true,
        _ => false,
    }
}

impl Checkpoints {
    /// What happened since a point; nothing if there is no such point. Where a prompt is found twice, the later one counts.
    pub(crate) fn since(&self, point: RewindPoint) -> io::Result<Option<FileHistory>> {
        let mut history: Option<FileHistory> = None;
        let unread = self.lines(|line| {
            if is_point(&line, point) {
                history = Some(FileHistory::default());
            }
            if let Some(history) = &mut history {
                history.take(line);
            }
        })?;
        Ok(history.map(|history| FileHistory { unread, ..history.finish() }))
    }

    /// Hands over the lines of the manifest. Without one, the prompts after which nothing was changed stand in for it: if
    /// something was, the manifest is lost, or nobody kept it. Returns how many lines cannot be read.
    fn lines(&self, take: impl FnMut(ManifestLine)) -> io::Result<usize> {
        let manifest = self.keeping().manifest.path.clone();
        if manifest.exists() {
            return manifest::read(&manifest, None, take);
        }
        let prompts = self.prompts()?;
        let changed = prompts.iter().rposition(|prompt| prompt.is_changing).map_or(0, |place| place + 1);
        prompts[changed..].iter().filter(|prompt| prompt.is_kept).map(prompt_line).for_each(take);
        Ok(0)
    }

    /// The prompts that one can go back to, the oldest first.
    pub fn points(&self) -> Result<Vec<PointInfo>, RewindError> {
        let mut points: Vec<PointInfo> = Vec::new();
        let mut files = BTreeSet::new();
        let read = self.lines(|line| match line {
            ManifestLine::Prompt { n: number, uuid, text, .. } => {
                let uuid = uuid.to_string();
                files.clear();
                points.retain(|point| point.uuid != uuid);
                points.push(PointInfo { uuid, number, text, files: 0, commands: 0 });
            }
            ManifestLine::Before { execute: true, .. } => {
                if let Some(point) = points.last_mut() {
                    point.commands += 1;
                }
            }
            ManifestLine::After { files: changed, .. } => {
                files.extend(changed.into_iter().map(|changed| changed.path));
                if let Some(point) = points.last_mut() {
                    point.files = files.len();
                }
            }
            _ => {}
        });
        read.map_err(|error| self.io_error(error))?;
        Ok(points)
    }
}
