//! Many walks at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::coverage::Coverage;
use crate::world::walk;

/// What many walks came to.
#[derive(Debug, Default)]
pub struct WalkReport {
    /// What they have reached.
    pub coverage: Coverage,
    /// What broke, with the first seed that broke it and how often it did.
    pub broken: BTreeMap<String, (u64, u64)>,
}

/// As many walks are taken by a thread at once.
const BATCH: u64 = 250;

/// Plays the walks with the seeds from `first` on, on this many threads. `progress` hears how many are done.
pub fn play(first: u64, walks: u64, threads: usize, progress: impl Fn(u64) + Sync) -> WalkReport {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut played = WalkReport::default();
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            if from >= walks {
                return played;
            }
            let count = BATCH.min(walks - from);
            for seed in first + from..first + from + count {
                played.note(seed, walk(seed));
            }
            progress(done.fetch_add(count, Ordering::Relaxed) + count);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().fold(WalkReport::default(), |mut all, thread| {
            match thread.join() {
                Ok(played) => all.add(played),
                Err(_) => drop(all.broken.insert("a walk panicked".into(), (first, 1))),
            }
            all
        })
    })
}

impl WalkReport {
    fn note(&mut self, seed: u64, walked: Result<Coverage, String>) {
        match walked {
            Ok(coverage) => self.coverage.add(coverage),
            Err(why) => self.broken.entry(general(&why)).or_insert((seed, 0)).1 += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.coverage.add(other.coverage);
        for (why, (seed, times)) in other.broken {
            let own = self.broken.entry(why).or_insert((seed, 0));
            *own = (own.0.min(seed), own.1 + times);
        }
    }
}

/// What broke without its numbers, so that the same thing is counted once.
fn general(why: &str) -> String {
    let mut words: String =
        why.chars().take(300).map(|char| if char.is_ascii_digit() { '0' } else { char }).collect();
    while words.contains("00") {
        words = words.replace("00", "0");
    }
    words
}
