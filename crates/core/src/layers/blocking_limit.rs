//! The blocking limit: no request that is doomed, once every way to make room is off.

use windlass_protocol::Terminal;

use super::Thresholds;
use crate::prepare::{Preparing, Reply, Step};
use crate::step::Cx;

/// Nothing was compacted in this iteration: with every way to make room off, only the user can ask for that, in a run that
/// ends with it.
pub(crate) fn blocking_limit(cx: &mut Cx<'_>, _: &mut Preparing, _: Option<Reply>) -> Step {
    let policy = &cx.config.context;
    let has_cure = policy.auto_compact || policy.collapse || policy.reactive_compact;
    if has_cure || cx.config.source.is_summariser() {
        return Step::Passed;
    }
    let limit = Thresholds::of(cx.config, cx.model()).blocking;
    if cx.context_tokens() < limit { Step::Passed } else { Step::End(Terminal::BlockingLimit) }
}
