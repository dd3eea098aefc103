//! What would let the same call run: rules, and another mode.

use std::collections::BTreeSet;

use windlass_protocol::{CallKind, CommandFacts, CommandWord, Offers, Verdict};

use super::commands::{MissingRight, allowance};
use super::{PermissionCase, decide_call, prefixes};
use crate::rules::{
    Anchors, Behaviour, CommandPattern, PathPattern, RuleSource, RuleSubject, is_skill, runs_input,
    skill_text,
};
use crate::settings::{Answerer, PermissionMode, Permissions};

/// A line that needs more rules than this is asked about each time.
const RULES_MAX: usize = 5;

/// What would spare the question about a call.
pub fn offers(case: &PermissionCase<'_>) -> Offers {
    let rules = missing_rules(case);
    let prefix_rules = with_prefixes(case, &rules);
    Offers { rules, prefix_rules, can_accept_edits: mode(case) == Some(PermissionMode::AcceptEdits) }
}

/// The least permissive mode besides the present one in which the very same call passes. `bypassPermissions` is never offered.
pub(super) fn mode(case: &PermissionCase<'_>) -> Option<PermissionMode> {
    let allows = |mode: &PermissionMode| *mode != case.mode() && passes_in(case, *mode);
    [PermissionMode::Default, PermissionMode::AcceptEdits]
        .into_iter()
        .find(allows)
        .filter(|_| !passes_with(case, &[]))
}

/// Whether the call runs unasked in this mode.
pub(super) fn passes_in(case: &PermissionCase<'_>, mode: PermissionMode) -> bool {
    passes(case, &Permissions { mode, asking: Answerer::Person, ..case.permissions.clone() })
}

/// The missing rules with a star behind those commands whose further words are harmless; empty if that changes nothing.
fn with_prefixes(case: &PermissionCase<'_>, rules: &[String]) -> Vec<String> {
    let commands = case.facts.commands.iter().flat_map(|commands| commands.plain.iter().flatten());
    let prefixes: Vec<(String, String)> = commands
        .filter_map(|command| {
            let exact = CommandPattern::literal(&command.words)?;
            let prefix = CommandPattern::literal(prefixes::useful(&command.words)?)?;
            Some((format!("{}({exact})", case.tool), format!("{}({prefix} *)", case.tool)))
        })
        .collect();
    let wider = distinct(rules.iter().map(|rule| {
        prefixes.iter().find(|(exact, _)| exact == rule).map_or(rule, |(_, prefix)| prefix).clone()
    }));
    if wider != rules && passes_with(case, &wider) { wider } else { Vec::new() }
}

/// The narrowest rules that would let the call run; empty if none would, or where rules of the user do not count.
pub fn missing_rules(case: &PermissionCase<'_>) -> Vec<String> {
    if case.permissions.is_managed_only { Vec::new() } else { sufficient(case) }
}

/// The rules that would do, whoever may set them.
pub(super) fn sufficient(case: &PermissionCase<'_>) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    // What lacks leave for a file may lack it for itself too, which shows only when the file has it.
    while rules.len() <= RULES_MAX {
        let Some(permissions) = permissions_with(case, &rules) else { return Vec::new() };
        let again = PermissionCase { permissions: &permissions, ..*case };
        if passes(case, &permissions) {
            return needed_rules(case, rules);
        }
        let more: Vec<String> = candidates(&again).into_iter().filter(|rule| !rules.contains(rule)).collect();
        if more.is_empty() {
            return Vec::new();
        }
        rules.extend(more);
    }
    Vec::new()
}

/// A rule for the very line, if it passes with it. A question need not offer it: `$x` is another thing each time.
pub(super) fn whole_line(case: &PermissionCase<'_>) -> Option<String> {
    let commands = case.facts.commands.as_ref().filter(|commands| !commands.has_hidden)?;
    let rule = format!("{}({})", case.tool, CommandPattern::literal_line(&commands.line)?);
    passes_with(case, std::slice::from_ref(&rule)).then_some(rule)
}

/// Those of some rules that a call does not pass without.
fn needed_rules(case: &PermissionCase<'_>, mut rules: Vec<String>) -> Vec<String> {
    let mut at = 0;
    while rules.len() > 1 && at < rules.len() {
        let rule = rules.remove(at);
        if !passes_with(case, &rules) {
            rules.insert(at, rule);
            at += 1;
        }
    }
    rules
}

/// Whether the call runs unasked with some rules besides.
pub(super) fn passes_with(case: &PermissionCase<'_>, rules: &[String]) -> bool {
    permissions_with(case, rules).is_some_and(|permissions| passes(case, &permissions))
}

/// Whether the call runs unasked with these permissions.
fn passes(case: &PermissionCase<'_>, permissions: &Permissions) -> bool {
    decide_call(&PermissionCase { permissions, ..*case }).verdict == Verdict::Allow
}

/// The permissions with more rules and a person, so that no advice is sought; `None` if one is no rule.
fn permissions_with(case: &PermissionCase<'_>, rules: &[String]) -> Option<Permissions> {
    // It allows what the mode `default` allows.
    let mode = if case.mode() == PermissionMode::DontAsk { PermissionMode::Default } else { case.mode() };
    let mut permissions = Permissions { asking: Answerer::Person, mode, ..case.permissions.clone() };
    let anchors = Anchors { roots: case.roots.to_vec(), ..Anchors::default() };
    for rule in rules {
        permissions.rules.add(Behaviour::Allow, rule, RuleSource::session(), &anchors).ok()?;
    }
    Some(permissions)
}

fn candidates(case: &PermissionCase<'_>) -> Vec<String> {
    if let Some(commands) = &case.facts.commands {
        if commands.has_hidden {
            return Vec::new();
        }
        return match &commands.plain {
            Ok(_) => of_commands(case),
            Err(_) => of_line(case, commands).into_iter().collect(),
        };
    }
    if let Some(url) = &case.facts.url {
        let host = url.host.to_string();
        // As a rule, a star would mean many hosts.
        return if host.contains('*') { vec![] } else { vec![format!("{}(domain:{host})", case.tool)] };
    }
    let subject = RuleSubject::new(case.tool, case.profile, case.input, case.facts);
    if is_skill(&subject) {
        return skill_text(&subject).map(|text| format!("Skill({text})")).into_iter().collect();
    }
    let access = match case.facts.kind {
        CallKind::Edit => "Edit",
        CallKind::Read if !case.facts.paths.is_empty() => "Read",
        CallKind::Read | CallKind::Fetch | CallKind::Execute | CallKind::Session => {
            return vec![case.tool.to_owned()];
        }
    };
    let names = case.facts.paths.iter().flat_map(|path| [Some(&path.lexical), path.resolved.as_ref()]);
    let rules = names.flatten().map(|name| Some(format!("{access}({})", PathPattern::literal(name)?)));
    rules.collect::<Option<Vec<_>>>().map(distinct).unwrap_or_default()
}

/// Each rule once, where it comes first.
fn distinct(rules: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    rules.into_iter().filter(|rule| seen.insert(rule.clone())).collect()
}

/// A line that cannot be taken apart is allowed as a whole or not at all.
fn of_line(case: &PermissionCase<'_>, commands: &CommandFacts) -> Option<String> {
    if commands.found.iter().any(|command| takes_program(&command.words)) {
        return None;
    }
    CommandPattern::literal_line(&commands.line).map(|text| format!("{}({text})", case.tool))
}

/// Whether words leave it to the input what is run. Kept, they would allow every program.
fn takes_program(words: &[CommandWord]) -> bool {
    let words: Vec<_> = words.iter().map(CommandWord::to_string).collect();
    runs_input(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// One rule for each command that has no leave, and for each file that a redirection names.
fn of_commands(case: &PermissionCase<'_>) -> Vec<String> {
    let commands = case.facts.commands.iter().flat_map(|commands| commands.plain.iter().flatten());
    let lacking = commands.filter_map(|command| Some((command, allowance(case, command).err()?)));
    let rules = lacking.map(|(command, missing)| match missing {
        MissingRight::Command if takes_program(&command.words) => None,
        MissingRight::Command => Some(format!("{}({})", case.tool, CommandPattern::literal(&command.words)?)),
        MissingRight::Write(path) => Some(format!("Edit({})", PathPattern::literal(&path.lexical)?)),
        MissingRight::Read(path) => Some(format!("Read({})", PathPattern::literal(&path.lexical)?)),
        MissingRight::Person => None,
    });
    rules.collect::<Option<Vec<_>>>().map(distinct).unwrap_or_default()
}
