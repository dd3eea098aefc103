//! What a session has to remember to go on elsewhere, and a state made from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_protocol::{Facts, Prompt, Rest, TimeSpent, Transcript};

use crate::attach::Notes;
use crate::layers::{Compactions, Staged, TokenCount};
use crate::ledger::Ledger;
use crate::prefix::Sent;
use crate::queue::Queue;
use crate::state::{Carry, Ids, KnownFiles, Phase, State, ToolState};

impl State {
    /// Everything that counts, if this is a moment between two rounds: a state made from it goes on in the same way.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        let is_between = !matches!(self.phase, Phase::Streaming(_) | Phase::Settling(_));
        is_between.then(|| Facts {
            messages: self.carry.messages.iter().cloned().collect(),
            last_message: self.ids.last_message(),
            cwd: self.carry.tools.cwd.to_path_buf(),
            files: self.carry.tools.files.facts(),
            readable: self.carry.tools.readable.iter().cloned().collect(),
            waiting: self.carry.waiting.prompts().cloned().collect(),
            staged: self.carry.staged.facts().0.to_vec(),
            spent: self.ledger.session.clone(),
            total_usd: self.ledger.tree_usd,
            doubtful: self.carry.doubtful.clone(),
            rest: self.rest(),
        })
    }

    /// A session at rest with these facts.
    #[must_use]
    pub fn from_facts(facts: Facts) -> Self {
        let mut files = KnownFiles::default();
        for seen in facts.files {
            files.learn(seen);
        }
        let tools = ToolState {
            cwd: Arc::new(facts.cwd),
            files,
            readable: facts.readable.into_iter().collect::<BTreeSet<_>>(),
        };
        let messages: Transcript = facts.messages.into_iter().collect();
        let highest = messages.iter().map(|message| message.id).max().unwrap_or_default();
        let carry = Carry {
            messages,
            tools,
            waiting: queue(facts.waiting),
            staged: Staged::from_facts(facts.staged, 0),
            doubtful: facts.doubtful,
            ..Carry::default()
        };
        let ledger = Ledger::of_session(facts.spent, facts.total_usd);
        let ids = Ids::after(facts.last_message.max(highest));
        let mut state = Self { carry, ids, ledger, phase: Phase::Idle, ..Self::default() };
        state.set_rest(&facts.rest);
        state
    }

    /// What the session remembers besides the conversation.
    pub(crate) fn rest(&self) -> Rest {
        let carry = &self.carry;
        let mut rest = Rest {
            compactions: carry.compactions.facts(),
            counted: carry.tokens.facts(),
            collapse_failures: carry.staged.facts().1,
            sent: carry.sent.as_ref().map(Sent::facts),
            reached: self.ledger.reached,
            unfinished: carry.unfinished.clone(),
            time: Some(self.ledger.session_time).filter(|time| *time != TimeSpent::default()),
            ..Rest::default()
        };
        carry.notes.add_to(&mut rest);
        rest
    }

    /// Remembers what is besides the conversation.
    pub(crate) fn set_rest(&mut self, rest: &Rest) {
        let carry = &mut self.carry;
        carry.compactions = Compactions::from_facts(&rest.compactions);
        carry.tokens = TokenCount::from_facts(rest.counted, carry.messages.len());
        carry.staged = Staged::from_facts(carry.staged.facts().0.to_vec(), rest.collapse_failures);
        carry.notes = Notes::from_rest(rest);
        carry.unfinished.clone_from(&rest.unfinished);
        carry.sent = rest.sent.as_ref().map(|sent| Sent::from_facts(sent, &carry.messages));
        self.ledger.reached = rest.reached;
        self.ledger.session_time = rest.time.unwrap_or_default();
    }
}

fn queue(prompts: Vec<Prompt>) -> Queue {
    let mut queue = Queue::default();
    for prompt in prompts {
        queue.push(prompt);
    }
    queue
}
