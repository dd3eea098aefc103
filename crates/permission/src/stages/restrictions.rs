//! What the rules that deny and those that ask say about a call.

use super::{PermissionCase, sandbox};
use crate::rules::{Match, Rule, RuleScope, RuleSubject};

/// The first rule of each kind that means a call. Every rule is compared once, whichever stages look at the result.
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
        let rules = &case.permissions.rules;
        let mut doubting = None;
        let mut means = |rule: &&'a Rule| {
            let seen = restricts(rule, case, subject);
            doubting = doubting.or((seen == Match::May).then_some(*rule));
            seen == Match::Yes
        };
        let denying = rules.deny.iter().find(&mut means);
        // A rule about every command was made for commands that can reach everything.
        let counts = |rule: &&Rule| !(rule.is_about_all_of(subject.tool) && sandbox::is_free(case));
        // Behind a denial nothing counts any more.
        let asked = rules.ask.iter().filter(|_| denying.is_none());
        let asking = asked.filter(counts).find(means);
        Self { denying, asking, doubting }
    }
}

/// Where a part of a line cannot be seen, every command may hide, and every path that no sandbox keeps closed.
fn restricts(rule: &Rule, case: &PermissionCase<'_>, subject: &RuleSubject<'_>) -> Match {
    let seen = rule.restricts(subject);
    let unseen = case.facts.commands.as_ref().is_some_and(|commands| commands.unseen.is_some());
    let may_hide = || match rule.what {
        RuleScope::Commands(_) => rule.covers_tool(case.tool),
        RuleScope::Paths(..) => !sandbox::is_confined(case),
        _ => false,
    };
    if unseen && may_hide() { seen.max(Match::May) } else { seen }
}
