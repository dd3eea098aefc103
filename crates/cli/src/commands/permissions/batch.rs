//! Cases from standard input, each with its own rules, decided one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, LineWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_engine::protocol::{CallFacts, Ruling, UrlFact, Verdict};
use windlass_engine::{
    Anchors, Answerer, Behaviour, PermissionCase, PermissionMode, Permissions, RuleError, RuleSource,
    hidden_paths, judge,
};
use windlass_ports::ExamineContext;
use windlass_text::nearest::closest;
use windlass_tools::{describe, redirected};

use crate::complain;

/// The fields of a case.
const FIELDS: [&str; 8] = ["additional_dirs", "cwd", "id", "input", "mode", "redirect_to", "rules", "tool"];

/// What somebody calls rules who puts them in the wrong place.
const LISTS: [&str; 4] = ["allow", "ask", "deny", "permissions"];

/// One case.
#[derive(Deserialize)]
struct Given {
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
            Err(error) => Err((Value::Null, error.to_string())),
        };
        let decided = decided.unwrap_or_else(|(id, error)| {
            code = 1;
            complain(&format!("line {}: {error}.", number + 1));
            denied(id, format!("This case cannot be read: {error}."))
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
fn decide_line(number: usize, line: &str) -> Result<BatchDecision, (Value, String)> {
    let given: Given = serde_json::from_str(line).map_err(|error| {
        let case = serde_json::from_str::<Value>(line).unwrap_or_default();
        (case.get("id").cloned().unwrap_or_default(), error.to_string())
    })?;
    match unknown(line).into_iter().find_map(|(name, value)| misspelt(&name, value)) {
        Some(problem) => Err((given.id, problem)),
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

fn decide(number: usize, given: &Given) -> BatchDecision {
    let id = given.id.clone();
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let roots = roots(&given.cwd, &given.additional_dirs);
    let permissions = match permissions(given, &roots, home) {
        Ok((permissions, left_out)) => {
            for error in left_out {
                complain(&format!("line {number}: {error}; ignored."));
            }
            permissions
        }
        Err(problem) => return denied(id, problem.to_string()),
    };
    let hidden = hidden_paths(&permissions.rules);
    let cx = ExamineContext { cwd: given.cwd.clone(), roots: roots.clone().into(), hidden };
    let input: Value = serde_json::from_str(given.input.get()).unwrap_or_default();
    let facts = match describe(&given.tool, &input, &cx) {
        Ok(facts) => facts,
        Err(problem) => {
            let problem = problem.trim_end_matches('.');
            return denied(id, format!("{} rejects this input: {problem}.", given.tool));
        }
    };
    let judged = |facts: &CallFacts| {
        let case = PermissionCase::new(&given.tool, facts, &permissions, &roots);
        judge(&PermissionCase { input: &given.input, cwd: &given.cwd, ..case })
    };
    let mut ruling = judged(&facts);
    if let (Verdict::Allow, Some(url), Some(target)) = (ruling.verdict, &facts.url, &given.redirect_to) {
        ruling = match redirected(url, target) {
            Ok(target) if is_same_place(url, &target) => ruling,
            Ok(url) => {
                let target = url.text.clone();
                let after = judged(&CallFacts { url: Some(url), target, ..facts.clone() });
                Ruling { reason: format!("After a redirect: {}", after.reason), ..after }
            }
            Err(problem) => return denied(id, format!("The redirect is not followed: {problem}.")),
        };
    }
    let Ruling { verdict, rule, reason, .. } = super::explain::told(ruling);
    BatchDecision { id, decision: verdict.name(), rule: rule.map(|rule| rule.text.to_string()), reason }
}

/// A redirection to the same host, not to a weaker connection, is part of the same decision.
fn is_same_place(from: &UrlFact, to: &UrlFact) -> bool {
    from.host == to.host && (to.secure || !from.secure)
}

/// Every directory by its own name and by what it leads to.
pub(super) fn roots(cwd: &Path, added: &[PathBuf]) -> Vec<PathBuf> {
    let mut roots = Vec::new();
    let named = std::iter::once(cwd.to_owned()).chain(added.iter().map(|path| cwd.join(path)));
    for path in named {
        let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
        for path in [resolved, path] {
            if !roots.contains(&path) {
                roots.push(path);
            }
        }
    }
    roots
}

/// The permissions of a case, and unreadable allow rules that are left out; others are an error.
fn permissions(
    given: &Given,
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
    let mut permissions =
        Permissions { mode, asking: Answerer::Person, anchors: anchors.clone(), ..Permissions::default() };
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

fn denied(id: Value, reason: String) -> BatchDecision {
    BatchDecision { id, decision: "deny", rule: None, reason }
}
