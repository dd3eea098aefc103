//! What an endpoint or a model was found not to take, so that the next request leaves it out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_protocol::{Failure, FailureClass};

use super::extras::Extra;

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
pub(super) struct ExtraRefusals {
    known: Mutex<LearntExtras>,
}

#[derive(Debug, Default)]
struct LearntExtras {
    /// Each with the model that does not take it; without one, none at this endpoint does.
    refused: BTreeSet<(Option<Arc<str>>, Extra)>,
    accepted: BTreeSet<Extra>,
}

impl ExtraRefusals {
    /// Whether a request to this model must do without.
    pub(super) fn has(&self, model: &Arc<str>, extra: Extra) -> bool {
        let known = self.lock();
        known.refused.contains(&(None, extra)) || known.refused.contains(&(Some(Arc::clone(model)), extra))
    }

    /// A request with these extras was taken.
    pub(super) fn accept(&self, used: &[Extra]) {
        if !used.is_empty() {
            self.lock().accepted.extend(used);
        }
    }

    /// Learns from the words with which a request with these extras was refused. If it was for one of them, the failure says
    /// that another try is worth it: it will go out without.
    pub(super) fn learn(
        &self,
        mut failure: Failure,
        words: &str,
        used: &[Extra],
        model: &Arc<str>,
    ) -> Failure {
        if !matches!(failure.class, FailureClass::BadRequest | FailureClass::Server) {
            return failure;
        }
        let Some((is_by_model, mut refused)) = refused(&words.to_ascii_lowercase(), used) else {
            return failure;
        };
        let mut known = self.lock();
        let model = is_by_model.then(|| Arc::clone(model));
        if model.is_none() {
            // A request is tried again once only, so what is not proven goes with what is refused.
            let unproven = |extra: &&Extra| extra.beta().is_some() && !known.accepted.contains(*extra);
            refused.extend(used.iter().filter(unproven));
        }
        known.refused.extend(refused.into_iter().map(|extra| (model.clone(), extra)));
        failure.class = FailureClass::BadRequest;
        failure.should_retry = Some(true);
        failure.message.push_str(" Windlass retries without it.");
        failure
    }

    fn lock(&self) -> MutexGuard<'_, LearntExtras> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a message in lower case is about this model only, and which of these extras it refuses.
fn refused(message: &str, used: &[Extra]) -> Option<(bool, Vec<Extra>)> {
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

/// The extras whose beta is named; all that need one, if no name of ours is there.
fn refused_betas(message: &str, used: &[Extra]) -> Vec<Extra> {
    let of_ours = |extra: &&Extra| extra.beta().is_some_and(|beta| message.contains(beta));
    let named: Vec<_> = used.iter().filter(of_ours).copied().collect();
    if named.is_empty() && !message.contains("anthropic-beta") {
        return used.iter().filter(|extra| extra.beta().is_some()).copied().collect();
    }
    named
}

/// The extra whose field is named; the innermost, since a path names the outer fields too.
fn refused_field(message: &str, used: &[Extra]) -> Vec<Extra> {
    let named = |extra: &&Extra| message.contains(extra.field());
    if let Some(extra) = Extra::ALL.iter().find(named) {
        return used.iter().filter(|known| *known == extra).copied().collect();
    }
    if message.contains("output_config") {
        let inside = [Extra::Effort, Extra::TaskBudget];
        return used.iter().filter(|extra| inside.contains(extra)).copied().collect();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: &[Extra] =
        &[Extra::Thinking, Extra::Display, Extra::Binding, Extra::Effort, Extra::TaskBudget, Extra::Edits];

    /// What a message makes a client leave out with the same model and with another one.
    fn check(message: &str, same: &[Extra], other: &[Extra]) {
        let refusals = ExtraRefusals::default();
        refusals.accept(USED);
        let model: Arc<str> = "m".into();
        let failure = Failure::new(FailureClass::BadRequest, message);
        let learned = refusals.learn(failure, message, USED, &model);
        assert_eq!(learned.should_retry, (!same.is_empty()).then_some(true), "{message}");
        let left_out = |model: &str| -> Vec<_> {
            let model = Arc::from(model);
            Extra::ALL.into_iter().filter(|extra| refusals.has(&model, *extra)).collect()
        };
        assert_eq!(left_out("m"), same, "{message}");
        assert_eq!(left_out("n"), other, "{message}");
    }

    #[test]
    fn betas_and_fields_that_an_endpoint_does_not_know() {
        let endpoint = |message: &str, extras: &[Extra]| check(message, extras, extras);
        endpoint(
            "Unexpected value(s) `context-management-2025-06-27` for the `anthropic-beta` header. Please consult our \
             documentation at docs.anthropic.com or try again without the header.",
            &[Extra::Edits],
        );
        endpoint(
            "Unexpected value(s) `task-budgets-2026-03-13`, `thinking-binding-controls-2026-08-01` for the \
             `anthropic-beta` header.",
            &[Extra::Binding, Extra::TaskBudget],
        );
        endpoint("invalid beta flag", &[Extra::Binding, Extra::TaskBudget, Extra::Edits]);
        endpoint("context_management: Extra inputs are not permitted", &[Extra::Edits]);
        endpoint(
            r#"litellm.BadRequestError: BedrockException - {"message":"thinking.adaptive.block_binding: Extra inputs are not permitted"}"#,
            &[Extra::Binding],
        );
        endpoint("thinking.enabled.display: Extra inputs are not permitted", &[Extra::Display]);
        endpoint("output_config: Extra inputs are not permitted", &[Extra::TaskBudget, Extra::Effort]);
        endpoint("thinking: Extra inputs are not permitted", &[Extra::Thinking]);
        endpoint("Unrecognized request argument supplied: thinking", &[Extra::Thinking]);
    }

    #[test]
    fn what_a_model_does_not_take_is_left_out_for_that_model() {
        check("adaptive thinking is not supported on this model", &[Extra::Thinking], &[]);
        check("This model does not support the effort parameter.", &[Extra::Effort], &[]);
        check(
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"",
            &[Extra::Thinking],
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
        let refusals = ExtraRefusals::default();
        let words = "thinking is not supported";
        let overloaded = Failure::new(FailureClass::Overloaded, words);
        assert_eq!(refusals.learn(overloaded.clone(), words, USED, &"m".into()), overloaded);
    }

    #[test]
    fn what_is_unproven_goes_with_what_is_refused() {
        let refusals = ExtraRefusals::default();
        let model: Arc<str> = "m".into();
        refusals.accept(&[Extra::TaskBudget]);
        let words = "context_management: Extra inputs are not permitted";
        refusals.learn(Failure::new(FailureClass::BadRequest, words), words, USED, &model);
        let left_out: Vec<_> = Extra::ALL.into_iter().filter(|extra| refusals.has(&model, *extra)).collect();
        assert_eq!(left_out, [Extra::Binding, Extra::Edits]);
    }
}
