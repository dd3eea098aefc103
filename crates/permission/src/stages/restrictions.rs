//! What the rules that deny and those that ask say about a call.

use super::{PermissionCase, sandbox};
use crate::rules::{Match, Rule, RuleSubject};

/// The first rule of each kind that means a call. Every rule is compared once, whichever stages look at the result.
#[derive(Default)]
pub(super) struct Restrictions<'a> {
    /// Denies it.
    pub(super) denying: Option<&'a Rule>,
    /// Asks about it.
    pub(super) asking: Option<&'a Rule>,
    /// Denies it or asks about it, perhaps: nobody can tell.
    pub(super) doubting: Option<&'a Rule>,
}

impl<'a> Restrictions<'a> {
    pub(super) fn of(case: &PermissionCase<'a>, subject: &RuleSubject<'a>) -> Self {
        let mut found = Self::default();
        for rule in &case.permissions.rules.deny {
            match restricts(rule, case, subject) {
                // Nothing that comes later counts any more.
                Match::Yes => return Self { denying: Some(rule), ..found },
                Match::May => _ = found.doubting.get_or_insert(rule),
                Match::No => (),
            }
        }
        // A rule about every command was made for commands that can reach everything.
        let counts = |rule: &&Rule| !(rule.is_about_all_of(subject.tool) && sandbox::is_free(case));
        for rule in case.permissions.rules.ask.iter().filter(counts) {
            match restricts(rule, case, subject) {
                Match::Yes => return Self { asking: Some(rule), ..found },
                Match::May => _ = found.doubting.get_or_insert(rule),
                Match::No => (),
            }
        }
        found
    }
}

/// Where a part of a line cannot be seen, every command may hide, and every path that no sandbox keeps closed.
fn restricts(rule: &Rule, case: &PermissionCase<'_>, subject: &RuleSubject<'_>) -> Match {
    let seen = rule.restricts(subject);
    let unseen = case.facts.commands.as_ref().is_some_and(|commands| commands.unseen.is_some());
    let may_hide = || {
        let is_command = rule.is_scoped_command() && rule.covers_tool(case.tool);
        is_command || (rule.is_about_paths() && !sandbox::is_confined(case))
    };
    if unseen && may_hide() { seen.max(Match::May) } else { seen }
}
