//! What one handler's run means for the answer: its words, its objection, or the way it failed.

use std::time::Duration;

use windlass_protocol::{HookAnswer, HookEvent, HookPermission, RawValue};

use crate::events;
use crate::handler::{Handler, Kind};
use crate::output::{self, NO_REASON, Spoken};

/// How a handler failed to have a say. Each is told in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It could not be started, or not be reached.
    NotStarted(String),
    /// It ended in a way that says nothing.
    Crashed(String),
    /// It took too long.
    TimedOut(Duration),
    /// What it printed is no answer.
    Misspoke(String),
}

/// The words that tell how a handler failed, whatever else is said about it.
const KINDS: [&str; 4] =
    ["could not be started", "crashed", "took longer than", "gave an answer that cannot be read"];

/// What stands behind them.
const HAD_NO_SAY: &str = ". It had no say.";
const PASSES_NOTHING: &str = ". Nothing passes without it.";

/// Which handler failed, and in which way, if a notice tells that one did.
#[must_use]
pub fn failure_kind(notice: &str) -> Option<&str> {
    let told = notice.strip_suffix(HAD_NO_SAY).or_else(|| notice.strip_suffix(PASSES_NOTHING))?;
    KINDS.iter().filter_map(|kind| Some(told.find(kind)? + kind.len())).min().map(|end| &told[..end])
}

impl Failed {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::NotStarted(why) => format!("could not be started: {why}"),
            Self::Crashed(how) => format!("crashed: {how}"),
            Self::TimedOut(time) => {
                format!("took longer than {} s and was ended", time.as_secs_f64())
            }
            Self::Misspoke(why) => format!("gave an answer that cannot be read: {why}"),
        }
    }
}

/// A handler that failed is told. What it guards is blocked if it is set to, and if a host that was to be asked did not answer in
/// time.
pub(crate) fn failed(handler: &Handler, failed: &Failed) -> HookAnswer {
    let told = format!("{} {}", handler.name(), failed.words());
    let is_silent_host = matches!((&handler.kind, failed), (Kind::Callback(_), Failed::TimedOut(_)))
        && matches!(handler.event, HookEvent::PreToolUse | HookEvent::UserPromptSubmit);
    // An end that fails to be judged is an end: otherwise a broken hook would keep a run going.
    let can_block = events::can_block(handler.event)
        && !matches!(handler.event, HookEvent::Stop | HookEvent::SubagentStop);
    if can_block && (handler.blocks_on_failure || is_silent_host) {
        let block = format!("{told}{PASSES_NOTHING}");
        return HookAnswer { notices: vec![block.clone()], ..blocked(handler.event, block) };
    }
    HookAnswer { notices: vec![format!("{told}{HAD_NO_SAY}")], ..HookAnswer::default() }
}

/// What a handler said in an object.
pub(crate) fn spoke(handler: &Handler, spoken: Spoken) -> HookAnswer {
    let mut answer = spoken.answer;
    let denied = match &answer.permission {
        Some(HookPermission::Deny(why)) => Some(why.clone()),
        _ => None,
    };
    let objections: Vec<String> = denied.into_iter().chain(answer.blocks.iter().cloned()).collect();
    answer.notices.extend(objections.iter().map(|why| format!("{} objects: {why}", handler.name())));
    answer
}

/// A handler objects by its exit code. What it printed cannot take that back.
pub(crate) fn objected(handler: &Handler, spoken: Option<Spoken>, stderr: &str) -> HookAnswer {
    let spoken = spoken.unwrap_or_default();
    let reason = match (&spoken.reason, stderr.trim()) {
        (Some(reason), _) => reason.clone(),
        (None, "") => NO_REASON.to_owned(),
        (None, stderr) => stderr.to_owned(),
    };
    let mut answer = HookAnswer { permission: None, blocks: Vec::new(), input: None, ..spoken.answer };
    answer.notices.push(format!("{} objects: {reason}", handler.name()));
    if events::takes_objections(handler.event) {
        let HookAnswer { blocks, permission, .. } = blocked(handler.event, reason);
        (answer.blocks, answer.permission) = (blocks, permission);
    }
    answer
}

/// Plain output is for the model where a session or a prompt begins, and for nobody elsewhere.
pub(crate) fn plain(handler: &Handler, text: &str) -> HookAnswer {
    let text = text.trim();
    let context = (events::takes_plain_text(handler.event) && !text.is_empty()).then(|| text.to_owned());
    HookAnswer { context: context.into_iter().collect(), ..HookAnswer::default() }
}

/// What a handler printed, if it is an object: `None` if it is plain text. What begins like an object and is none is plain text
/// only where plain text has a meaning: elsewhere it may be a refusal that went wrong.
pub(crate) fn read(handler: &Handler, text: &str) -> Option<Result<Spoken, String>> {
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => Some(output::read(handler.event, text, &handler.origin)),
        Err(_) if events::takes_plain_text(handler.event) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

fn blocked(event: HookEvent, reason: String) -> HookAnswer {
    match event {
        HookEvent::PreToolUse | HookEvent::PermissionRequest => {
            HookAnswer { permission: Some(HookPermission::Deny(reason)), ..HookAnswer::default() }
        }
        _ => HookAnswer { blocks: vec![reason], ..HookAnswer::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_failing_is_known_by_its_notice() {
        let ways = [
            Failed::NotStarted("it is gone".into()),
            Failed::Crashed("exit code 7".into()),
            Failed::TimedOut(Duration::from_secs(1)),
            Failed::Misspoke("it crashed midway".into()),
        ];
        for (way, kind) in ways.iter().zip(KINDS) {
            for end in [HAD_NO_SAY, PASSES_NOTHING] {
                let notice = format!("The Stop hook of s:1 {}{end}", way.words());
                assert_eq!(failure_kind(&notice), Some(format!("The Stop hook of s:1 {kind}").as_str()));
            }
        }
        assert_eq!(failure_kind("The Stop hook of s:1 objects: it crashed"), None);
    }
}
