//! The blocking limit: no request that is doomed, where nothing is summarised automatically.

use windlass_protocol::Terminal;

use super::Thresholds;
use crate::config::CompactionPolicy;
use crate::step::Cx;
use crate::turn::prepare::{LayerReply, LayerStep, Preparation};

/// Nothing was compacted in this iteration: where compaction is not automatic, only the user can ask for it, in a run that
/// ends with it.
pub(crate) fn blocking_limit(cx: &mut Cx<'_>, _: &mut Preparation, _: Option<LayerReply>) -> LayerStep {
    let is_automatic = cx.config.context.compaction == CompactionPolicy::Automatic;
    if is_automatic || cx.config.source.is_summariser() {
        return LayerStep::Passed;
    }
    let limit = Thresholds::of(cx.config, cx.model()).blocking;
    if cx.context_tokens() < limit { LayerStep::Passed } else { LayerStep::End(Terminal::BlockingLimit) }
}
