//! What was left undone when a session was left, or by a run that failed.

use std::sync::Arc;

use windlass_engine::{Prompt, Session, Speaker};
use windlass_protocol::Block;
use windlass_wire::Lifecycle;

/// What nobody has answered or done, in the user's words.
#[derive(Default)]
pub struct Leftovers {
    /// Prompts of runs that did not finish.
    pub unfinished: Vec<String>,
    /// The ids their senders gave them.
    unfinished_ids: Vec<Arc<str>>,
    /// Prompts that no run has taken, with their ids.
    pub waiting: Vec<(Arc<str>, String)>,
    /// Commands that were not done. They are taken back: whoever wants them says so again.
    pub undone: Vec<(Arc<str>, String)>,
}

impl Leftovers {
    /// Takes the commands back; prompts keep waiting.
    pub fn of(session: &mut Session) -> Self {
        let mut left = Self::default();
        for prompt in session.unfinished() {
            left.unfinished.extend(Some(Block::texts(&prompt.blocks)).filter(|text| !text.is_empty()));
            left.unfinished_ids.extend(prompt.ids);
        }
        let named = |prompt: &Prompt| Some((prompt.id.clone()?, Block::texts(&prompt.blocks)));
        for prompt in session.waiting_prompts() {
            match prompt.speaker {
                Speaker::User => left.waiting.extend(named(prompt)),
                Speaker::Command => left.undone.extend(named(prompt)),
                Speaker::Task => (),
            }
        }
        for (id, _) in &left.undone {
            session.take_back(id.clone());
        }
        left
    }

    /// What hosts are told of it.
    pub fn fates(&self) -> Vec<(Arc<str>, Lifecycle)> {
        let undone = self.undone.iter().map(|(id, _)| id);
        let cancelled = self.unfinished_ids.iter().chain(undone).map(|id| (id.clone(), Lifecycle::Cancelled));
        cancelled.chain(self.waiting.iter().map(|(id, _)| (id.clone(), Lifecycle::Queued))).collect()
    }
}
