//! Which sessions there are, and which one is meant.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use uuid::Uuid;

use crate::index::PreviewCache;
use crate::layout::{SessionLayout, SessionPaths};
use crate::preview::{SessionPreview, preview};
use crate::repository::{GitProgram, Identity, Repository};

/// The beginning of an id needs at least as many characters: fewer are words.
const PREFIX_CHARS_MIN: usize = 4;

/// As many candidates are named in an error.
const NAMED_MAX: usize = 5;

/// What a list tells about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The session.
    pub id: Uuid,
    /// Its log.
    pub path: PathBuf,
    /// Bytes of the log.
    pub size: u64,
    /// When the log was last written to, in milliseconds since 1970.
    pub modified_ms: u64,
    /// What both ends of the log say.
    pub preview: SessionPreview,
}

impl SessionInfo {
    /// Where its files lie.
    pub fn paths(&self) -> SessionPaths {
        SessionPaths::new(self.path.clone(), self.id)
    }

    /// What a list tells about it, for programs.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "sessionId": self.id.to_string(),
            "summary": self.preview.summary,
            "title": self.preview.title,
            "firstPrompt": self.preview.first_prompt,
            "createdAt": self.preview.created_ms,
            "lastModified": self.modified_ms,
            "fileSize": self.size,
            "cwd": self.preview.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
            "gitBranch": self.preview.branch,
            "tag": self.preview.tag,
            "entrypoint": self.preview.entrypoint,
            "path": self.path.to_string_lossy(),
        })
    }

    /// Whether lists leave it out.
    pub fn is_hidden(&self) -> bool {
        self.preview.sidechain || (self.preview.summary.is_none() && !self.preview.said)
    }
}

/// Which sessions a list is about.
#[derive(Clone, Copy, Debug)]
pub enum ListScope<'a> {
    /// Those of a project: of its folder, of the other work trees of its repository, and of the same repository elsewhere.
    Project(&'a Path),
    /// All.
    Everywhere,
}

/// Which sessions may be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionFilter {
    /// Those that a person had.
    Interactive,
    /// Those of programs too.
    Any,
}

/// The sessions under one home.
#[derive(Clone, Debug)]
pub struct Catalogue {
    layout: SessionLayout,
    git: Option<GitProgram>,
}

/// A session file as the folder shows it.
struct SessionFile {
    paths: SessionPaths,
    found: Metadata,
}

impl SessionFile {
    /// The file with this path, if it is there and its name that of a session. An empty one counts as absent.
    fn find(path: PathBuf) -> Option<Self> {
        let paths = SessionPaths::of_file(path)?;
        let found = std::fs::symlink_metadata(paths.file()).ok()?;
        (found.is_file() && found.len() > 0).then_some(Self { paths, found })
    }

    /// What its ends say; nothing if it cannot be read.
    fn look(&self) -> Option<SessionInfo> {
        Some(self.info(preview(self.paths.file()).ok()?))
    }

    fn info(&self, preview: SessionPreview) -> SessionInfo {
        let since = self.found.modified().ok().and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
        SessionInfo {
            id: self.paths.id(),
            path: self.paths.file().to_owned(),
            size: self.found.len(),
            modified_ms: since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or_default()),
            preview,
        }
    }
}

impl Catalogue {
    /// The sessions in these places.
    pub fn new(layout: SessionLayout) -> Self {
        Self { layout, git: None }
    }

    /// Lets this git be asked whether a repository is the same as one elsewhere. Without it only its files are looked at.
    #[must_use]
    pub fn with_git(self, git: Option<GitProgram>) -> Self {
        Self { git, ..self }
    }

    /// The sessions, the one that was last written to first.
    pub fn list(&self, scope: ListScope<'_>) -> Vec<SessionInfo> {
        let mut sessions = match scope {
            ListScope::Everywhere => self.of_folders(&self.layout.all_folders()),
            ListScope::Project(cwd) => self.of_project(cwd),
        };
        sessions.retain(|session| !session.is_hidden());
        newest_first(&mut sessions);
        let mut seen = BTreeSet::new();
        sessions.retain(|session| seen.insert(session.id));
        sessions
    }

    /// The session written last: of the directory, else of another work tree, else of the repository elsewhere.
    pub fn newest(&self, cwd: &Path, wanted: SessionFilter) -> Option<SessionInfo> {
        let fits = |session: &SessionInfo| {
            // A program, or somebody who wanted one answer printed, came through an SDK.
            let entrypoint = session.preview.entrypoint.as_deref().unwrap_or_default();
            !session.is_hidden() && (wanted == SessionFilter::Any || !entrypoint.starts_with("sdk-"))
        };
        let here = self.layout.folders(cwd);
        if let Some(session) = first_that(&here, fits) {
            return Some(session);
        }
        let repository = Repository::discover(cwd)?;
        let beside = self.sibling_folders(&repository, &here);
        if let Some(session) = first_that(&beside, fits) {
            return Some(session);
        }
        let mut sessions = self.elsewhere(&repository, &[here, beside].concat());
        sessions.retain(fits);
        newest_first(&mut sessions);
        sessions.into_iter().next()
    }

    fn of_project(&self, cwd: &Path) -> Vec<SessionInfo> {
        let mut folders = self.layout.folders(cwd);
        let Some(repository) = Repository::discover(cwd) else { return self.of_folders(&folders) };
        folders.extend(self.sibling_folders(&repository, &folders));
        let mut sessions = self.of_folders(&folders);
        sessions.extend(self.elsewhere(&repository, &folders));
        sessions
    }

    /// The folders of the same directory in the other work trees of a repository.
    fn sibling_folders(&self, repository: &Repository, here: &[PathBuf]) -> Vec<PathBuf> {
        let places = repository.worktrees().into_iter().map(|top| top.join(&repository.inside));
        let mut folders: Vec<PathBuf> = places.flat_map(|place| self.layout.folders(&place)).collect();
        folders.retain(|folder| !here.contains(folder));
        folders
    }

    /// The sessions of the same repository at other places.
    fn elsewhere(&self, repository: &Repository, known: &[PathBuf]) -> Vec<SessionInfo> {
        let mut folders = self.layout.all_folders();
        folders.retain(|folder| !known.contains(folder));
        let sessions = self.of_folders(&folders);
        // A session that did not write its repository down belongs to what is there now, looked up once for each directory.
        let mut present = BTreeMap::new();
        let mut look = |cwd: &PathBuf| -> Option<Identity> {
            let look = || Some(Repository::discover(cwd)?.identity());
            present.entry(cwd.clone()).or_insert_with(look).clone()
        };
        let identities: Vec<Option<Identity>> = sessions
            .iter()
            .map(|session| session.preview.identity.clone().or_else(|| look(session.preview.cwd.as_ref()?)))
            .collect();
        let mut ours = repository.identity();
        let undecided = |theirs: &Identity| {
            !theirs.roots.is_empty() && theirs.inside == ours.inside && !theirs.matches(&ours)
        };
        // Only now is it worth asking git.
        if let Some(git) = self.git.as_ref().filter(|_| identities.iter().flatten().any(undecided)) {
            ours = repository.identity_with_roots(git);
        }
        let pairs = sessions.into_iter().zip(identities);
        let same = pairs.filter(|(_, theirs)| theirs.as_ref().is_some_and(|theirs| theirs.matches(&ours)));
        same.map(|(session, _)| session).collect()
    }

    fn of_folders(&self, folders: &[PathBuf]) -> Vec<SessionInfo> {
        let mut sessions = Vec::new();
        for folder in folders {
            let mut index = PreviewCache::open(self.layout.index(folder));
            for file in session_files(folder) {
                // A file that went away meanwhile, or that may not be read, is none of ours.
                if let Ok(preview) = index.preview(file.paths.file(), &file.found) {
                    sessions.push(file.info(preview));
                }
            }
            index.save();
        }
        sessions
    }
}

/// No session, or too many, are meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// None.
    #[error("no session matches {0:?}. List them with `windlass sessions list --all`.")]
    Nothing(String),
    /// More than one.
    #[error("{query:?} matches {} sessions: {}. Give the id of one.", .candidates.len(), name_candidates(.candidates))]
    Several {
        /// What was asked for.
        query: String,
        /// What it may stand for.
        candidates: Vec<SessionInfo>,
    },
}

fn name_candidates(candidates: &[SessionInfo]) -> String {
    let name = |session: &SessionInfo| {
        let summary = session.preview.summary.as_deref().unwrap_or("no prompt");
        let summary: String = summary.chars().take(40).collect();
        format!("{} ({summary})", session.id)
    };
    let mut names: Vec<String> = candidates.iter().take(NAMED_MAX).map(name).collect();
    if candidates.len() > NAMED_MAX {
        names.push("and others".into());
    }
    names.join(", ")
}

impl Catalogue {
    /// The session with this id, with an id that begins so, with this title, or whose title or prompt holds these words.
    ///
    /// The project's own come first. Ids and titles are then looked for everywhere, words are not.
    pub fn find(&self, cwd: &Path, query: &str) -> Result<SessionInfo, FindError> {
        let query = query.trim();
        if let Some(found) = self.by_id(cwd, query) {
            return found;
        }
        let lowered = query.to_lowercase();
        let title = |session: &SessionInfo| {
            session.preview.title.as_deref().is_some_and(|title| title.to_lowercase() == lowered)
        };
        let words = |session: &SessionInfo| {
            let texts = [&session.preview.title, &session.preview.summary, &session.preview.first_prompt];
            !lowered.is_empty()
                && texts.into_iter().flatten().any(|text| text.to_lowercase().contains(&lowered))
        };
        let here = self.list(ListScope::Project(cwd));
        only_match(query, &here, &title)
            .or_else(|| only_match(query, &self.list(ListScope::Everywhere), &title))
            .or_else(|| only_match(query, &here, &words))
            .unwrap_or_else(|| Err(FindError::Nothing(query.to_owned())))
    }

    /// The session with this id, or with an id that begins so.
    pub fn find_id(&self, cwd: &Path, query: &str) -> Result<SessionInfo, FindError> {
        let query = query.trim();
        self.by_id(cwd, query).unwrap_or_else(|| Err(FindError::Nothing(query.to_owned())))
    }

    fn by_id(&self, cwd: &Path, query: &str) -> Option<Result<SessionInfo, FindError>> {
        if let Ok(id) = Uuid::try_parse(query) {
            return self.with_id(cwd, id, query);
        }
        let prefix = query.to_ascii_lowercase();
        let hex = |c: char| c.is_ascii_hexdigit() || c == '-';
        if prefix.len() < PREFIX_CHARS_MIN || !prefix.chars().all(hex) {
            return None;
        }
        let fits = |session: &SessionInfo| session.id.to_string().starts_with(&prefix);
        [ListScope::Project(cwd), ListScope::Everywhere]
            .into_iter()
            .find_map(|scope| only_match(query, &self.list(scope), &fits))
    }

    /// A session by its whole id. Folders are asked, not lists: what lists leave out can be opened too.
    fn with_id(&self, cwd: &Path, id: Uuid, query: &str) -> Option<Result<SessionInfo, FindError>> {
        let here = self.layout.folders(cwd);
        if let Some(session) = here.iter().find_map(|folder| session_in(folder, id)) {
            return Some(Ok(session));
        }
        let repository = Repository::discover(cwd);
        let beside =
            repository.as_ref().map(|repository| self.sibling_folders(repository, &here)).unwrap_or_default();
        if let Some(session) = beside.iter().find_map(|folder| session_in(folder, id)) {
            return Some(Ok(session));
        }
        let folders = self.layout.all_folders();
        let mut found: Vec<SessionInfo> =
            folders.iter().filter_map(|folder| session_in(folder, id)).collect();
        if let Some(repository) = repository.filter(|_| found.len() > 1) {
            let same = self.elsewhere(&repository, &[]);
            let ours = |session: &SessionInfo| same.iter().any(|other| other.path == session.path);
            if found.iter().any(ours) {
                found.retain(ours);
            }
        }
        only_match(query, &found, &|_| true)
    }
}

/// The one session that fits; `None` if there is none.
fn only_match(
    query: &str,
    sessions: &[SessionInfo],
    fits: &dyn Fn(&SessionInfo) -> bool,
) -> Option<Result<SessionInfo, FindError>> {
    let mut found: Vec<SessionInfo> = sessions.iter().filter(|session| fits(session)).cloned().collect();
    match found.len() {
        0 => None,
        1 => found.pop().map(Ok),
        _ => Some(Err(FindError::Several { query: query.to_owned(), candidates: found })),
    }
}

fn session_files(folder: &Path) -> impl Iterator<Item = SessionFile> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| SessionFile::find(entry.path()))
}

/// The latest session of some folders that fits. Files are looked at one by one, the latest first.
fn first_that(folders: &[PathBuf], fits: impl Fn(&SessionInfo) -> bool) -> Option<SessionInfo> {
    let mut files: Vec<SessionFile> = folders.iter().flat_map(|folder| session_files(folder)).collect();
    files.sort_by_key(|file| Reverse((file.found.modified().ok(), file.paths.id())));
    files.iter().filter_map(SessionFile::look).find(fits)
}

/// One session of a folder, if it is there. Only its own file is looked at, however many others there are.
fn session_in(folder: &Path, id: Uuid) -> Option<SessionInfo> {
    let spelled = [format!("{:x}.jsonl", id.hyphenated()), format!("{:X}.jsonl", id.hyphenated())];
    spelled.into_iter().find_map(|name| SessionFile::find(folder.join(name))?.look())
}

fn newest_first(sessions: &mut [SessionInfo]) {
    sessions.sort_by_key(|session| Reverse((session.modified_ms, session.id)));
}
