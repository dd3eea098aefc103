//! What a session has to remember to go on elsewhere, and a state made from it.

use std::sync::Arc;

use windlass_protocol::{SessionMemory, SessionSnapshot, TimeSpent, Transcript};

use crate::context::TokenCount;
use crate::context::prefix::SentPrefix;
use crate::memory::files::KnownFiles;
use crate::state::{Carry, Ids, Phase, State, ToolState};
use crate::turn::attach::AttachmentNotes;
use crate::turn::queue::Queue;

impl State {
    /// Everything that counts, if this is a moment between two rounds: a state made from it goes on in the same way.
    pub fn snapshot(&self) -> Option<SessionSnapshot> {
        let is_between = !matches!(self.phase, Phase::Streaming(_) | Phase::Settling(_));
        is_between.then(|| SessionSnapshot {
            messages: self.carry.messages.iter().cloned().collect(),
            last_message: self.ids.last_message(),
            cwd: self.carry.tools.cwd.to_path_buf(),
            files: self.carry.tools.files.latest_last(),
            readable: self.carry.tools.readable.iter().cloned().collect(),
            waiting: self.carry.waiting.prompts().cloned().collect(),
            staged: self.carry.staged.ready.clone(),
            spent: self.ledger.session.clone(),
            total_usd: self.ledger.tree_usd,
            doubtful: self.carry.doubtful.clone(),
            rest: self.session_memory(),
        })
    }

    /// A session at rest with these facts.
    pub fn from_snapshot(snapshot: SessionSnapshot) -> Self {
        let mut files = KnownFiles::default();
        for seen in snapshot.files {
            files.learn(seen);
        }
        let readable = snapshot.readable.into_iter().collect();
        let tools = ToolState { cwd: Arc::new(snapshot.cwd), files, readable };
        let mut waiting = Queue::default();
        snapshot.waiting.into_iter().for_each(|prompt| waiting.push(prompt));
        let messages: Transcript = snapshot.messages.into_iter().collect();
        let highest = messages.iter().map(|message| message.id).max().unwrap_or_default();
        let carry = Carry { messages, tools, waiting, doubtful: snapshot.doubtful, ..Carry::default() };
        let ids = Ids::from_last(snapshot.last_message.max(highest));
        let mut state = Self { carry, ids, ..Self::default() };
        state.carry.staged.ready = snapshot.staged;
        (state.ledger.session, state.ledger.tree_usd) = (snapshot.spent, snapshot.total_usd);
        state.set_rest(&snapshot.rest);
        state
    }

    /// What the session remembers besides the conversation.
    pub(crate) fn session_memory(&self) -> SessionMemory {
        let carry = &self.carry;
        let mut rest = SessionMemory {
            compactions: carry.compactions.clone(),
            counted: carry.tokens.to_memory(),
            collapse_failures: carry.staged.failures,
            sent: carry.sent.as_ref().map(SentPrefix::sent_request),
            has_been_reached: self.ledger.has_been_reached,
            unfinished: carry.unfinished.clone(),
            time: Some(self.ledger.session_time).filter(|time| *time != TimeSpent::default()),
            ..SessionMemory::default()
        };
        carry.notes.add_to(&mut rest);
        rest
    }

    /// Remembers what is besides the conversation.
    pub(crate) fn set_rest(&mut self, rest: &SessionMemory) {
        let carry = &mut self.carry;
        carry.compactions = rest.compactions.clone();
        carry.tokens = TokenCount::from_memory(rest.counted, carry.messages.len());
        carry.staged.drop_fork();
        carry.staged.failures = rest.collapse_failures;
        carry.notes = AttachmentNotes::from_rest(rest);
        carry.unfinished.clone_from(&rest.unfinished);
        carry.sent = rest.sent.as_ref().map(|sent| SentPrefix::restore(sent, &carry.messages));
        self.ledger.has_been_reached = rest.has_been_reached;
        self.ledger.session_time = rest.time.unwrap_or_default();
    }
}
