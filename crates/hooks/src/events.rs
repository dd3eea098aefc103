//! The events that hooks can be configured for: what they match on, which handlers they take, and what an objection does.

use windlass_protocol::{CompactTrigger, FailureClass, HookCall, HookEvent, Terminal};

use crate::handler::Kind;

/// What is known of an event.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The moment it stands for; none if the engine has no such moment yet.
    pub(crate) event: Option<HookEvent>,
    pub(crate) matching: Matching,
    pub(crate) takes: Takes,
}

/// What a matcher of an event is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Nothing: a matcher is ignored.
    Nothing,
    /// The name of a tool.
    Tool,
    /// A word of the event's own.
    Word,
    /// The same, but only letters, digits, `_` and `|` make a list of names.
    NarrowWord,
}

/// Which handlers an event takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    All,
    /// None that asks a model.
    Plain,
    /// Nothing that may not be reachable yet.
    Start,
}

const fn row(name: &'static str, event: Option<HookEvent>, matching: Matching, takes: Takes) -> Row {
    Row { name, event, matching, takes }
}

/// Every event there is, in the order of a session.
#[rustfmt::skip]
pub(crate) const ROWS: [Row; 33] = [
    row("SessionStart", Some(HookEvent::SessionStart), Matching::Word, Takes::Start),
    row("Setup", None, Matching::Word, Takes::Start),
    row("InstructionsLoaded", Some(HookEvent::InstructionsLoaded), Matching::Word, Takes::Plain),
    row("UserPromptSubmit", Some(HookEvent::UserPromptSubmit), Matching::Nothing, Takes::All),
    row("UserPromptExpansion", None, Matching::Word, Takes::All),
    row("MessageDisplay", None, Matching::Nothing, Takes::Plain),
    row("PreToolUse", Some(HookEvent::PreToolUse), Matching::Tool, Takes::All),
    row("PermissionRequest", Some(HookEvent::PermissionRequest), Matching::Tool, Takes::All),
    row("PermissionDenied", Some(HookEvent::PermissionDenied), Matching::Tool, Takes::All),
    row("PostToolUse", Some(HookEvent::PostToolUse), Matching::Tool, Takes::All),
    row("PostToolUseFailure", Some(HookEvent::PostToolUseFailure), Matching::Tool, Takes::All),
    row("PostToolBatch", Some(HookEvent::PostToolBatch), Matching::Nothing, Takes::All),
    row("Notification", Some(HookEvent::Notification), Matching::Word, Takes::Plain),
    row("SubagentStart", Some(HookEvent::SubagentStart), Matching::Word, Takes::Plain),
    row("SubagentStop", Some(HookEvent::SubagentStop), Matching::Word, Takes::All),
    row("TaskCreated", None, Matching::Nothing, Takes::All),
    row("TaskCompleted", None, Matching::Nothing, Takes::All),
    row("Stop", Some(HookEvent::Stop), Matching::Nothing, Takes::All),
    row("StopFailure", Some(HookEvent::StopFailure), Matching::NarrowWord, Takes::Plain),
    row("TeammateIdle", None, Matching::Nothing, Takes::All),
    row("ConfigChange", None, Matching::Word, Takes::Plain),
    row("CwdChanged", Some(HookEvent::CwdChanged), Matching::Nothing, Takes::Plain),
    row("DirectoryAdded", None, Matching::Word, Takes::Plain),
    row("FileChanged", None, Matching::NarrowWord, Takes::Plain),
    row("WorktreeCreate", None, Matching::Nothing, Takes::Plain),
    row("WorktreeRemove", None, Matching::Nothing, Takes::Plain),
    row("PreCompact", Some(HookEvent::PreCompact), Matching::Word, Takes::Plain),
    row("PostCompact", Some(HookEvent::PostCompact), Matching::Word, Takes::Plain),
    row("PreModelSwitch", None, Matching::Word, Takes::Plain),
    row("PostModelSwitch", None, Matching::Word, Takes::Plain),
    row("Elicitation", None, Matching::Word, Takes::Plain),
    row("ElicitationResult", None, Matching::Word, Takes::Plain),
    row("SessionEnd", Some(HookEvent::SessionEnd), Matching::Word, Takes::Plain),
];

/// The names of all events that hooks may be configured for, also of those the engine does not reach yet.
pub fn known_event_names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// Whether there is an event of this name, reached or not.
#[must_use]
pub fn is_event_name(name: &str) -> bool {
    find(name).is_some()
}

pub(crate) fn find(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

impl Row {
    /// Whether it takes such a handler, and otherwise which it takes.
    pub(crate) fn takes(&self, kind: &Kind) -> Result<(), &'static str> {
        match (self.takes, kind) {
            (Takes::Plain | Takes::Start, Kind::Prompt(_)) | (Takes::Start, Kind::Http(_)) => {
                Err(if self.takes == Takes::Start { "command" } else { "command or http" })
            }
            _ => Ok(()),
        }
    }
}

/// Whether an objection keeps something from happening.
pub(crate) fn can_block(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::UserPromptSubmit
            | HookEvent::PreToolUse
            | HookEvent::PermissionRequest
            | HookEvent::PostToolBatch
            | HookEvent::Stop
            | HookEvent::SubagentStop
            | HookEvent::PreCompact
    )
}

/// Whether a failure can keep something from happening. An end that fails to be judged is an end: otherwise a broken hook would
/// keep a run going.
pub(crate) fn failure_can_block(event: HookEvent) -> bool {
    can_block(event) && !matches!(event, HookEvent::Stop | HookEvent::SubagentStop)
}

/// Whether the model hears of an objection: what can be blocked, and what was done already.
pub(crate) fn takes_objections(event: HookEvent) -> bool {
    can_block(event) || matches!(event, HookEvent::PostToolUse | HookEvent::PostToolUseFailure)
}

/// Whether the model is told what hooks want it to know.
pub(crate) fn takes_context(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::SessionStart
            | HookEvent::UserPromptSubmit
            | HookEvent::PreToolUse
            | HookEvent::PermissionRequest
            | HookEvent::PostToolUse
            | HookEvent::PostToolUseFailure
            | HookEvent::PostToolBatch
            | HookEvent::SubagentStart
            | HookEvent::Stop
            | HookEvent::SubagentStop
    )
}

/// Whether plain output is for the model.
pub(crate) fn takes_plain_text(event: HookEvent) -> bool {
    matches!(event, HookEvent::SessionStart | HookEvent::UserPromptSubmit)
}

pub(crate) fn is_of_tool(event: HookEvent) -> bool {
    let row = ROWS.iter().find(|row| row.event == Some(event));
    row.is_some_and(|row| row.matching == Matching::Tool)
}

/// The word that matchers are compared with.
pub(crate) fn word(call: &HookCall) -> Option<&str> {
    match call {
        HookCall::SessionStart { source, .. } => Some(source.name()),
        HookCall::InstructionsLoaded { reason, .. } => Some(reason.name()),
        HookCall::PreToolUse { tool, .. }
        | HookCall::PermissionRequest { tool, .. }
        | HookCall::PermissionDenied { tool, .. }
        | HookCall::PostToolUse { tool, .. } => Some(tool),
        HookCall::StopFailure { .. } => Some(error_name(call)),
        HookCall::PreCompact { trigger, .. } | HookCall::PostCompact { trigger, .. } => {
            Some(trigger_name(*trigger))
        }
        HookCall::Notification { kind, .. }
        | HookCall::SubagentStart { kind, .. }
        | HookCall::SubagentStop { kind, .. } => Some(kind),
        HookCall::SessionEnd { reason } => Some(reason.name()),
        HookCall::UserPromptSubmit { .. }
        | HookCall::CwdChanged { .. }
        | HookCall::PostToolBatch { .. }
        | HookCall::Stop { .. } => None,
    }
}

/// A compaction that the provider asked for is no wish of the user's.
pub(crate) fn trigger_name(trigger: CompactTrigger) -> &'static str {
    match trigger {
        CompactTrigger::Manual => "manual",
        CompactTrigger::Auto | CompactTrigger::Reactive => "auto",
    }
}

/// The name that hosts know a failure by.
pub(crate) fn error_name(call: &HookCall) -> &'static str {
    let HookCall::StopFailure { terminal, failure } = call else { return "unknown" };
    match failure.as_ref().map(|failure| failure.class) {
        _ if *terminal == Terminal::MaxOutputTokens => "max_output_tokens",
        None => "unknown",
        Some(FailureClass::RateLimited | FailureClass::Quota) => "rate_limit",
        Some(FailureClass::Overloaded) => "overloaded",
        Some(FailureClass::Auth | FailureClass::Forbidden) => "authentication_failed",
        Some(FailureClass::NotFound) => "model_not_found",
        Some(
            FailureClass::BadRequest | FailureClass::Overflow | FailureClass::Media | FailureClass::Binding,
        ) => "invalid_request",
        Some(_) => "server_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_has_its_row_under_its_own_name() {
        for event in HookEvent::ALL {
            let row = find(event.name()).unwrap();
            assert_eq!(row.event, Some(event));
        }
        assert_eq!(ROWS.iter().filter(|row| row.event.is_some()).count(), HookEvent::ALL.len());
    }
}
