//! Many turns: what the engine adds between an answer and the next request, and what it holds on to.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use windlass_testkit::Exchange;

use crate::bench::memory;
use crate::bench::table::{median, milliseconds};
use crate::bench::{Contest, Mode, Row, Sample, Scenario, Subject};

const TURNS: usize = 400;
const RUNS: usize = 3;
/// Gaps of so many turns up to the one in question are taken together.
const NEIGHBOURS: usize = 20;
/// The limit below which no ratio counts.
const GAP_MS_MAX: f64 = 0.6;

/// From the end of an answer to the next request.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    /// To the first byte of the request, in milliseconds.
    pub first_byte: f64,
    /// Until it is read as a whole, in milliseconds.
    pub read: f64,
}

/// Reads a file of its own in each turn, then answers.
#[must_use]
pub fn turn_script(turns: usize) -> Value {
    let turn = |turn: usize| json!({ "blocks": [{ "tool": "Read", "input": { "file_path": name(turn) } }] });
    let mut responses: Vec<Value> = (0..turns).map(turn).collect();
    responses.push(json!({ "blocks": [{ "text": "ok" }] }));
    json!({ "responses": responses })
}

fn name(turn: usize) -> String {
    format!("file-{turn}.txt")
}

/// The gaps after each answer but the last.
pub fn gaps(exchanges: &[Exchange]) -> Result<Vec<Gap>> {
    let gap = |pair: &[Exchange]| {
        let ended = pair[0].reply.as_ref().context("a response is not over")?.ended;
        let since = |at: std::time::Instant| milliseconds(at.saturating_duration_since(ended));
        Ok(Gap { first_byte: since(pair[1].first_byte), read: since(pair[1].read) })
    };
    exchanges.windows(2).map(gap).collect()
}

pub(crate) fn run(contest: &Contest) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let (small, last_body) = scenario(contest, 2_000)?;
    let (gaps, peak) = measure(contest, &small, "2 KB results")?;
    rows.extend(gaps);
    let peaks = (peak, Some(bare_peak(contest, &last_body)?));
    rows.push(Row::at_most(&format!("peak memory after {TURNS} turns, 2 KB results"), "MiB", peaks, 35.0));
    let (large, last_body) = scenario(contest, 2_700)?;
    ensure!(last_body.len() >= 1_000_000, "the history reached only {} bytes, not 1 MB", last_body.len());
    rows.extend(measure(contest, &large, "1 MB of history at turn 400")?.0);
    Ok(rows)
}

/// The scenario, and the last of its requests.
fn scenario(contest: &Contest, file_bytes: usize) -> Result<(Scenario, Arc<[u8]>)> {
    let scenario = Scenario::new(&turn_script(TURNS), Mode::Answer)?;
    let line = "let answer = question.ponder(7_500_000).await;\n";
    for turn in 0..TURNS {
        let text: String =
            format!("// {turn}\n").chars().chain(line.chars().cycle()).take(file_bytes).collect();
        scenario.project().write(name(turn), text)?;
    }
    let last_body = scenario.record(&contest.windlass)?;
    Ok((scenario, last_body))
}

/// What the bare client holds at most when it sends this request alone. So that reading costs it no time between
/// requests, it holds those of a whole scenario from the beginning, which nobody must.
fn bare_peak(contest: &Contest, body: &[u8]) -> Result<f64> {
    let scenario = Scenario::new(&turn_script(0), Mode::Answer)?;
    scenario.keep_bodies([body])?;
    let peaks = (0..RUNS).map(|_| memory::peak(contest, &scenario, &contest.bare));
    peaks.collect::<Result<Vec<f64>>>().map(|peaks| peaks.into_iter().fold(0.0, f64::max))
}

/// The gaps, and the most memory the binary had.
fn measure(contest: &Contest, scenario: &Scenario, what: &str) -> Result<(Vec<Row>, f64)> {
    let wrapper = [contest.harness.clone(), PathBuf::from("measure")];
    let sample = |subject: &Subject| -> Result<Sample> { scenario.run_under(subject, false, &wrapper) };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let mut peak = 0.0_f64;
    for _ in 0..RUNS {
        let run = sample(&contest.windlass)?;
        peak = peak.max(memory::peak_of(&run.stderr)?);
        ours.push(gaps(&run.exchanges)?);
        bare.push(gaps(&sample(&contest.bare)?.exchanges)?);
    }
    let mut rows = Vec::new();
    for turn in [100, TURNS] {
        let to =
            [("first byte", (|gap: &Gap| gap.first_byte) as fn(&Gap) -> f64), ("fully read", |gap| gap.read)];
        for (end, of) in to {
            let name = format!("answer to next request, {end}, turn {turn}, {what}");
            rows.push(gap_row(&name, around(&ours, turn, of), around(&bare, turn, of)));
        }
    }
    Ok((rows, peak))
}

/// The median over the turns up to the given one, in all runs.
fn around(runs: &[Vec<Gap>], turn: usize, of: fn(&Gap) -> f64) -> f64 {
    let neighbours = |gaps: &Vec<Gap>| -> Vec<f64> {
        gaps.iter().take(turn).skip(turn.saturating_sub(NEIGHBOURS)).map(of).collect()
    };
    median(runs.iter().flat_map(neighbours).collect())
}

fn gap_row(what: &str, ours: f64, bare: f64) -> Row {
    let limit = (2.0 * bare).max(GAP_MS_MAX);
    Row::limited(what, "ms", (ours, Some(bare)), (limit, format!("≤ 2 × bare or {GAP_MS_MAX} ms")))
}
