//! Rules that are offered beside a question let the same call pass, and nothing is offered for what cannot be seen.

use windlass_engine::Behaviour;
use windlass_engine::protocol::{CallFacts, Verdict};

use crate::case::{Setting, all, at_home, none};

/// What is decided about: the call itself, or where it is sent on to.
fn meant(setting: &Setting, redirected: bool) -> Option<CallFacts> {
    let facts = setting.facts()?;
    if redirected { setting.redirected(&facts) } else { Some(facts) }
}

/// What of a call a person is asked about, and whether that is where it is sent on to.
fn asked(setting: &Setting) -> Option<(CallFacts, bool)> {
    [false, true].into_iter().find_map(|redirected| {
        let facts = meant(setting, redirected)?;
        (setting.judge(&facts).verdict == Verdict::Ask).then_some((facts, redirected))
    })
}

fn with_rules(setting: &Setting, rules: &[&String]) -> Setting {
    let mut setting = setting.clone();
    for rule in rules {
        assert!(setting.add(Behaviour::Allow, rule), "{rule} is offered and is no rule");
    }
    setting
}

/// What is wrong with the rules that are offered for a call.
fn complaints(setting: &Setting, redirected: bool, rules: &[String]) -> Vec<String> {
    let (id, input) = (&setting.given.id, &setting.given.input);
    let verdict = |rules: &[&String]| {
        // The call is looked at anew, as it would be if it were made again.
        let again = with_rules(setting, rules);
        meant(&again, redirected).map_or(Verdict::Deny, |facts| again.judge(&facts).verdict)
    };
    let all: Vec<&String> = rules.iter().collect();
    let mut complaints = Vec::new();
    if verdict(&all) != Verdict::Allow {
        complaints.push(format!("{id}: {:?} with {rules:?}: {input}", verdict(&all)));
    }
    for left_out in 0..rules.len() {
        let mut fewer = all.clone();
        let rule = fewer.remove(left_out);
        if verdict(&fewer) == Verdict::Allow {
            complaints.push(format!("{id}: {rule} is more than is needed: {input}"));
        }
    }
    complaints
}

#[test]
fn the_rules_offered_make_the_same_call_pass() {
    at_home("offers::the_rules_offered_make_the_same_call_pass", || {
        let (mut asks, mut offers, mut wrong) = (0, 0, Vec::new());
        for setting in all().iter().filter_map(super::case::Given::setting) {
            let Some((facts, redirected)) = asked(&setting) else { continue };
            let rules = setting.missing(&facts);
            asks += 1;
            offers += usize::from(!rules.is_empty());
            wrong.extend(if rules.is_empty() { vec![] } else { complaints(&setting, redirected, &rules) });
        }
        println!("{asks} calls are asked about; for {offers} of them rules are offered");
        assert!(asks > 1_000 && offers > 300, "{asks} asked, {offers} offered");
        none(&wrong);
    });
}

/// Characters that show nothing, or that make others show elsewhere.
fn is_unseen(c: char) -> bool {
    let marks = ['\u{ad}', '\u{61c}', '\u{180e}', '\u{feff}', '\u{2028}', '\u{2029}'];
    let ranges = [
        '\u{200b}'..='\u{200f}',
        '\u{202a}'..='\u{202e}',
        '\u{2060}'..='\u{206f}',
        '\u{e0000}'..='\u{e007f}',
    ];
    c.is_control() && c != '\n' && c != '\t'
        || marks.contains(&c)
        || ranges.iter().any(|range| range.contains(&c))
}

#[test]
fn nothing_is_offered_for_what_cannot_be_seen() {
    at_home("offers::nothing_is_offered_for_what_cannot_be_seen", || {
        let (mut hidden, mut wrong) = (0, Vec::new());
        for setting in all().iter().filter_map(super::case::Given::setting) {
            let Some((facts, _)) = asked(&setting) else { continue };
            let rules = setting.missing(&facts);
            let is_hidden = facts.commands.as_ref().is_some_and(|commands| commands.hidden);
            hidden += usize::from(is_hidden);
            if is_hidden && !rules.is_empty() || rules.iter().any(|rule| rule.contains(is_unseen)) {
                wrong.push(format!("{}: {rules:?} is offered: {}", setting.given.id, setting.given.input));
            }
        }
        println!("{hidden} calls hide something");
        assert!(hidden > 10, "only {hidden}");
        none(&wrong);
    });
}
