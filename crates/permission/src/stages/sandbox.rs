//! The sandbox: which commands run in it, and what that spares.

use windlass_protocol::{PlainCommand, Ruling};

use super::advice::Remedy;
use super::{CaseReview, PermissionCase, allow, ask_because};
use crate::rules::has_value;
use crate::settings::{PermissionMode, SandboxPermissions};

/// Commands that change where later ones run.
const MOVERS: [&str; 3] = ["cd", "pushd", "popd"];

/// Whether the call runs in the sandbox.
pub fn is_confined(case: &PermissionCase<'_>) -> bool {
    is_for_sandbox(case) && !wants_to_leave(case)
}

fn wants_to_leave(case: &PermissionCase<'_>) -> bool {
    let may_leave = case.permissions.sandbox.as_ref().is_some_and(|sandbox| sandbox.can_leave);
    may_leave && has_value(case.input, "dangerouslyDisableSandbox", "true")
}

/// Whether the call is a command that settings do not run outside.
fn is_for_sandbox(case: &PermissionCase<'_>) -> bool {
    let sandbox = case.permissions.sandbox.as_ref().filter(|_| case.facts.commands.is_some());
    sandbox.is_some_and(|sandbox| !is_excluded(case, sandbox))
}

/// Whether the model asks to leave the sandbox with a command that settings do not run outside.
pub(super) fn asks_to_leave(case: &PermissionCase<'_>) -> bool {
    wants_to_leave(case) && is_for_sandbox(case)
}

/// Leaving the sandbox is a question of its own, whatever allows the command itself.
pub(super) fn leaves_sandbox(case: &CaseReview<'_>) -> Option<Ruling> {
    asks_to_leave(case).then(|| {
        let reason = format!("{} would run this command outside the sandbox.", case.tool);
        ask_because(case, reason, || Remedy::one("the setting sandbox.excludedCommands"))
    })
}

/// Every command of the line is one of those that run outside, and the line does nothing else.
fn is_excluded(case: &PermissionCase<'_>, sandbox: &SandboxPermissions) -> bool {
    let Some(Ok(commands)) = case.facts.commands.as_ref().map(|facts| facts.plain.as_ref()) else {
        return false;
    };
    let covered = |command: &PlainCommand| {
        let moves = command.words.first().is_some_and(|name| MOVERS.iter().any(|mover| name == mover));
        let redirects = command.reads.iter().chain(&command.writes).any(|named| named.is_redirected);
        !moves && !redirects && sandbox.excluded.iter().any(|pattern| pattern.covers(command))
    };
    !commands.is_empty() && commands.iter().all(covered)
}

/// Whether being in the sandbox is leave enough.
pub(super) fn is_free(case: &PermissionCase<'_>) -> bool {
    let spares = case.permissions.sandbox.as_ref().is_some_and(|sandbox| sandbox.should_auto_allow);
    spares && case.mode() != PermissionMode::Plan && is_confined(case)
}

/// A command that can reach nothing it should not needs no question.
pub(super) fn confined_command(case: &CaseReview<'_>) -> Option<Ruling> {
    is_free(case).then(|| allow("This command runs in the sandbox."))
}
