//! A session that is open goes back to an earlier point: its conversation is read again up to there.

use std::sync::Arc;

use windlass_engine::{Engine, Session};
use windlass_protocol::SessionKey;
use windlass_session::{Checkpoints, Lease, LogWriter, PromptLine, SessionPaths, Upto, load_back, prompts};

use crate::error::SessionError;

use super::recorded_config::write_before_usd;
use super::{ProcessOrigin, recalled};

/// What it takes to go back. The lease lasts as long as this, whichever log is written meanwhile.
pub(crate) struct Rewinder {
    pub(crate) engine: Engine,
    pub(crate) origin: ProcessOrigin,
    pub(crate) paths: SessionPaths,
    pub(crate) key: SessionKey,
    pub(crate) lease: Option<Lease>,
    pub(crate) checkpoints: Option<Arc<Checkpoints>>,
}

impl Rewinder {
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

    /// The session goes on from before this prompt. What followed stays in the log and is not considered any more.
    pub(crate) async fn rewind(
        &self,
        session: &mut Session,
        prompt: &PromptLine,
    ) -> Result<(), SessionError> {
        let loaded = load_back(self.paths.file(), Upto::Offset(prompt.starts_at))
            .map_err(|error| SessionError::NotRewound(error.into()))?;
        let mut header = self.origin.header(self.key, &self.engine);
        // The cap is that of the process: going back gives nothing of it back.
        let before_usd = session.before_usd();
        write_before_usd(&mut header, before_usd);
        let options = self.origin.options(self.checkpoints.as_ref(), self.lease.as_ref());
        let log = LogWriter::resume(&self.paths, Arc::new(header), &loaded, options);
        let log = log.map_err(|error| SessionError::NotRewound(error.into()))?;
        let mut recalled = recalled(loaded, self.engine.working_directory());
        recalled.state.set_before_usd(before_usd);
        // Between runs nothing is on its way into the log, so the former writer can go once the new one is there.
        *session = self.engine.resume(self.key.seed, recalled, Some(Box::new(log)));
        session.restate().await.map_err(SessionError::RewindNotLogged)
    }
}
