//! What a log says about the process that writes it: who started it, with which settings, in which repository.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::to_raw_value;
use windlass_config::{Flags, RunConfig};
use windlass_engine::{Answerer, Engine};
use windlass_ports::LogError;
use windlass_protocol::{RawValueEq, SessionKey};
use windlass_session::{
    Checkpoints, GitProgram, Header, LogTime, LogWriter, Marker, Repository, SessionMark, SessionPaths,
    SyncPolicy,
};
use windlass_text::time::now_ms;

use super::RecordedConfig;
use super::recorded_config::insert;
use super::saved_flags::{saved_flags, write_flags};
use crate::wiring::Audience;

/// So long a run that is over waits for git.
const GIT_WAIT: Duration = Duration::from_millis(100);

/// Where a run comes from.
pub(crate) struct ProcessOrigin {
    cwd: PathBuf,
    flags: Flags,
    recorded: RecordedConfig,
    variables: BTreeMap<String, String>,
    entrypoint: String,
    pub(super) sync: SyncPolicy,
    has_checkpoints: bool,
    repository: Option<Repository>,
    git: Option<GitProgram>,
}

impl ProcessOrigin {
    /// Where a run with this configuration comes from.
    pub(crate) fn new(
        config: &RunConfig,
        flags: &Flags,
        audience: &Audience,
        git: Option<GitProgram>,
    ) -> Self {
        let home = &config.settings.home;
        let started_by =
            if config.settings.run.permissions.asking == Answerer::Person { "cli" } else { "sdk-cli" };
        Self {
            cwd: config.cwd.clone(),
            flags: flags.clone(),
            recorded: RecordedConfig::of(config, audience),
            variables: config.files.plain_variables(&config.environment),
            entrypoint: home.entrypoint.clone().unwrap_or_else(|| started_by.into()),
            sync: home.sync,
            has_checkpoints: !home.is_without_checkpoints,
            repository: Repository::discover(&config.cwd),
            git,
        }
    }

    pub(crate) fn header(&self, key: SessionKey, engine: &Engine) -> Header {
        let saved = saved_flags(&self.flags, &engine.config().model.id, engine.system_prompt());
        let mut settings = write_flags(&saved);
        self.recorded.clone().with_engine(engine).write(&mut settings);
        let sums = engine.sums().into_iter().map(|(part, sum)| (part, format!("{sum:016x}")));
        insert(&mut settings, SUMS, &sums.collect::<BTreeMap<_, _>>());
        Header {
            engine: env!("CARGO_PKG_VERSION").into(),
            entrypoint: self.entrypoint.as_str().into(),
            git_branch: self.repository.as_ref().and_then(Repository::branch).map(Into::into),
            variables: self.variables.clone(),
            settings,
            ..Header::new(key.seed, &self.cwd, now_ms())
        }
    }

    /// Who keeps files before calls change them, unless that is off.
    pub(crate) fn checkpoints(&self, key: SessionKey, paths: &SessionPaths) -> Option<Arc<Checkpoints>> {
        self.has_checkpoints.then(|| Arc::new(Checkpoints::new(paths, key)))
    }

    /// Notes the repository of the session, to find it when the project moves. Git is asked beside the run.
    pub(crate) fn mark_repository(&self, log: &LogWriter) -> Option<RepositoryMark> {
        let repository = self.repository.clone()?;
        let (marker, (tell, found)) = (log.marker(), sync_channel(1));
        mark(&marker, &repository.identity());
        let identified = RepositoryMark { marker: marker.clone(), found: Mutex::new(found) };
        let Some(git) = self.git.clone() else {
            let _ = tell.send(());
            return Some(identified);
        };
        std::thread::spawn(move || {
            mark(&marker, &repository.identity_with_roots(&git));
            // Whoever waits for it may have given up.
            let _ = tell.send(());
        });
        Some(identified)
    }
}

/// The repository of a session that is being found out.
pub(crate) struct RepositoryMark {
    marker: Marker,
    /// Behind a lock only because the session that holds it is looked at by several threads.
    found: Mutex<Receiver<()>>,
}

impl RepositoryMark {
    /// A run that is over before git has answered waits for it a little, and writes down what it says.
    pub(crate) fn finish(self) -> Result<(), LogError> {
        let found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        match found.recv_timeout(GIT_WAIT) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => self.marker.flush(),
        }
    }
}

fn mark(marker: &Marker, identity: &impl serde::Serialize) {
    if let Ok(raw) = to_raw_value(identity) {
        let time = LogTime { at_ms: 0, wall_ms: now_ms() };
        marker.mark(SessionMark::Repository(Arc::new(RawValueEq(raw))), time);
    }
}

/// Under this name a log keeps the sums of the configuration, to say later what is not as it was.
pub(crate) const SUMS: &str = "partSums";
