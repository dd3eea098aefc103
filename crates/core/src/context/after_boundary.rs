//! Layer 0: only what comes after the last boundary is considered.

use windlass_protocol::{Origin, Transcript};

use crate::step::Cx;
use crate::turn::prepare::{LayerReply, LayerStep, Preparation};

/// A conversation that comes from elsewhere may hold what was before its last compaction. One that grew here never does,
/// so it is looked at once.
pub(crate) fn after_boundary(cx: &mut Cx<'_>, _: &mut Preparation, _: Option<LayerReply>) -> LayerStep {
    if cx.state.carry.compactions.decided_to.is_none() {
        let messages = &cx.state.carry.messages;
        let newest = messages.iter().rev().position(|message| message.origin == Origin::Boundary);
        if let Some(newest) = newest.filter(|newest| newest + 1 < messages.len()) {
            let view: Transcript = messages.iter().skip(messages.len() - 1 - newest).cloned().collect();
            cx.rewrite(view);
        }
    }
    LayerStep::Passed
}
