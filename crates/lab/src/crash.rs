//! Kills the real binary with `kill -9` at seeded random moments, resumes each time, and checks what is left.
//!
//! A run works through a script in which every response asks for calls that leave a trace: each command adds a line to a file of
//! its own. Nothing in the script is ever asked for twice. So whatever happens, three things can be checked from outside:
//! what was shown is in the log, no file has two lines, and what the model is told about a call is true.

mod check;
mod scenario;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use scenario::CrashScenario;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The binary.
    pub binary: PathBuf,
    /// How often it is killed.
    pub kills: u64,
    /// Where chance begins. The same seed makes the same plan, though not the same moments.
    pub seed: u64,
    /// A kill comes within this time after the start.
    pub within: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How often the binary was killed while it ran.
    pub kills: u64,
    /// Sessions that were brought to their end.
    pub sessions: u64,
    /// Messages that were shown before a kill, all of which were found in the log.
    pub acknowledged: u64,
    /// Calls whose result is known.
    pub finished: u64,
    /// Calls whose outcome was unknown, and told to be.
    pub unknown: u64,
    /// Calls that never started, and left no trace.
    pub never_started: u64,
    /// Torn ends that were set aside.
    pub torn: u64,
    /// Requests to the model, all of them valid.
    pub requests: u64,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// Kills and checks until the plan is fulfilled. The error says what was lost, done twice or not true, with the seed.
pub fn crash(plan: &Plan) -> Result<Report> {
    let began = Instant::now();
    let mut report = Report::default();
    while report.kills < plan.kills {
        let seed = plan.seed.wrapping_add(report.sessions);
        let scenario = CrashScenario::new(plan, seed)?;
        let part = scenario.play(plan.kills - report.kills).with_context(|| format!("seed {seed}"))?;
        report.add(&part);
    }
    report.elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(report)
}

impl Report {
    /// Adds what came of another plan.
    pub fn add(&mut self, part: &Self) {
        self.kills += part.kills;
        self.sessions += part.sessions;
        self.acknowledged += part.acknowledged;
        self.finished += part.finished;
        self.unknown += part.unknown;
        self.never_started += part.never_started;
        self.torn += part.torn;
        self.requests += part.requests;
        self.elapsed_ms += part.elapsed_ms;
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kills,
            sessions,
            acknowledged,
            finished,
            unknown,
            never_started,
            torn,
            requests,
            elapsed_ms,
        } = self;
        write!(
            f,
            "{kills} kills in {sessions} sessions: {acknowledged} messages were shown and none is lost; {finished} calls finished, \
             {unknown} are told to be of unknown outcome, {never_started} never started, none ran twice; {torn} torn ends set aside; \
             {requests} requests, all valid; {}.{} s",
            elapsed_ms / 1_000,
            elapsed_ms % 1_000 / 100
        )
    }
}

/// The finaliser of splitmix64, as a source of chance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrashRng(u64);

impl CrashRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }
}
