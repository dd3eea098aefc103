//! Fields of a request that not every endpoint and model takes, and the betas they need.

use std::fmt::Write as _;

use windlass_protocol::{
    ContextEdits, Delivery, ModelRequest, RequestThinking, Role, TaskBudget, ThinkingDisplay,
};

use crate::model_card;

/// The largest output cap of an answer that comes whole: more may take longer than connections stay open.
const WHOLE_OUTPUT_TOKENS_MAX: u32 = 21_333;

/// The smallest budget for thinking that the API takes.
const THINKING_TOKENS_MIN: u32 = 1_024;

/// A part of a request that may be refused without the rest of it being wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extra {
    /// What happens to thinking that does not fit its prefix.
    Binding,
    /// What is shown of thinking.
    Display,
    /// Budget of tokens.
    TaskBudget,
    /// Level of effort.
    Effort,
    /// Clearing by the provider.
    Edits,
    /// Thinking at all.
    Thinking,
}

impl Extra {
    /// Every extra; one whose field lies inside another's stands before it.
    pub(super) const ALL: [Self; 6] =
        [Self::Binding, Self::Display, Self::TaskBudget, Self::Effort, Self::Edits, Self::Thinking];

    /// The name of the field, as errors give it, and the beta without which it is refused.
    fn names(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Binding => ("block_binding", Some("thinking-binding-controls-2026-08-01")),
            Self::Display => ("display", None),
            Self::TaskBudget => ("task_budget", Some("task-budgets-2026-03-13")),
            Self::Effort => ("effort", None),
            Self::Edits => ("context_management", Some("context-management-2025-06-27")),
            Self::Thinking => ("thinking", None),
        }
    }

    pub(super) fn field(self) -> &'static str {
        self.names().0
    }

    pub(super) fn beta(self) -> Option<&'static str> {
        self.names().1
    }
}

/// What one request says beside model, cap, system prompt, tools and messages.
#[derive(Debug)]
pub(super) struct Extras {
    /// The cap on output tokens.
    pub(super) output_tokens_max: u32,
    /// The fields, each with a comma in front.
    pub(super) json: String,
    /// Which extras are in there.
    pub(super) used: Vec<Extra>,
}

impl Extras {
    /// The extras of a request, without those that `refused` names.
    pub(super) fn of(request: &ModelRequest, refused: impl Fn(Extra) -> bool) -> Self {
        let output_tokens_max = match request.delivery {
            Delivery::Streamed => request.output_tokens_max,
            Delivery::Whole => request.output_tokens_max.min(WHOLE_OUTPUT_TOKENS_MAX),
        };
        let mut extras = Self { output_tokens_max, json: String::new(), used: Vec::new() };
        let takes = |extra: Extra| !refused(extra);
        if takes(Extra::Thinking) {
            extras.add_thinking(request, &takes);
        }
        extras.add_output_config(request, &takes);
        if let Some(edits) = request.edits.as_ref().filter(|_| takes(Extra::Edits)) {
            extras.used.push(Extra::Edits);
            extras.add_field("context_management", &edits_json(edits));
        }
        extras
    }

    /// The betas that these extras need.
    pub(super) fn betas(&self) -> impl Iterator<Item = &'static str> {
        self.used.iter().filter_map(|extra| extra.beta())
    }

    fn add_field(&mut self, name: &str, value: &str) {
        let _ = write!(self.json, r#","{name}":{value}"#);
    }

    fn add_thinking(&mut self, request: &ModelRequest, takes: &dyn Fn(Extra) -> bool) {
        let (mut json, display) = match request.thinking {
            RequestThinking::Unsaid => return,
            RequestThinking::Disabled => (r#"{"type":"disabled""#.to_owned(), None),
            RequestThinking::Adaptive { display } => (r#"{"type":"adaptive""#.to_owned(), display),
            RequestThinking::Budgeted { tokens, display } => {
                let tokens = if self.output_tokens_max < request.output_tokens_max {
                    // The budget was made for a larger cap.
                    tokens.min(self.output_tokens_max - 1).max(THINKING_TOKENS_MIN)
                } else {
                    tokens
                };
                (format!(r#"{{"type":"enabled","budget_tokens":{tokens}"#), display)
            }
        };
        self.used.push(Extra::Thinking);
        if let Some(display) = display.filter(|_| takes(Extra::Display)) {
            self.used.push(Extra::Display);
            let _ = write!(json, r#","display":"{}""#, ThinkingDisplay::name(display));
        }
        if needs_binding(request) && takes(Extra::Binding) {
            self.used.push(Extra::Binding);
            json.push_str(r#","block_binding":{"prefix_mismatch_behavior":"drop_block"}"#);
        }
        json.push('}');
        self.add_field("thinking", &json);
    }

    fn add_output_config(&mut self, request: &ModelRequest, takes: &dyn Fn(Extra) -> bool) {
        let mut fields = Vec::new();
        if let Some(effort) = request.effort.filter(|_| takes(Extra::Effort)) {
            self.used.push(Extra::Effort);
            fields.push(format!(r#""effort":"{}""#, effort.name()));
        }
        if let Some(budget) = &request.task_budget.filter(|_| takes(Extra::TaskBudget)) {
            self.used.push(Extra::TaskBudget);
            fields.push(format!(r#""task_budget":{}"#, budget_json(budget)));
        }
        if !fields.is_empty() {
            self.add_field("output_config", &format!("{{{}}}", fields.join(",")));
        }
    }
}

/// Whether thinking may be replayed that the provider could find not to fit: the model binds it, it is on, and there is
/// an answer in the transcript. A drop lasts for one request, so every later one says it again.
fn needs_binding(request: &ModelRequest) -> bool {
    matches!(request.thinking, RequestThinking::Adaptive { .. })
        && model_card(&request.model).binds_thinking
        && request.transcript.iter().any(|message| message.role == Role::Assistant)
}

fn budget_json(budget: &TaskBudget) -> String {
    let remaining = budget.remaining.map(|left| format!(r#","remaining":{left}"#)).unwrap_or_default();
    format!(r#"{{"type":"tokens","total":{}{remaining}}}"#, budget.total)
}

fn edits_json(edits: &ContextEdits) -> String {
    let ContextEdits { trigger_tokens, keep_results, clear_at_least_tokens } = edits;
    let at_least = match clear_at_least_tokens {
        0 => String::new(),
        tokens => format!(r#","clear_at_least":{{"type":"input_tokens","value":{tokens}}}"#),
    };
    format!(
        r#"{{"edits":[{{"type":"clear_tool_uses_20250919","trigger":{{"type":"input_tokens","value":{trigger_tokens}}},"keep":{{"type":"tool_uses","value":{keep_results}}}{at_least}}}]}}"#
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use windlass_protocol::{Block, Effort, Message, MessageId, Origin};

    fn request(model: &str, change: impl FnOnce(&mut ModelRequest)) -> ModelRequest {
        let prompt = Message::user(MessageId(1), Origin::Prompt, vec![Block::text("hi")]);
        let mut request = ModelRequest {
            model: model.into(),
            transcript: [Arc::new(prompt)].into_iter().collect(),
            output_tokens_max: 32_000,
            ..ModelRequest::default()
        };
        change(&mut request);
        request
    }

    fn answered(request: &mut ModelRequest) {
        request.transcript.push(Arc::new(Message::assistant(
            MessageId(2),
            "x".into(),
            vec![Block::text("a")],
        )));
    }

    fn check(request: &ModelRequest, json: &str, betas: &str) {
        let extras = Extras::of(request, |_| false);
        assert_eq!(extras.json, json);
        assert_eq!(extras.betas().collect::<Vec<_>>().join(","), betas);
    }

    #[test]
    fn what_is_not_asked_for_is_not_sent() {
        check(&request("claude-opus-5-5", answered), "", "");
        check(&request("llama-4", |_| ()), "", "");
    }

    #[test]
    fn every_way_of_thinking() {
        let with = |thinking| request("llama-4", |request| request.thinking = thinking);
        check(&with(RequestThinking::Disabled), r#","thinking":{"type":"disabled"}"#, "");
        check(&with(RequestThinking::Adaptive { display: None }), r#","thinking":{"type":"adaptive"}"#, "");
        check(
            &with(RequestThinking::Adaptive { display: Some(ThinkingDisplay::Omitted) }),
            r#","thinking":{"type":"adaptive","display":"omitted"}"#,
            "",
        );
        check(
            &with(RequestThinking::Budgeted { tokens: 9_000, display: Some(ThinkingDisplay::Summarized) }),
            r#","thinking":{"type":"enabled","budget_tokens":9000,"display":"summarized"}"#,
            "",
        );
    }

    #[test]
    fn effort_and_budget_share_a_field() {
        let with = |effort, remaining| {
            request("x", |request| {
                request.effort = effort;
                request.task_budget = Some(TaskBudget { total: 90_000, remaining });
            })
        };
        check(
            &with(Some(Effort::XHigh), None),
            r#","output_config":{"effort":"xhigh","task_budget":{"type":"tokens","total":90000}}"#,
            "task-budgets-2026-03-13",
        );
        check(
            &with(None, Some(4)),
            r#","output_config":{"task_budget":{"type":"tokens","total":90000,"remaining":4}}"#,
            "task-budgets-2026-03-13",
        );
        check(
            &request("x", |request| request.effort = Some(Effort::Low)),
            r#","output_config":{"effort":"low"}"#,
            "",
        );
    }

    #[test]
    fn clearing_by_the_provider() {
        let with = |clear_at_least_tokens| {
            let edits = ContextEdits { trigger_tokens: 100, keep_results: 5, clear_at_least_tokens };
            request("x", |request| request.edits = Some(edits))
        };
        check(
            &with(7),
            r#","context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":100},"keep":{"type":"tool_uses","value":5},"clear_at_least":{"type":"input_tokens","value":7}}]}"#,
            "context-management-2025-06-27",
        );
        let extras = Extras::of(&with(0), |_| false);
        assert!(!extras.json.contains("clear_at_least"), "{}", extras.json);
    }

    #[test]
    fn thinking_that_may_not_fit_is_dropped_by_models_that_bind_it() {
        let bound =
            r#","thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#;
        let plain = r#","thinking":{"type":"adaptive"}"#;
        let adaptive =
            |request: &mut ModelRequest| request.thinking = RequestThinking::Adaptive { display: None };
        let replayed = |request: &mut ModelRequest| {
            adaptive(request);
            answered(request);
        };
        check(&request("claude-opus-5-5", replayed), bound, "thinking-binding-controls-2026-08-01");
        check(&request("claude-opus-5-5", adaptive), plain, "");
        check(&request("claude-opus-5", replayed), plain, "");
        let off = request("claude-haiku-5-5", |request| {
            answered(request);
            request.thinking = RequestThinking::Disabled;
        });
        check(&off, r#","thinking":{"type":"disabled"}"#, "");
    }

    #[test]
    fn a_whole_answer_has_a_smaller_cap() {
        let whole = |cap, tokens| {
            request("x", |request| {
                request.delivery = Delivery::Whole;
                request.output_tokens_max = cap;
                request.thinking = RequestThinking::Budgeted { tokens, display: None };
            })
        };
        let seen = |cap, tokens| {
            let extras = Extras::of(&whole(cap, tokens), |_| false);
            (extras.output_tokens_max, extras.json)
        };
        let thinking = |tokens| format!(r#","thinking":{{"type":"enabled","budget_tokens":{tokens}}}"#);
        assert_eq!(seen(64_000, 40_000), (21_333, thinking(21_332)));
        assert_eq!(seen(64_000, 2_000), (21_333, thinking(2_000)));
        assert_eq!(seen(8_000, 7_000), (8_000, thinking(7_000)));
        assert_eq!(Extras::of(&request("x", |_| ()), |_| false).output_tokens_max, 32_000);
    }

    #[test]
    fn what_was_refused_is_left_out() {
        let all = request("claude-opus-5-5", |request| {
            answered(request);
            request.thinking = RequestThinking::Adaptive { display: Some(ThinkingDisplay::Summarized) };
            request.effort = Some(Effort::High);
            request.task_budget = Some(TaskBudget { total: 1, remaining: None });
            request.edits =
                Some(ContextEdits { trigger_tokens: 1, keep_results: 1, clear_at_least_tokens: 1 });
        });
        assert_eq!(Extras::of(&all, |_| false).used.len(), Extra::ALL.len());
        for extra in Extra::ALL {
            let left = Extras::of(&all, |refused| refused == extra);
            assert!(!left.json.contains(&format!("\"{}\"", extra.field())), "{extra:?}: {}", left.json);
            assert!(left.betas().all(|beta| Some(beta) != extra.beta()), "{extra:?}");
        }
        assert_eq!(Extras::of(&all, |_| true).json, "");
    }
}
