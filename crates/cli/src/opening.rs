//! Which session a run belongs to, and how it is opened: a new one, one that goes on, or a copy of one.

mod again;
mod notices;
mod origins;
mod recorded;
mod saved;
mod wish;

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;
use windlass_config::Home;
use windlass_engine::{Engine, Recall, Recalled, Session, SessionSeed, Transcript};
use windlass_ports::SessionLog;
use windlass_protocol::{SessionKey, StartSource};
use windlass_session::{
    Catalogue, Checkpoints, GitProgram, Layout, Lease, LeaseError, Loaded, LogWriter, SessionInfo,
    SessionPaths, Upto, Wanted, copy_checkpoints, copy_log, load_back, rename,
};

use crate::wiring::Kept;

pub(crate) use again::Again;
use origins::Identified;
pub(crate) use origins::{Origins, SUMS};
pub(crate) use recorded::{Recorded, read_before_usd};
pub(crate) use saved::Saved;
pub(crate) use wish::{SessionFlags, Source, Wish};

/// A session that was found, or that is about to begin. Nothing of it is written before the first prompt.
pub(crate) struct Opening {
    pub(crate) key: SessionKey,
    /// Where it is kept; nowhere if nothing is to be kept.
    pub(crate) paths: Option<SessionPaths>,
    /// What was read of it.
    loaded: Option<Loaded>,
    /// Whether that is all there is of it, and nobody is still at it.
    is_whole: bool,
    /// Whether it is a copy of another session.
    is_copy: bool,
    /// Nobody else writes into it while this is held.
    lease: Option<Lease>,
    /// The name it is to have.
    name: Option<String>,
    /// Which session goes on, in a line.
    resumed: Option<String>,
    /// What the user should know.
    pub(crate) notices: Vec<String>,
}

impl Opening {
    /// Finds the session that is meant, or makes up a new one. Each error is for the user.
    pub(crate) fn find(
        wish: &Wish,
        home: &Home,
        cwd: &Path,
        git: Option<&GitProgram>,
    ) -> Result<Self, String> {
        let catalogue = || catalogue(home).map(|catalogue| catalogue.with_git(git.cloned()));
        let found = match &wish.origin {
            Source::New => None,
            Source::Newest => catalogue()?.newest(cwd, Wanted::Any),
            Source::Named(words) => Some(catalogue()?.find(cwd, words).map_err(|error| error.to_string())?),
        };
        let opening = if let Some(found) = found {
            Self { resumed: Some(notices::resumed(&found)), ..Self::go_on(wish, &found, home, cwd)? }
        } else {
            let mut opening = Self::begin(wish, home, cwd)?;
            if wish.origin == Source::Newest {
                opening.notices.push(notices::NOTHING_TO_CONTINUE.to_owned());
            }
            opening
        };
        Ok(Self { name: wish.name.clone(), ..opening })
    }

    fn begin(wish: &Wish, home: &Home, cwd: &Path) -> Result<Self, String> {
        let key = new_key(wish.id);
        let mut opening = Self {
            key,
            paths: None,
            loaded: None,
            is_whole: true,
            is_copy: false,
            lease: None,
            name: None,
            resumed: None,
            notices: Vec::new(),
        };
        if wish.forget {
            return Ok(opening);
        }
        let paths = new_paths(wish, key.id, home, cwd)?;
        opening.lease = Some(new_lease(wish, &paths)?);
        opening.paths = Some(paths);
        Ok(opening)
    }

    /// Goes on with a session that exists, or with a copy of it if that is wanted or if somebody else has it open.
    fn go_on(wish: &Wish, found: &SessionInfo, home: &Home, cwd: &Path) -> Result<Self, String> {
        let upto = match (wish.at, wish.cut) {
            (Some(entry), _) => Upto::Entry(entry),
            (None, Some(length)) => Upto::Offset(length),
            (None, None) => Upto::End,
        };
        let paths = found.paths();
        if let (Some(at), Some(turn)) = (wish.at, &wish.drops) {
            windlass_session::check_dropped(paths.file(), at, turn)
                .map_err(|why| format!("Resume rejected by --resume-drops-turn: {why}"))?;
        }
        if wish.fork {
            return Self::copy(wish, &paths, upto, home, cwd);
        }
        if wish.forget {
            return Self::read(&paths, upto, None);
        }
        match Lease::take(paths.file()) {
            Ok(lease) => Self::read(&paths, upto, Some(lease)),
            Err(LeaseError::Busy(busy)) => {
                let mut copy = Self::copy(wish, &paths, upto, home, cwd)?;
                copy.notices.insert(0, notices::busy(found.id, copy.key.id, &busy));
                Ok(Self { is_whole: false, ..copy })
            }
            Err(error @ LeaseError::Failed { .. }) => {
                Err(format!("cannot open the session {}: {error}.", found.id))
            }
        }
    }

    fn copy(wish: &Wish, source: &SessionPaths, upto: Upto, home: &Home, cwd: &Path) -> Result<Self, String> {
        let key = new_key(wish.id);
        if wish.forget {
            let read = Self::read(source, upto, None)?;
            return Ok(Self { key, is_copy: true, ..read });
        }
        let target = new_paths(wish, key.id, home, cwd)?;
        target.create().map_err(|error| unmade(&error))?;
        let lease = new_lease(wish, &target)?;
        copy_log(source.file(), upto, target.file(), key.id, Some(&lease))
            .map_err(|error| unread(source.id(), &error.to_string()))?;
        let mut copy = Self::read(&target, Upto::End, Some(lease))?;
        copy.is_whole = upto == Upto::End;
        if let Err(error) = copy_checkpoints(&source.checkpoints(), &target.checkpoints()) {
            copy.notices.push(format!("This copy cannot rewind files to before it was made: {error}."));
        }
        Ok(Self { key, is_copy: true, ..copy })
    }

    fn read(paths: &SessionPaths, upto: Upto, lease: Option<Lease>) -> Result<Self, String> {
        let loaded = load_back(paths.file(), upto).map_err(|error| unread(paths.id(), &error.to_string()))?;
        let process = SessionSeed(Uuid::new_v4().as_u128());
        let seed = loaded.header.as_ref().map_or(process, |header| header.seed);
        let notices = notices::damage(&loaded, paths.file());
        let paths = lease.is_some().then(|| paths.clone());
        let key =
            SessionKey { id: paths.as_ref().map_or_else(Uuid::new_v4, SessionPaths::id), seed, process };
        let is_whole = !loaded.is_cut;
        let loaded = Some(loaded);
        let (name, resumed) = (None, None);
        Ok(Self { key, paths, loaded, is_whole, is_copy: false, lease, name, resumed, notices })
    }

    /// The log of the session, if it is kept. A new one is made with the first record.
    fn log(
        &self,
        engine: &Engine,
        origins: &Origins,
        checkpoints: Option<&Arc<Checkpoints>>,
    ) -> Result<(Option<LogWriter>, Option<Identified>), String> {
        let Some(paths) = &self.paths else { return Ok((None, None)) };
        let (header, options) =
            (Arc::new(origins.header(self.key, engine)), origins.options(checkpoints, self.lease.as_ref()));
        Ok(match &self.loaded {
            None => {
                let log = LogWriter::create(paths, header, options);
                let identified = origins.mark_repository(&log);
                (Some(log), identified)
            }
            Some(loaded) => {
                let log = LogWriter::resume(paths, header, loaded, options);
                (Some(log.map_err(|error| unread(self.key.id, &error.to_string()))?), None)
            }
        })
    }

    /// What the tools have to know about the session.
    pub(crate) fn kept(&self) -> Kept {
        let paths = self.paths.as_ref();
        Kept {
            key: self.key,
            log: paths.map(|paths| paths.file().to_owned()),
            results: paths.map(SessionPaths::results),
            output: paths.map(|paths| paths.side().join("output")),
            resumed: self.loaded.is_some(),
        }
    }

    /// The settings that come back.
    pub(crate) fn saved(&self) -> Saved {
        let header = self.loaded.as_ref().and_then(|loaded| loaded.header.as_ref());
        header.map(|header| Saved::read(&header.settings)).unwrap_or_default()
    }

    /// Opens the session. What is said about it comes with it.
    pub(crate) fn open(self, engine: &Engine, origins: Origins) -> Result<Opened, String> {
        let checkpoints = self.paths.as_ref().and_then(|paths| origins.checkpoints(self.key, paths));
        let (log, identified) = self.log(engine, &origins, checkpoints.as_ref())?;
        let log = log.map(|log| Box::new(log) as Box<dyn SessionLog>);
        let Self { key, paths, loaded, is_whole, is_copy, lease, name, resumed, mut notices } = self;
        let session = match loaded {
            None => {
                let session = engine.session_with(key.seed, Transcript::default());
                match log {
                    Some(log) => session.logged(log),
                    None => session,
                }
            }
            Some(loaded) => {
                let cwd = engine.working_directory();
                let is_elsewhere = loaded.header.as_ref().is_none_or(|header| *header.cwd != *cwd);
                let mut recalled = recalled(loaded, cwd);
                notices.extend(notices::cut_off(&recalled, is_whole));
                let reset = notices::directory(&mut recalled, cwd);
                let has_moved = reset.is_some() || is_elsewhere;
                notices.extend(reset);
                let mut session = engine.resume(key.seed, recalled, log);
                if has_moved {
                    session.moved();
                }
                if is_copy {
                    session.begins_as(StartSource::Fork);
                }
                session
            }
        };
        let keep = Keep { name: paths.clone().zip(name), checkpoints: checkpoints.clone(), identified };
        let again =
            paths.map(|paths| Again { engine: engine.clone(), origins, paths, key, lease, checkpoints });
        Ok(Opened { session, resumed, notices, again, keep })
    }
}

/// A session that is open.
pub(crate) struct Opened {
    pub(crate) session: Session,
    /// Which session goes on, in a line.
    pub(crate) resumed: Option<String>,
    /// What the user should know.
    pub(crate) notices: Vec<String>,
    /// How it can go back; not if nothing of it is kept.
    pub(crate) again: Option<Again>,
    pub(crate) keep: Keep,
}

/// What is left to do when a session is closed.
pub(crate) struct Keep {
    /// The log, and the name that the session is to have.
    name: Option<(SessionPaths, String)>,
    checkpoints: Option<Arc<Checkpoints>>,
    identified: Option<Identified>,
}

impl Keep {
    /// The session is done: it gets its name, if it was kept at all. What could not be done is said.
    pub(crate) fn close(self) -> Vec<String> {
        let mut notices = self.checkpoints.map(|checkpoints| checkpoints.take_notices()).unwrap_or_default();
        if let Some(Err(error)) = self.identified.map(Identified::finish) {
            notices.push(format!("windlass may not find this session after its project moves: {error}."));
        }
        if let Some((paths, name)) = self.name.filter(|(paths, _)| paths.file().exists())
            && let Err(error) = rename(paths.file(), paths.id(), &name)
        {
            notices.push(format!("cannot name the session: {error}."));
        }
        notices
    }
}

/// The session as its log tells it.
fn recalled(loaded: Loaded, cwd: &Path) -> Recalled {
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
fn new_paths(wish: &Wish, id: Uuid, home: &Home, cwd: &Path) -> Result<SessionPaths, String> {
    let layout = layout(home)?;
    if wish.id.is_some() && Catalogue::new(layout.clone()).find(cwd, &id.to_string()).is_ok() {
        return Err(format!("the session {id} already exists. Continue it with --resume {id}."));
    }
    Ok(layout.session(cwd, id))
}

/// The right to begin a session. Others may know an id that was given.
fn new_lease(wish: &Wish, paths: &SessionPaths) -> Result<Lease, String> {
    match wish.id.map(|_| Lease::reserve(paths.file())) {
        Some(Err(LeaseError::Busy(busy))) => Err(format!(
            "another process (pid {1}) is starting the session {0}. Choose another id.",
            paths.id(),
            busy.pid
        )),
        Some(Ok(lease)) => Ok(lease),
        // If the directory cannot be written, the first record says so.
        Some(Err(LeaseError::Failed { .. })) | None => Ok(Lease::of_new(paths.file())),
    }
}

fn layout(home: &Home) -> Result<Layout, String> {
    let directory = home.required().map_err(|error| error.to_string())?;
    Ok(Layout::new(directory))
}

fn catalogue(home: &Home) -> Result<Catalogue, String> {
    layout(home).map(Catalogue::new)
}

fn unread(id: Uuid, why: &str) -> String {
    format!("cannot open the session {id}: {why}.")
}

fn unmade(error: &std::io::Error) -> String {
    format!(
        "cannot create the directory for sessions: {error}. Free some space or correct its permissions, or \
         run without sessions (--no-session-persistence)."
    )
}
