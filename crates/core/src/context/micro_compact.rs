//! Layer 3: old results of calls that can be made again are cleared.

use std::sync::Arc;

use windlass_protocol::{Block, Decision, estimate_tokens};

use super::Thresholds;
use super::apply::bound_after;
use super::results::{answered_call, placeholder};
use super::rounds::tool_uses;
use crate::step::Cx;
use crate::turn::prepare::{LayerReply, LayerStep, Preparation};

/// Results from this size on are large and go first.
const LARGE_TOKENS: u64 = 1_000;
/// Less than this is not worth a placeholder; what was cleared before frees nothing.
const SMALL_TOKENS: u64 = 100;

pub(crate) fn micro_compact(
    cx: &mut Cx<'_>,
    preparing: &mut Preparation,
    _: Option<LayerReply>,
) -> LayerStep {
    if preparing.forced.is_none()
        && let Some(decision) = plan(cx)
    {
        cx.change(decision);
    }
    LayerStep::Passed
}

/// What would be cleared now. Where the provider clears its own copy, nothing is.
pub(crate) fn plan(cx: &Cx<'_>) -> Option<Decision> {
    let (policy, model, carry) = (&cx.config.context, cx.model(), &cx.state.carry);
    let total = cx.context_tokens();
    let warning = Thresholds::of(cx.config, model).warning;
    let is_off = !policy.can_micro_compact || model.can_edit_context || cx.config.source.is_summariser();
    if is_off || total < warning {
        return None;
    }
    let scale = carry.tokens.scale(&carry.messages, cx.config);
    // A quarter below the threshold, so that the next rewrite is not due at once.
    let wanted = total.saturating_sub(warning / 4 * 3).max(policy.clear_at_least_tokens);
    let mut results = Vec::new();
    let (mut tokens, mut first) = (0, carry.messages.len());
    for old in old_results(cx) {
        if scale.real(tokens) >= wanted {
            break;
        }
        let Some(placeholder) = placeholder(old.result) else { continue };
        let frees = old.tokens.saturating_sub(u64::from(estimate_tokens(&placeholder)));
        if frees < SMALL_TOKENS {
            continue;
        }
        tokens += frees;
        first = first.min(old.place);
        results.push((old.tool_use_id.clone(), placeholder));
    }
    let tokens = scale.real(tokens);
    if results.is_empty() || tokens < policy.clear_at_least_tokens {
        return None;
    }
    let is_bound = model.is_thinking_bound;
    let unbound_from = is_bound.then(|| bound_after(&carry.messages, first, |_| false)).flatten();
    Some(Decision::Cleared { results, tokens, unbound_from })
}

struct OldResult<'a> {
    place: usize,
    tool_use_id: &'a Arc<str>,
    result: &'a Block,
    tokens: u64,
}

/// The results that can be cleared, in the order in which they go: the large ones first, the oldest of them first.
fn old_results<'a>(cx: &'a Cx<'_>) -> Vec<OldResult<'a>> {
    let messages = &cx.state.carry.messages;
    let uses = tool_uses(messages);
    let is_clearable = |id: &str| uses.get(id).is_some_and(|call| cx.config.profile(&call.name).is_clearable);
    let mut found: Vec<(usize, &Arc<str>, &Block)> = messages
        .iter()
        .enumerate()
        .flat_map(|(place, message)| message.blocks.iter().map(move |block| (place, block)))
        .filter_map(|(place, block)| answered_call(block).map(|(id, _)| (place, id, block)))
        .filter(|(_, id, _)| is_clearable(id))
        .collect();
    found.truncate(found.len().saturating_sub(cx.config.context.results_kept));
    let old = found.into_iter().map(|(place, tool_use_id, result)| OldResult {
        place,
        tool_use_id,
        result,
        tokens: u64::from(estimate_tokens(result)),
    });
    let (large, small): (Vec<_>, Vec<_>) = old.partition(|old| old.tokens >= LARGE_TOKENS);
    large.into_iter().chain(small).collect()
}
