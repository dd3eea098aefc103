//! Deltas: how soon each one is out, and what very many of them cost.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::bench::table::{median, milliseconds};
use crate::bench::{Contest, Mode, Row, Sample, Scenario, Subject};

const LATENCY_DELTAS: usize = 400;
const LATENCY_RUNS: usize = 3;
const PACE_MS: u64 = 5;
const FEW: usize = 5_000;
const MANY: usize = 20_000;
const THROUGHPUT_RUNS: usize = 9;
/// Four times the deltas may take so many times as long: the rest is noise.
const GROWTH_MAX: f64 = 5.0;

/// Events of a response before its first delta: the start of the message and of the block.
const EVENTS_BEFORE: usize = 2;
const DELTA_CHARS: usize = 8;

/// A response of so many text deltas with a wait before each.
#[must_use]
pub fn delta_script(deltas: usize, pace_ms: u64) -> Value {
    let words: Vec<String> = (0..deltas).map(|n| format!("d{n:0width$} ", width = DELTA_CHARS - 2)).collect();
    let text = words.concat();
    json!({ "responses": [
        { "blocks": [{ "text": text }], "delta_chars": DELTA_CHARS, "delta_delay_ms": pace_ms },
    ] })
}

/// From each delta's leaving the server to its line on stdout, in milliseconds.
pub fn delta_latencies(sample: &Sample, deltas: usize) -> Result<Vec<f64>> {
    let reply = sample.exchanges.first().and_then(|exchange| exchange.reply.as_ref());
    let sent = &reply.context("there was no response")?.events;
    ensure!(sample.lines.len() == deltas, "{} lines came for {deltas} deltas", sample.lines.len());
    let pairs = sent.iter().skip(EVENTS_BEFORE).zip(&sample.lines);
    Ok(pairs.map(|(sent, seen)| milliseconds(seen.saturating_duration_since(*sent))).collect())
}

pub(crate) fn latency(contest: &Contest) -> Result<Vec<Row>> {
    let scenario = Scenario::new(&delta_script(LATENCY_DELTAS, PACE_MS), Mode::Deltas)?;
    scenario.record(&contest.windlass)?;
    let latencies = |subject: &Subject| delta_latencies(&scenario.run(subject, true)?, LATENCY_DELTAS);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..LATENCY_RUNS {
        ours.extend(latencies(&contest.windlass)?);
        bare.extend(latencies(&contest.bare)?);
    }
    Ok(vec![Row::at_most(
        "delta to its line on stdout, median",
        "ms",
        (median(ours), Some(median(bare))),
        0.3,
    )])
}

pub(crate) fn throughput(contest: &Contest) -> Result<Vec<Row>> {
    let none = crate::bench::start::one_answer(contest)?;
    let scenario = |deltas: usize| -> Result<Scenario> {
        let scenario = Scenario::new(&delta_script(deltas, 0), Mode::Deltas)?;
        scenario.record(&contest.windlass)?;
        Ok(scenario)
    };
    let scenarios = [none, scenario(FEW)?, scenario(MANY)?];
    let mut times: [[Vec<f64>; 2]; 3] = Default::default();
    for _ in 0..THROUGHPUT_RUNS {
        for (scenario, times) in scenarios.iter().zip(&mut times) {
            times[0].push(milliseconds(scenario.run(&contest.windlass, false)?.elapsed));
            times[1].push(milliseconds(scenario.run(&contest.bare, false)?.elapsed));
        }
    }
    let [none, few, many] = times.map(|times| times.map(median));
    let growth = |who: usize| (many[who] - none[who]) / (few[who] - none[who]).max(0.001);
    let limit = (many[1] + 150.0, "≤ bare + 150 ms".to_owned());
    let linear = (GROWTH_MAX, format!("≤ {GROWTH_MAX} × (linear is 4 ×)"));
    Ok(vec![
        Row::limited("20,000 deltas, whole process", "ms", (many[0], Some(many[1])), limit),
        Row::limited("20,000 deltas against 5,000", "×", (growth(0), Some(growth(1))), linear),
    ])
}
