//! Messages: a role, its blocks, and where they came from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Block, MessageId, estimate_tokens};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user's side: prompts, tool results, notes of the engine.
    User,
    /// The model.
    Assistant,
}

/// Why a message is in the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The prompt of a submission.
    Prompt,
    /// Results of the calls of the message before, and what was typed meanwhile.
    Results,
    /// The note that the user interrupted.
    Interruption,
    /// The model of this name.
    Model(Arc<str>),
    /// A repair by the last gate.
    Repair,
    /// What stands for everything before a compaction, which counts no more: the summary, and what was attached again.
    Boundary,
    /// What stands for a span of rounds that was collapsed.
    Collapsed,
    /// A note of the engine that makes the model go on: after a cut answer, a hook's objection, an unspent budget.
    Continuation,
    /// Facts that changed meanwhile: files, tasks, memory.
    Attachment,
}

/// One message of the transcript, never changed once it is in it: one that says something else is a new one with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The id of the message's last part as the caller saw it.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// What is said. Never empty.
    pub blocks: Vec<Block>,
    /// Why it is here.
    pub origin: Origin,
    tokens: u32,
}

impl Message {
    /// A message.
    pub fn new(id: MessageId, role: Role, origin: Origin, blocks: Vec<Block>) -> Self {
        let tokens = 8_u32.saturating_add(blocks.iter().map(estimate_tokens).fold(0, u32::saturating_add));
        Self { id, role, blocks, origin, tokens }
    }

    /// A message of the user's side.
    pub fn user(id: MessageId, origin: Origin, blocks: Vec<Block>) -> Self {
        Self::new(id, Role::User, origin, blocks)
    }

    /// An answer of `model`.
    pub fn assistant(id: MessageId, model: Arc<str>, blocks: Vec<Block>) -> Self {
        Self::new(id, Role::Assistant, Origin::Model(model), blocks)
    }

    /// The same message with other blocks.
    #[must_use]
    pub fn with_blocks(&self, blocks: Vec<Block>) -> Self {
        Self::new(self.id, self.role, self.origin.clone(), blocks)
    }

    /// Whether it holds reasoning.
    pub fn thinks(&self) -> bool {
        self.blocks.iter().any(Block::is_thinking)
    }

    /// About how many tokens the message is, rather more than fewer. Counted once, when it is made.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }
}
