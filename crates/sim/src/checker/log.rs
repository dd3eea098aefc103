//! The conversation, derived a second time: from what was shown and from the recorded decisions, as whoever resumes a session
//! from its log would derive it.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_core::{Effect, State, apply, repair};
use windlass_protocol::{Block, Decision, Message, MessageId, Origin, Transcript, Transition, Update};

/// The log of one session.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// What is shown, with every decision applied.
    messages: Transcript,
    /// How many of the first messages no decision has changed since the last request.
    untouched: usize,
    /// How many messages the last request had.
    sent: usize,
    /// The model of the response under way.
    model: Arc<str>,
    /// What the response has said so far.
    said: Vec<(MessageId, Block)>,
    /// The results of its calls.
    results: Vec<(MessageId, Block)>,
    /// Texts of the user's side that are not part of a message yet.
    texts: Vec<(MessageId, Vec<Block>)>,
    /// Every tool use that ever became part of the conversation.
    tool_uses: BTreeSet<Arc<str>>,
    newest: u64,
    /// Prompts that were steered and became part of the conversation.
    pub(super) steered: usize,
}

type Verdict = Result<(), String>;

impl Log {
    /// The log of a session that begins with these messages.
    pub(super) fn of(messages: &Transcript) -> Self {
        let newest = messages.iter().map(|message| message.id.0).max().unwrap_or(0);
        Self { messages: messages.clone(), untouched: usize::MAX, newest, ..Self::default() }
    }

    /// Nobody drives the run any more: what was open is closed as after a crash. What was settled before stays.
    pub(super) fn on_drop(&mut self, state: &State) -> Verdict {
        let after = state.messages();
        let stays = self.messages.iter().zip(after.iter()).all(|(old, new)| old.blocks == new.blocks);
        if !stays || after.len() < self.messages.len() {
            return Err("a run that was dropped changed old messages".into());
        }
        *self = Self {
            tool_uses: std::mem::take(&mut self.tool_uses),
            sent: self.sent,
            untouched: self.untouched,
            steered: self.steered,
            newest: self.newest,
            ..Self::of(after)
        };
        Ok(())
    }

    /// The session says this, whatever was shown.
    pub(super) fn rebase(&mut self, messages: &Transcript) {
        *self = Self { tool_uses: std::mem::take(&mut self.tool_uses), ..Self::of(messages) };
    }

    /// A prompt was submitted: its message is the one that the next request or the state has and the log has not. False if there
    /// is none yet.
    pub(super) fn on_submit(&mut self, state: &State, effects: &[Effect]) -> bool {
        let sent = effects.iter().find_map(|effect| match effect {
            Effect::CallModel(_, body) => Some(&body.transcript),
            _ => None,
        });
        let is_new = |message: &&Arc<Message>| message.origin == Origin::Prompt && message.id.0 > self.newest;
        let found = sent.unwrap_or(state.messages()).iter().rev().find(is_new);
        let Some(found) = found.cloned() else { return false };
        self.push(found);
        true
    }

    fn push(&mut self, message: Arc<Message>) {
        self.newest = self.newest.max(message.id.0);
        let uses = message.blocks.iter().filter_map(Block::as_tool_use);
        self.tool_uses.extend(uses.map(|tool_use| tool_use.id.clone()));
        let texts = message.blocks.iter().filter_map(Block::as_text);
        self.steered += texts.filter(|text| text.starts_with("steer ")).count();
        self.messages.push(message);
    }

    /// Takes in one update.
    pub(super) fn on_update(&mut self, update: &Update) -> Verdict {
        match update {
            Update::Requesting { model, .. } => {
                if !self.said.is_empty() || !self.results.is_empty() {
                    return Err("a request is sent again, and what it said stands".into());
                }
                self.model = model.clone();
                // What was said after a compaction asks for the rest of an answer, and goes with this request.
                if !self.texts.is_empty() {
                    self.close();
                }
            }
            Update::Block { id, block, .. } => {
                self.newest = self.newest.max(id.0);
                self.said.push((*id, block.clone()));
            }
            Update::ToolResult { id, result, .. } => {
                self.newest = self.newest.max(id.0);
                self.results.push((*id, result.clone()));
            }
            Update::UserText { id, blocks, .. } => {
                self.newest = self.newest.max(id.0);
                self.texts.push((*id, blocks.clone()));
            }
            Update::Retracted { messages, .. } => {
                self.said.retain(|(id, _)| !messages.contains(id));
                self.results.retain(|(id, _)| !messages.contains(id));
            }
            Update::Decided(decision) => return self.on_decision(decision),
            Update::Repaired(_) => {
                self.close();
                self.messages = repair(&self.messages).0;
                self.untouched = 0;
            }
            Update::Continued(Transition::NextTurn) => self.close_round(),
            Update::Continued(_) | Update::Done(_) => self.close(),
            _ => (),
        }
        Ok(())
    }

    fn on_decision(&mut self, decision: &Decision) -> Verdict {
        if let Decision::Staged(_) = decision {
            return Ok(());
        }
        if self.said.is_empty() && self.results.is_empty() {
            self.close();
        }
        self.close_answer();
        let after = apply(decision, &self.messages);
        let same =
            self.messages.iter().zip(after.iter()).take_while(|(old, new)| Arc::ptr_eq(old, new)).count();
        if same == self.messages.len() && same == after.len() {
            return Err(format!("a decision that changes nothing was recorded: {decision:?}"));
        }
        if matches!(decision, Decision::Stored(_)) && same < self.sent.min(self.untouched) {
            return Err("a result that was sent before is stored now".into());
        }
        if !matches!(decision, Decision::Stored(_)) {
            self.untouched = self.untouched.min(same);
        }
        self.newest = after.iter().map(|message| message.id.0).max().unwrap_or(0).max(self.newest);
        self.messages = after;
        Ok(())
    }

    /// What was said becomes a message. Thinking that nothing follows cannot be sent back.
    fn close_answer(&mut self) {
        while self.said.last().is_some_and(|(_, block)| block.is_thinking()) {
            self.said.pop();
        }
        if let Some((id, _)) = self.said.last() {
            let id = *id;
            let blocks = self.said.drain(..).map(|(_, block)| block).collect();
            self.push(Message::assistant(id, self.model.clone(), blocks).into());
        }
        self.said.clear();
    }

    /// The results are one message, and each text behind them is one.
    fn close_round(&mut self) {
        self.close_answer();
        if let Some((id, _)) = self.results.last() {
            let id = *id;
            let blocks = self.results.drain(..).map(|(_, block)| block).collect();
            self.push(Message::user(id, Origin::Results, blocks).into());
        }
        for (id, blocks) in std::mem::take(&mut self.texts) {
            self.push(Message::user(id, Origin::Attachment, blocks).into());
        }
    }

    /// What goes on without results, or ends: each text is a message of its own.
    fn close(&mut self) {
        let texts = std::mem::take(&mut self.texts);
        self.close_round();
        for (id, blocks) in texts {
            self.push(Message::user(id, Origin::Continuation, blocks).into());
        }
    }

    /// Whether the log says what is sent, or what is left behind at the end.
    pub(super) fn check_same(&self, messages: &Transcript) -> Verdict {
        let (own, other) = (self.messages.iter(), messages.iter());
        let differs =
            own.zip(other).position(|(own, other)| own.role != other.role || own.blocks != other.blocks);
        if let Some(place) = differs.or((self.messages.len() != messages.len()).then_some(usize::MAX)) {
            return Err(format!(
                "the log and the conversation differ at message {place}: {} and {} messages",
                self.messages.len(),
                messages.len()
            ));
        }
        Ok(())
    }

    /// A request went out with all there is.
    pub(super) fn on_request(&mut self) {
        self.sent = self.messages.len();
        self.untouched = usize::MAX;
    }

    /// How many of the first messages of the last request are still there as they were.
    pub(super) fn untouched_messages(&self) -> usize {
        self.untouched.min(self.sent)
    }

    /// Whether a decision has changed anything since the last request.
    pub(super) fn is_rewritten(&self) -> bool {
        self.untouched != usize::MAX
    }

    /// Whether this tool use ever became part of the conversation.
    pub(super) fn has_tool_use(&self, id: &str) -> bool {
        self.tool_uses.contains(id)
    }

    /// What was shown and became part of nothing.
    pub(super) fn is_open(&self) -> bool {
        !(self.said.is_empty() && self.results.is_empty() && self.texts.is_empty())
    }
}
