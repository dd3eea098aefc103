//! What has to be true when a session has come to its end.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::crash::Report;
use crate::crash::scenario::CrashScenario;

/// What a call came to, as the model is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToldOutcome {
    Finished,
    Unknown,
    NeverStarted,
    Repeatable,
}

/// Checks everything, and counts.
pub(crate) fn all(scenario: &CrashScenario, report: &mut Report) -> Result<()> {
    let refusals = scenario.server.refusals();
    ensure!(refusals.is_empty(), "requests were not valid: {refusals:?}");
    let exchanges = scenario.server.exchanges();
    report.requests += count(exchanges.len());
    let last = exchanges.last().context("no request was made")?.json();
    let results = results(&last)?;
    for (id, told) in &results {
        check_call(scenario, id, *told)?;
        match told {
            ToldOutcome::Finished => report.finished += 1,
            ToldOutcome::Unknown => report.unknown += 1,
            ToldOutcome::NeverStarted => report.never_started += 1,
            ToldOutcome::Repeatable => {}
        }
    }
    check_traces(scenario)?;
    let log = scenario.log().context("there is no log")?;
    let side = std::fs::read_dir(log.with_extension("")).into_iter().flatten().flatten();
    let torn = side.filter(|file| file.file_name().to_string_lossy().starts_with("torn-"));
    report.torn += count(torn.count());
    Ok(())
}

/// What the model is told about a call is true.
fn check_call(scenario: &CrashScenario, id: &str, told: ToldOutcome) -> Result<()> {
    let (kind, step) = id.split_once('-').unwrap_or((id, ""));
    let (file, whole) = match kind {
        "count" => (format!("counter-{step}"), format!("{step}\n")),
        "write" => (format!("file-{step}.txt"), format!("{step}\n")),
        _ => return Ok(()),
    };
    let content = scenario.project.read(&file).ok();
    match (told, content) {
        (ToldOutcome::Finished, Some(content)) if content == whole => Ok(()),
        (ToldOutcome::NeverStarted | ToldOutcome::Unknown, None) => Ok(()),
        (ToldOutcome::Unknown, Some(content)) if content == whole => Ok(()),
        // A shell opens the file before it writes: one that dies in between leaves it empty. The Write tool never does.
        (ToldOutcome::Unknown, Some(content)) if kind == "count" && content.is_empty() => Ok(()),
        (told, content) => bail!("the model is told that {id} is {told:?}, and {file} holds {content:?}"),
    }
}

/// No file has two lines: nothing ran twice. What nobody knows of any more did not run at all.
fn check_traces(scenario: &CrashScenario) -> Result<()> {
    for file in std::fs::read_dir(scenario.project.path())?.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with("counter-") {
            let lines = scenario.project.read(&name)?.lines().count();
            ensure!(lines <= 1, "{name} has {lines} lines: a command ran twice");
        }
    }
    Ok(())
}

/// The results in a request, by call; each call has exactly one.
fn results(request: &Value) -> Result<BTreeMap<String, ToldOutcome>> {
    let mut results = BTreeMap::new();
    let messages = request["messages"].as_array().context("a request without messages")?;
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
    for block in blocks.filter(|block| block["type"] == "tool_result") {
        let id = block["tool_use_id"].as_str().context("a result without a call")?.to_owned();
        let text = block["content"].to_string();
        let told = if text.contains("whether it took effect is unknown") {
            ToldOutcome::Unknown
        } else if text.contains("cut off before this call started") {
            ToldOutcome::NeverStarted
        } else if text.contains("only reads") {
            ToldOutcome::Repeatable
        } else {
            ToldOutcome::Finished
        };
        ensure!(results.insert(id.clone(), told).is_none(), "{id} has two results");
    }
    Ok(results)
}

/// The entries of a log, by id. What cannot be read is none.
pub(crate) fn entries(log: &Path) -> Result<BTreeMap<String, Value>> {
    let text = std::fs::read(log)?;
    let lines =
        text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    Ok(lines.filter_map(|line| Some((line["uuid"].as_str()?.to_owned(), line))).collect())
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
