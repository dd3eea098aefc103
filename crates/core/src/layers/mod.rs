//! The context layers: what keeps the transcript within the window.
//!
//! Each layer is a function over the transcript and a small record of what was decided before. A layer changes messages
//! only by a [`Decision`], through [`apply`]: what was said and what was decided give the same transcript again.
//!
//! [`Decision`]: windlass_protocol::Decision

mod after_boundary;
mod apply;
mod auto_compact;
mod blocking_limit;
mod boundary;
mod context_collapse;
mod digest;
#[cfg(test)]
mod fixture;
mod media;
mod micro_compact;
mod render;
mod report;
mod results;
mod rounds;
mod snip;
mod summariser;
mod text;
mod thinking;
mod thresholds;
mod tokens;
mod tool_result_budget;

use windlass_protocol::{CompactionFacts, MessageId, Transition};

pub(crate) use after_boundary::after_boundary;
pub use apply::apply;
pub(crate) use auto_compact::{auto_compact, reducible};
pub(crate) use blocking_limit::blocking_limit;
pub(crate) use context_collapse::{Staged, context_collapse, drain, drainable, on_staged};
pub(crate) use media::{has_media, replace_block, strip_media, unbound};
pub(crate) use micro_compact::micro_compact;
pub(crate) use render::render;
pub(crate) use report::sizes;
pub(crate) use results::answered;
pub(crate) use snip::snip;
pub(crate) use text::one_line;
pub(crate) use thinking::{has_thinking, strip_thinking};
pub(crate) use thresholds::Thresholds;
pub(crate) use tokens::TokenCount;
pub(crate) use tool_result_budget::tool_result_budget;

/// What the layers of one iteration have done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// The results that are being put into files.
    storing: Vec<tool_result_budget::Large>,
    /// The compaction in the making.
    compacting: Option<Box<auto_compact::Compacting>>,
}

/// What the layers remember from one iteration to the next: compactions so far, and how they went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compactions {
    /// Whether the transcript was compacted since the user last said something.
    pub(crate) compacted: bool,
    /// Turns since the last compaction.
    pub(crate) turns_since: u32,
    /// Summariser failures in a row; they count for the whole session.
    pub(crate) failures: u32,
    /// Compactions in a row that made no progress.
    pub(crate) no_progress: u32,
    /// Whether the last one left more than half of what triggers the next.
    pub(crate) above_half: bool,
    /// How many tokens the run had spent when the transcript was last rewritten.
    pub(crate) rewritten_at_tokens: Option<u64>,
    /// The last message whose results were decided on: those up to it never go to files any more.
    pub(crate) decided_to: Option<MessageId>,
}

impl Compactions {
    /// What a session remembers.
    pub(crate) fn facts(&self) -> CompactionFacts {
        let Self {
            compacted,
            turns_since,
            failures,
            no_progress,
            above_half,
            rewritten_at_tokens,
            decided_to,
        } = *self;
        CompactionFacts {
            compacted,
            turns_since,
            failures,
            no_progress,
            above_half,
            rewritten_at_tokens,
            decided_to,
        }
    }

    /// What a session remembered.
    pub(crate) fn from_facts(facts: &CompactionFacts) -> Self {
        let CompactionFacts {
            compacted,
            turns_since,
            failures,
            no_progress,
            above_half,
            rewritten_at_tokens,
            decided_to,
        } = *facts;
        Self { compacted, turns_since, failures, no_progress, above_half, rewritten_at_tokens, decided_to }
    }

    /// After a transition: turns are counted.
    pub(crate) fn after(self, transition: Transition) -> Self {
        let turns = u32::from(transition == Transition::NextTurn);
        Self { turns_since: self.turns_since.saturating_add(turns), ..self }
    }

    /// The next run of the session: the user said something, so nothing goes round in circles.
    pub(crate) fn next_run(self) -> Self {
        Self { compacted: false, no_progress: 0, above_half: false, rewritten_at_tokens: None, ..self }
    }
}
