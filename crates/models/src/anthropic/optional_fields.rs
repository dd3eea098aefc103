//! Fields of a request that not every endpoint and model takes, their betas, and which of them were refused.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use windlass_protocol::{
    ContextEdits, Delivery, Failure, FailureClass, ModelRequest, RequestThinking, Role, TaskBudget,
};

use crate::model_card;

/// The largest output cap of an answer that comes whole: more may take longer than connections stay open.
const WHOLE_OUTPUT_TOKENS_MAX: u32 = 21_333;

/// The smallest budget for thinking that the API takes.
const THINKING_TOKENS_MIN: u32 = 1_024;

/// A part of a request that may be refused without the rest of it being wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OptionalField {
    /// What happens to thinking that does not fit its prefix.
    Binding,
    /// What is shown of thinking.
    Display,
    TaskBudget,
    Effort,
    /// Clearing by the provider.
    Edits,
    Thinking,
}

impl OptionalField {
    /// Every field; one that lies inside another's stands before it.
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
pub(super) struct OptionalFields {
    pub(super) output_tokens_max: u32,
    /// The fields, each with a comma in front.
    pub(super) json: String,
    pub(super) used: Vec<OptionalField>,
}

impl OptionalFields {
    /// The optional fields of a request, without those that `refused` names.
    pub(super) fn of(request: &ModelRequest, refused: impl Fn(OptionalField) -> bool) -> Self {
        let output_tokens_max = match request.delivery {
            Delivery::Streamed => request.output_tokens_max,
            Delivery::Whole => request.output_tokens_max.min(WHOLE_OUTPUT_TOKENS_MAX),
        };
        let mut fields = Self { output_tokens_max, json: String::new(), used: Vec::new() };
        let takes = |field: OptionalField| !refused(field);
        if takes(OptionalField::Thinking) {
            fields.add_thinking(request, &takes);
        }
        fields.add_output_config(request, &takes);
        if let Some(edits) = request.edits.as_ref().filter(|_| takes(OptionalField::Edits)) {
            fields.used.push(OptionalField::Edits);
            fields.add_field("context_management", &edits_json(edits));
        }
        fields
    }

    pub(super) fn betas(&self) -> impl Iterator<Item = &'static str> {
        self.used.iter().filter_map(|field| field.beta())
    }

    fn add_field(&mut self, name: &str, value: &Value) {
        let _ = write!(self.json, r#","{name}":{value}"#);
    }

    fn add_thinking(&mut self, request: &ModelRequest, takes: &dyn Fn(OptionalField) -> bool) {
        let (mut thinking, display) = match request.thinking {
            RequestThinking::Unsaid => return,
            RequestThinking::Disabled => (json!({"type": "disabled"}), None),
            RequestThinking::Adaptive { display } => (json!({"type": "adaptive"}), display),
            RequestThinking::Budgeted { tokens, display } => {
                let tokens = if self.output_tokens_max < request.output_tokens_max {
                    // The budget was made for a larger cap.
                    tokens.min(self.output_tokens_max - 1).max(THINKING_TOKENS_MIN)
                } else {
                    tokens
                };
                (json!({"type": "enabled", "budget_tokens": tokens}), display)
            }
        };
        self.used.push(OptionalField::Thinking);
        if let Some(display) = display.filter(|_| takes(OptionalField::Display)) {
            self.used.push(OptionalField::Display);
            thinking["display"] = display.name().into();
        }
        if needs_binding(request) && takes(OptionalField::Binding) {
            self.used.push(OptionalField::Binding);
            thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        }
        self.add_field("thinking", &thinking);
    }

    fn add_output_config(&mut self, request: &ModelRequest, takes: &dyn Fn(OptionalField) -> bool) {
        let mut config = Map::new();
        if let Some(effort) = request.effort.filter(|_| takes(OptionalField::Effort)) {
            self.used.push(OptionalField::Effort);
            config.insert("effort".into(), effort.name().into());
        }
        if let Some(budget) = &request.task_budget.filter(|_| takes(OptionalField::TaskBudget)) {
            self.used.push(OptionalField::TaskBudget);
            config.insert("task_budget".into(), budget_json(budget));
        }
        if !config.is_empty() {
            self.add_field("output_config", &config.into());
        }
    }
}

/// Whether thinking may be replayed that the provider could find not to fit: the model binds it, it is on, and there is
/// an answer in the transcript. A drop lasts for one request, so every later one says it again.
fn needs_binding(request: &ModelRequest) -> bool {
    matches!(request.thinking, RequestThinking::Adaptive { .. })
        && model_card(&request.model).is_thinking_bound
        && request.transcript.iter().any(|message| message.role == Role::Assistant)
}

fn budget_json(budget: &TaskBudget) -> Value {
    let mut json = json!({"type": "tokens", "total": budget.total});
    if let Some(remaining) = budget.remaining {
        json["remaining"] = remaining.into();
    }
    json
}

fn edits_json(edits: &ContextEdits) -> Value {
    let ContextEdits { trigger_tokens, keep_results, clear_at_least_tokens } = edits;
    let mut edit = json!({
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger_tokens},
        "keep": {"type": "tool_uses", "value": keep_results},
    });
    if *clear_at_least_tokens > 0 {
        edit["clear_at_least"] = json!({"type": "input_tokens", "value": clear_at_least_tokens});
    }
    json!({"edits": [edit]})
}

/// What servers say about a field they do not know.
const UNKNOWN_FIELD: &[&str] = &[
    "extra inputs are not permitted",
    "unknown field",
    "unknown parameter",
    "unrecognized request argument",
    "unsupported parameter",
    "unexpected keyword",
];

/// What they say about a beta they do not know.
const UNKNOWN_BETA: &[&[&str]] =
    &[&["unexpected value", "anthropic-beta"], &["invalid beta flag"], &["unsupported beta"]];

/// What they say about a field that this model does not take.
const NOT_THIS_MODEL: &[&str] = &["not supported", "does not support"];

/// The refusals one client has met. They last as long as the client.
#[derive(Debug, Default)]
pub(super) struct FieldRefusals {
    known: Mutex<LearntRefusals>,
}

#[derive(Debug, Default)]
struct LearntRefusals {
    /// Each with the model that does not take it; without one, none at this endpoint does.
    refused: BTreeSet<(Option<Arc<str>>, OptionalField)>,
    accepted: BTreeSet<OptionalField>,
}

impl FieldRefusals {
    /// Whether a request to this model must do without.
    pub(super) fn has(&self, model: &Arc<str>, field: OptionalField) -> bool {
        let known = self.lock();
        known.refused.contains(&(None, field)) || known.refused.contains(&(Some(Arc::clone(model)), field))
    }

    /// A request with these optional fields was taken.
    pub(super) fn accept(&self, used: &[OptionalField]) {
        if !used.is_empty() {
            self.lock().accepted.extend(used);
        }
    }

    /// Learns from the words of a refusal. If it was for an optional field, the failure says to retry without it.
    pub(super) fn learn(
        &self,
        mut failure: Failure,
        words: &str,
        used: &[OptionalField],
        model: &Arc<str>,
    ) -> Failure {
        if !matches!(failure.class, FailureClass::BadRequest | FailureClass::Server) {
            return failure;
        }
        let Some((is_by_model, mut refused)) = refused_by(&words.to_ascii_lowercase(), used) else {
            return failure;
        };
        let mut known = self.lock();
        let model = is_by_model.then(|| Arc::clone(model));
        if model.is_none() {
            // A request is tried again once only, so what is not proven goes with what is refused.
            let unproven =
                |field: &&OptionalField| field.beta().is_some() && !known.accepted.contains(*field);
            refused.extend(used.iter().filter(unproven));
        }
        known.refused.extend(refused.into_iter().map(|field| (model.clone(), field)));
        failure.class = FailureClass::BadRequest;
        failure.should_retry = Some(true);
        failure.message.push_str(" Windlass retries without it.");
        failure
    }

    fn lock(&self) -> MutexGuard<'_, LearntRefusals> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a message in lower case is about this model only, and which of these optional fields it refuses.
fn refused_by(message: &str, used: &[OptionalField]) -> Option<(bool, Vec<OptionalField>)> {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let found = if UNKNOWN_BETA.iter().any(|words| words.iter().all(|word| message.contains(word))) {
        (false, refused_betas(message, used))
    } else if message.contains("messages.") {
        // About a block of the transcript, whose fields have similar names.
        return None;
    } else if says(UNKNOWN_FIELD) {
        (false, refused_field(message, used))
    } else if says(NOT_THIS_MODEL) {
        (true, refused_field(message, used))
    } else {
        return None;
    };
    (!found.1.is_empty()).then_some(found)
}

/// The optional fields whose beta is named; all that need one, if no name of ours is there.
fn refused_betas(message: &str, used: &[OptionalField]) -> Vec<OptionalField> {
    let of_ours = |field: &&OptionalField| field.beta().is_some_and(|beta| message.contains(beta));
    let named: Vec<_> = used.iter().filter(of_ours).copied().collect();
    if named.is_empty() && !message.contains("anthropic-beta") {
        return used.iter().filter(|field| field.beta().is_some()).copied().collect();
    }
    named
}

/// The field that is named; the innermost, since a path names the outer fields too.
fn refused_field(message: &str, used: &[OptionalField]) -> Vec<OptionalField> {
    let named = |field: &&OptionalField| message.contains(field.field());
    if let Some(field) = OptionalField::ALL.iter().find(named) {
        return used.iter().filter(|known| *known == field).copied().collect();
    }
    if message.contains("output_config") {
        let inside = [OptionalField::Effort, OptionalField::TaskBudget];
        return used.iter().filter(|field| inside.contains(field)).copied().collect();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{Block, Effort, Message, MessageId, Origin, ThinkingDisplay};

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
        let fields = OptionalFields::of(request, |_| false);
        assert_eq!(fields.json, json);
        assert_eq!(fields.betas().collect::<Vec<_>>().join(","), betas);
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
        let fields = OptionalFields::of(&with(0), |_| false);
        assert!(!fields.json.contains("clear_at_least"), "{}", fields.json);
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
            let fields = OptionalFields::of(&whole(cap, tokens), |_| false);
            (fields.output_tokens_max, fields.json)
        };
        let thinking = |tokens| format!(r#","thinking":{{"type":"enabled","budget_tokens":{tokens}}}"#);
        assert_eq!(seen(64_000, 40_000), (21_333, thinking(21_332)));
        assert_eq!(seen(64_000, 2_000), (21_333, thinking(2_000)));
        assert_eq!(seen(8_000, 7_000), (8_000, thinking(7_000)));
        assert_eq!(OptionalFields::of(&request("x", |_| ()), |_| false).output_tokens_max, 32_000);
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
        assert_eq!(OptionalFields::of(&all, |_| false).used.len(), OptionalField::ALL.len());
        for field in OptionalField::ALL {
            let left = OptionalFields::of(&all, |refused| refused == field);
            assert!(!left.json.contains(&format!("\"{}\"", field.field())), "{field:?}: {}", left.json);
            assert!(left.betas().all(|beta| Some(beta) != field.beta()), "{field:?}");
        }
        assert_eq!(OptionalFields::of(&all, |_| true).json, "");
    }
}

#[cfg(test)]
mod refusal_tests {
    use super::*;

    const USED: &[OptionalField] = &[
        OptionalField::Thinking,
        OptionalField::Display,
        OptionalField::Binding,
        OptionalField::Effort,
        OptionalField::TaskBudget,
        OptionalField::Edits,
    ];

    /// What a message makes a client leave out with the same model and with another one.
    fn check(message: &str, same: &[OptionalField], other: &[OptionalField]) {
        let refusals = FieldRefusals::default();
        refusals.accept(USED);
        let model: Arc<str> = "m".into();
        let failure = Failure::new(FailureClass::BadRequest, message);
        let learned = refusals.learn(failure, message, USED, &model);
        assert_eq!(learned.should_retry, (!same.is_empty()).then_some(true), "{message}");
        let left_out = |model: &str| -> Vec<_> {
            let model = Arc::from(model);
            OptionalField::ALL.into_iter().filter(|field| refusals.has(&model, *field)).collect()
        };
        assert_eq!(left_out("m"), same, "{message}");
        assert_eq!(left_out("n"), other, "{message}");
    }

    #[test]
    fn betas_and_fields_that_an_endpoint_does_not_know() {
        let endpoint = |message: &str, fields: &[OptionalField]| check(message, fields, fields);
        endpoint(
            "Unexpected value(s) `context-management-2025-06-27` for the `anthropic-beta` header. Please consult our \
             documentation at docs.anthropic.com or try again without the header.",
            &[OptionalField::Edits],
        );
        endpoint(
            "Unexpected value(s) `task-budgets-2026-03-13`, `thinking-binding-controls-2026-08-01` for the \
             `anthropic-beta` header.",
            &[OptionalField::Binding, OptionalField::TaskBudget],
        );
        endpoint(
            "invalid beta flag",
            &[OptionalField::Binding, OptionalField::TaskBudget, OptionalField::Edits],
        );
        endpoint("context_management: Extra inputs are not permitted", &[OptionalField::Edits]);
        endpoint(
            r#"litellm.BadRequestError: BedrockException - {"message":"thinking.adaptive.block_binding: Extra inputs are not permitted"}"#,
            &[OptionalField::Binding],
        );
        endpoint("thinking.enabled.display: Extra inputs are not permitted", &[OptionalField::Display]);
        endpoint(
            "output_config: Extra inputs are not permitted",
            &[OptionalField::TaskBudget, OptionalField::Effort],
        );
        endpoint("thinking: Extra inputs are not permitted", &[OptionalField::Thinking]);
        endpoint("Unrecognized request argument supplied: thinking", &[OptionalField::Thinking]);
    }

    #[test]
    fn what_a_model_does_not_take_is_left_out_for_that_model() {
        check("adaptive thinking is not supported on this model", &[OptionalField::Thinking], &[]);
        check("This model does not support the effort parameter.", &[OptionalField::Effort], &[]);
        check(
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"",
            &[OptionalField::Thinking],
            &[],
        );
    }

    #[test]
    fn other_failures_teach_nothing() {
        check("Unexpected value(s) `users-own-2020` for the `anthropic-beta` header.", &[], &[]);
        check("messages.1.content.0.thinking.note: Extra inputs are not permitted", &[], &[]);
        check("metadata: Extra inputs are not permitted", &[], &[]);
        check("This model does not support assistant message prefill.", &[], &[]);
        check("max_tokens must be greater than thinking.budget_tokens", &[], &[]);
        let refusals = FieldRefusals::default();
        let words = "thinking is not supported";
        let overloaded = Failure::new(FailureClass::Overloaded, words);
        assert_eq!(refusals.learn(overloaded.clone(), words, USED, &"m".into()), overloaded);
    }

    #[test]
    fn what_is_unproven_goes_with_what_is_refused() {
        let refusals = FieldRefusals::default();
        let model: Arc<str> = "m".into();
        refusals.accept(&[OptionalField::TaskBudget]);
        let words = "context_management: Extra inputs are not permitted";
        refusals.learn(Failure::new(FailureClass::BadRequest, words), words, USED, &model);
        let left_out: Vec<_> =
            OptionalField::ALL.into_iter().filter(|field| refusals.has(&model, *field)).collect();
        assert_eq!(left_out, [OptionalField::Binding, OptionalField::Edits]);
    }
}
