//! Cases from standard input, each with its own rules, decided one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, LineWriter, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use windlass::engine::{Anchors, Behaviour, PermissionMode, Permissions, RuleError, RuleSource};
use windlass::explain::{Explainer, working_directories};
use windlass::protocol::Ruling;
use windlass_text::nearest::closest;

use crate::complain;

/// The fields of a case.
const FIELDS: [&str; 8] = ["additional_dirs", "cwd", "id", "input", "mode", "redirect_to", "rules", "tool"];

/// What somebody calls rules who puts them in the wrong place.
const LISTS: [&str; 4] = ["allow", "ask", "deny", "permissions"];

#[derive(Deserialize)]
struct BatchCase {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    rules: RuleLists,
    #[serde(default)]
    mode: Option<String>,
    cwd: PathBuf,
    #[serde(default)]
    additional_dirs: Vec<PathBuf>,
    tool: String,
    #[serde(default = "nothing")]
    input: Box<RawValue>,
    #[serde(default)]
    redirect_to: Option<String>,
}

/// A list by another name is refused: left out, what it denies would run.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RuleLists {
    allow: Vec<String>,
    deny: Vec<String>,
    ask: Vec<String>,
}

/// What is decided about a case.
#[derive(Serialize)]
pub(super) struct BatchDecision {
    id: Value,
    decision: &'static str,
    rule: Option<String>,
    reason: String,
}

/// A line that is no case: its id, if it has one, and what whoever wrote it has to correct.
struct UnreadableCase {
    id: Value,
    problem: String,
}

fn nothing() -> Box<RawValue> {
    RawValue::from_string("{}".into()).unwrap_or_default()
}

/// Answers each line with a line and gives the exit code: 1 if a line was not understood.
pub(super) fn run() -> i32 {
    let (input, mut output) = (std::io::stdin().lock(), LineWriter::new(std::io::stdout().lock()));
    let mut code = 0;
    let mut told = BTreeSet::new();
    for (number, line) in input.lines().enumerate() {
        let decided = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => {
                tell_unknown(number + 1, &line, &mut told);
                decide_line(number + 1, &line)
            }
            Err(error) => Err(UnreadableCase { id: Value::Null, problem: error.to_string() }),
        };
        let decided = decided.unwrap_or_else(|UnreadableCase { id, problem }| {
            code = 1;
            complain(&format!("line {}: {problem}.", number + 1));
            denial(id, format!("This case cannot be read: {problem}."))
        });
        let written = serde_json::to_writer(&mut output, &decided).is_ok() && output.write_all(b"\n").is_ok();
        if !written {
            return 1;
        }
    }
    if output.flush().is_err() { 1 } else { code }
}

/// Says which fields of a line mean nothing, each once: there may be thousands of lines.
fn tell_unknown(number: usize, line: &str, told: &mut BTreeSet<String>) {
    for name in unknown(line).into_keys() {
        let meant = closest(&name, &FIELDS).map(|meant| format!(" Did you mean `{meant}`?"));
        if told.insert(name.clone()) {
            let meant = meant.unwrap_or_default();
            complain(&format!("line {number}: unknown field `{name}`; ignored.{meant}"));
        }
    }
}

/// The fields of a line that mean nothing.
fn unknown(line: &str) -> BTreeMap<String, &RawValue> {
    let members = serde_json::from_str::<BTreeMap<String, &RawValue>>(line).unwrap_or_default();
    members.into_iter().filter(|(name, _)| !FIELDS.contains(&name.as_str())).collect()
}

/// What is wrong with a line is said under its id, if it has one: whoever asks tells answers apart by it.
fn decide_line(number: usize, line: &str) -> Result<BatchDecision, UnreadableCase> {
    let given: BatchCase = serde_json::from_str(line).map_err(|error| {
        let case = serde_json::from_str::<Value>(line).unwrap_or_default();
        UnreadableCase { id: case.get("id").cloned().unwrap_or_default(), problem: error.to_string() }
    })?;
    match unknown(line).into_iter().find_map(|(name, value)| misspelt(&name, value)) {
        Some(problem) => Err(UnreadableCase { id: given.id, problem }),
        None => Ok(decide(number, &given)),
    }
}

/// Explains a field that seems to restrict: left out, it would allow more than was meant. Others are notes.
fn misspelt(name: &str, value: &RawValue) -> Option<String> {
    let holds_rules = value.get().starts_with(['{', '[']);
    if holds_rules && closest(name, &LISTS).is_some() {
        return Some(format!("unknown field `{name}`; put lists of rules in `rules`"));
    }
    let meant = closest(name, &FIELDS)?;
    let text = || serde_json::from_str::<String>(value.get()).ok();
    let restricts = match meant {
        "rules" => holds_rules,
        "mode" => text().is_some_and(|text| PermissionMode::from_name(&text).is_some()),
        "redirect_to" => text().is_some(),
        _ => false,
    };
    restricts.then(|| format!("unknown field `{name}`; did you mean `{meant}`?"))
}

fn decide(number: usize, given: &BatchCase) -> BatchDecision {
    let id = given.id.clone();
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let roots = working_directories(&given.cwd, &given.additional_dirs);
    let permissions = match permissions(given, &roots, home) {
        Ok((permissions, left_out)) => {
            for error in left_out {
                complain(&format!("line {number}: {error}; ignored."));
            }
            permissions
        }
        Err(problem) => return denial(id, problem.to_string()),
    };
    let explainer = Explainer::new(permissions, given.cwd.clone(), roots);
    match explainer.rule(&given.tool, &given.input, given.redirect_to.as_deref()) {
        Ok(Ruling { verdict, rule, reason, .. }) => {
            let rule = rule.map(|rule| rule.text.to_string());
            BatchDecision { id, decision: verdict.name(), rule, reason }
        }
        Err(problem) => denial(id, problem.to_string()),
    }
}

/// The permissions of a case, and unreadable allow rules that are left out; others are an error.
fn permissions(
    given: &BatchCase,
    roots: &[PathBuf],
    home: Option<PathBuf>,
) -> anyhow::Result<(Permissions, Vec<RuleError>)> {
    let mode = match given.mode.as_deref() {
        None | Some("") => PermissionMode::Default,
        Some(name) => {
            PermissionMode::from_name(name).with_context(|| format!("Unknown permission mode {name}."))?
        }
    };
    let start = given.cwd.clone();
    let anchors = Anchors { settings: start.clone(), start, roots: roots.to_vec(), home };
    let mut permissions = Permissions { mode, anchors: anchors.clone(), ..Permissions::default() };
    let lists = [
        (Behaviour::Deny, &given.rules.deny),
        (Behaviour::Ask, &given.rules.ask),
        (Behaviour::Allow, &given.rules.allow),
    ];
    let mut left_out = Vec::new();
    for (behaviour, list) in lists {
        for rule in list {
            match permissions.rules.add(behaviour, rule, RuleSource::session(), &anchors) {
                Err(error) if behaviour != Behaviour::Allow => return Err(anyhow!("{error}.")),
                Err(error) => left_out.push(error),
                Ok(()) => (),
            }
        }
    }
    Ok((permissions, left_out))
}

fn denial(id: Value, reason: String) -> BatchDecision {
    BatchDecision { id, decision: "deny", rule: None, reason }
}
