//! Forks: the same machine at work on a conversation of its own, beside the run.
//!
//! A fork of the main conversation that repeats the run's last request up to its end is read from the provider's cache, at a
//! fraction of the price of input. A short prompt of its own for the small model may cost still less: prices decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_permission::{Answerer, Behaviour, PermissionMode, Permissions, Rules};
use windlass_protocol::{
    ForkId, ModelCard, ModelRequest, ModelSpend, Prompt, Record, RequestThinking, Transcript, Usage,
    estimate_text_tokens, estimate_tokens,
};

use crate::config::{
    CacheSafe, CompactionPolicy, Config, ContextPolicy, OutputPolicy, RunSource, ThinkingMode, ThinkingWish,
};
use crate::effect::Effect;
use crate::memory::ledger::is_cheaper;
use crate::state::{Phase, State};
use crate::step::Cx;
use crate::turn::budget;
use crate::turn::request::{is_thinking_on, thinking_budget};

/// What a fork works on, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct ForkPlan {
    pub(crate) source: RunSource,
    pub(crate) ground: ForkContext,
    pub(crate) prompt: Prompt,
    /// The cap on its answer, thinking included.
    pub(crate) output_tokens: u32,
}

/// What a fork knows besides its prompt.
#[derive(Clone, Debug)]
pub(crate) enum ForkContext {
    /// Nothing: its prompt says everything, to any model.
    Own { model: ModelCard, system: Arc<str> },
    /// The main conversation, with everything that the provider's cache depends on as in the run's requests.
    Shared { messages: Transcript },
}

/// A model that thinks is expected to use about so many tokens for a short answer, and gets this much room at least.
const THOUGHT_TOKENS: u32 = 1_000;
const THINKING_ROOM_TOKENS: u32 = 4_000;

impl Cx<'_> {
    /// Starts a fork, unless the budget is spent.
    pub(crate) fn fork(&mut self, plan: ForkPlan) -> Option<ForkId> {
        if !budget::usd_left(&self.state.ledger, self.config) {
            return None;
        }
        let fork = self.state.ids.fork();
        let config = self.fork_config(&plan).into();
        let cwd = self.state.carry.tools.cwd.to_path_buf();
        let state = match plan.ground {
            ForkContext::Own { .. } => State::new(cwd, Transcript::default()),
            ForkContext::Shared { messages } => {
                let mut state = State::new(cwd, messages);
                // Its request marks where the run's ended, so that the provider looks for the prefix there.
                state.carry.sent.clone_from(&self.state.carry.sent);
                state
            }
        };
        self.state.fork_spends.insert(fork, BTreeMap::new());
        self.effects.push(Effect::Fork { fork, state: Box::new(state), config, prompt: plan.prompt });
        Some(fork)
    }

    /// Nobody waits for a fork any more. What it took is paid for all the same.
    pub(crate) fn cancel_fork(&mut self, fork: ForkId) {
        self.effects.push(Effect::CancelFork(fork));
        let models = self.state.fork_spends.remove(&fork).unwrap_or_default();
        self.book_fork(&models);
    }

    pub(crate) fn book_fork(&mut self, models: &BTreeMap<Arc<str>, ModelSpend>) {
        for spent in self.state.ledger.book_fork(models) {
            self.persist(Record::Spent(spent));
        }
    }

    /// The cheaper way to an answer of about `expected` tokens: this plan on a ground of its own, or `question` to the model of
    /// the run, behind the conversation that the provider has in its cache. Where a price is not known, the plan.
    pub(crate) fn cheaper(&self, own: ForkPlan, question: impl Into<Prompt>, expected: u32) -> ForkPlan {
        let ForkContext::Own { model: small, system } = &own.ground else { return own };
        let question = question.into();
        let (request, model) = (self.request(), self.model());
        let output_tokens = u64::from(expected);
        let apart = Usage {
            input_tokens: u64::from(estimate_text_tokens(system)) + prompt_tokens(&own.prompt),
            output_tokens,
            ..Usage::default()
        };
        let total = self.context_tokens().saturating_add(prompt_tokens(&question));
        let cached = self.state.carry.sent.as_ref().map_or(0, |sent| sent.cached_at(self.at_ms)).min(total);
        let thought = if is_thinking_on(request.thinking, model) { THOUGHT_TOKENS } else { 0 };
        let shared = Usage {
            cache_read_input_tokens: cached,
            cache_creation_input_tokens: total - cached,
            output_tokens: output_tokens + u64::from(thought),
            ..Usage::default()
        };
        if !is_cheaper((&shared, model.price.as_ref()), (&apart, small.price.as_ref())) {
            return own;
        }
        ForkPlan {
            source: own.source,
            ground: ForkContext::Shared { messages: request.transcript.clone() },
            prompt: question,
            output_tokens: shared_cap(own.output_tokens, &request, model),
        }
    }

    /// A fork answers once, changes nothing, and asks nobody.
    fn fork_config(&self, plan: &ForkPlan) -> Config {
        let parent = self.config;
        let shared = matches!(plan.ground, ForkContext::Shared { .. });
        let (model, system, tools) = match &plan.ground {
            ForkContext::Own { model, system } => (model.clone(), system.clone(), [].into()),
            ForkContext::Shared { .. } => (self.model().clone(), parent.system.clone(), parent.tools.clone()),
        };
        Config {
            permissions: Permissions {
                mode: PermissionMode::DontAsk,
                rules: Rules::about_tools(Behaviour::Deny, tools.iter().map(|tool| &*tool.name)),
                asking: Answerer::Nobody,
                ..Permissions::default()
            },
            model,
            system,
            tools,
            source: plan.source.clone(),
            fallbacks: [].into(),
            small_model: None,
            turns_max: Some(2),
            budget_usd: parent.budget_usd.map(|cap| cap - self.state.ledger.opened_usd()),
            token_budget: None,
            task_budget: None,
            thinking: ThinkingWish { mode: ThinkingMode::Disabled, ..ThinkingWish::default() },
            effort: None,
            cache_safe: shared.then(|| cache_safe(&self.request(), plan.output_tokens)),
            output: OutputPolicy { explicit: Some(plan.output_tokens), recoveries_max: 0, ..parent.output },
            context: ContextPolicy {
                compaction: CompactionPolicy::Off,
                can_micro_compact: false,
                ..parent.context
            },
            answer: None,
            hooks: BTreeSet::new(),
            memory: [].into(),
            has_tool_use_summaries: false,
            has_prompt_suggestions: false,
            has_partial_messages: false,
            ..parent.clone()
        }
    }
}

impl State {
    /// What each model has taken in this run, the response included that is on its way: its input is paid for.
    pub fn spent_so_far(&self, config: &Config) -> BTreeMap<Arc<str>, ModelSpend> {
        let mut ledger = self.ledger.clone();
        if let Phase::Streaming(streaming) = &self.phase
            && let Some(usage) = &streaming.usage
        {
            ledger.book(&streaming.model, usage, config.model_after(self.carry.guards.fallbacks));
        }
        ledger.outcome.models
    }
}

/// What the provider's cache depends on. Thinking leaves half of the cap for the answer, even where that costs the cache.
fn cache_safe(request: &ModelRequest, output_tokens: u32) -> CacheSafe {
    let thinking = match request.thinking {
        RequestThinking::Budgeted { tokens, display } => {
            thinking_budget(tokens.min(output_tokens / 2), output_tokens, display)
        }
        other => other,
    };
    let ModelRequest { effort, task_budget, edits, .. } = *request;
    CacheSafe { thinking, effort, task_budget, edits }
}

/// The cap on a short answer behind the run's conversation: a cap costs nothing, but thinking that has no room costs the answer.
fn shared_cap(output_tokens: u32, request: &ModelRequest, model: &ModelCard) -> u32 {
    let cap = match request.thinking {
        RequestThinking::Budgeted { tokens, .. } => tokens.saturating_add(tokens.max(output_tokens)),
        thinking if is_thinking_on(thinking, model) => output_tokens.saturating_add(THINKING_ROOM_TOKENS),
        _ => output_tokens,
    };
    cap.min(model.output_tokens_max)
}

fn prompt_tokens(prompt: &Prompt) -> u64 {
    prompt.blocks.iter().map(|block| u64::from(estimate_tokens(block))).sum()
}
