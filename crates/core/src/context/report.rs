//! How full the context is, by what fills it.

use std::sync::Arc;

use windlass_protocol::{Block, BlockKind, ContextReport, Message, Origin, Role, estimate_tokens};

use super::Thresholds;
use super::tokens::{mul_div, system_tokens, tools_tokens};
use crate::config::{CompactionPolicy, Config};
use crate::state::State;
use crate::step::Cx;

const PARTS: [&str; 8] = ContextReport::PARTS;

/// What the next request is made of, by whole messages: a rough picture that costs next to nothing.
pub(crate) fn sizes(cx: &Cx<'_>) -> Vec<(Arc<str>, u64)> {
    let messages = &cx.state.carry.messages;
    let used = cx.context_tokens();
    let of_message = |message: &Arc<Message>| {
        let place = message.blocks.first().map_or(7, |block| part(message, block.kind()));
        let place = if message.role == Role::Assistant { 4 } else { place };
        (place, message.tokens())
    };
    let parts = parts(cx.config, used, messages.iter().map(of_message));
    parts.map(|(name, size)| (name.into(), size)).collect()
}

impl State {
    /// How full the context is. The parts are estimates that add up to what is in use.
    pub fn context_report(&self, config: &Config) -> ContextReport {
        let (carry, model) = (&self.carry, config.model_after(self.carry.guards.fallbacks));
        let thresholds = Thresholds::of(config, model);
        let is_automatic = config.context.compaction == CompactionPolicy::Automatic;
        let used = carry.tokens.total(&carry.messages, config);
        let blocks = carry.messages.iter().flat_map(|message| {
            let of_block = |block| (part(message, Block::kind(block)), estimate_tokens(block));
            message.blocks.iter().map(of_block)
        });
        ContextReport {
            model: model.id.clone(),
            window: Thresholds::window(config, model),
            used,
            compact_at: is_automatic.then_some(thresholds.compact),
            blocked_at: (!is_automatic).then_some(thresholds.blocking),
            parts: parts(config, used, blocks).collect(),
        }
    }
}

/// The parts that are not empty, scaled so that they add up to what is used. Each estimate comes with its place in [`PARTS`].
fn parts(
    config: &Config,
    used: u64,
    estimates: impl Iterator<Item = (usize, u32)>,
) -> impl Iterator<Item = (&'static str, u64)> {
    let mut sizes = [0_u64; PARTS.len()];
    sizes[0] = system_tokens(config);
    sizes[1] = tools_tokens(config);
    for (place, tokens) in estimates {
        sizes[place] += u64::from(tokens);
    }
    let estimated = sizes.iter().sum();
    PARTS.into_iter().zip(sizes.map(|size| mul_div(size, used, estimated))).filter(|(_, size)| *size > 0)
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
