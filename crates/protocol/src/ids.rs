//! Identifiers. Inside the machine they are counters, so that a run can be reproduced; what leaves it
//! as a UUID is derived from the session's seed and a counter.

use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);
    )+};
}

counters! {
    /// One request on its way to a model. A request that is sent again goes under an id of its own.
    RequestId(u32);
    /// One tool call, in the order the model made them.
    CallId(u32);
    /// One timer the core asked for.
    TimerId(u32);
    /// One fork of the conversation that another run of the loop works on.
    ForkId(u32);
    /// One question to hooks.
    HookId(u32);
    /// One wish to put results into files.
    StoreId(u32);
    /// One look around between two requests.
    LookId(u32);
    /// One message as the caller sees it: a block of an assistant answer, a tool result, a prompt.
    MessageId(u64);
}

/// The randomness of a session, drawn once. Every UUID of the session follows from it.
///
/// ```
/// use windlass_protocol::{MessageId, SessionSeed};
/// let seed = SessionSeed(7);
/// assert_eq!(seed.message_uuid(MessageId(1)), seed.message_uuid(MessageId(1)));
/// assert_ne!(seed.message_uuid(MessageId(1)), seed.message_uuid(MessageId(2)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSeed(pub u128);

impl SessionSeed {
    /// The session's own id.
    pub fn session_uuid(self) -> Uuid {
        self.derive(0)
    }

    /// The id of one message, the same on the live stream and in the log.
    pub fn message_uuid(self, message: MessageId) -> Uuid {
        self.derive(1 + u128::from(message.0))
    }

    /// The `n`th 64 random bits of the session.
    pub fn entropy(self, n: u64) -> u64 {
        let (high, low) = halves(self.0);
        mix(high ^ mix(low ^ n))
    }

    /// The seed of one fork of the session.
    #[must_use]
    pub fn fork(self, fork: ForkId) -> Self {
        // Forks count from the far end, where no message gets to.
        Self(self.derive(u128::MAX - u128::from(fork.0)).as_u128())
    }

    fn derive(self, counter: u128) -> Uuid {
        let (seed_high, seed_low) = halves(self.0);
        let (counter_high, counter_low) = halves(counter);
        let first = mix(seed_low ^ counter_low);
        let high = mix(first ^ seed_high ^ counter_high);
        let low = mix(high ^ seed_low.rotate_left(17));
        let bytes = ((u128::from(high) << 64) | u128::from(low)).to_be_bytes();
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// Who a session is to others: its id, and the seeds that its other ids follow from.
///
/// ```
/// use windlass_protocol::{SessionKey, SessionSeed};
/// let key = SessionKey::from(SessionSeed(7));
/// assert_eq!(key.id, SessionSeed(7).session_uuid());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionKey {
    /// The session's id.
    pub id: Uuid,
    /// The seed of its messages' ids, the same for its whole life.
    pub seed: SessionSeed,
    /// The seed of ids that no message has. Another for each process, since such ids are kept nowhere.
    pub process: SessionSeed,
}

impl From<SessionSeed> for SessionKey {
    fn from(seed: SessionSeed) -> Self {
        Self { id: seed.session_uuid(), seed, process: seed }
    }
}

impl SessionKey {
    /// The uuid of a message from the user's side: the one its sender gave it, if it is one prompt with a UUID.
    pub fn said_uuid(&self, message: MessageId, prompts: &[std::sync::Arc<str>]) -> Uuid {
        match prompts {
            [only] => Uuid::parse_str(only).unwrap_or_else(|_| self.seed.message_uuid(message)),
            _ => self.seed.message_uuid(message),
        }
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[expect(clippy::cast_possible_truncation, reason = "the two halves together are the whole")]
fn halves(bits: u128) -> (u64, u64) {
    ((bits >> 64) as u64, bits as u64)
}

/// The finaliser of splitmix64: a bijection on 64 bits that spreads every input bit.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn forks_have_seeds_of_their_own() {
        let seed = SessionSeed(7);
        assert_eq!(seed.fork(ForkId(1)), seed.fork(ForkId(1)));
        let seeds: HashSet<_> = (0..1_000).map(|n| seed.fork(ForkId(n)).0).collect();
        assert_eq!(seeds.len(), 1_000);
        assert_ne!(seed.fork(ForkId(1)).entropy(1), seed.entropy(1));
    }

    #[test]
    fn a_million_messages_have_different_ids() {
        let seed = SessionSeed(0x1234_5678_9abc_def0_1122_3344_5566_7788);
        let ids: HashSet<_> = (0..1_000_000).map(|n| seed.message_uuid(MessageId(n))).collect();
        assert_eq!(ids.len(), 1_000_000);
        assert!(!ids.contains(&seed.session_uuid()));
    }
}
