//! Many turns: what the engine adds between an answer and the next request, and what it holds on to.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use windlass_testkit::Exchange;

use crate::memory::peak_of;
use crate::table::{median, milliseconds};
use crate::{Contest, Mode, Row, Sample, Scenario, Subject};

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
    let small = scenario(contest, 2_000)?;
    rows.extend(measure(contest, &small, "2 KB results")?);
    let large = scenario(contest, 2_700)?;
    rows.extend(measure(contest, &large, "1 MB of history at turn 400")?);
    Ok(rows)
}

fn scenario(contest: &Contest, file_bytes: usize) -> Result<Scenario> {
    let scenario = Scenario::new(&turn_script(TURNS), Mode::Answer)?;
    let line = "let answer = question.ponder(7_500_000).await;\n";
    for turn in 0..TURNS {
        let text: String =
            format!("// {turn}\n").chars().chain(line.chars().cycle()).take(file_bytes).collect();
        scenario.project().write(name(turn), text)?;
    }
    scenario.record(&contest.windlass)?;
    Ok(scenario)
}

fn measure(contest: &Contest, scenario: &Scenario, what: &str) -> Result<Vec<Row>> {
    let wrapper = [contest.harness.clone(), PathBuf::from("measure")];
    let sample = |subject: &Subject| -> Result<Sample> { scenario.run_under(subject, false, &wrapper) };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let (mut peak, mut body_bytes) = (0.0_f64, 0);
    for _ in 0..RUNS {
        let run = sample(&contest.windlass)?;
        peak = peak.max(peak_of(&run.stderr)?);
        body_bytes = run.exchanges.last().map_or(0, |exchange| exchange.body_bytes);
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
    if what.starts_with("1 MB") {
        ensure!(body_bytes >= 1_000_000, "the history reached only {body_bytes} bytes, not 1 MB");
    } else {
        rows.push(Row::at_most(
            &format!("peak memory after {TURNS} turns, {what}"),
            "MiB",
            (peak, None),
            35.0,
        ));
    }
    Ok(rows)
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
