//! A call whose outcome is unknown is never made again without an answer of a person, unless it only reads.

use std::collections::BTreeSet;

use windlass_core::{Effect, Event};
use windlass_protocol::{Answer, CallId, Record, ToolUse, Update};

/// What is in doubt, as it was when the session was opened again.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubt {
    hashes: BTreeSet<u64>,
    /// What people were asked about: a hash of tool and input.
    asked: Vec<(CallId, u64)>,
    approved: BTreeSet<CallId>,
}

impl Doubt {
    /// A session was opened again with these calls in doubt.
    pub(super) fn of(hashes: &[u64]) -> Self {
        Self { hashes: hashes.iter().copied().collect(), ..Self::default() }
    }

    /// Somebody answers.
    pub(super) fn on_event(&mut self, event: &Event) {
        let Event::Answered(call, answer) = event else { return };
        let asked = self.asked.iter().find(|(asked, _)| asked == call);
        if let (Some((_, hash)), Answer::Allow | Answer::AllowChanged(_)) = (asked, answer) {
            self.hashes.remove(hash);
            self.approved.insert(*call);
        }
    }

    /// True if somebody is asked about a call in doubt.
    pub(super) fn check(&mut self, effect: &Effect) -> Result<bool, String> {
        match effect {
            Effect::Emit(Update::Question(question)) => {
                let hash = hash(&question.tool_use);
                self.asked.push((question.call, hash));
                return Ok(self.hashes.contains(&hash) && !question.facts.kind.is_read_only());
            }
            Effect::Persist(Record::Intended(intended), _) => {
                let is_new = self.approved.contains(&intended.call) || intended.kind.is_read_only();
                if !is_new && self.hashes.contains(&intended.input_hash) {
                    return Err(format!("{:?} is in doubt and made again without an answer", intended.call));
                }
            }
            // Whoever speaks next has heard how the run went.
            Effect::Emit(Update::Done(_)) => *self = Self::default(),
            _ => (),
        }
        Ok(false)
    }
}

/// The hash that the log keeps of a call, written a second time.
fn hash(tool_use: &ToolUse) -> u64 {
    let bytes = tool_use.name.bytes().chain([0]).chain(tool_use.input.get().bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
