//! Peak resident memory, as the kernel counts it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use nix::sys::resource::{UsageWho, getrusage};

use crate::bench::start;
use crate::bench::{Contest, Row, Scenario, Subject};

const RUNS: usize = 5;
const MARK: &str = "peak resident kibibytes: ";

/// Runs a command line and says on stderr how much memory it had at most. In a process of its own, because the kernel
/// counts the memory of the parent at the moment of a start as the child's.
pub fn measure_peak(line: &[OsString]) -> Result<ExitCode> {
    let (binary, args) = line.split_first().context("usage: measure COMMAND [ARGUMENT…]")?;
    let status = Command::new(binary).args(args).status()?;
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    writeln!(std::io::stderr(), "{MARK}{peak}")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

pub(crate) fn peak(contest: &Contest, scenario: &Scenario, subject: &Subject) -> Result<f64> {
    let wrapper = [contest.harness.clone(), PathBuf::from("measure")];
    let sample = scenario.run_under(subject, false, &wrapper)?;
    peak_of(&sample.stderr)
}

/// Finds the peak in what the wrapper said, in MiB.
pub(crate) fn peak_of(stderr: &str) -> Result<f64> {
    let peak =
        stderr.lines().rev().find_map(|line| line.strip_prefix(MARK)).context("no peak was measured")?;
    let kibibytes: f64 = peak.parse().context("the peak is not a number")?;
    Ok(kibibytes / 1024.0)
}

pub(crate) fn one_answer(contest: &Contest) -> Result<Vec<Row>> {
    let scenario = start::one_answer(contest)?;
    let (mut ours, mut bare) = (0.0_f64, 0.0_f64);
    for _ in 0..RUNS {
        ours = ours.max(peak(contest, &scenario, &contest.windlass)?);
        bare = bare.max(peak(contest, &scenario, &contest.bare)?);
    }
    Ok(vec![Row::at_most("peak memory, one answer", "MiB", (ours, Some(bare)), 15.0)])
}
