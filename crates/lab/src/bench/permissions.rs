//! What a decision about a call costs, in this very process: the same code as in the binary, built the same way.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use windlass_permission::{Anchors, Behaviour, PermissionCase, Permissions, RuleSource, decide_call};
use windlass_ports::ExamineContext;
use windlass_protocol::Verdict;
use windlass_shell::analyse;
use windlass_tools::describe;

use crate::bench::table::median;
use crate::bench::{Contest, Row};

/// What a model writes all day.
const LINE: &str =
    "git commit -m \"Read the settings before the log is opened\" && cargo test -p x 2>&1 | tail -20";
const RULES: usize = 100;
/// Decisions that are timed together, so that the clock costs nothing.
const BATCH: u32 = 200;
const BATCHES: usize = 51;
const LIMIT_US: f64 = 50.0;

/// A hundred rules of all kinds. None of them but the last two covers a part of the line, so each is looked at.
fn rules() -> Vec<(Behaviour, String)> {
    let kinds = [
        |n: usize| (Behaviour::Allow, format!("Bash(npm run task-{n}:*)")),
        |n: usize| (Behaviour::Allow, format!("Bash(git * branch-{n})")),
        |n: usize| (Behaviour::Deny, format!("Bash(deploy --stage-{n} *)")),
        |n: usize| (Behaviour::Ask, format!("Bash(terraform apply module-{n})")),
        |n: usize| (Behaviour::Allow, format!("Edit(src/part-{n}/**)")),
        |n: usize| (Behaviour::Deny, format!("Read(**/secret-{n}/*.pem)")),
        |n: usize| (Behaviour::Allow, format!("WebFetch(domain:*.docs-{n}.example)")),
        |n: usize| (Behaviour::Allow, format!("mcp__server-{n}__get_*")),
    ];
    let mut rules: Vec<(Behaviour, String)> = (0..RULES - 2).map(|n| kinds[n % kinds.len()](n)).collect();
    rules
        .extend(["Bash(git commit *)", "Bash(cargo test *)"].map(|rule| (Behaviour::Allow, rule.to_owned())));
    rules
}

fn permissions(root: &Path) -> Result<Permissions> {
    let anchors = Anchors {
        settings: root.to_owned(),
        start: root.to_owned(),
        roots: vec![root.to_owned()],
        home: std::env::home_dir(),
    };
    let mut permissions = Permissions { anchors: anchors.clone(), ..Permissions::default() };
    for (behaviour, rule) in rules() {
        permissions.rules.add(behaviour, &rule, RuleSource::session(), &anchors)?;
    }
    Ok(permissions)
}

/// The median time of one run, in microseconds.
fn micros<T>(mut run: impl FnMut() -> T) -> f64 {
    let batch = |_| {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(run());
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH)
    };
    median((0..BATCHES).map(batch).collect())
}

pub(crate) fn run(_: &Contest) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let roots = [folder.path().canonicalize()?];
    let permissions = permissions(&roots[0])?;
    let hidden = permissions.rules.hidden_from(&[]).map(windlass_ports::HiddenPaths::new).unwrap_or_default();
    let cx = ExamineContext { cwd: roots[0].clone(), roots: roots.to_vec().into(), hidden };
    let input: Value = json!({ "command": LINE });
    let facts = || describe("Bash", &input, &cx);
    let known = facts().map_err(anyhow::Error::msg)?;
    let verdict = |facts: &_| decide_call(&PermissionCase::new("Bash", facts, &permissions, &roots)).verdict;
    ensure!(
        verdict(&known) == Verdict::Allow,
        "the line that is measured must pass by the last of the rules"
    );
    let whole = micros(|| facts().map(|facts| verdict(&facts)));
    let row = |what: &str, micros: f64| Row::at_most(what, "µs", (micros, None), LIMIT_US);
    Ok(vec![
        row("permission of a line of three commands, 100 rules", whole),
        row("… of that: the decision", micros(|| verdict(&known))),
        row("… of that: reading the line", micros(|| analyse(LINE))),
    ])
}
