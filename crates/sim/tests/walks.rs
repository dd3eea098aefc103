//! The simulation of the ordinary test run: seeded random walks over the core.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    reason = "a test prints its seed and stops at a surprise"
)]

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::PhaseName;
use windlass_protocol::{FailureClass, Terminal};
use windlass_sim::{FAILURE_CLASSES, FAILURE_POINTS, FailurePoint, walk};

const WALKS: u64 = 200_000;

/// Everything that was seen, and the first seeds that broke something, by what they broke.
#[derive(Default)]
struct Tally {
    broken: BTreeMap<String, (u64, u32)>,
    terminals: BTreeMap<Option<Terminal>, u32>,
    edges: BTreeSet<(PhaseName, PhaseName)>,
    failures: BTreeMap<(FailureClass, FailurePoint), u32>,
}

fn play(seeds: impl Iterator<Item = u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        match walk(seed) {
            Ok(walk) => {
                for terminal in walk.terminals {
                    *tally.terminals.entry(terminal).or_default() += 1;
                }
                tally.edges.extend(walk.edges);
                for failure in walk.failures {
                    *tally.failures.entry(failure).or_default() += 1;
                }
            }
            Err(why) => tally.broken.entry(why).or_insert((seed, 0)).1 += 1,
        }
    }
    tally
}

fn play_all() -> Tally {
    let first = std::env::var("WINDLASS_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = first.unwrap_or_else(|| {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |since| since.as_secs() << 20)
    });
    println!("seeds {first}..{}; WINDLASS_SIM_SEED={first} plays them again", first + WALKS);
    let halves = std::thread::scope(|scope| {
        let half = |from: u64| scope.spawn(move || play((first + from..first + WALKS).step_by(2)));
        [half(0), half(1)].map(|thread| thread.join().expect("a walk panicked"))
    });
    let mut tally = Tally::default();
    for half in halves {
        tally.edges.extend(half.edges);
        tally.broken.extend(half.broken);
        for (terminal, count) in half.terminals {
            *tally.terminals.entry(terminal).or_default() += count;
        }
        for (failure, count) in half.failures {
            *tally.failures.entry(failure).or_default() += count;
        }
    }
    tally
}

#[test]
fn two_hundred_thousand_walks_hold_every_invariant() {
    let tally = play_all();
    let broken: Vec<_> = tally.broken.iter().take(10).collect();
    assert!(broken.is_empty(), "invariant → (first seed, times): {broken:#?}");

    let missing: Vec<_> =
        Terminal::ALL.iter().filter(|terminal| !tally.terminals.contains_key(&Some(**terminal))).collect();
    assert!(missing.is_empty(), "no walk ended with {missing:?}; the simulation does not reach them");

    let every = FAILURE_CLASSES.iter().flat_map(|class| FAILURE_POINTS.iter().map(move |at| (*class, *at)));
    let missing: Vec<_> = every.filter(|failure| !tally.failures.contains_key(failure)).collect();
    assert!(missing.is_empty(), "no request failed with {missing:?}; the simulation does not reach them");

    assert_eq!(
        tally.edges,
        edges_of_the_diagram(),
        "the diagram above `Phase` does not show what the code does"
    );
}

/// Seeds that once broke an invariant stay here.
#[test]
fn seeds_that_once_broke_something() {
    let check = |seed| assert_eq!(walk(seed).map(|_| ()), Ok(()), "seed {seed}");
    // A person changed the input of a shared call so that it became exclusive while later shared calls ran.
    check(1_881_899_415_973_889);
}

/// The edges as the diagram above `Phase` lists them, one `A -> B` per line.
fn edges_of_the_diagram() -> BTreeSet<(PhaseName, PhaseName)> {
    let source = include_str!("../../core/src/state.rs");
    let phase = |name: &str| match name {
        "Idle" => PhaseName::Idle,
        "Preparing" => PhaseName::Preparing,
        "Streaming" => PhaseName::Streaming,
        "Settling" => PhaseName::Settling,
        "Waiting" => PhaseName::Waiting,
        "Done" => PhaseName::Done,
        other => panic!("the diagram names an unknown phase: {other}"),
    };
    let lines = source.lines().filter_map(|line| line.strip_prefix("///")?.trim().split_once(" -> "));
    lines.map(|(from, to)| (phase(from.trim()), phase(to.split_whitespace().next().unwrap_or("")))).collect()
}
