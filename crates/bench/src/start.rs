//! Start-up: the version, the size, and the whole process for one short answer.

use std::process::Command;

use anyhow::Result;
use serde_json::json;

use crate::table::{median, milliseconds};
use crate::{Contest, Mode, Row, Scenario, process};

const VERSION_RUNS: usize = 80;
const ANSWER_RUNS: usize = 60;
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

pub(crate) fn answer(contest: &Contest) -> Result<Vec<Row>> {
    let scenario = one_answer(contest)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ANSWER_RUNS {
        ours.push(milliseconds(scenario.run(&contest.windlass, false)?.elapsed));
        bare.push(milliseconds(scenario.run(&contest.bare, false)?.elapsed));
    }
    let (ours, bare) = (median(ours), median(bare));
    let limit = (2.0 * bare, "≤ 2 × bare".to_owned());
    Ok(vec![Row::limited("one \"ok\" answer, whole process", "ms", (ours, Some(bare)), limit)])
}
