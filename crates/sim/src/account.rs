//! The books of a run, kept a second time from what the caller sees: pauses, retries, tokens, denials, open calls.

use std::collections::BTreeSet;

use windlass_core::Config;
use windlass_protocol::{CallId, FailureClass, Outcome, Update, Usage};

/// What the updates of one run add up to.
#[derive(Debug, Default)]
pub(crate) struct Account {
    denials: usize,
    usage: Usage,
    /// Reported at the start of a response that has not ended.
    begun: Option<Usage>,
    /// Retries of the current request that followed a stall, and whether the last failure was one.
    stalls: u32,
    stalled: bool,
    /// No request may go out before this time.
    not_before_ms: u64,
    /// Calls that were started or asked about and not answered yet.
    open: BTreeSet<CallId>,
}

type Verdict = Result<(), String>;

impl Account {
    /// Books one update that was shown at this time.
    pub(crate) fn book(&mut self, update: &Update, now_ms: u64, config: &Config) -> Verdict {
        match update {
            Update::Requesting { attempt, .. } => return self.on_request(*attempt, now_ms, config),
            Update::Responding { usage, .. } => self.begun = Some((**usage).clone()),
            Update::Responded { usage, .. } => {
                self.begun = None;
                self.usage.add(usage);
            }
            Update::Retrying { delay_ms, failure, attempt, retries_max } => {
                self.close_response();
                self.not_before_ms = now_ms + delay_ms;
                self.stalled = failure.class == FailureClass::Stalled;
                if attempt > retries_max || *retries_max > config.retry.retries_max {
                    return Err(format!("retry {attempt} of {retries_max}"));
                }
            }
            Update::Denied(_) => self.denials += 1,
            Update::ToolStarted { call, .. } => drop(self.open.insert(*call)),
            Update::Question(question) => drop(self.open.insert(question.call)),
            Update::ToolResult { call, .. } => drop(self.open.remove(call)),
            Update::Retracted { calls, .. } => self.open.retain(|call| !calls.contains(call)),
            Update::Done(outcome) => {
                self.close_response();
                return self.compare(outcome);
            }
            _ => (),
        }
        Ok(())
    }

    /// A first try begins a new count; a further one follows a failure.
    fn on_request(&mut self, attempt: u32, now_ms: u64, config: &Config) -> Verdict {
        if now_ms < self.not_before_ms {
            return Err(format!(
                "a request went out at {now_ms}, not after the pause until {}",
                self.not_before_ms
            ));
        }
        self.stalls = if attempt == 1 { 0 } else { self.stalls + u32::from(self.stalled) };
        if self.stalls > config.retry.stalls_max {
            return Err(format!("{} retries after a stall", self.stalls));
        }
        Ok(())
    }

    /// A response that never ended was still paid for, as far as is known.
    fn close_response(&mut self) {
        if let Some(usage) = self.begun.take() {
            self.usage.add(&usage);
        }
    }

    fn compare(&self, outcome: &Outcome) -> Verdict {
        if !self.open.is_empty() {
            return Err(format!("{:?} were neither answered nor retracted", self.open));
        }
        if outcome.denials.len() != self.denials {
            return Err(format!("{} denials were shown, {} reported", self.denials, outcome.denials.len()));
        }
        let tokens = |usage: &Usage| (usage.input_tokens, usage.output_tokens);
        if tokens(&outcome.usage) != tokens(&self.usage) {
            return Err(format!(
                "tokens {:?} were shown, {:?} reported",
                tokens(&self.usage),
                tokens(&outcome.usage)
            ));
        }
        Ok(())
    }
}
