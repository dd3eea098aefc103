//! Seeded randomness for the mutation tests.

use std::time::{SystemTime, UNIX_EPOCH};

/// Marsaglia's xorshift: small, fast, and the same on every machine.
pub(crate) struct XorShift(u64);

impl XorShift {
    /// A new seed each run, or the one in `WINDLASS_FUZZ_SEED` to see a failure again.
    pub(crate) fn seed_for_this_run() -> u64 {
        let given = std::env::var("WINDLASS_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
        given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos()) ^ (now.as_secs() << 20)
        })
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit.max(1)
    }
}
