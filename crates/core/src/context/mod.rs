//! The context layers: what keeps the transcript within the window.
//!
//! Each layer is a function over the transcript and a small record of what was decided before. A layer changes messages
//! only by a [`Decision`], through [`apply`]: what was said and what was decided give the same transcript again.
//!
//! [`Decision`]: windlass_protocol::Decision

mod apply;
mod auto_compact;
mod boundary;
mod context_collapse;
mod digest;
#[cfg(test)]
mod fixture;
mod media;
mod micro_compact;
pub(crate) mod prefix;
mod report;
mod results;
mod rounds;
mod snip;
mod summariser;
mod text;
mod thresholds;
mod tokens;
mod tool_result_budget;

use windlass_protocol::{CompactionMemory, Transition};

pub use apply::apply;
pub(crate) use auto_compact::{CompactionProgress, auto_compact, reducible};
pub(crate) use boundary::after_boundary;
pub(crate) use context_collapse::{StagedCollapses, context_collapse, drain, drainable, on_staged};
pub(crate) use media::{has_media, has_thinking, replace_block, strip_media, strip_thinking, unbound};
pub(crate) use micro_compact::micro_compact;
pub(crate) use report::sizes;
pub(crate) use results::answered_call;
pub(crate) use snip::snip;
pub(crate) use text::{one_line, render};
pub(crate) use thresholds::{Thresholds, blocking_limit};
pub(crate) use tokens::TokenCount;
pub(crate) use tool_result_budget::{LargeResult, tool_result_budget};

/// Compactions after a transition: turns are counted.
pub(crate) fn after_transition(compactions: &CompactionMemory, transition: Transition) -> CompactionMemory {
    let turns = u32::from(transition == Transition::NextTurn);
    CompactionMemory { turns_since: compactions.turns_since.saturating_add(turns), ..*compactions }
}

/// Compactions for the next run of the session: the user said something, so nothing goes round in circles.
pub(crate) fn for_next_run(compactions: &CompactionMemory) -> CompactionMemory {
    CompactionMemory {
        is_compacted: false,
        no_progress: 0,
        is_above_half: false,
        rewritten_at_tokens: None,
        ..*compactions
    }
}
