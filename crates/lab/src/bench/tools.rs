//! Tools: started while the model still talks, and side by side.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::stat::Mode as Permissions;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::bench::table::{median, milliseconds};
use crate::bench::turns::gaps;
use crate::bench::{Contest, Mode, Row, Scenario, Subject};

const EARLY_RUNS: usize = 5;
const CAT_RUNS: usize = 7;
const CATS: usize = 10;
const CAT_TAKES: Duration = Duration::from_millis(300);

/// A command of some length at the beginning of a stream of some length, in milliseconds.
#[must_use]
pub fn early_script(tool_ms: u64, stream_ms: u64) -> Value {
    let seconds = format!("{}.{:03}", tool_ms / 1000, tool_ms % 1000);
    let pieces = 20;
    let text = "still talking ".repeat(pieces);
    json!({ "responses": [
        {
            "blocks": [
                { "tool": "Bash", "input": { "command": format!("sleep {seconds}") } },
                { "text": text },
            ],
            "delta_chars": 14,
            "delta_delay_ms": stream_ms / pieces as u64,
        },
        { "blocks": [{ "text": "ok" }] },
    ] })
}

pub(crate) fn early(contest: &Contest) -> Result<Vec<Row>> {
    let scenario = Scenario::new(&early_script(1_000, 2_000), Mode::Tools)?;
    scenario.record(&contest.windlass)?;
    let after = |subject: &Subject| -> Result<f64> {
        let gaps = gaps(&scenario.run(subject, false)?.exchanges)?;
        Ok(gaps.first().context("there was no second request")?.first_byte)
    };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..EARLY_RUNS {
        ours.push(after(&contest.windlass)?);
        bare.push(after(&contest.bare)?);
    }
    let numbers = (median(ours), Some(median(bare)));
    Ok(vec![Row::at_most("1 s tool in a 2 s stream: added after the stream", "ms", numbers, 3.0)])
}

/// So many calls of `cat` in one response, each on a pipe of its own.
#[must_use]
pub fn cat_script(cats: usize) -> Value {
    let call = |n: usize| json!({ "tool": "Bash", "input": { "command": format!("cat {}", pipe_name(n)) } });
    let calls: Vec<Value> = (0..cats).map(call).collect();
    json!({ "responses": [{ "blocks": calls }, { "blocks": [{ "text": "ok" }] }] })
}

fn pipe_name(n: usize) -> String {
    format!("pipe-{n}")
}

pub(crate) fn cats(contest: &Contest) -> Result<Vec<Row>> {
    let scenario = Scenario::new(&cat_script(CATS), Mode::Tools)?;
    with_pipes(&scenario, CATS, Duration::ZERO, || scenario.record(&contest.windlass))?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CAT_RUNS {
        ours.push(cat_run(&scenario, &contest.windlass, CATS, CAT_TAKES)?);
        bare.push(cat_run(&scenario, &contest.bare, CATS, CAT_TAKES)?);
    }
    let (ours, bare) = (median(ours), median(bare));
    let limit = ((bare + 20.0).max(340.0), "≤ 340 ms or bare + 20 ms".to_owned());
    Ok(vec![Row::limited("ten 300 ms cat calls in one response", "ms", (ours, Some(bare)), limit)])
}

/// From the beginning of the response with the calls to the request with their results, in milliseconds.
pub fn cat_run(scenario: &Scenario, subject: &Subject, cats: usize, takes: Duration) -> Result<f64> {
    let sample = with_pipes(scenario, cats, takes, || scenario.run(subject, false))?;
    let [first, second, ..] = &sample.exchanges[..] else {
        anyhow::bail!("there was no second request");
    };
    let reply = first.reply.as_ref().context("the response is not over")?;
    let began = reply.events.first().context("the response has no events")?;
    Ok(milliseconds(second.first_byte.saturating_duration_since(*began)))
}

/// Runs something while each pipe is fed some time after its reader came.
fn with_pipes<T>(
    scenario: &Scenario,
    count: usize,
    takes: Duration,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let paths: Vec<PathBuf> = (0..count).map(|n| scenario.project().path().join(pipe_name(n))).collect();
    for path in paths.iter().filter(|path| !path.exists()) {
        mkfifo(path, Permissions::S_IRUSR | Permissions::S_IWUSR)?;
    }
    std::thread::scope(|scope| {
        for path in &paths {
            scope.spawn(move || feed(path, takes));
        }
        let result = run();
        for path in &paths {
            release(path);
        }
        result
    })
}

/// Waits for a reader, lets it wait, and gives it a line. A reader that has left is its own business.
fn feed(path: &Path, takes: Duration) {
    if let Ok(mut pipe) = OpenOptions::new().write(true).open(path) {
        std::thread::sleep(takes);
        let _ = pipe.write_all(b"ok\n");
    }
}

/// Ends the wait of a feeder whose reader never came: a pipe that is open both ways has a reader.
fn release(path: &Path) {
    drop(OpenOptions::new().read(true).write(true).open(path));
}
