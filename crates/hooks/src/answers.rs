//! What one handler's run means for the answer (its words, its objection, or the way it failed), and the one answer that all give together.

use std::time::Duration;

use windlass_protocol::{HookAnswer, HookEvent, HookFailure, HookFailureKind, HookPermission, RawValue};

use crate::events;
use crate::handler::{Handler, HandlerAction};
use crate::output::{self, NO_REASON, ParsedAnswer};
use crate::report::ObservedEnd;

/// What is said of an answer of more than [`KEPT_BYTES`](crate::command::KEPT_BYTES).
const CUT: &str = "its answer is longer than 1 MiB and was cut off";

/// How a handler failed to have a say. Each is told in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandlerFailure {
    /// It could not be started, or not be reached.
    NotStarted(String),
    /// It ended in a way that says nothing.
    Crashed(String),
    /// A web address gave no good answer; the words say what it gave instead.
    NoGoodAnswer(String),
    /// It took too long.
    TimedOut(Duration),
    /// What it printed is no answer.
    Misspoke(String),
    /// The end of its answer is missing, and with it perhaps a refusal.
    TooLong,
}

impl HandlerFailure {
    fn kind(&self) -> HookFailureKind {
        match self {
            Self::NotStarted(_) => HookFailureKind::NotStarted,
            Self::Crashed(_) | Self::NoGoodAnswer(_) => HookFailureKind::Crashed,
            Self::TimedOut(_) => HookFailureKind::TimedOut,
            Self::Misspoke(_) | Self::TooLong => HookFailureKind::Misspoke,
        }
    }

    pub(crate) fn words(&self) -> String {
        match self {
            Self::NotStarted(why) => format!("could not be started: {why}"),
            Self::Crashed(how) => format!("crashed: {how}"),
            Self::NoGoodAnswer(what) => what.clone(),
            Self::TimedOut(time) => format!("took longer than {} s and was stopped", time.as_secs_f64()),
            Self::Misspoke(why) => format!("gave an answer that cannot be read: {why}"),
            Self::TooLong => format!("gave an answer that cannot be read: {CUT}"),
        }
    }
}

/// Waits for the text of an answer and reads it, for handlers that are no programs.
pub(crate) async fn hear(
    handler: &Handler,
    time: Duration,
    text: impl Future<Output = Result<String, HandlerFailure>>,
    read: impl FnOnce(&str) -> Result<HookAnswer, HandlerFailure>,
) -> (HookAnswer, ObservedEnd) {
    match tokio::time::timeout(time, text).await.unwrap_or(Err(HandlerFailure::TimedOut(time))) {
        Err(why) => failure(handler, "", &why),
        Ok(text) => match read(&text) {
            Err(why) => failure(handler, &text, &why),
            Ok(answer) => {
                handler.note_success();
                (answer, ObservedEnd::success(&text))
            }
        },
    }
}

/// The answer of a handler that failed, and what hosts hear of it.
pub(crate) fn failure(handler: &Handler, text: &str, why: &HandlerFailure) -> (HookAnswer, ObservedEnd) {
    (from_failure(handler, why), ObservedEnd::failure(text, why))
}

/// A text that must be an object.
pub(crate) fn from_object(
    handler: &Handler,
    text: &str,
    otherwise: &str,
) -> Result<HookAnswer, HandlerFailure> {
    let parsed = parse(handler, text).unwrap_or_else(|| Err(otherwise.to_owned()));
    parsed.map(|parsed| from_parsed(handler, parsed)).map_err(HandlerFailure::Misspoke)
}

/// Tells the failure. It blocks if the handler is set to, if a host did not answer in time, or if it was cut.
pub(crate) fn from_failure(handler: &Handler, failed: &HandlerFailure) -> HookAnswer {
    if *failed == HandlerFailure::TooLong {
        return from_objection(handler, None, CUT);
    }
    let told = |what_follows: &str| HookFailure {
        hook: handler.name(),
        kind: failed.kind(),
        text: format!("{} {}. {what_follows}", handler.name(), failed.words()),
    };
    let is_silent_host =
        matches!((&handler.action, failed), (HandlerAction::Callback(_), HandlerFailure::TimedOut(_)))
            && matches!(handler.event, HookEvent::PreToolUse | HookEvent::UserPromptSubmit);
    if events::failure_can_block(handler.event) && (handler.should_block_on_failure || is_silent_host) {
        let failure = told("Blocked: this hook must succeed.");
        let mut answer = HookAnswer::default();
        add_objection(&mut answer, handler.event, failure.text.clone());
        return HookAnswer { failures: vec![failure], ..answer };
    }
    HookAnswer { failures: vec![told("Its answer is ignored.")], ..HookAnswer::default() }
}

/// What a handler said in an object.
pub(crate) fn from_parsed(handler: &Handler, parsed: ParsedAnswer) -> HookAnswer {
    let failures = misspelt(handler, &parsed);
    let mut answer = parsed.answer;
    answer.failures.extend(failures);
    let denied = match &answer.permission {
        Some(HookPermission::Deny(why)) => Some(why.clone()),
        _ => None,
    };
    let objections: Vec<String> = denied.into_iter().chain(answer.blocks.iter().cloned()).collect();
    answer.notices.extend(objections.iter().map(|why| format!("{} objects: {why}", handler.name())));
    answer
}

/// A handler objects by its exit code. What it printed cannot take that back.
pub(crate) fn from_objection(handler: &Handler, parsed: Option<ParsedAnswer>, stderr: &str) -> HookAnswer {
    let parsed = parsed.unwrap_or_default();
    let reason = match (&parsed.reason, stderr.trim()) {
        (Some(reason), _) => reason.clone(),
        (None, "") => NO_REASON.to_owned(),
        (None, stderr) => stderr.to_owned(),
    };
    let failures = misspelt(handler, &parsed);
    let mut answer =
        HookAnswer { permission: None, failures, blocks: Vec::new(), input: None, ..parsed.answer };
    answer.notices.push(format!("{} objects: {reason}", handler.name()));
    if events::takes_objections(handler.event) {
        add_objection(&mut answer, handler.event, reason);
    }
    answer
}

/// Nothing passes without a handler that blocks on failure, so a decision of it that is lost is a failure.
fn check_whole(handler: &Handler, parsed: ParsedAnswer) -> Result<ParsedAnswer, String> {
    match parsed.misspelt.iter().find(|misspelt| misspelt.is_decision) {
        Some(lost) if handler.should_block_on_failure => Err(lost.to_string()),
        _ => Ok(parsed),
    }
}

/// What a handler said under names that nobody knows. The rest of it counts.
pub(crate) fn misspelt(handler: &Handler, parsed: &ParsedAnswer) -> Vec<HookFailure> {
    let told = parsed.misspelt.iter().map(|misspelt| HookFailure {
        hook: handler.name(),
        kind: HookFailureKind::Misspoke,
        text: format!("{} gave an answer with an unknown field: {misspelt}", handler.name()),
    });
    told.collect()
}

/// Plain output is for the model where a session or a prompt begins, and for nobody elsewhere.
pub(crate) fn from_plain_text(handler: &Handler, text: &str) -> HookAnswer {
    let text = text.trim();
    let context = (events::takes_plain_text(handler.event) && !text.is_empty()).then(|| text.to_owned());
    HookAnswer { context: context.into_iter().collect(), ..HookAnswer::default() }
}

/// The object that was printed, `None` for plain text. A broken object is text only where text has a meaning.
pub(crate) fn parse(handler: &Handler, text: &str) -> Option<Result<ParsedAnswer, String>> {
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => {
            let parsed = output::read(handler.event, text, &handler.origin);
            Some(parsed.and_then(|parsed| check_whole(handler, parsed)))
        }
        Err(_) if events::takes_plain_text(handler.event) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Whether the beginning of an output may be that of an answer. Where plain text means nothing, whatever is printed is meant as one.
pub(crate) fn can_be_answer(handler: &Handler, beginning: &str) -> bool {
    let beginning = beginning.trim_start();
    !events::takes_plain_text(handler.event) || beginning.is_empty() || beginning.starts_with('{')
}

/// Puts an objection where the event has a place for it.
pub(crate) fn add_objection(answer: &mut HookAnswer, event: HookEvent, reason: String) {
    match event {
        HookEvent::PreToolUse | HookEvent::PermissionRequest => {
            answer.permission = Some(HookPermission::Deny(reason));
        }
        _ => answer.blocks.push(reason),
    }
}

/// Joins answers in the order of the configuration, whatever finished first. The first wish to stop counts, the
/// strictest decision with all its reasons, and the last input and output; everything else adds up.
pub(crate) fn merge(answers: impl IntoIterator<Item = HookAnswer>) -> HookAnswer {
    let mut merged = HookAnswer::default();
    for answer in answers {
        merged.stop = merged.stop.or(answer.stop);
        merged.blocks.extend(answer.blocks);
        merged.permission = stricter(merged.permission.take(), answer.permission);
        merged.input = answer.input.or(merged.input);
        merged.updates.extend(answer.updates);
        merged.output = answer.output.or(merged.output);
        let prompts = merged.first_prompt.into_iter().chain(answer.first_prompt);
        merged.first_prompt = prompts.reduce(|one, other| format!("{one}\n{other}"));
        merged.context.extend(answer.context);
        merged.notices.extend(answer.notices);
        merged.failures.extend(answer.failures);
        merged.runs.extend(answer.runs);
    }
    merged
}

fn stricter(one: Option<HookPermission>, other: Option<HookPermission>) -> Option<HookPermission> {
    use HookPermission::{Ask, Deny};
    match (one, other) {
        (Some(Deny(one)), Some(Deny(other))) => Some(Deny(format!("{one}\n{other}"))),
        (Some(Ask(one)), Some(Ask(other))) => Some(Ask(format!("{one}\n{other}"))),
        (one, other) if other.as_ref().map(rank) > one.as_ref().map(rank) => other,
        (one, _) => one,
    }
}

fn rank(permission: &HookPermission) -> u8 {
    match permission {
        HookPermission::Allow => 0,
        HookPermission::Ask(_) => 1,
        HookPermission::Defer => 2,
        HookPermission::Deny(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::RawValue;

    fn wants(permission: HookPermission) -> HookAnswer {
        HookAnswer { permission: Some(permission), ..HookAnswer::default() }
    }

    #[test]
    fn the_strictest_decision_counts() {
        use HookPermission::*;
        let check = |all: &[HookPermission], expected: HookPermission| {
            let forwards = merge(all.iter().cloned().map(wants)).permission;
            assert_eq!(forwards, Some(expected), "{all:?}");
        };
        let (deny, ask) = (|| Deny("d".into()), || Ask("a".into()));
        check(&[Allow, Allow], Allow);
        check(&[Allow, ask()], ask());
        check(&[ask(), Allow], ask());
        check(&[ask(), Defer, Allow], Defer);
        check(&[Defer, deny(), ask()], deny());
        check(&[deny(), Allow, Deny("e".into())], Deny("d\ne".into()));
        check(&[ask(), Ask("b".into())], Ask("a\nb".into()));
    }

    #[test]
    fn the_rest_adds_up_in_the_order_of_the_configuration() {
        let raw = |json: &str| Some(std::sync::Arc::from(RawValue::from_string(json.into()).unwrap()));
        let answer = |word: &str, stop: Option<&str>| HookAnswer {
            stop: stop.map(str::to_owned),
            blocks: vec![format!("block {word}")],
            input: raw(&format!("{{\"from\":\"{word}\"}}")),
            context: vec![format!("context {word}")],
            notices: vec![word.to_owned()],
            ..HookAnswer::default()
        };
        let merged = merge([answer("a", None), answer("b", Some("first")), answer("c", Some("second"))]);
        assert_eq!(merged.stop.as_deref(), Some("first"));
        assert_eq!(merged.blocks, ["block a", "block b", "block c"]);
        assert_eq!(merged.context, ["context a", "context b", "context c"]);
        assert_eq!(merged.notices, ["a", "b", "c"]);
        assert_eq!(merged.input.unwrap().get(), r#"{"from":"c"}"#);
    }
}
