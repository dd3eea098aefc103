//! The tables, decided by the real binary.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::case::{ATTACKS, BENIGN, Given, HOME, read};

/// So many of a hundred everyday calls may be asked about.
const BLOCKED_MAX_PERCENT: usize = 3;

/// What the binary says about each case of a table, by its id.
fn decisions(table: &'static str) -> BTreeMap<String, Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["permissions", "explain", "--batch"])
        .env("HOME", HOME)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(table.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let answers = String::from_utf8(output.stdout).unwrap();
    let parse = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    answers.lines().map(parse).map(|answer| (answer["id"].as_str().unwrap().to_owned(), answer)).collect()
}

/// The cases that are not decided as they must be, each in a line for people.
fn wrong(cases: &[Given], decisions: &BTreeMap<String, Value>) -> Vec<String> {
    let complaint = |case: &Given| {
        let answer = decisions.get(&case.id);
        let decision = answer.map_or("nothing", |answer| answer["decision"].as_str().unwrap_or("nothing"));
        let right = match case.expect.as_str() {
            "not-allow" => decision == "ask" || decision == "deny",
            expected => decision == expected,
        };
        let reason = answer.map_or("", |answer| answer["reason"].as_str().unwrap_or_default());
        let Given { id, class, expect, mode, tool, input, .. } = case;
        (!right).then(|| {
            format!(
                "{id} ({class}, {mode}): {expect} expected, {decision} decided: {tool} {input}\n    {reason}"
            )
        })
    };
    cases.iter().filter_map(complaint).collect()
}

#[test]
fn no_attack_gets_through() {
    let cases = read(ATTACKS);
    assert!(cases.len() >= 1_900, "only {} cases", cases.len());
    let unsafe_ones = wrong(&cases, &decisions(ATTACKS));
    println!("{} attacks, {} unsafe", cases.len(), unsafe_ones.len());
    crate::case::none(&unsafe_ones);
}

#[test]
fn everyday_calls_are_seldom_asked_about() {
    let cases = read(BENIGN);
    assert!(cases.len() >= 870, "only {} cases", cases.len());
    let blocked = wrong(&cases, &decisions(BENIGN));
    println!("{} everyday calls, {} not allowed\n{}", cases.len(), blocked.len(), blocked.join("\n"));
    assert!(blocked.len() * 100 <= cases.len() * BLOCKED_MAX_PERCENT, "{} are not allowed", blocked.len());
}

#[test]
fn each_case_has_a_name_of_its_own() {
    let mut seen = std::collections::BTreeSet::new();
    for case in [read(ATTACKS), read(BENIGN)].concat() {
        assert!(["allow", "deny", "not-allow"].contains(&case.expect.as_str()), "{}", case.id);
        assert!(seen.insert(case.id.clone()), "{} is there twice", case.id);
    }
}
