//! What hooks cost that are configured and not meant: asking them about a call, in this very process.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use windlass_hooks::{HookHost, HookSet, HookSource, SettingsHooks};
use windlass_ports::{CancellationToken, HookRunner as _};
use windlass_protocol::{
    CallFacts, CallKind, ExaminedCall, HookCall, HookScene, RawValue, ToolProfile, ToolUse,
};

use crate::bench::table::median;
use crate::bench::{Contest, Row};

/// Hooks of each kind that are configured: other events, names and patterns of other tools.
const HOOKS: usize = 50;
/// Questions that are timed together, so that the clock costs nothing.
const BATCH: u32 = 500;
const BATCHES: usize = 51;
const LIMIT_US: f64 = 5.0;
/// Where a hook would leave its trace, if one were started.
const TRACE: &str = "started";

/// Hooks none of which is for a call of Bash.
fn hooks() -> Value {
    let group = |n: usize| {
        let matcher = if n.is_multiple_of(2) {
            format!("mcp__tool{n}__run|Write|Edit")
        } else {
            format!("^mcp__server{n}__.*")
        };
        json!({"matcher": matcher, "hooks": [{"type": "command", "command": format!("touch {TRACE}; exit 2")}]})
    };
    let of_calls: Vec<Value> = (0..HOOKS / 2).map(group).collect();
    let after: Vec<Value> = (HOOKS / 2..HOOKS).map(group).collect();
    json!({"PreToolUse": of_calls, "PostToolUse": after})
}

fn runner(hooks: &Value, place: &Path) -> Result<SettingsHooks> {
    let mut set = HookSet::default();
    let problems = set.read(hooks, &HookSource::settings("the benchmark"));
    ensure!(problems.is_empty(), "the hooks that are measured must be sound: {problems:?}");
    Ok(SettingsHooks::new(set, HookHost::new(place.to_owned())))
}

fn question() -> Result<HookCall> {
    let input = RawValue::from_string(json!({"command": "cargo test -p x 2>&1 | tail -20"}).to_string())?;
    let tool_use = ToolUse { id: "toolu_1".into(), name: "Bash".into(), input: input.into() };
    let facts = Arc::new(CallFacts::new(CallKind::Execute));
    let call = ExaminedCall { tool: "Bash".into(), profile: ToolProfile::named("Bash"), tool_use, facts };
    Ok(HookCall::PreToolUse(call))
}

/// The median time of one question and its answer, in microseconds.
fn micros(runtime: &tokio::runtime::Runtime, hooks: &SettingsHooks, place: &Path) -> Result<f64> {
    let scene = HookScene { cwd: Arc::new(place.to_owned()), mode: "default", ..HookScene::default() };
    let call = question()?;
    let batch = |_| {
        let start = Instant::now();
        runtime.block_on(async {
            for _ in 0..BATCH {
                black_box(hooks.run(call.clone(), scene.clone(), CancellationToken::new()).await);
            }
        });
        start.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH)
    };
    Ok(median((0..BATCHES).map(batch).collect()))
}

pub(crate) fn run(_: &Contest) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let place = folder.path();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let none = micros(&runtime, &runner(&json!({}), place)?, place)?;
    let unmeant = micros(&runtime, &runner(&hooks(), place)?, place)?;
    ensure!(!place.join(TRACE).exists(), "a hook that is not meant was started");
    let extra = (unmeant - none).max(0.0);
    let what = format!("asking {HOOKS} hooks of which none is meant: more than asking none");
    Ok(vec![Row::at_most(&what, "µs", (extra, None), LIMIT_US)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit is for the release build; that nothing is started holds for every build.
    #[test]
    fn a_hook_that_is_not_meant_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let runner = runner(&hooks(), folder.path()).unwrap();
        assert!(micros(&runtime, &runner, folder.path()).unwrap() > 0.0);
        assert!(!folder.path().join(TRACE).exists());
    }
}
