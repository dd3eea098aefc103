//! What a run took: tokens, money, time, denials. Kept for the report at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_protocol::{Denial, Failure, ModelCard, ModelSpend, Outcome, StopReason, Terminal, Usage};

use crate::cost::cost_usd;

/// The account of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// When the run began.
    pub(crate) started_at_ms: u64,
    /// Time spent waiting for models.
    pub(crate) api_ms: u64,
    /// What each model took.
    pub(crate) models: BTreeMap<Arc<str>, ModelSpend>,
    /// Calls that were not allowed.
    pub(crate) denials: Vec<Denial>,
    /// The model's last stop reason.
    pub(crate) stop: Option<StopReason>,
    /// The text of the model's last answer.
    pub(crate) text: String,
    /// The failure that ends the run.
    pub(crate) failure: Option<Failure>,
    /// Whether a provider ever answered in this session.
    pub(crate) reached: bool,
}

impl Ledger {
    /// A fresh account for the next run of the same session.
    pub(crate) fn next_run(&self, at_ms: u64) -> Self {
        Self { started_at_ms: at_ms, reached: self.reached, ..Self::default() }
    }

    /// Books a response of `model`.
    pub(crate) fn book(&mut self, model: &Arc<str>, usage: &Usage, card: &ModelCard) {
        let spend = self.models.entry(model.clone()).or_insert_with(|| ModelSpend {
            usage: Usage::default(),
            cost_usd: card.price.as_ref().map(|_| 0.0),
            window_tokens: card.window_tokens,
            output_tokens_max: card.output_tokens_max,
        });
        spend.usage.add(usage);
        if let (Some(cost), Some(price)) = (&mut spend.cost_usd, &card.price) {
            *cost += cost_usd(usage, price);
        }
    }

    /// The report at the end of the run.
    pub(crate) fn report(&mut self, terminal: Terminal, iterations: u32, at_ms: u64) -> Outcome {
        let mut usage = Usage::default();
        for spend in self.models.values() {
            usage.add(&spend.usage);
        }
        let (errors, warnings) = (self.errors(terminal, iterations), self.warnings(terminal));
        Outcome {
            terminal,
            text: std::mem::take(&mut self.text),
            stop_reason: self.stop.take().map(|stop| stop.name().into()),
            iterations,
            usage,
            models: std::mem::take(&mut self.models),
            denials: std::mem::take(&mut self.denials),
            errors,
            warnings,
            failure: self.failure.take(),
            duration_ms: at_ms.saturating_sub(self.started_at_ms),
            duration_api_ms: self.api_ms,
            structured: None,
            deferred: None,
            prompts: Vec::new(),
        }
    }

    fn errors(&self, terminal: Terminal, iterations: u32) -> Vec<String> {
        match terminal {
            Terminal::Completed => Vec::new(),
            Terminal::Refused => {
                vec!["The model declined to answer. Say it differently, or use another model.".into()]
            }
            Terminal::MaxTurns => {
                let turns = if iterations == 1 { "turn" } else { "turns" };
                vec![format!("The limit of {iterations} {turns} is reached. Raise it with --max-turns.")]
            }
            Terminal::AbortedStreaming => vec!["Interrupted while the model was answering.".into()],
            Terminal::AbortedTools => vec!["Interrupted while tools were running.".into()],
            _ => self.failure.iter().map(|failure| failure.message.clone()).collect(),
        }
    }

    /// A completed run may still have said less than it should.
    fn warnings(&self, terminal: Terminal) -> Vec<String> {
        let cut = match (&self.stop, terminal) {
            (Some(StopReason::MaxTokens), Terminal::Completed) => {
                "The answer was cut off at the output limit. Raise it with CLAUDE_CODE_MAX_OUTPUT_TOKENS."
            }
            (Some(StopReason::ContextWindowExceeded), Terminal::Completed) => {
                "The answer was cut off because the context window is full. Begin a new session."
            }
            (Some(StopReason::PauseTurn), Terminal::Completed) => {
                "The provider paused the answer; it is not complete."
            }
            (_, Terminal::Completed) if self.text.trim().is_empty() => "The model's last answer is empty.",
            _ => return Vec::new(),
        };
        vec![cut.into()]
    }
}
