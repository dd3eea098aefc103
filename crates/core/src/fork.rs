//! Forks: the same machine at work on a conversation of its own, beside the run.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_protocol::{ForkId, ModelCard, Thinking, ToolSpec, Transcript};

use crate::budget;
use crate::config::{
    Asking, Config, ContextPolicy, OutputPolicy, PermissionMode, Permissions, Source, ThinkingMode,
    ThinkingWish,
};
use crate::effect::Effect;
use crate::rules::Rules;
use crate::state::State;
use crate::step::Cx;
use windlass_protocol::Prompt;

/// What a fork works on, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) source: Source,
    pub(crate) model: ModelCard,
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) messages: Transcript,
    pub(crate) prompt: Prompt,
    pub(crate) output_tokens: u32,
}

impl Cx<'_> {
    /// Starts a fork, unless the budget is spent.
    pub(crate) fn fork(&mut self, plan: Plan) -> Option<ForkId> {
        if !budget::usd_left(&self.state.ledger, self.config) {
            return None;
        }
        let fork = self.state.ids.fork();
        let left = self.config.budget_usd.map(|cap| cap - self.state.ledger.opened_usd());
        let thinking = self.fork_thinking(&plan);
        let config = Arc::new(Config { budget_usd: left, thinking, ..fork_config(&plan, self.config) });
        let state = Box::new(State::new(self.state.carry.tools.cwd.to_path_buf(), plan.messages));
        self.effects.push(Effect::Fork { fork, state, config, prompt: plan.prompt });
        Some(fork)
    }

    /// A fork that shares the provider's cache thinks as the run does, as far as that leaves half of its own cap for what it
    /// is to write.
    fn fork_thinking(&self, plan: &Plan) -> ThinkingWish {
        let wish = self.config.thinking;
        match self.thinking() {
            _ if !plan.shares_prefix() => NO_THINKING,
            Thinking::Budgeted { tokens, .. } => {
                ThinkingWish { budget_tokens: Some(tokens.min(plan.output_tokens / 2)), ..wish }
            }
            _ => wish,
        }
    }
}

impl Plan {
    /// Only the summariser of the whole conversation shares the provider's cache, which thinking, effort and clearing are
    /// part of.
    fn shares_prefix(&self) -> bool {
        self.source == Source::Compact
    }
}

const NO_THINKING: ThinkingWish =
    ThinkingWish { mode: ThinkingMode::Disabled, budget_tokens: None, display: None };

/// A fork answers once, changes nothing, and asks nobody.
fn fork_config(plan: &Plan, parent: &Config) -> Config {
    Config {
        model: plan.model.clone(),
        system: plan.system.clone(),
        tools: plan.tools.clone(),
        source: plan.source.clone(),
        fallbacks: [].into(),
        small_model: None,
        turns_max: Some(2),
        token_budget: None,
        task_budget: None,
        effort: parent.effort.filter(|_| plan.shares_prefix()),
        output: OutputPolicy { explicit: Some(plan.output_tokens), recoveries_max: 0, ..parent.output },
        context: ContextPolicy {
            auto_compact: false,
            reactive_compact: false,
            collapse: false,
            micro_compact: parent.context.micro_compact && plan.shares_prefix(),
            ..parent.context
        },
        permissions: Permissions {
            mode: PermissionMode::DontAsk,
            rules: Rules::denying(plan.tools.iter().map(|tool| &*tool.name)),
            asking: Asking::Nobody,
            ..Permissions::default()
        },
        answer: None,
        hooks: BTreeSet::new(),
        memory: [].into(),
        tool_use_summaries: false,
        partial_messages: false,
        ..parent.clone()
    }
}
