//! Stage 2: the request itself.

use windlass_protocol::{
    ContextEdits, Effort, ModelCard, ModelRequest, RequestThinking, TaskBudget, ThinkingDisplay,
    ThinkingSupport,
};

use crate::config::{CacheSafe, Config, ThinkingMode, ThinkingWish};
use crate::context::Thresholds;
use crate::context::prefix::SentPrefix;
use crate::step::Cx;

/// Models take no smaller budget for thinking.
pub const THINKING_TOKENS_MIN: u32 = 1_024;

impl Config {
    /// The model in use after this many fallbacks.
    pub(crate) fn model_after(&self, fallbacks: u32) -> &ModelCard {
        let place = usize::try_from(fallbacks).unwrap_or(usize::MAX).checked_sub(1);
        place.and_then(|place| self.fallbacks.get(place)).unwrap_or(&self.model)
    }
}

impl Cx<'_> {
    pub(crate) fn model(&self) -> &ModelCard {
        self.config.model_after(self.state.carry.guards.fallbacks)
    }
    pub(crate) fn request(&self) -> ModelRequest {
        let (config, carry, model) = (self.config, &self.state.carry, self.model());
        let transcript = carry.messages.clone();
        let last = transcript.len().checked_sub(1);
        let cached_to = carry.sent.as_ref().and_then(SentPrefix::last_message).filter(|to| Some(*to) <= last);
        let mut breakpoints: Vec<usize> = cached_to.into_iter().chain(last).collect();
        breakpoints.dedup();
        let CacheSafe { thinking, effort, task_budget, edits } = self.cache_safe();
        ModelRequest {
            model: model.id.clone(),
            system: config.system.clone(),
            tools: config.tools.clone(),
            transcript,
            breakpoints,
            output_tokens_max: self.output_cap(),
            thinking,
            effort,
            task_budget,
            edits,
            delivery: windlass_protocol::Delivery::Streamed,
        }
    }

    /// Thinking goes only to the model that made it, and only while it thinks. As long as neither changes since the last
    /// request, what is new in the conversation fits.
    pub(crate) fn take_out_foreign_thinking(&mut self) {
        let model = self.model();
        let is_on = is_thinking_on(self.cache_safe().thinking, model);
        let carry = &self.state.carry;
        if carry.sent.as_ref().is_some_and(|sent| sent.is_for(&model.id, is_on)) {
            return;
        }
        let keep = is_on.then(|| model.id.clone());
        self.strip_thinking(keep.as_deref());
    }

    /// What the next request says that the provider's cache depends on.
    fn cache_safe(&self) -> CacheSafe {
        let (config, model) = (self.config, self.model());
        config.cache_safe.unwrap_or_else(|| {
            let caps = OutputCaps { now: self.output_cap(), first: first_cap(config, model) };
            let effort = effort(config.effort, model);
            CacheSafe {
                thinking: thinking(&config.thinking, model.thinking, effort, caps),
                effort,
                task_budget: self.task_budget(),
                edits: edits(config, model),
            }
        })
    }

    /// The cap on output tokens: what the user set, or the first cap, or the raised one; never above the model's own.
    fn output_cap(&self) -> u32 {
        let policy = &self.config.output;
        if policy.explicit.is_none() && self.state.carry.guards.is_output_escalated {
            return policy.escalated.min(self.model().output_tokens_max);
        }
        first_cap(self.config, self.model())
    }

    /// What is left is said only once the transcript was rewritten: a changed value costs the cache.
    fn task_budget(&self) -> Option<TaskBudget> {
        let total = self.config.task_budget.filter(|_| self.model().can_take_task_budget)?;
        let remaining =
            self.state.carry.compactions.rewritten_at_tokens.map(|spent| total.saturating_sub(spent));
        Some(TaskBudget { total, remaining })
    }
}

/// The caps on output tokens that thinking has to fit into.
#[derive(Clone, Copy, Debug)]
struct OutputCaps {
    /// Of this request.
    now: u32,
    /// Of a request that nothing was raised for. The default budget follows from it: a changed budget costs the cache.
    first: u32,
}

fn first_cap(config: &Config, model: &ModelCard) -> u32 {
    config.output.explicit.unwrap_or(config.output.first).min(model.output_tokens_max)
}

/// What the provider clears itself, the same from the first request on, so that it never changes the prefix.
fn edits(config: &Config, model: &ModelCard) -> Option<ContextEdits> {
    let wanted = config.context.can_micro_compact && model.can_edit_context;
    wanted.then(|| ContextEdits {
        trigger_tokens: Thresholds::of(config, model).warning,
        keep_results: u32::try_from(config.context.results_kept).unwrap_or(u32::MAX),
        clear_at_least_tokens: config.context.clear_at_least_tokens,
    })
}

/// The level asked for, or the highest below it that the model takes.
fn effort(wish: Option<Effort>, model: &ModelCard) -> Option<Effort> {
    let wish = wish?;
    model
        .efforts
        .iter()
        .copied()
        .filter(|level| *level <= wish)
        .max()
        .or_else(|| model.efforts.first().copied())
}

/// The wish as far as the model takes it.
fn thinking(
    wish: &ThinkingWish,
    support: ThinkingSupport,
    effort: Option<Effort>,
    caps: OutputCaps,
) -> RequestThinking {
    let display = wish.display;
    let may_disable =
        support.disabled_up_to.is_some_and(|highest| effort.is_none_or(|effort| effort <= highest));
    match (wish.mode, wish.budget_tokens) {
        (ThinkingMode::Disabled, _) | (_, Some(0)) if may_disable => RequestThinking::Disabled,
        (ThinkingMode::Disabled, _) | (_, Some(0)) => RequestThinking::Unsaid,
        (_, Some(tokens)) if support.is_budgeted => thinking_budget(tokens, caps.now, display),
        _ if support.is_adaptive => RequestThinking::Adaptive { display },
        _ if support.is_budgeted => thinking_budget(caps.first / 2, caps.now, display),
        _ => RequestThinking::Unsaid,
    }
}

/// A budget that the API takes: from its minimum on, and below the cap. Where there is no room for one, there is no thinking.
pub(crate) fn thinking_budget(tokens: u32, cap: u32, display: Option<ThinkingDisplay>) -> RequestThinking {
    match cap.saturating_sub(1) {
        ..THINKING_TOKENS_MIN => RequestThinking::Unsaid,
        most => RequestThinking::Budgeted { tokens: tokens.clamp(THINKING_TOKENS_MIN, most), display },
    }
}

/// What was asked for that the model does not take, for the user: nothing is dropped in silence.
///
/// ```
/// use windlass_core::{Config, unsupported_settings};
/// use windlass_protocol::Effort;
/// let config = Config { effort: Some(Effort::Max), ..Config::default() };
/// assert_eq!(unsupported_settings(&config), ["unnamed does not support effort levels; `max` is ignored."]);
/// ```
pub fn unsupported_settings(config: &Config) -> Vec<String> {
    let model = &config.model;
    let id = &model.id;
    let mut texts = Vec::new();
    let effort = effort(config.effort, model);
    match (config.effort, effort) {
        (Some(wish), None) => {
            texts.push(format!("{id} does not support effort levels; `{}` is ignored.", wish.name()));
        }
        (Some(wish), Some(taken)) if wish != taken => {
            texts.push(format!(
                "{id} does not support the effort `{}`; using `{}`.",
                wish.name(),
                taken.name()
            ));
        }
        _ => (),
    }
    let wish = &config.thinking;
    let cap = first_cap(config, model);
    let taken = thinking(wish, model.thinking, effort, OutputCaps { now: cap, first: cap });
    let wants_none = wish.mode == ThinkingMode::Disabled || wish.budget_tokens == Some(0);
    let wants_some = wish.mode == ThinkingMode::Adaptive || wish.budget_tokens.is_some();
    match taken {
        RequestThinking::Unsaid if wants_none && model.thinking.is_on_by_default => {
            texts.push(format!("{id} always thinks; thinking cannot be turned off."));
        }
        RequestThinking::Unsaid if wants_some && !wants_none => {
            texts.push(format!("{id} does not support thinking settings; they are ignored."));
        }
        RequestThinking::Adaptive { .. } if wish.budget_tokens.is_some() => {
            texts.push(format!("{id} chooses its own amount of thinking; the thinking budget is ignored."));
        }
        _ => (),
    }
    if config.task_budget.is_some() && !model.can_take_task_budget {
        texts.push(format!("{id} does not support task budgets; the task budget is ignored."));
    }
    texts
}

/// Whether the model will think, so that earlier thinking may be sent. An unknown model that is told nothing goes on as before.
pub(crate) fn is_thinking_on(thinking: RequestThinking, model: &ModelCard) -> bool {
    match thinking {
        RequestThinking::Disabled => false,
        RequestThinking::Adaptive { .. } | RequestThinking::Budgeted { .. } => true,
        RequestThinking::Unsaid => model.thinking.is_on_by_default || !model.is_known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::ThinkingDisplay;

    const NEW: ThinkingSupport = ThinkingSupport {
        is_adaptive: true,
        is_budgeted: false,
        disabled_up_to: Some(Effort::High),
        is_on_by_default: true,
    };
    const OLD: ThinkingSupport = ThinkingSupport {
        is_adaptive: false,
        is_budgeted: true,
        disabled_up_to: Some(Effort::Max),
        is_on_by_default: false,
    };
    const ALWAYS: ThinkingSupport = ThinkingSupport {
        is_adaptive: true,
        is_budgeted: false,
        disabled_up_to: None,
        is_on_by_default: true,
    };

    #[track_caller]
    fn check(
        mode: ThinkingMode,
        budget_tokens: Option<u32>,
        support: ThinkingSupport,
        expected: RequestThinking,
    ) {
        let wish = ThinkingWish { mode, budget_tokens, display: None };
        assert_eq!(thinking(&wish, support, Some(Effort::High), caps(8_000)), expected);
    }

    fn caps(tokens: u32) -> OutputCaps {
        OutputCaps { now: tokens, first: tokens }
    }

    #[test]
    fn a_model_thinks_as_it_was_asked_to_as_far_as_it_can() {
        let adaptive = RequestThinking::Adaptive { display: None };
        let budgeted = |tokens| RequestThinking::Budgeted { tokens, display: None };
        check(ThinkingMode::Auto, None, NEW, adaptive);
        check(ThinkingMode::Adaptive, None, NEW, adaptive);
        check(ThinkingMode::Auto, Some(2_000), NEW, adaptive);
        check(ThinkingMode::Disabled, None, NEW, RequestThinking::Disabled);
        check(ThinkingMode::Auto, Some(0), NEW, RequestThinking::Disabled);
        check(ThinkingMode::Disabled, None, ALWAYS, RequestThinking::Unsaid);
        check(ThinkingMode::Auto, None, OLD, budgeted(4_000));
        check(ThinkingMode::Adaptive, None, OLD, budgeted(4_000));
        check(ThinkingMode::Disabled, None, OLD, RequestThinking::Disabled);
        check(ThinkingMode::Auto, Some(0), OLD, RequestThinking::Disabled);
        check(ThinkingMode::Auto, Some(4_000), OLD, budgeted(4_000));
        check(ThinkingMode::Auto, Some(10), OLD, budgeted(1_024));
        check(ThinkingMode::Auto, Some(100_000), OLD, budgeted(7_999));
        check(ThinkingMode::Adaptive, None, ThinkingSupport::default(), RequestThinking::Unsaid);
        let shown = ThinkingWish { display: Some(ThinkingDisplay::Omitted), ..ThinkingWish::default() };
        let expected = RequestThinking::Adaptive { display: Some(ThinkingDisplay::Omitted) };
        assert_eq!(thinking(&shown, NEW, None, caps(8_000)), expected);
        let wish = ThinkingWish { mode: ThinkingMode::Disabled, ..ThinkingWish::default() };
        assert_eq!(
            thinking(&wish, NEW, Some(Effort::Max), caps(8_000)),
            RequestThinking::Unsaid,
            "not at this effort"
        );
        assert_eq!(thinking(&shown, OLD, None, caps(1_000)), RequestThinking::Unsaid);
    }

    #[test]
    fn a_default_budget_fits_into_the_cap_and_stays_when_that_is_raised() {
        let check = |now, first, expected: Option<u32>| {
            let found = thinking(&ThinkingWish::default(), OLD, None, OutputCaps { now, first });
            let expected = expected.map_or(RequestThinking::Unsaid, |tokens| RequestThinking::Budgeted {
                tokens,
                display: None,
            });
            assert_eq!(found, expected, "{now} {first}");
        };
        check(8_000, 8_000, Some(4_000));
        check(64_000, 8_000, Some(4_000));
        check(32_000, 32_000, Some(16_000));
        check(2_048, 2_048, Some(1_024));
        check(1_500, 1_500, Some(1_024));
        check(1_025, 1_025, Some(1_024));
        check(1_024, 1_024, None);
        check(1, 1, None);
        check(0, 0, None);
    }

    const UP_TO_HIGH: &[Effort] = &[Effort::Low, Effort::Medium, Effort::High];

    #[test]
    fn effort_is_what_was_asked_for_or_the_next_below() {
        let check = |efforts: &'static [Effort], wish, expected| {
            let model = ModelCard { efforts, ..ModelCard::unknown("m") };
            assert_eq!(effort(wish, &model), expected);
        };
        check(UP_TO_HIGH, None, None);
        check(UP_TO_HIGH, Some(Effort::Medium), Some(Effort::Medium));
        check(UP_TO_HIGH, Some(Effort::Max), Some(Effort::High));
        check(&[Effort::High], Some(Effort::Low), Some(Effort::High));
        check(&[], Some(Effort::High), None);
    }

    #[test]
    fn wishes_that_a_model_does_not_take_are_told() {
        let check = |change: fn(&mut Config), expected: &[&str]| {
            let model = ModelCard { efforts: UP_TO_HIGH, thinking: ALWAYS, ..ModelCard::unknown("m") };
            let mut config = Config { model, ..Config::default() };
            change(&mut config);
            assert_eq!(unsupported_settings(&config), expected);
        };
        check(|_| (), &[]);
        check(|c| c.effort = Some(Effort::High), &[]);
        check(|c| c.effort = Some(Effort::Max), &["m does not support the effort `max`; using `high`."]);
        check(
            |c| c.thinking.mode = ThinkingMode::Disabled,
            &["m always thinks; thinking cannot be turned off."],
        );
        let budget = "m chooses its own amount of thinking; the thinking budget is ignored.";
        check(|c| c.thinking.budget_tokens = Some(2_000), &[budget]);
        let total = "m does not support task budgets; the task budget is ignored.";
        check(|c| c.task_budget = Some(20_000), &[total]);
        let silent = "m does not support thinking settings; they are ignored.";
        check(
            |c| {
                c.model.thinking = ThinkingSupport::default();
                c.thinking.mode = ThinkingMode::Adaptive;
            },
            &[silent],
        );
    }
}
