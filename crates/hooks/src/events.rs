//! The events that hooks can be configured for: what they match on, which handlers they take, and what an objection does.

use windlass_protocol::{CompactTrigger, HookCall, HookEvent};

use crate::handler::HandlerAction;

#[derive(Debug)]
pub(crate) struct EventRow {
    pub(crate) name: &'static str,
    /// The moment it stands for; none if the engine has no such moment yet.
    pub(crate) event: Option<HookEvent>,
    pub(crate) matching: MatcherSubject,
    pub(crate) takes: SupportedHandlers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatcherSubject {
    /// Nothing: a matcher is ignored.
    Nothing,
    Tool,
    /// A word of the event's own.
    Word,
    /// The same, but only letters, digits, `_` and `|` make a list of names.
    NarrowWord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SupportedHandlers {
    All,
    /// None that asks a model.
    Plain,
    /// Nothing that may not be reachable yet.
    Start,
}

const fn row(
    name: &'static str,
    event: Option<HookEvent>,
    matching: MatcherSubject,
    takes: SupportedHandlers,
) -> EventRow {
    EventRow { name, event, matching, takes }
}

/// Every event there is, in the order of a session.
#[rustfmt::skip]
pub(crate) const ROWS: [EventRow; 33] = [
    row("SessionStart", Some(HookEvent::SessionStart), MatcherSubject::Word, SupportedHandlers::Start),
    row("Setup", None, MatcherSubject::Word, SupportedHandlers::Start),
    row("InstructionsLoaded", Some(HookEvent::InstructionsLoaded), MatcherSubject::Word, SupportedHandlers::Plain),
    row("UserPromptSubmit", Some(HookEvent::UserPromptSubmit), MatcherSubject::Nothing, SupportedHandlers::All),
    row("UserPromptExpansion", None, MatcherSubject::Word, SupportedHandlers::All),
    row("MessageDisplay", None, MatcherSubject::Nothing, SupportedHandlers::Plain),
    row("PreToolUse", Some(HookEvent::PreToolUse), MatcherSubject::Tool, SupportedHandlers::All),
    row("PermissionRequest", Some(HookEvent::PermissionRequest), MatcherSubject::Tool, SupportedHandlers::All),
    row("PermissionDenied", Some(HookEvent::PermissionDenied), MatcherSubject::Tool, SupportedHandlers::All),
    row("PostToolUse", Some(HookEvent::PostToolUse), MatcherSubject::Tool, SupportedHandlers::All),
    row("PostToolUseFailure", Some(HookEvent::PostToolUseFailure), MatcherSubject::Tool, SupportedHandlers::All),
    row("PostToolBatch", Some(HookEvent::PostToolBatch), MatcherSubject::Nothing, SupportedHandlers::All),
    row("Notification", Some(HookEvent::Notification), MatcherSubject::Word, SupportedHandlers::Plain),
    row("SubagentStart", Some(HookEvent::SubagentStart), MatcherSubject::Word, SupportedHandlers::Plain),
    row("SubagentStop", Some(HookEvent::SubagentStop), MatcherSubject::Word, SupportedHandlers::All),
    row("TaskCreated", None, MatcherSubject::Nothing, SupportedHandlers::All),
    row("TaskCompleted", None, MatcherSubject::Nothing, SupportedHandlers::All),
    row("Stop", Some(HookEvent::Stop), MatcherSubject::Nothing, SupportedHandlers::All),
    row("StopFailure", Some(HookEvent::StopFailure), MatcherSubject::NarrowWord, SupportedHandlers::Plain),
    row("TeammateIdle", None, MatcherSubject::Nothing, SupportedHandlers::All),
    row("ConfigChange", None, MatcherSubject::Word, SupportedHandlers::Plain),
    row("CwdChanged", Some(HookEvent::CwdChanged), MatcherSubject::Nothing, SupportedHandlers::Plain),
    row("DirectoryAdded", None, MatcherSubject::Word, SupportedHandlers::Plain),
    row("FileChanged", None, MatcherSubject::NarrowWord, SupportedHandlers::Plain),
    row("WorktreeCreate", None, MatcherSubject::Nothing, SupportedHandlers::Plain),
    row("WorktreeRemove", None, MatcherSubject::Nothing, SupportedHandlers::Plain),
    row("PreCompact", Some(HookEvent::PreCompact), MatcherSubject::Word, SupportedHandlers::Plain),
    row("PostCompact", Some(HookEvent::PostCompact), MatcherSubject::Word, SupportedHandlers::Plain),
    row("PreModelSwitch", None, MatcherSubject::Word, SupportedHandlers::Plain),
    row("PostModelSwitch", None, MatcherSubject::Word, SupportedHandlers::Plain),
    row("Elicitation", None, MatcherSubject::Word, SupportedHandlers::Plain),
    row("ElicitationResult", None, MatcherSubject::Word, SupportedHandlers::Plain),
    row("SessionEnd", Some(HookEvent::SessionEnd), MatcherSubject::Word, SupportedHandlers::Plain),
];

/// The names of all events that hooks may be configured for, also of those the engine does not reach yet.
pub fn known_event_names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

pub(crate) fn find(name: &str) -> Option<&'static EventRow> {
    ROWS.iter().find(|row| row.name == name)
}

impl EventRow {
    /// Whether it takes such a handler, and otherwise which it takes.
    pub(crate) fn takes(&self, action: &HandlerAction) -> Result<(), &'static str> {
        match (self.takes, action) {
            (SupportedHandlers::Plain | SupportedHandlers::Start, HandlerAction::Prompt(_))
            | (SupportedHandlers::Start, HandlerAction::Http(_)) => {
                Err(if self.takes == SupportedHandlers::Start { "command" } else { "command or http" })
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

/// Whether a failure can block. An end that fails to be judged is an end: a broken hook must not keep a run on.
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
    ROWS.iter().any(|row| row.event == Some(event) && row.matching == MatcherSubject::Tool)
}

/// The word that matchers are compared with.
pub(crate) fn word(call: &HookCall) -> Option<&str> {
    match call {
        HookCall::SessionStart { source, .. } => Some(source.name()),
        HookCall::InstructionsLoaded { reason, .. } => Some(reason.name()),
        HookCall::PreToolUse(call)
        | HookCall::PermissionRequest { call, .. }
        | HookCall::PermissionDenied { call, .. }
        | HookCall::PostToolUse { call, .. } => Some(&call.tool),
        HookCall::StopFailure { terminal, failure } => Some(terminal.failure_category(failure.as_deref())),
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
