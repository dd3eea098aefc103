//! The books of a run, kept a second time from what the caller sees: pauses, retries, tokens, money, denials, prompts, open
//! calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_core::Config;
use windlass_protocol::{CallId, FailureClass, ModelCard, ModelSpend, Outcome, Update, Usage};

/// What the updates of one run add up to.
#[derive(Debug, Default)]
pub(super) struct Account {
    denials: usize,
    usage: Usage,
    usd: f64,
    /// What the whole session has cost.
    session_usd: f64,
    /// What it had cost when it was opened.
    before_usd: f64,
    /// What was taken since the last report.
    unreported: (Usage, f64),
    /// Reported at the start of a response that has not ended.
    begun: Option<Usage>,
    /// Retries of the current request that followed a stall, and whether the last failure was one.
    stalls: u32,
    is_stalled: bool,
    /// No request may go out before this time.
    not_before_ms: u64,
    /// Calls that were started or asked about and not answered yet.
    open: BTreeSet<CallId>,
    prompts: Vec<Arc<str>>,
    /// Not everything that was booked was shown.
    pub(super) is_blind: bool,
}

type Verdict = Result<(), String>;

impl Account {
    /// The books of the next run of the same session. A response that nobody reads any more is not booked.
    pub(super) fn next_run(&self) -> Self {
        let (usage, usd) = self.unreported.clone();
        Self { usage, usd, session_usd: self.session_usd, before_usd: self.before_usd, ..Self::default() }
    }

    /// The session has cost this.
    pub(super) fn rebase(&mut self, usd: f64) {
        self.session_usd = usd;
    }

    /// Another process has opened the session: its cap counts from here on.
    pub(super) fn on_opened(&mut self) {
        self.before_usd = self.session_usd;
        self.unreported = (Usage::default(), 0.0);
    }

    /// Books one update that was shown at this time.
    pub(super) fn book(&mut self, update: &Update, now_ms: u64, config: &Config) -> Verdict {
        match update {
            Update::Requesting { attempt, .. } => return self.on_request(*attempt, now_ms, config),
            Update::Responding { usage, .. } => self.begun = Some((**usage).clone()),
            Update::Responded { usage, .. } => {
                self.begun = None;
                self.add(usage, config);
            }
            Update::Retrying { delay_ms, failure, attempt, retries_max } => {
                self.not_before_ms = now_ms + delay_ms;
                self.is_stalled = failure.class == FailureClass::Stalled;
                let most = config.retry.retries_max;
                if attempt > retries_max || (*retries_max > most && !config.retry.is_patient) {
                    return Err(format!("retry {attempt} of {retries_max}"));
                }
            }
            Update::Denied(_) => self.denials += 1,
            Update::ToolStarted { call, .. } => drop(self.open.insert(*call)),
            Update::Question(question) => drop(self.open.insert(question.call)),
            Update::ToolResult { call, .. } => drop(self.open.remove(call)),
            Update::Retracted { calls, .. } => self.open.retain(|call| !calls.contains(call)),
            Update::PromptsStarted(ids) => {
                if let Some(twice) = ids.iter().find(|id| self.prompts.contains(id)) {
                    return Err(format!("the prompt {twice} was started twice"));
                }
                self.prompts.extend(ids.iter().cloned());
            }
            Update::Done(outcome) => return self.compare(outcome),
            _ => (),
        }
        Ok(())
    }

    /// Books what a fork took.
    pub(super) fn book_fork(&mut self, models: &BTreeMap<Arc<str>, ModelSpend>) {
        for spend in models.values() {
            self.usage.add(&spend.usage);
            self.usd += spend.cost_usd.unwrap_or(0.0);
            self.session_usd += spend.cost_usd.unwrap_or(0.0);
        }
    }

    /// Books what a fork took that was at work after the end.
    pub(super) fn book_background(&mut self, models: &BTreeMap<Arc<str>, ModelSpend>) {
        for spend in models.values() {
            self.unreported.0.add(&spend.usage);
            self.unreported.1 += spend.cost_usd.unwrap_or(0.0);
            self.session_usd += spend.cost_usd.unwrap_or(0.0);
        }
    }

    fn add(&mut self, usage: &Usage, config: &Config) {
        let usd = cost(usage, &config.model);
        self.usd += usd;
        self.session_usd += usd;
        self.usage.add(usage);
    }

    /// No request and no fork goes out once the cap is reached.
    pub(super) fn check_budget(&self, config: &Config, what: &str) -> Verdict {
        let spent = self.session_usd - self.before_usd;
        match config.budget_usd {
            Some(cap) if spent > cap + 1e-9 * (cap + self.before_usd) => {
                Err(format!("{what} goes out after {spent} of {cap} USD"))
            }
            _ => Ok(()),
        }
    }

    /// A fork may spend what is left, and no more.
    pub(super) fn check_share(&self, own: &Config, config: &Config) -> Verdict {
        let left = config.budget_usd.map(|cap| cap - (self.session_usd - self.before_usd));
        match (own.budget_usd, left) {
            (None, None) => Ok(()),
            (Some(own), Some(left)) if (own - left).abs() < 1e-9 * (1.0 + self.session_usd) => Ok(()),
            (own, left) => Err(format!("a fork may spend {own:?} USD where {left:?} are left")),
        }
    }

    /// A first try begins a new count; a further one follows a failure.
    fn on_request(&mut self, attempt: u32, now_ms: u64, config: &Config) -> Verdict {
        if now_ms < self.not_before_ms {
            return Err(format!(
                "a request went out at {now_ms}, not after the pause until {}",
                self.not_before_ms
            ));
        }
        self.stalls = if attempt == 1 { 0 } else { self.stalls + u32::from(self.is_stalled) };
        if self.stalls > config.retry.stalls_max {
            return Err(format!("{} retries after a stall", self.stalls));
        }
        Ok(())
    }

    /// A response that never ended was still paid for, as far as is known.
    pub(super) fn close_response(&mut self, config: &Config) {
        if let Some(usage) = self.begun.take() {
            self.add(&usage, config);
        }
    }

    fn compare(&self, outcome: &Outcome) -> Verdict {
        if self.is_blind {
            return Ok(());
        }
        if !self.open.is_empty() {
            return Err(format!("{:?} were neither answered nor retracted", self.open));
        }
        if outcome.denials.len() != self.denials {
            return Err(format!("{} denials were shown, {} reported", self.denials, outcome.denials.len()));
        }
        if outcome.prompts != self.prompts {
            return Err(format!("prompts {:?} were started, {:?} reported", self.prompts, outcome.prompts));
        }
        let (own, reported) = (tokens(&self.usage), tokens(&outcome.usage));
        if own != reported {
            return Err(format!("tokens {own:?} were shown, {reported:?} reported"));
        }
        let usd = outcome.cost_usd().unwrap_or(f64::NAN);
        if (usd - self.usd).abs() > 1e-9 * (1.0 + self.usd) || usd.is_nan() {
            return Err(format!("{} USD were spent, {usd} reported", self.usd));
        }
        Ok(())
    }
}

fn tokens(usage: &Usage) -> [u64; 4] {
    [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
    ]
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a count that large is only there to show that nothing overflows"
)]
fn cost(usage: &Usage, card: &ModelCard) -> f64 {
    let price = card.price.unwrap_or_default();
    let prices = [price.input, price.output, price.write_5m, price.read];
    tokens(usage).iter().zip(prices).map(|(count, price)| *count as f64 * price / 1e6).sum()
}
