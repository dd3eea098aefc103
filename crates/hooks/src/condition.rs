//! Whether a handler's permission rule matches a call. Rules are read elsewhere; here they are only asked.

use std::path::Path;
use std::sync::Arc;

use windlass_protocol::{HookCall, HookScene, RawValue, ToolUse};

use crate::handler::Handler;

/// Says whether a permission rule matches a call: the rule, the tool's own name, its input, and where it would work. Nothing if
/// nobody can tell.
pub type RuleMatch = Arc<dyn Fn(&str, &str, &RawValue, &Path) -> Option<bool> + Send + Sync>;

/// Whether the handler's condition lets it run. Where nobody can tell it runs: a guard that is not asked guards nothing.
pub(crate) fn holds(
    handler: &Handler,
    call: &HookCall,
    scene: &HookScene,
    rules: Option<&RuleMatch>,
) -> bool {
    let Some(rule) = &handler.condition else { return true };
    let (Some((tool, tool_use)), Some(rules)) = (tool_use(call), rules) else { return true };
    rules(rule, tool, &tool_use.input, &scene.cwd).unwrap_or(true)
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
