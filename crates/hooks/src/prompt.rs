//! Handlers that ask a small model.

use std::time::Duration;

use serde_json::Value;
use windlass_ports::BoxFuture;
use windlass_protocol::{HookAnswer, HookEvent, HookPermission};

use crate::answers::{self, HandlerFailure};
use crate::handler::{Handler, PromptHandler};
use crate::output::NO_REASON;
use crate::report::ObservedEnd;

/// Asks a model one question, without tools. The owner of the hooks supplies it.
pub trait AskModel: Send + Sync + 'static {
    /// The text of the model's answer. `model` names one; without it, the small model of the session is asked.
    fn ask(&self, model: Option<&str>, prompt: String) -> BoxFuture<'static, Result<String, AskModelError>>;
}

/// Why a model has not answered the question of a hook.
#[derive(Debug, thiserror::Error)]
pub enum AskModelError {
    /// It cannot be asked at all: the author of the hook or the settings must name another one.
    #[error(transparent)]
    Unusable(Box<dyn std::error::Error + Send + Sync>),
    /// It was asked, and this went wrong: the provider or the operator of the machine must act.
    #[error("{}", .0.join(" "))]
    Failed(Vec<String>),
    /// It was asked and the question ended with nothing.
    #[error("the model gave no answer")]
    NoAnswer,
}

const FORM: &str = "\n\nAnswer with one JSON object and nothing else: {\"ok\": true} if nothing speaks against it, \
    {\"ok\": false, \"reason\": \"…\"} otherwise. Add \"impossible\": true if what is asked for can never be met.";

/// Asks the model and reads its verdict. A model that fails has no say.
pub(crate) async fn ask(
    handler: &Handler,
    prompt: &PromptHandler,
    input: &str,
    model: Option<&dyn AskModel>,
    time: Duration,
) -> (HookAnswer, ObservedEnd) {
    let text = async {
        let model = model.ok_or_else(|| HandlerFailure::NotStarted("no model is available".into()))?;
        let question = fill_question(&prompt.prompt, input) + FORM;
        let answer = model.ask(prompt.model.as_deref(), question).await;
        answer.map_err(|error| HandlerFailure::NotStarted(error.to_string()))
    };
    let read = |text: &str| {
        let verdict = ModelVerdict::read(text).map(|verdict| verdict.answer(handler, prompt));
        verdict.ok_or_else(|| HandlerFailure::Misspoke("it is no object with \"ok\"".into()))
    };
    answers::hear(handler, time, text, read).await
}

/// A prompt with the question in its place: where it says so, or at its end.
fn fill_question(prompt: &str, input: &str) -> String {
    const PLACE: &str = "$ARGUMENTS";
    // A dollar sign behind a backslash is only that.
    let pieces: Vec<&str> = prompt.split(r"\$").collect();
    let has_place = pieces.iter().any(|piece| piece.contains(PLACE));
    let filled = pieces.iter().map(|piece| piece.replace(PLACE, input)).collect::<Vec<_>>().join("$");
    if has_place { filled } else { format!("{filled}\n\n{input}") }
}

#[derive(Debug, PartialEq, Eq)]
struct ModelVerdict {
    is_ok: bool,
    reason: String,
    is_impossible: bool,
}

impl ModelVerdict {
    /// Reads the object in an answer, whatever stands around it.
    fn read(text: &str) -> Option<Self> {
        let (start, end) = (text.find('{')?, text.rfind('}')?);
        let value: Value = serde_json::from_str(text.get(start..=end)?).ok()?;
        let reason = value.get("reason").and_then(Value::as_str).unwrap_or(NO_REASON);
        let is_impossible = value.get("impossible").and_then(Value::as_bool).unwrap_or(false);
        Some(Self { is_ok: value.get("ok")?.as_bool()?, reason: reason.to_owned(), is_impossible })
    }

    fn answer(self, handler: &Handler, prompt: &PromptHandler) -> HookAnswer {
        let Self { is_ok, reason, is_impossible } = self;
        if is_ok {
            return HookAnswer::default();
        }
        let mut answer = HookAnswer {
            notices: vec![format!("{} objects: {reason}", handler.name())],
            ..HookAnswer::default()
        };
        let ends = !prompt.should_continue_on_block;
        match handler.event {
            // What can never be met is no reason to go on.
            HookEvent::Stop | HookEvent::SubagentStop if is_impossible => (),
            HookEvent::PreToolUse => {
                answer.stop = ends.then(|| reason.clone());
                answer.permission = Some(HookPermission::Deny(reason));
            }
            HookEvent::PostToolUse if ends => answer.stop = Some(reason),
            HookEvent::PermissionRequest | HookEvent::PermissionDenied => (),
            _ => answer.blocks.push(reason),
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_goes_where_the_prompt_says() {
        let check = |prompt: &str, expected: &str| assert_eq!(fill_question(prompt, "{}"), expected);
        check("Look at $ARGUMENTS now", "Look at {} now");
        check("Look.", "Look.\n\n{}");
        check(r"It costs \$ARGUMENTS: $ARGUMENTS", "It costs $ARGUMENTS: {}");
        check(r"\$1 and $2", "$1 and $2\n\n{}");
        check("", "\n\n{}");
        check("€$ARGUMENTS€", "€{}€");
    }

    #[test]
    fn a_verdict_is_found_in_whatever_a_model_says() {
        let check = |text: &str, expected: Option<(bool, &str, bool)>| {
            let expected = expected.map(|(is_ok, reason, is_impossible)| ModelVerdict {
                is_ok,
                reason: reason.into(),
                is_impossible,
            });
            assert_eq!(ModelVerdict::read(text), expected, "{text}");
        };
        check(r#"{"ok": true}"#, Some((true, NO_REASON, false)));
        check("```json\n{\"ok\": false, \"reason\": \"no tests\"}\n```", Some((false, "no tests", false)));
        check(r#"{"ok": false, "reason": "r", "impossible": true}"#, Some((false, "r", true)));
        check(r#"{"ok": "yes"}"#, None);
        check("All is well.", None);
        check("}{", None);
    }
}
