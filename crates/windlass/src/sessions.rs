//! Which session a run belongs to, and how it is opened: a new one, one that goes on, or a copy of one.

mod notices;
mod origin;
mod recorded_config;
mod saved_flags;

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;
use windlass_config::{Flags, Home};
use windlass_engine::{Engine, Recall, RecalledSession, SessionSeed, Transcript};
use windlass_ports::SessionLog;
use windlass_protocol::{SessionKey, StartSource};
use windlass_session::{
    Catalogue, Checkpoints, GitProgram, Lease, LeaseError, LoadedLog, LogEnd, LogOptions, LogWriter,
    PreImageTaker, PromptLine, SessionFilter, SessionInfo, SessionLayout, SessionPaths, copy_checkpoints,
    copy_log, load_back, prompts, rename,
};

use crate::error::{Error, LogProblem, SessionError};
use crate::options::Approver;
use crate::permission_saver::PermissionSaver;
use crate::session::Session;
use crate::wiring::{SessionStorage, WiredEngine};

use origin::RepositoryMark;
pub(crate) use origin::{ProcessOrigin, SUMS};
use recorded_config::write_before_usd;
pub(crate) use recorded_config::{RecordedConfig, read_before_usd};
pub(crate) use saved_flags::{fill_flags, read_flags};

/// Which session is meant: a new one, unless something else is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct SessionChoice {
    /// Where it comes from.
    pub source: SessionSource,
    /// Whether a copy of it goes on.
    pub should_fork: bool,
    /// The message behind which it goes on.
    pub after_message: Option<Uuid>,
    /// How many bytes of its log count.
    pub log_bytes: Option<u64>,
    /// The prompt whose turn is all that may be left out.
    pub dropped_turn: Option<String>,
    /// The id of the new session.
    pub id: Option<Uuid>,
    /// Its name.
    pub name: Option<String>,
    /// Whether nothing is kept on disk.
    pub is_unsaved: bool,
}

impl SessionChoice {
    /// The latest session of the directory; a new one if there is none.
    pub fn latest() -> Self {
        SessionSource::Newest.into()
    }

    /// The session that these words mean: its id or the beginning of it, its name, or words of its first prompt.
    pub fn resume(words: impl Into<String>) -> Self {
        SessionSource::Named(words.into()).into()
    }

    /// A copy goes on instead.
    pub fn forked(self) -> Self {
        Self { should_fork: true, ..self }
    }

    /// Whether the parts of the choice fit together.
    pub fn check(&self) -> Result<(), SessionError> {
        let is_new = self.source == SessionSource::New;
        let about_old =
            [("--fork-session", self.should_fork), ("--resume-session-at", self.after_message.is_some())];
        match about_old.into_iter().find(|(_, is_given)| *is_given && is_new) {
            Some((flag, _)) => Err(SessionError::NeedsSession(flag)),
            None if self.dropped_turn.is_some() && self.after_message.is_none() => {
                Err(SessionError::DropsWithoutPlace)
            }
            None if self.id.is_some() && !is_new && !self.should_fork => Err(SessionError::IdOfOldSession),
            None => Ok(()),
        }
    }

    /// Nothing of it is kept on disk.
    pub fn unsaved(self) -> Self {
        Self { is_unsaved: true, ..self }
    }
}

impl From<SessionSource> for SessionChoice {
    fn from(source: SessionSource) -> Self {
        Self { source, ..Self::default() }
    }
}

/// Where a session comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionSource {
    /// It begins.
    #[default]
    New,
    /// The newest here; a new one if there is none.
    Newest,
    /// The one that these words mean.
    Named(String),
}

/// A session that was found, or that is about to begin. Nothing of it is written before the first prompt.
pub(crate) struct FoundSession {
    /// Its id and its seeds.
    pub(crate) key: SessionKey,
    /// Where it is kept; nowhere if nothing is to be kept.
    pub(crate) paths: Option<SessionPaths>,
    /// What was read of it.
    loaded: Option<LoadedLog>,
    /// Whether that is all of it, and no other process still writes it.
    is_whole: bool,
    /// Whether it is a copy of another session.
    is_copy: bool,
    /// Keeps other processes from writing into it.
    lease: Option<Lease>,
    name: Option<String>,
    /// Which session goes on.
    resumed: Option<SessionInfo>,
    /// What the user should know.
    pub(crate) notices: Vec<String>,
}

impl FoundSession {
    /// Finds the session that is meant, or makes up a new one. Each error is for the user.
    pub(crate) fn find(
        choice: &SessionChoice,
        home: &Home,
        cwd: &Path,
        git: Option<&GitProgram>,
    ) -> Result<Self, Error> {
        choice.check()?;
        let catalogue = || layout(home).map(|layout| Catalogue::new(layout).with_git(git.cloned()));
        let found = match &choice.source {
            SessionSource::New => None,
            SessionSource::Newest => catalogue()?.newest(cwd, SessionFilter::Any),
            SessionSource::Named(words) => Some(catalogue()?.find(cwd, words).map_err(SessionError::from)?),
        };
        let opening = if let Some(found) = found {
            Self { resumed: Some(found.clone()), ..Self::go_on(choice, &found, home, cwd)? }
        } else {
            let mut opening = Self::begin(choice, home, cwd)?;
            if choice.source == SessionSource::Newest {
                opening.notices.push(notices::NOTHING_TO_CONTINUE.to_owned());
            }
            opening
        };
        Ok(Self { name: choice.name.clone(), ..opening })
    }

    fn begin(choice: &SessionChoice, home: &Home, cwd: &Path) -> Result<Self, Error> {
        let key = new_key(choice.id);
        let mut opening = Self::unread(key);
        if choice.is_unsaved {
            return Ok(opening);
        }
        let paths = new_paths(choice, key.id, home, cwd)?;
        opening.lease = Some(new_lease(choice, &paths)?);
        opening.paths = Some(paths);
        Ok(opening)
    }

    /// Goes on with a session that exists, or with a copy of it if that is wanted or another process has it open.
    fn go_on(choice: &SessionChoice, found: &SessionInfo, home: &Home, cwd: &Path) -> Result<Self, Error> {
        let upto = match (choice.after_message, choice.log_bytes) {
            (Some(entry), _) => LogEnd::Entry(entry),
            (None, Some(length)) => LogEnd::Offset(length),
            (None, None) => LogEnd::End,
        };
        let paths = found.paths();
        if let (Some(at), Some(turn)) = (choice.after_message, &choice.dropped_turn) {
            windlass_session::check_dropped(paths.file(), at, turn).map_err(SessionError::DropsMore)?;
        }
        if choice.should_fork {
            return Self::copy(choice, &paths, upto, home, cwd);
        }
        if choice.is_unsaved {
            return Self::read(&paths, upto, None);
        }
        match Lease::take(paths.file()) {
            Ok(lease) => Self::read(&paths, upto, Some(lease)),
            Err(LeaseError::Busy(busy)) => {
                let mut copy = Self::copy(choice, &paths, upto, home, cwd)?;
                copy.notices.insert(0, notices::busy(found.id, copy.key.id, &busy));
                Ok(Self { is_whole: false, ..copy })
            }
            Err(error @ LeaseError::Failed { .. }) => Err(unreadable(found.id)(error)),
        }
    }

    fn copy(
        choice: &SessionChoice,
        source: &SessionPaths,
        upto: LogEnd,
        home: &Home,
        cwd: &Path,
    ) -> Result<Self, Error> {
        let key = new_key(choice.id);
        if choice.is_unsaved {
            let read = Self::read(source, upto, None)?;
            return Ok(Self { key, is_copy: true, ..read });
        }
        let target = new_paths(choice, key.id, home, cwd)?;
        target.create().map_err(SessionError::Directory)?;
        let lease = new_lease(choice, &target)?;
        copy_log(source.file(), upto, target.file(), key.id, Some(&lease))
            .map_err(unreadable(source.id()))?;
        let mut copy = Self::read(&target, LogEnd::End, Some(lease))?;
        copy.is_whole = upto == LogEnd::End;
        if let Err(error) = copy_checkpoints(&source.checkpoints(), &target.checkpoints()) {
            copy.notices.push(format!("This copy cannot rewind files to before it was made: {error}."));
        }
        Ok(Self { key, is_copy: true, ..copy })
    }

    fn read(paths: &SessionPaths, upto: LogEnd, lease: Option<Lease>) -> Result<Self, Error> {
        let loaded = load_back(paths.file(), upto).map_err(unreadable(paths.id()))?;
        let process = SessionSeed(Uuid::new_v4().as_u128());
        let seed = loaded.header.as_ref().map_or(process, |header| header.seed);
        let notices = notices::damage(&loaded, paths.file());
        let paths = lease.is_some().then(|| paths.clone());
        let key =
            SessionKey { id: paths.as_ref().map_or_else(Uuid::new_v4, SessionPaths::id), seed, process };
        let is_whole = !loaded.is_cut;
        let loaded = Some(loaded);
        Ok(Self { paths, loaded, is_whole, lease, notices, ..Self::unread(key) })
    }

    fn unread(key: SessionKey) -> Self {
        let (paths, loaded, lease, name, resumed) = (None, None, None, None, None);
        Self { key, paths, loaded, is_whole: true, is_copy: false, lease, name, resumed, notices: Vec::new() }
    }

    /// Where the parts of the session lie that tools and hooks write to.
    pub(crate) fn storage(&self) -> SessionStorage {
        SessionStorage { key: self.key, paths: self.paths.clone(), is_resumed: self.loaded.is_some() }
    }

    /// The settings that come back.
    pub(crate) fn saved_flags(&self) -> Flags {
        let header = self.loaded.as_ref().and_then(|loaded| loaded.header.as_ref());
        header.map(|header| read_flags(&header.settings)).unwrap_or_default()
    }

    /// Opens the session. Its runs save changes of the permissions and ask the approver.
    pub(crate) fn open(
        self,
        wired: WiredEngine,
        origin: ProcessOrigin,
        saver: PermissionSaver,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<Session, Error> {
        let Self { key, paths, loaded, is_whole, is_copy, lease, name, resumed, mut notices } = self;
        let engine = &wired.engine;
        let mut kept = paths.map(|paths| {
            let (engine, checkpoints) = (engine.clone(), origin.checkpoints(key, &paths));
            KeptSession { engine, origin, paths, key, lease, checkpoints, name, identified: None }
        });
        let log = kept.as_mut().map(|kept| kept.log(loaded.as_ref())).transpose()?;
        let log = log.map(|log| Box::new(log) as Box<dyn SessionLog>);
        let session = match loaded {
            None => {
                let session = engine.session_with(key.seed, Transcript::default());
                if let Some(log) = log { session.logged(log) } else { session }
            }
            Some(loaded) => {
                let cwd = engine.working_directory();
                let is_elsewhere = loaded.header.as_ref().is_none_or(|header| *header.cwd != *cwd);
                let mut recalled = recall_session(loaded, cwd);
                notices.extend(notices::cut_off(&recalled, is_whole));
                let reset = notices::directory(&mut recalled, cwd);
                let has_moved = reset.is_some() || is_elsewhere;
                notices.extend(reset);
                let mut session = engine.resume(key.seed, recalled, log);
                if has_moved {
                    session.announce_directory();
                }
                if is_copy {
                    session.set_start_source(StartSource::Fork);
                }
                session
            }
        };
        let (inner, notify) = (Box::new(session), Arc::new(|_: &str| ()));
        Ok(Session { inner, kept, saver, approver, notify, key, wired, resumed, notices })
    }
}

/// What of an open session is on disk, or will be with the first prompt. The lease lasts as long as this, whichever log is written.
pub(crate) struct KeptSession {
    engine: Engine,
    origin: ProcessOrigin,
    paths: SessionPaths,
    key: SessionKey,
    lease: Option<Lease>,
    checkpoints: Option<Arc<Checkpoints>>,
    name: Option<String>,
    identified: Option<RepositoryMark>,
}

impl KeptSession {
    /// The log of a session that was loaded, or of a new one, which is made with the first record.
    fn log(&mut self, loaded: Option<&LoadedLog>) -> Result<LogWriter, Error> {
        let header = Arc::new(self.origin.header(self.key, &self.engine));
        if let Some(loaded) = loaded {
            let log = LogWriter::resume(&self.paths, header, loaded, self.options());
            return log.map_err(unreadable(self.key.id));
        }
        let log = LogWriter::create(&self.paths, header, self.options());
        self.identified = self.origin.mark_repository(&log);
        Ok(log)
    }

    fn options(&self) -> LogOptions {
        let pre_images = self.checkpoints.clone().map(|checkpoints| checkpoints as Arc<dyn PreImageTaker>);
        LogOptions { sync: self.origin.sync, pre_images, lease: self.lease.clone() }
    }

    /// The session is done: it gets its name, if there is a log. What could not be done is said.
    pub(crate) fn close(self) -> Vec<String> {
        let mut notices = self.checkpoints.map(|checkpoints| checkpoints.take_notices()).unwrap_or_default();
        if let Some(Err(error)) = self.identified.map(RepositoryMark::finish) {
            notices.push(format!("windlass may not find this session after its project moves: {error}."));
        }
        if let Some(name) = self.name.filter(|_| self.paths.file().exists())
            && let Err(error) = rename(self.paths.file(), self.paths.id(), &name)
        {
            notices.push(format!("cannot name the session: {error}."));
        }
        notices
    }

    /// The prompts of the session, in their order.
    pub(crate) fn prompts(&self) -> Result<Vec<PromptLine>, SessionError> {
        if !self.is_begun() {
            return Ok(Vec::new());
        }
        prompts(self.paths.file()).map_err(SessionError::Prompts)
    }

    /// Whether there is something to go on with: nothing is written before the first prompt.
    pub(crate) fn is_begun(&self) -> bool {
        self.paths.file().exists()
    }

    /// What files were before calls changed them.
    pub(crate) fn checkpoints(&self) -> Arc<Checkpoints> {
        let kept = self.checkpoints.clone();
        kept.unwrap_or_else(|| Arc::new(Checkpoints::new(&self.paths, self.key)))
    }

    /// Goes on from before this prompt. What followed stays in the log and is not considered any more.
    pub(crate) async fn rewind(
        &self,
        session: &mut windlass_engine::Session,
        prompt: &PromptLine,
    ) -> Result<(), SessionError> {
        let loaded = load_back(self.paths.file(), LogEnd::Offset(prompt.starts_at)).map_err(not_rewound)?;
        let mut header = self.origin.header(self.key, &self.engine);
        // The cap is that of the process: going back gives nothing of it back.
        let before_usd = session.before_usd();
        write_before_usd(&mut header, before_usd);
        let log = LogWriter::resume(&self.paths, Arc::new(header), &loaded, self.options());
        let log = log.map_err(not_rewound)?;
        let mut recalled = recall_session(loaded, self.engine.working_directory());
        recalled.state.set_before_usd(before_usd);
        // Between runs nothing is on its way into the log, so the former writer can go once the new one is there.
        *session = self.engine.resume(self.key.seed, recalled, Some(Box::new(log)));
        session.restate().await.map_err(SessionError::RewindNotLogged)
    }
}

/// The session as its log tells it.
fn recall_session(loaded: LoadedLog, cwd: &Path) -> RecalledSession {
    let mut recall = Recall::new(cwd.to_owned());
    loaded.records.into_iter().for_each(|record| recall.take(record));
    recall.leave_out(loaded.last_left_out, loaded.spent_left_out);
    recall.finish()
}

fn new_key(id: Option<Uuid>) -> SessionKey {
    let key = SessionKey::from(SessionSeed(Uuid::new_v4().as_u128()));
    SessionKey { id: id.unwrap_or(key.id), ..key }
}

/// Where a new session goes. An id that was given must not be that of another one.
fn new_paths(choice: &SessionChoice, id: Uuid, home: &Home, cwd: &Path) -> Result<SessionPaths, Error> {
    let layout = layout(home)?;
    if choice.id.is_some() && Catalogue::new(layout.clone()).find(cwd, &id.to_string()).is_ok() {
        return Err(SessionError::Exists(id).into());
    }
    Ok(layout.session(cwd, id))
}

/// The right to begin a session. Others may know an id that was given.
fn new_lease(choice: &SessionChoice, paths: &SessionPaths) -> Result<Lease, Error> {
    match choice.id.map(|_| Lease::reserve(paths.file())) {
        Some(Err(LeaseError::Busy(busy))) => {
            Err(SessionError::Starting { id: paths.id(), pid: busy.pid }.into())
        }
        Some(Ok(lease)) => Ok(lease),
        // If the directory cannot be written, the first record says so.
        Some(Err(LeaseError::Failed { .. })) | None => Ok(Lease::of_new(paths.file())),
    }
}

fn layout(home: &Home) -> Result<SessionLayout, Error> {
    Ok(SessionLayout::new(home.require()?))
}

fn unreadable<E: Into<LogProblem>>(id: Uuid) -> impl FnOnce(E) -> Error {
    move |problem| SessionError::unreadable(id)(problem).into()
}

fn not_rewound(problem: impl Into<LogProblem>) -> SessionError {
    SessionError::NotRewound(problem.into())
}
