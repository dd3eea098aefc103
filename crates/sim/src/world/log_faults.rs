//! What the log does to a walk: it fails, the process ends in the middle, another goes on with it.

use windlass_core::{Effect, Event};
use windlass_protocol::{Fate, Record};

use super::World;
use super::sim_log::StepProgress;
use crate::recall_check::{check_same_facts, check_same_request};

impl World {
    /// Whoever opens the session from its log finds what was left.
    pub(super) fn check_at_rest(&mut self) -> Result<(), String> {
        if !self.journal.is_complete() {
            return Ok(());
        }
        let recalled = self.journal.recall_all().finish();
        check_same_facts(&self.state, &recalled)?;
        if self.rng.one_in(3) {
            check_same_request(self.state.clone(), recalled.state, &self.config)?;
        }
        Ok(())
    }

    /// Another process opens the session from what the log says.
    pub(super) fn reopen(&mut self) {
        if !self.journal.is_complete() {
            return;
        }
        let recalled = self.journal.recall_all().finish();
        self.state = recalled.state;
        self.journal.reopen(recalled.results);
        self.forget();
        self.checker.on_opened();
        self.coverage.count("sight", "session opened again from its log");
    }

    /// The process ends in the middle of an append, and another opens the session. The last append got as far as the records from
    /// `before` on.
    pub(super) fn crash(&mut self, before: usize) -> Result<(), String> {
        self.coverage.count("sight", "crashed");
        let recalled = self.journal.recall().clone().finish();
        let tail: Vec<Record> = self.journal.records.iter().skip(before).cloned().collect();
        self.tell(|| format!("crash, with {tail:?}, and open: {:?}", recalled.open));
        self.checker.check_recalled(&recalled, &tail)?;
        let unknown = recalled.open.iter().find(|(_, fate)| *fate == Fate::Unknown);
        self.server.tries_again = unknown.map(|(tool_use, _)| tool_use.clone());
        self.state = recalled.state;
        self.journal.reopen(recalled.results);
        self.forget();
        self.has_crashed = true;
        self.rebase();
        self.checker.on_opened();
        Ok(())
    }

    /// What was shown is not all there is: the checkers go on with what the session says.
    pub(super) fn rebase(&mut self) {
        if let Some(facts) = self.state.snapshot() {
            self.checker.rebase(&facts);
        }
        self.steered = u32::try_from(self.steered_waiting()).unwrap_or(u32::MAX);
        self.refused = 0;
    }

    /// Puts the records of a step into the log, as far as it goes.
    pub(super) fn log(&mut self, effects: &[Effect], has_log_failed: bool) -> StepProgress {
        let is_over = self.state.terminal().is_some();
        let done = if has_log_failed && is_over {
            self.journal.fail();
            StepProgress::All
        } else if has_log_failed {
            StepProgress::UpToFailure(0)
        } else {
            self.journal.log(effects, is_over, &mut self.rng)
        };
        if self.journal.has_failed() {
            self.checker.on_log_failed();
        }
        done
    }

    /// The log could not be written, so these effects are not done. The core decides what is.
    pub(super) fn fail_log(&mut self, behind: &[Effect]) -> Result<(), String> {
        self.journal.fail();
        self.checker.on_log_failed();
        let unstarted = behind.iter().filter_map(|effect| match effect {
            Effect::RunTool { call, .. } => Some(*call),
            _ => None,
        });
        let event = Event::StoreFailed { why: "disk full".into(), unstarted: unstarted.collect() };
        self.hear(event, /* the log failed */ false)
    }

    /// What is sent is what the log says.
    pub(super) fn check_logged(&self, effects: &[Effect]) -> Result<(), String> {
        let sent = effects.iter().find_map(|effect| match effect {
            Effect::CallModel(_, body) => Some(&body.transcript),
            _ => None,
        });
        let Some(sent) = sent.filter(|_| self.journal.is_complete()) else { return Ok(()) };
        let logged = self.journal.recall().messages();
        let differs = logged.iter().zip(sent.iter()).position(|(own, other)| own != other);
        match differs.or((logged.len() != sent.len()).then_some(usize::MAX)) {
            None => Ok(()),
            Some(place) => Err(format!(
                "the log recalls another request, at message {place}: {} and {} messages",
                logged.len(),
                sent.len()
            )),
        }
    }
}
