//! The binary is killed at random moments, and nothing that was shown is lost, done twice or told wrong.

use std::time::Duration;

use windlass_lab::crash::{Plan, crash};

use crate::support::WINDLASS;

#[test]
fn two_hundred_kills_lose_nothing_and_repeat_nothing() {
    let seed =
        std::env::var("WINDLASS_CRASH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_115);
    let plan = Plan { binary: WINDLASS.into(), kills: 200, seed, within: Duration::from_millis(250) };
    let report = crash(&plan).unwrap_or_else(|error| panic!("with WINDLASS_CRASH_SEED={seed}: {error:#}"));
    println!("{report}");
    assert!(report.kills >= 200, "{report}");
    // Otherwise the moments were badly chosen.
    assert!(report.unknown > 0 && report.finished > 100 && report.acknowledged > 200, "{report}");
}
