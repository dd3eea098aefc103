//! Which session somebody means who gives an id, the beginning of one, a title, or some words.

use std::path::Path;

use uuid::Uuid;

use super::{Catalogue, ListScope, SessionInfo, session_in};
use crate::repository::Repository;

/// The beginning of an id needs at least as many characters: fewer are words.
const PREFIX_CHARS_MIN: usize = 4;

/// As many candidates are named in an error.
const NAMED_MAX: usize = 5;

/// No session, or too many, are meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// None.
    #[error("no session matches {query:?}. List them with `windlass sessions list --all`.")]
    Nothing {
        /// What was asked for.
        query: String,
    },
    /// More than one.
    #[error("{query:?} matches {} sessions: {}. Give the id of one.", .candidates.len(), named(.candidates))]
    Several {
        /// What was asked for.
        query: String,
        /// What it may stand for.
        candidates: Vec<SessionInfo>,
    },
}

fn named(candidates: &[SessionInfo]) -> String {
    let name = |session: &SessionInfo| {
        let summary = session.glance.summary.as_deref().unwrap_or("no prompt");
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
            session.glance.title.as_deref().is_some_and(|title| title.to_lowercase() == lowered)
        };
        let words = |session: &SessionInfo| {
            let texts = [&session.glance.title, &session.glance.summary, &session.glance.first_prompt];
            !lowered.is_empty()
                && texts.into_iter().flatten().any(|text| text.to_lowercase().contains(&lowered))
        };
        let here = self.list(ListScope::Project(cwd));
        only(query, &here, &title)
            .or_else(|| only(query, &self.list(ListScope::Everywhere), &title))
            .or_else(|| only(query, &here, &words))
            .unwrap_or_else(|| Err(FindError::Nothing { query: query.to_owned() }))
    }

    /// The session with this id, or with an id that begins so.
    pub fn find_id(&self, cwd: &Path, query: &str) -> Result<SessionInfo, FindError> {
        let query = query.trim();
        self.by_id(cwd, query).unwrap_or_else(|| Err(FindError::Nothing { query: query.to_owned() }))
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
            .find_map(|scope| only(query, &self.list(scope), &fits))
    }

    /// A session by its whole id. Folders are asked, not lists: what lists leave out can be opened too.
    fn with_id(&self, cwd: &Path, id: Uuid, query: &str) -> Option<Result<SessionInfo, FindError>> {
        let here = self.layout.folders(cwd);
        if let Some(session) = here.iter().find_map(|folder| session_in(folder, id)) {
            return Some(Ok(session));
        }
        let repository = Repository::discover(cwd);
        let beside = repository.as_ref().map(|repository| self.beside(repository, &here)).unwrap_or_default();
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
        only(query, &found, &|_| true)
    }
}

/// The one session that fits; `None` if there is none.
fn only(
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
