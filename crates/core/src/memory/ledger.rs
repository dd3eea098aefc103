//! What a run took: tokens, money, time, denials. Kept for the report at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_protocol::{
    Denial, ModelCard, ModelSpend, Outcome, Price, PromptId, RawValue, SpendEntry, StopReason, Terminal,
    TimeSpent, Usage,
};

use crate::config::{CompactionPolicy, Config};

/// As much of the inputs of denied calls is kept: half of what a line of a host's protocol may be.
const DENIED_BYTES_MAX: usize = 512 * 1024;

/// The account of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) started_at_ms: u64,
    /// The report as far as it is known.
    pub(crate) outcome: Outcome,
    /// What each model took in the whole session.
    pub(crate) session: BTreeMap<Arc<str>, ModelSpend>,
    /// How long the runs of the session took that are over.
    pub(crate) session_time: TimeSpent,
    /// What each model took since the last report, and the time spent waiting for it: the next one tells it.
    unreported: Outcome,
    /// How long the inputs of denied calls are together.
    denied_bytes: usize,
    pub(crate) stop: Option<StopReason>,
    /// Why the log could not be written.
    pub(crate) store_failure: Option<String>,
    /// Whether a provider ever answered in this session.
    pub(crate) has_been_reached: bool,
    /// What the whole tree has cost in this session, as far as prices are known.
    pub(crate) tree_usd: f64,
    /// What it had cost when this process opened it.
    pub(crate) before_usd: f64,
    /// Tokens that went in and out in this run.
    pub(crate) run_tokens: u64,
    /// The last prompt that became part of the conversation.
    pub(crate) prompt: Option<PromptId>,
    /// Whether the prompt was cut, since the provider refused it as too long.
    pub(crate) is_prompt_cut: bool,
    pub(crate) ended_by_hook: Option<String>,
    /// Whether the model was asked in this run.
    pub(crate) has_requested: bool,
    /// What tells the user what was interrupted, where it was neither an answer nor calls at work.
    pub(crate) interrupted: Option<&'static str>,
    /// What the provider said about declining.
    pub(crate) refusal: Option<String>,
}

impl Ledger {
    /// A fresh account for the next run of the same session.
    pub(crate) fn next_run(&self, at_ms: u64) -> Self {
        Self {
            started_at_ms: at_ms,
            outcome: self.unreported.clone(),
            has_been_reached: self.has_been_reached,
            prompt: self.prompt.clone(),
            tree_usd: self.tree_usd,
            before_usd: self.before_usd,
            session: self.session.clone(),
            session_time: self.session_time,
            ..Self::default()
        }
    }

    /// What the whole tree has cost since this process opened the session.
    pub(crate) fn opened_usd(&self) -> f64 {
        self.tree_usd - self.before_usd
    }

    /// Books a response of `model`.
    pub(crate) fn book(&mut self, model: &Arc<str>, usage: &Usage, card: &ModelCard) -> SpendEntry {
        let spend = ModelSpend {
            usage: usage.clone(),
            cost_usd: card.price.as_ref().map(|price| cost_usd(usage, price)),
            window_tokens: card.window_tokens,
            output_tokens_max: card.output_tokens_max,
        };
        self.run_tokens =
            self.run_tokens.saturating_add(usage.input_total()).saturating_add(usage.output_tokens);
        ModelSpend::add(&mut self.outcome.models, &[(model.clone(), spend.clone())].into());
        self.add_to_session(model, spend, /* by a fork */ false)
    }

    fn add_to_session(&mut self, model: &Arc<str>, spend: ModelSpend, is_by_fork: bool) -> SpendEntry {
        ModelSpend::add(&mut self.session, &[(model.clone(), spend.clone())].into());
        self.tree_usd += spend.cost_usd.unwrap_or(0.0);
        SpendEntry { model: model.clone(), spend, is_by_fork, total_usd: self.tree_usd }
    }

    /// Keeps a denial for the report. Each is named there, but no host reads the inputs of very many.
    pub(crate) fn deny(&mut self, mut denial: Denial) {
        let bytes = denial.tool_use.input.get().len();
        if self.denied_bytes.saturating_add(bytes) > DENIED_BYTES_MAX {
            denial.tool_use.input = RawValue::from_string("{}".to_owned()).unwrap_or_default().into();
        } else {
            self.denied_bytes += bytes;
        }
        self.outcome.denials.push(denial);
    }

    /// Books what a fork took.
    pub(crate) fn book_fork(&mut self, models: &BTreeMap<Arc<str>, ModelSpend>) -> Vec<SpendEntry> {
        ModelSpend::add(&mut self.outcome.models, models);
        self.add_fork_to_session(models)
    }

    /// Books what a fork took that was at work after the end of a run.
    pub(crate) fn book_background(
        &mut self,
        models: &BTreeMap<Arc<str>, ModelSpend>,
        api_ms: u64,
    ) -> Vec<SpendEntry> {
        ModelSpend::add(&mut self.unreported.models, models);
        self.unreported.duration_api_ms += api_ms;
        self.add_fork_to_session(models)
    }

    fn add_fork_to_session(&mut self, models: &BTreeMap<Arc<str>, ModelSpend>) -> Vec<SpendEntry> {
        let models = models.iter();
        models.map(|(model, spend)| self.add_to_session(model, spend.clone(), /* by a fork */ true)).collect()
    }

    /// The report at the end of the run.
    pub(crate) fn report(
        &mut self,
        terminal: Terminal,
        iterations: u32,
        at_ms: u64,
        config: &Config,
    ) -> Outcome {
        let mut usage = Usage::default();
        for spend in self.outcome.models.values() {
            usage.add(&spend.usage);
        }
        let duration_ms = at_ms.saturating_sub(self.started_at_ms);
        let time = &mut self.session_time;
        time.duration_ms = time.duration_ms.saturating_add(duration_ms);
        time.duration_api_ms = time.duration_api_ms.saturating_add(self.outcome.duration_api_ms);
        let (errors, warnings) = (self.errors(terminal, config), self.warnings(terminal));
        Outcome {
            terminal,
            stop_reason: self.stop.take().map(|stop| stop.name().into()),
            iterations,
            usage,
            errors,
            warnings,
            duration_ms,
            ..std::mem::take(&mut self.outcome)
        }
    }

    fn errors(&self, terminal: Terminal, config: &Config) -> Vec<String> {
        let compaction = config.context.compaction;
        let own = match terminal {
            Terminal::Completed
            | Terminal::TokenBudgetCompleted
            | Terminal::StopHookPrevented
            | Terminal::HookStopped
            | Terminal::ToolDeferred => return Vec::new(),
            Terminal::Refused => self.refusal_text(),
            Terminal::MaxTurns => {
                let most = config.turns_max.unwrap_or_default();
                format!("Reached maximum number of turns ({most}). Raise it with --max-turns.")
            }
            Terminal::MaxBudgetUsd => {
                let spent = if self.before_usd > 0.0 {
                    let (since, all) = (self.opened_usd(), self.tree_usd);
                    format!("{since:.4} USD spent since the session was resumed, {all:.4} USD in all")
                } else {
                    format!("{:.4} USD spent", self.tree_usd)
                };
                let cap = config.budget_usd.unwrap_or_default();
                format!("Reached maximum budget (${cap}): {spent}. Raise it with --max-budget-usd.")
            }
            Terminal::StructuredOutputRetries => {
                "No answer matched the schema within the allowed attempts. Simplify the schema, or raise \
                 MAX_STRUCTURED_OUTPUT_RETRIES."
                    .into()
            }
            Terminal::AbortedStreaming | Terminal::AbortedTools => match self.interrupted {
                Some(interrupted) => interrupted.into(),
                None if terminal == Terminal::AbortedTools => "Interrupted while tools were running.".into(),
                None => "Interrupted while the model was answering.".into(),
            },
            Terminal::BlockingLimit => full_context_advice(compaction).into(),
            Terminal::MaxOutputTokens => "The answer exceeded the output limit again and again. Ask for \
                 less at once, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS."
                .into(),
            Terminal::RepeatedCall => "The model repeated the same call with the same result. Tell it what \
                 to do instead, or raise repeatedCallsMax."
                .into(),
            Terminal::RapidRefill => "Compaction makes no progress: the context window fills up again right \
                 away. Start a new session, or work with smaller files and results."
                .into(),
            Terminal::StoreFailed => {
                let why = self.store_failure.as_deref().unwrap_or("the session log cannot be written");
                format!("Stopped: {why}.")
            }
            Terminal::PromptTooLong if self.outcome.failure.is_none() => match compaction {
                CompactionPolicy::Automatic => "The context window is full, and compaction did not make \
                     room. Use /compact, or start a new session."
                    .into(),
                CompactionPolicy::OnRequest | CompactionPolicy::Off => full_context_advice(compaction).into(),
            },
            Terminal::PromptTooLong | Terminal::ImageError | Terminal::ApiError | Terminal::ModelError => {
                let is_blocked =
                    terminal == Terminal::PromptTooLong && compaction != CompactionPolicy::Automatic;
                let advice = is_blocked.then(|| full_context_advice(compaction).to_owned());
                return self
                    .outcome
                    .failure
                    .iter()
                    .map(|failure| failure.message.clone())
                    .chain(advice)
                    .collect();
            }
        };
        vec![own]
    }

    fn refusal_text(&self) -> String {
        let why = self.refusal.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        format!("The model declined to answer{why}. Rephrase the prompt, or use another model.")
    }

    /// A completed run may still have said less than it should.
    fn warnings(&self, terminal: Terminal) -> Vec<String> {
        let cut_prompt = self.is_prompt_cut.then(|| CUT_PROMPT.to_owned());
        let said = self.incomplete(terminal).map(str::to_owned);
        cut_prompt.into_iter().chain(said).chain(self.ended_by_hook.clone()).collect()
    }

    /// What is missing in the answer of a completed run.
    fn incomplete(&self, terminal: Terminal) -> Option<&'static str> {
        match (&self.stop, terminal) {
            (Some(StopReason::PauseTurn), Terminal::Completed) => {
                Some("The answer is incomplete: the provider paused it too often.")
            }
            (_, Terminal::Completed) if self.outcome.text.trim().is_empty() => {
                Some("The last answer of the model is empty.")
            }
            _ => None,
        }
    }
}

/// What to do about a full context that nothing may make room in.
fn full_context_advice(compaction: CompactionPolicy) -> &'static str {
    match compaction {
        CompactionPolicy::Off => {
            "The context window is full, and compaction is off (DISABLE_COMPACT). Unset the variable to use \
             /compact, or start a new session."
        }
        CompactionPolicy::OnRequest | CompactionPolicy::Automatic => {
            "The context window is full, and automatic compaction is off (autoCompactEnabled, \
             DISABLE_AUTO_COMPACT). Use /compact, or start a new session."
        }
    }
}

const CUT_PROMPT: &str = "The prompt is too long for the model, which saw only its beginning and end. \
    Shorten it, or put it into a file that the model can read in parts.";

pub(crate) fn cost_usd(usage: &Usage, price: &Price) -> f64 {
    let factor = match price.tier {
        Some((threshold, factor)) if usage.input_total() > threshold => factor,
        _ => 1.0,
    };
    let hour = usage.cache_creation.ephemeral_1h_input_tokens.min(usage.cache_creation_input_tokens);
    let five_minutes = usage.cache_creation_input_tokens - hour;
    let sum = tokens(usage.input_tokens) * price.input
        + tokens(five_minutes) * price.write_5m
        + tokens(hour) * price.write_1h
        + tokens(usage.cache_read_input_tokens) * price.read
        + tokens(usage.output_tokens) * price.output;
    sum * factor / 1e6
}

/// Whether one request is known to cost less than another: where a price is missing, nothing is known.
pub(crate) fn is_cheaper(one: (&Usage, Option<&Price>), other: (&Usage, Option<&Price>)) -> bool {
    let cost = |(usage, price): (&Usage, Option<&Price>)| price.map(|price| cost_usd(usage, price));
    cost(one).zip(cost(other)).is_some_and(|(one, other)| one < other)
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn tokens(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{CacheCreation, CallId, ToolUse};

    fn denial(input_bytes: usize) -> Denial {
        let input = RawValue::from_string(format!("{{\"text\":\"{}\"}}", "x".repeat(input_bytes))).unwrap();
        let tool_use = ToolUse { id: "t".into(), name: "Write".into(), input: input.into() };
        Denial { call: CallId(1), tool_use, reason: "No.".into(), is_by_person: false }
    }

    #[test]
    fn every_denial_is_kept_and_the_inputs_of_the_first() {
        let mut ledger = Ledger::default();
        for _ in 0..100 {
            ledger.deny(denial(DENIED_BYTES_MAX / 10));
        }
        ledger.deny(denial(1));
        let lengths = ledger.outcome.denials.iter().map(|denial| denial.tool_use.input.get().len());
        assert!(lengths.clone().sum::<usize>() <= DENIED_BYTES_MAX + 2 * ledger.outcome.denials.len());
        assert_eq!((ledger.outcome.denials.len(), lengths.filter(|length| *length > 2).count()), (101, 10));
    }

    const PRICE: Price = Price {
        input: 4.0,
        output: 20.0,
        write_5m: 5.0,
        write_1h: 8.0,
        read: 0.2,
        tier: Some((100_000, 5.0)),
    };

    fn check(usage: &Usage, expected: f64) {
        let cost = cost_usd(usage, &PRICE);
        assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}");
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        check(&Usage { input_tokens: 1000, output_tokens: 100, ..Usage::default() }, 0.006);
        check(&Usage { cache_creation_input_tokens: 1000, ..Usage::default() }, 0.005);
        let hour = CacheCreation { ephemeral_1h_input_tokens: 1000, ..CacheCreation::default() };
        check(&Usage { cache_creation_input_tokens: 1000, cache_creation: hour, ..Usage::default() }, 0.008);
        check(&Usage { cache_read_input_tokens: 10_000, ..Usage::default() }, 0.002);
        check(&Usage { input_tokens: 200_000, ..Usage::default() }, 4.0);
    }
}
