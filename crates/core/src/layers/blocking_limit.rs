//! The blocking limit: no request that is doomed, once every way to make room is off.

use windlass_protocol::Terminal;

use super::Thresholds;
use crate::prepare::{Preparing, Reply, Step};
use crate::step::Cx;

/// What was compacted in this iteration was so because a way to make room is on, or because the user asked for it; then no
/// limit is looked at.
pub(crate) fn blocking_limit(cx: &mut Cx<'_>, preparing: &mut Preparing, _: Option<Reply>) -> Step {
    let policy = &cx.config.context;
    let has_cure = policy.auto_compact || policy.collapse || policy.reactive_compact;
    if has_cure || preparing.forced.is_some() || cx.config.source.is_summariser() {
        return Step::Passed;
    }
    let limit = Thresholds::of(cx.config, cx.model()).blocking;
    if cx.context_tokens() < limit { Step::Passed } else { Step::End(Terminal::BlockingLimit) }
}
