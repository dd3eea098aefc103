//! What one rule more can do to a decision: a restriction never widens it, a permission never lifts a restriction.

use std::collections::BTreeSet;

use windlass_engine::Behaviour;
use windlass_engine::protocol::{Ruling, Verdict};

use crate::case::{LISTS, Setting, all, at_home, none, strictness};
use crate::mutate::{Rng, seed};

/// So many rules of each kind are added to each case, one at a time.
const DRAWN: usize = 5;

/// Every rule that stands in a table, in whichever list.
fn drawn_from() -> Vec<String> {
    let of_case = |case: &crate::case::Given| LISTS.map(|list| case.rules.list(list).to_vec()).concat();
    let all: BTreeSet<String> = all().iter().flat_map(of_case).collect();
    all.into_iter().collect()
}

/// Whether a rule stands against a call, so that no other rule may let it run.
fn is_restricted(ruling: &Ruling) -> bool {
    ruling.rule.is_some() && ruling.verdict != Verdict::Allow
}

/// What is decided about the call itself. Where a fetch is sent on to is a decision of its own, which comes after a question.
fn decide(setting: &Setting) -> Option<Ruling> {
    setting.facts().map(|facts| setting.judge(&facts))
}

/// What is wrong with the decision after a rule was added.
fn complaint(before: &Ruling, setting: &Setting, behaviour: Behaviour, rule: &str) -> Option<String> {
    let after = decide(&setting.with(behaviour, rule)?)?;
    let wrong = match behaviour {
        Behaviour::Allow => is_restricted(before) && after.verdict != before.verdict,
        Behaviour::Ask | Behaviour::Deny => strictness(after.verdict) < strictness(before.verdict),
    };
    let (id, input) = (&setting.given.id, &setting.given.input);
    let change = format!("{:?} became {:?}", before.verdict, after.verdict);
    wrong.then(|| format!("{id}: {change} with the {} rule {rule}: {input}", behaviour.name()))
}

#[test]
fn a_restriction_never_widens_and_a_permission_lifts_no_restriction() {
    at_home("rules::a_restriction_never_widens_and_a_permission_lifts_no_restriction", || {
        let mut rng = Rng::new(seed(11));
        let rules = drawn_from();
        let (mut tried, mut wrong) = (0, Vec::new());
        for setting in all().iter().filter_map(super::case::Given::setting) {
            let Some(before) = decide(&setting) else { continue };
            let mut kinds = LISTS.to_vec();
            if !is_restricted(&before) {
                kinds.retain(|kind| *kind != Behaviour::Allow);
            }
            for behaviour in kinds {
                for _ in 0..DRAWN {
                    tried += 1;
                    let rule: &String = rng.pick(&rules);
                    wrong.extend(complaint(&before, &setting, behaviour, rule));
                }
            }
        }
        println!("{tried} rules were added, drawn from {}", rules.len());
        assert!(tried > 20_000, "only {tried}");
        none(&wrong);
    });
}

/// Broad permissions of every kind, all at once.
const EVERYTHING: [&str; 9] =
    ["Bash", "Monitor", "Edit", "Write", "Read", "WebFetch", "Agent", "Edit(//**)", "Read(//**)"];

#[test]
fn no_permission_lifts_a_restriction_however_broad() {
    at_home("rules::no_permission_lifts_a_restriction_however_broad", || {
        let (mut tried, mut wrong) = (0, Vec::new());
        for setting in all().iter().filter_map(super::case::Given::setting) {
            let Some(before) = setting.decide().filter(is_restricted) else { continue };
            tried += 1;
            let mut broad = setting.clone();
            broad.add(Behaviour::Allow, &setting.given.tool);
            for rule in EVERYTHING {
                assert!(broad.add(Behaviour::Allow, rule), "{rule}");
            }
            let after = broad.decide().map_or(Verdict::Deny, |ruling| ruling.verdict);
            if after != before.verdict {
                wrong.push(format!("{}: {:?} became {after:?}", setting.given.id, before.verdict));
            }
        }
        assert!(tried > 300, "only {tried}");
        none(&wrong);
    });
}

#[test]
fn a_bare_denial_stops_every_call() {
    at_home("rules::a_bare_denial_stops_every_call", || {
        for setting in all().iter().filter_map(super::case::Given::setting) {
            let tool = &setting.given.tool;
            let Some(denied) = setting.with(Behaviour::Deny, tool) else { continue };
            let verdict = denied.decide().map_or(Verdict::Deny, |ruling| ruling.verdict);
            assert_eq!(verdict, Verdict::Deny, "{} although {tool} is denied", setting.given.id);
        }
    });
}
