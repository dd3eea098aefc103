//! How full the context is, by what fills it.

use std::sync::Arc;

use windlass_protocol::{BlockKind, ContextReport, Message, Origin, Role, estimate_tokens};

use super::Thresholds;
use super::tokens::{scaled, system_tokens, tools_tokens};
use crate::config::{CompactionPolicy, Config};
use crate::state::State;
use crate::step::Cx;

const PARTS: [&str; 8] =
    ["system prompt", "tools", "summaries", "prompts", "answers", "tool calls", "tool results", "notes"];

/// What the next request is made of, by whole messages: a rough picture that costs next to nothing.
pub(crate) fn sizes(cx: &Cx<'_>) -> Vec<(Arc<str>, u64)> {
    let carry = &cx.state.carry;
    let mut sizes = [0_u64; PARTS.len()];
    sizes[0] = system_tokens(cx.config);
    sizes[1] = tools_tokens(cx.config);
    for message in carry.messages.iter() {
        let place = message.blocks.first().map_or(7, |block| part(message, block.kind()));
        let place = if message.role == Role::Assistant { 4 } else { place };
        sizes[place] += u64::from(message.tokens());
    }
    let (used, estimated) = (carry.tokens.total(&carry.messages, cx.config), sizes.iter().sum());
    let parts = PARTS.iter().zip(sizes).filter(|(_, size)| *size > 0);
    parts.map(|(name, size)| ((*name).into(), scaled(size, used, estimated))).collect()
}

impl State {
    /// How full the context is. The parts are estimates that add up to what is in use.
    pub fn context_report(&self, config: &Config) -> ContextReport {
        let (carry, model) = (&self.carry, config.model_after(self.carry.guards.fallbacks));
        let thresholds = Thresholds::of(config, model);
        let is_automatic = config.context.compaction == CompactionPolicy::Automatic;
        let mut sizes = [0_u64; PARTS.len()];
        sizes[0] = system_tokens(config);
        sizes[1] = tools_tokens(config);
        for message in carry.messages.iter() {
            for block in &message.blocks {
                sizes[part(message, block.kind())] += u64::from(estimate_tokens(block));
            }
        }
        let used = carry.tokens.total(&carry.messages, config);
        let estimated: u64 = sizes.iter().sum();
        let parts = PARTS
            .into_iter()
            .zip(sizes.map(|size| scaled(size, used, estimated)))
            .filter(|(_, size)| *size > 0);
        ContextReport {
            model: model.id.clone(),
            window: Thresholds::window(config, model),
            used,
            compact_at: is_automatic.then_some(thresholds.compact),
            blocked_at: (!is_automatic).then_some(thresholds.blocking),
            parts: parts.collect(),
        }
    }
}

/// The place in [`PARTS`] of a block.
fn part(message: &Message, kind: &BlockKind) -> usize {
    match (kind, &message.origin) {
        (BlockKind::ToolUse(_), _) => 5,
        (BlockKind::ToolResult { .. }, _) => 6,
        (_, Origin::Boundary | Origin::Collapsed) => 2,
        (_, Origin::Prompt) => 3,
        (_, Origin::Model(_)) => 4,
        _ => 7,
    }
}
