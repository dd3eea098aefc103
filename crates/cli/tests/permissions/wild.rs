//! Damaged and random calls: nothing panics, everything ends, and nothing unseen is let through.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_engine::protocol::{CallFacts, CommandEffect, PathNaming, PlainCommand, Verdict};
use windlass_engine::{Behaviour, PermissionMode};

use crate::case::{Given, Setting, all, at_home, none, strictness};
use crate::mutate::{Rng, mutated, noise, seed};

/// Damaged lines that are tried.
const LINES: usize = 12_000;
/// Damaged inputs that are tried.
const INPUTS: usize = 6_000;
/// A single decision that takes longer is wrong, on any machine and in any build.
const TIME_MAX: Duration = Duration::from_secs(4);
/// A line that is longer is never allowed by what it says.
const BYTES_MAX: usize = 10_000;

const CORPUS: [&str; 3] = [
    include_str!("../../../shell/tests/corpus/attacks.txt"),
    include_str!("../../../shell/tests/corpus/harmless.txt"),
    include_str!("../../../shell/tests/corpus/odd.txt"),
];

/// Every line there is to begin with.
fn lines() -> Vec<String> {
    let corpus = CORPUS.iter().flat_map(|file| file.lines()).map(str::to_owned);
    corpus.chain(all().iter().filter_map(Given::line)).collect()
}

/// Whether a command does nothing that would have to be asked about: it looks at what has a name, inside.
fn only_looks(command: &PlainCommand) -> bool {
    let is_named = |named: &windlass_engine::protocol::NamedPath| named.naming != PathNaming::Unknown;
    command.effect == CommandEffect::Looks && !command.has_network && command.reads.iter().all(is_named)
}

/// Why a line should not have been allowed without any rule.
fn objection(line: &str, facts: &CallFacts) -> Option<&'static str> {
    let commands = facts.commands.as_ref()?;
    let writes =
        |command: &PlainCommand| command.writes.iter().any(|named| *named.path.lexical() != *"/dev/null");
    match &commands.plain {
        _ if line.contains('\0') => Some("it holds a NUL"),
        _ if line.len() > BYTES_MAX => Some("it is too long"),
        Err(_) => Some("what it runs is not known"),
        Ok(list) if !list.iter().all(only_looks) => Some("it does more than look"),
        Ok(list) if list.iter().any(writes) => Some("it writes"),
        Ok(_) => None,
    }
}

fn timed(setting: &Setting) -> Option<(CallFacts, Verdict)> {
    let start = Instant::now();
    let facts = setting.facts();
    let judged = facts.map(|facts| {
        let verdict = setting.judge(&facts).verdict;
        // What is offered is found by deciding again, so it is timed with the rest.
        let _ = setting.missing(&facts);
        (facts, verdict)
    });
    assert!(start.elapsed() < TIME_MAX, "{:?} for {}", start.elapsed(), setting.given.input);
    judged
}

/// What is wrong with the decisions about a line: without rules, and with a few that deny where everything else is allowed.
fn complaint(template: &Given, line: &str) -> Option<String> {
    let mut case = template.with_line(line);
    (case.mode, case.rules) = ("default".into(), <_>::default());
    let setting = case.setting()?;
    let (facts, verdict) = timed(&setting)?;
    if verdict == Verdict::Allow
        && let Some(why) = objection(line, &facts)
    {
        return Some(format!("{line:?} is allowed although {why}"));
    }
    let mut broad = setting.clone();
    broad.permissions.mode = PermissionMode::BypassPermissions;
    let mut narrow = broad.clone();
    for rule in ["Bash(rm *)", "Bash(git push *)", "Read(.env)", "Edit(src/**)"] {
        narrow.add(Behaviour::Deny, rule);
    }
    let (broad, narrow) = (timed(&broad)?.1, timed(&narrow)?.1);
    (strictness(narrow) < strictness(broad)).then(|| format!("{line:?}: denials make {broad:?} {narrow:?}"))
}

#[test]
fn damaged_lines_do_no_harm() {
    at_home("wild::damaged_lines_do_no_harm", || {
        let mut rng = Rng::new(seed(19));
        let lines = lines();
        let template = all().into_iter().find(|case| case.tool == "Bash").unwrap();
        let mut wrong = Vec::new();
        for round in 0..LINES {
            let line = if round % 8 == 0 {
                noise(&mut rng, 200)
            } else {
                let (line, other) = (rng.pick(&lines), rng.pick(&lines));
                mutated(&mut rng, line, other)
            };
            wrong.extend(complaint(&template, &line));
        }
        none(&wrong);
    });
}

#[test]
fn a_nul_or_too_much_text_is_never_allowed() {
    at_home("wild::a_nul_or_too_much_text_is_never_allowed", || {
        let mut rng = Rng::new(seed(23));
        let template = all().into_iter().find(|case| case.tool == "Bash").unwrap();
        for line in lines().iter().filter(|line| !line.trim().is_empty()).step_by(3) {
            let mut at = rng.below(line.len() + 1);
            while !line.is_char_boundary(at) {
                at -= 1;
            }
            let (head, tail) = line.split_at(at);
            let mut case = template.with_line(&format!("{head}\0{tail}"));
            case.mode = "bypassPermissions".into();
            assert_eq!(case.decide(), Verdict::Deny, "{}", case.input);
            let mut case = template.with_line(&format!("{line}{}", " ".repeat(BYTES_MAX)));
            (case.mode, case.rules) = ("acceptEdits".into(), <_>::default());
            assert_ne!(case.decide(), Verdict::Allow, "{line:?} with much behind it");
        }
    });
}

/// A value of another kind, or a damaged one.
fn another(rng: &mut Rng, value: &Value, other: &str) -> Value {
    match rng.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!([value]),
        4 => json!({ "a": value }),
        5 => json!(noise(rng, 300)),
        _ => json!(mutated(rng, value.as_str().unwrap_or("x"), other)),
    }
}

#[test]
fn damaged_inputs_do_no_harm() {
    at_home("wild::damaged_inputs_do_no_harm", || {
        let mut rng = Rng::new(seed(29));
        let cases = all();
        let others: Vec<&Given> = cases.iter().filter(|case| case.tool != "Bash").collect();
        for _ in 0..INPUTS {
            let (case, other) = (rng.pick(&others), rng.pick(&cases));
            let mut input: Value = serde_json::from_str(case.input.get()).unwrap();
            for value in input.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
                *value = another(&mut rng, value, other.input.get());
            }
            let mut case = Given::clone(case);
            case.input = serde_json::value::to_raw_value(&input).unwrap();
            case.mode.clone_from(&other.mode);
            case.rules = other.rules.clone();
            let Some(setting) = case.setting() else { continue };
            timed(&setting);
        }
    });
}

#[test]
fn damaged_rules_are_read_or_refused_in_time() {
    at_home("wild::damaged_rules_are_read_or_refused_in_time", || {
        let mut rng = Rng::new(seed(31));
        let cases = all();
        let rules: Vec<&String> = cases
            .iter()
            .flat_map(|case| [&case.rules.allow, &case.rules.deny].into_iter().flatten())
            .collect();
        let (mut read, mut refused) = (0, 0);
        for _ in 0..INPUTS {
            let (case, rule, other) = (rng.pick(&cases), rng.pick(&rules), rng.pick(&rules));
            let rule = mutated(&mut rng, rule, other);
            for behaviour in [Behaviour::Allow, Behaviour::Deny] {
                let Some(setting) = case.setting().and_then(|setting| setting.with(behaviour, &rule)) else {
                    refused += 1;
                    continue;
                };
                read += 1;
                timed(&setting);
            }
        }
        println!("{read} rules were read, {refused} refused");
        assert!(read > 1_000 && refused > 1_000);
    });
}
