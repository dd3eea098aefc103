//! Messages: a role, its blocks, and where they came from.

use std::sync::Arc;

use crate::{Block, MessageId};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// One message of the transcript. Messages are never changed once they are in it.
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
}

impl Message {
    /// A message of the user's side.
    #[must_use]
    pub fn user(id: MessageId, origin: Origin, blocks: Vec<Block>) -> Self {
        Self { id, role: Role::User, blocks, origin }
    }

    /// An answer of `model`.
    #[must_use]
    pub fn assistant(id: MessageId, model: Arc<str>, blocks: Vec<Block>) -> Self {
        Self { id, role: Role::Assistant, blocks, origin: Origin::Model(model) }
    }
}
