//! Start-up: the version, the size, and the whole process for one short answer.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::bench::scenario::RunVariant;
use crate::bench::table::{median, milliseconds};
use crate::bench::{Contest, Mode, Row, Scenario, process};

const VERSION_RUNS: usize = 80;
const ANSWER_RUNS: usize = 60;
const ANSWER_MS_MAX: f64 = 5.0;
const ANSWER_RATIO_MAX: f64 = 2.5;
/// About what the log of one answer holds.
const LOG_BYTES: usize = 6_000;
const MEBIBYTE: f64 = 1_048_576.0;

pub(crate) fn version(contest: &Contest) -> Result<Vec<Row>> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..VERSION_RUNS {
        for (subject, times) in [(&contest.windlass, &mut ours), (&contest.bare, &mut bare)] {
            let mut command = Command::new(&subject.binary);
            command.arg("--version").env_clear();
            times.push(milliseconds(process::run(command, None)?.elapsed));
        }
    }
    Ok(vec![Row::at_most("--version, whole process", "ms", (median(ours), Some(median(bare))), 3.0)])
}

pub(crate) fn size(contest: &Contest) -> Result<Vec<Row>> {
    let [ours, bare] = [&contest.windlass, &contest.bare].map(|subject| std::fs::metadata(&subject.binary));
    #[expect(clippy::cast_precision_loss, reason = "sizes of binaries are far below 2^52")]
    let mebibytes = |bytes: u64| bytes as f64 / MEBIBYTE;
    let sizes = (mebibytes(ours?.len()), Some(mebibytes(bare?.len())));
    Ok(vec![Row::at_most("size of the binary", "MiB", sizes, 25.0)])
}

/// The scenario of one short answer.
pub(crate) fn one_answer(contest: &Contest) -> Result<Scenario> {
    let scenario = Scenario::new(&json!({ "responses": [{ "blocks": [{ "text": "ok" }] }] }), Mode::Answer)?;
    scenario.record(&contest.windlass)?;
    Ok(scenario)
}

/// A new session ends with its log on the disk. What the disk takes for a new file and its name is measured beside.
pub(crate) fn answer(contest: &Contest) -> Result<Vec<Row>> {
    let scenario = one_answer(contest)?;
    let [mut ours, mut unsynced, mut unkept, mut bare, mut syncs] = [const { Vec::new() }; 5];
    let never = RunVariant { variables: &[("WINDLASS_SYNC", "never")], ..RunVariant::default() };
    for number in 0..ANSWER_RUNS {
        ours.push(milliseconds(scenario.run(&contest.windlass, false)?.elapsed));
        unsynced.push(milliseconds(scenario.run_as(&contest.windlass, false, never)?.elapsed));
        unkept.push(milliseconds(scenario.run_as(&contest.windlass, false, RunVariant::UNLOGGED)?.elapsed));
        bare.push(milliseconds(scenario.run(&contest.bare, false)?.elapsed));
        syncs.push(new_file_ms(&scenario.project().home().join(format!("probe-{number}")))?);
    }
    let [ours, unsynced, unkept, bare, sync] = [ours, unsynced, unkept, bare, syncs].map(median);
    let name = "one \"ok\" answer, whole process";
    let limit = ANSWER_MS_MAX.min(ANSWER_RATIO_MAX * bare);
    let rule = format!("≤ {ANSWER_MS_MAX} ms and {ANSWER_RATIO_MAX} × bare");
    let allowed = (limit + sync, format!("{rule}, + {sync:.2} ms of the disk"));
    let added = (1.0 + sync, format!("≤ 1 ms + {sync:.2} ms of the disk"));
    Ok(vec![
        Row::limited(name, "ms", (ours, Some(bare)), allowed),
        Row::limited(&format!("{name}, sync never"), "ms", (unsynced, Some(bare)), (limit, rule)),
        Row::limited("log: added to the whole process of one answer", "ms", (ours - unkept, None), added),
    ])
}

/// What it takes to get a new file of a few lines and its name onto the disk.
fn new_file_ms(path: &Path) -> Result<f64> {
    let mut file = File::create_new(path)?;
    file.write_all(&[b'x'; LOG_BYTES])?;
    let folder = path.parent().context("a file without a folder")?;
    let began = Instant::now();
    file.sync_data()?;
    File::open(folder)?.sync_all()?;
    Ok(milliseconds(began.elapsed()))
}
