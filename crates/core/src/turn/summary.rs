//! What the calls of a response did, in a few words, by a small model in the background. Nothing ever waits for it: it is
//! shown the moment it is ready, and dropped if the run ends before.

use std::fmt::Write as _;
use std::sync::Arc;

use windlass_protocol::{Block, ForkId, Outcome, Prompt, Terminal, Update};

use crate::config::RunSource;
use crate::context::one_line;
use crate::step::Cx;
use crate::turn::calls::CallQueue;
use crate::turn::fork::{ForkContext, ForkPlan};

/// As much of an input or a result is shown to the small model.
const CUT_CHARS: usize = 300;
/// As many calls of one response are.
const CALLS_MAX: usize = 20;
const OUTPUT_TOKENS: u32 = 1_000;
const SYSTEM: &str = include_str!("../../prompts/call_label.txt");

/// The summary of the last calls that a small model is writing.
#[derive(Clone, Debug)]
pub(crate) struct PendingSummary {
    fork: ForkId,
    tool_use_ids: Vec<Arc<str>>,
}

impl Cx<'_> {
    /// Starts the summary of these calls for a run that goes on, unless an earlier one is still being written.
    pub(crate) fn start_summary(&mut self, calls: &CallQueue) {
        let config = self.config;
        let wanted =
            config.has_tool_use_summaries && config.source.is_main() && self.state.carry.summary.is_none();
        let Some(model) = config.small_model.clone().filter(|_| wanted) else { return };
        let tool_use_ids: Vec<_> = calls.answered_calls().map(|(tool_use, _)| tool_use.id.clone()).collect();
        // What the calls did is what the provider has not read yet, so behind the conversation the label would never cost less.
        let plan = ForkPlan {
            source: RunSource::Summary,
            ground: ForkContext::Own { model, system: SYSTEM.into() },
            prompt: Prompt::from(list(calls)),
            output_tokens: OUTPUT_TOKENS,
        };
        self.state.carry.summary = self.fork(plan).map(|fork| PendingSummary { fork, tool_use_ids });
    }

    /// Whether this fork is writing the summary.
    pub(crate) fn waits_for_summary(&self, fork: ForkId) -> bool {
        self.state.carry.summary.as_ref().is_some_and(|pending| pending.fork == fork)
    }

    /// A fork came to its end. True if it was the summary, which is shown at once; one that failed is forgotten.
    pub(crate) fn on_summary(&mut self, fork: ForkId, outcome: &Outcome) -> bool {
        let pending = self.state.carry.summary.take_if(|pending| pending.fork == fork);
        let Some(PendingSummary { tool_use_ids, .. }) = pending else { return false };
        let summary = outcome.text.trim();
        if outcome.terminal == Terminal::Completed && !summary.is_empty() {
            self.emit(Update::ToolUseSummary { summary: summary.into(), tool_use_ids });
        }
        true
    }

    /// The run ends: nobody waits for the summary any more.
    pub(crate) fn drop_summary(&mut self) {
        if let Some(PendingSummary { fork, .. }) = self.state.carry.summary.take() {
            self.cancel_fork(fork);
        }
    }
}

/// The calls with their inputs and results, cut.
fn list(calls: &CallQueue) -> String {
    let mut list = String::from("The calls:\n");
    for (tool_use, outcome) in calls.answered_calls().take(CALLS_MAX) {
        let verb = if outcome.is_error { "failed with" } else { "returned" };
        let _ = writeln!(
            list,
            "- {} {} {verb}: {}",
            tool_use.name,
            one_line(tool_use.input.get(), CUT_CHARS),
            one_line(&Block::texts(&outcome.content), CUT_CHARS)
        );
    }
    list
}
