//! Whether a handler's permission rule matches a call. Rules are read elsewhere; here they are only asked.

use std::path::Path;
use std::sync::Arc;

use windlass_protocol::{HookAnswer, HookCall, HookEvent, HookPermission, HookScene, RawValue, ToolUse};

use crate::handler::Handler;

/// Says whether a permission rule matches a call: the rule, the tool's own name, its input, and where it would work. Nothing if
/// nobody can tell.
pub type RuleMatch = Arc<dyn Fn(&str, &str, &RawValue, &Path) -> Option<bool> + Send + Sync>;

/// Which of the calls that its matcher means a handler is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    None,
    /// Those that a permission rule matches.
    Rule(String),
    /// Some; what was configured says not which, since it cannot be read.
    Unreadable,
}

/// Whether the handler's condition lets it run. Where nobody can tell it runs: a guard that is not asked guards nothing.
pub(crate) fn holds(
    handler: &Handler,
    call: &HookCall,
    scene: &HookScene,
    rules: Option<&RuleMatch>,
) -> bool {
    let Condition::Rule(rule) = &handler.condition else { return true };
    let (Some((tool, tool_use)), Some(rules)) = (tool_use(call), rules) else { return true };
    rules(rule, tool, &tool_use.input.json(), &scene.cwd).unwrap_or(true)
}

/// What counts of an answer. A handler that is asked about more calls than it was made for may object to each, but not allow
/// it.
pub(crate) fn counted(handler: &Handler, mut answer: HookAnswer) -> HookAnswer {
    let allows = answer.permission == Some(HookPermission::Allow);
    if handler.condition == Condition::Unreadable && allows {
        answer.permission = None;
        answer.updates.clear();
        answer.input = answer.input.filter(|_| handler.event == HookEvent::PreToolUse);
        answer
            .notices
            .push(format!("{} allows a call; ignored, since its \"if\" is invalid.", handler.name()));
    }
    answer
}

/// The call that an event is about.
pub(crate) fn tool_use(call: &HookCall) -> Option<(&Arc<str>, &ToolUse)> {
    match call {
        HookCall::PreToolUse { tool, tool_use }
        | HookCall::PermissionRequest { tool, tool_use, .. }
        | HookCall::PermissionDenied { tool, tool_use, .. }
        | HookCall::PostToolUse { tool, tool_use, .. } => Some((tool, tool_use)),
        _ => None,
    }
}
