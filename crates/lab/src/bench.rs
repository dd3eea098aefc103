//! The benchmarks: the release binary against the bare client, in the same run, on the same scripted server.
//!
//! Purpose: the limits on speed and size, each printed as a row with both numbers and a verdict. Invariant: both
//! programs get the same responses from the same kind of server and are run in turn, so that a noisy machine is
//! noisy for both; a number without its limit is not printed.

mod deltas;
mod hooks;
mod logging;
mod long;
mod memory;
mod permissions;
mod process;
mod scenario;
mod sessions;
mod start;
mod table;
mod tools;
mod turns;

use anyhow::{Result, bail};

pub use memory::measure_peak;
pub use process::{BenchProgram, Subject};
pub use scenario::{Mode, Sample, Scenario};
pub use table::{Row, table};

pub use deltas::{delta_latencies, delta_script};
pub use tools::{cat_run, cat_script, early_script};
pub use turns::{Gap, gaps, turn_script};

/// The two programs, and the program that measures the memory of another.
#[derive(Debug)]
pub struct Contest {
    /// The release binary.
    pub windlass: Subject,
    /// The bare client.
    pub bare: Subject,
    /// The harness itself, for `measure`.
    pub harness: std::path::PathBuf,
}

type Part = (&'static str, fn(&Contest) -> Result<Vec<Row>>);

/// The parts, by the names that can be asked for.
const PARTS: &[Part] = &[
    ("version", start::version),
    ("size", start::size),
    ("answer", start::answer),
    ("memory", memory::one_answer),
    ("turns", turns::run),
    ("early", tools::early),
    ("cats", tools::cats),
    ("latency", deltas::latency),
    ("throughput", deltas::throughput),
    ("long", long::run),
    ("sessions", sessions::run),
    ("log", logging::run),
    ("permissions", permissions::run),
    ("hooks", hooks::run),
];

/// Runs the named parts, or all, and hands each row to `show` when it is known. Whether all passed.
pub fn run(contest: &Contest, names: &[String], mut show: impl FnMut(&str, &[Row])) -> Result<bool> {
    if let Some(unknown) = names.iter().find(|name| PARTS.iter().all(|(part, _)| part != name)) {
        let known: Vec<_> = PARTS.iter().map(|(name, _)| *name).collect();
        bail!("unknown part `{unknown}`; the parts are {}", known.join(", "));
    }
    let mut passed = true;
    for (name, part) in
        PARTS.iter().filter(|(part, _)| names.is_empty() || names.iter().any(|name| name == part))
    {
        let rows = part(contest)?;
        passed &= rows.iter().all(|row| row.is_within_limit);
        show(name, &rows);
    }
    Ok(passed)
}
