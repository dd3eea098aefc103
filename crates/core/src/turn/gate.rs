//! The last gate: whatever a resumed or hand-edited conversation brings, the request is valid.
//!
//! The rules of the API: a user message comes first and last; after an assistant message with tool uses, the next
//! message begins with exactly one result for each; ids of tool uses differ; no text is blank; no assistant message
//! ends in thinking; inputs are objects.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use windlass_protocol::{Block, BlockKind, Message, MessageId, Origin, Repair, Role, ToolInput, Transcript};

/// How far a transcript was checked. Each request checks only what is new.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watermark {
    messages: usize,
    tool_uses: BTreeSet<Arc<str>>,
    /// Tool uses that wait for their result.
    open: Vec<Arc<str>>,
    last: Option<Role>,
    is_thinking_last: bool,
}

impl Watermark {
    /// Checks what was added since the last time, and that the whole can be sent. False means it needs repair. Only a turn
    /// that the provider paused is sent with the answer last.
    pub(crate) fn advance(&mut self, messages: &Transcript, is_paused: bool) -> bool {
        let new = messages.len().saturating_sub(self.messages);
        let tail: Vec<&Arc<Message>> = messages.iter().rev().take(new).collect();
        self.messages = messages.len();
        tail.into_iter().rev().all(|message| self.check(message))
            && self.open.is_empty()
            && (self.last == Some(Role::User) || is_paused)
    }

    /// Whether a checked message holds a tool use of this id.
    pub(crate) fn has_tool_use(&self, id: &str) -> bool {
        self.tool_uses.contains(id)
    }

    fn check(&mut self, message: &Message) -> bool {
        let turns = self.last != Some(message.role);
        let sound = !message.blocks.is_empty()
            && match message.role {
                Role::Assistant => {
                    self.open_is_answered(turns) && message.blocks.iter().all(|b| self.check_assistant(b))
                }
                Role::User => {
                    let complete = !(turns && self.is_thinking_last);
                    complete && message.blocks.iter().all(|block| self.check_user(block))
                }
            };
        self.last = Some(message.role);
        self.is_thinking_last = message.blocks.last().is_some_and(Block::is_thinking);
        sound
    }

    fn open_is_answered(&self, is_new_turn: bool) -> bool {
        !is_new_turn || (self.open.is_empty() && self.last.is_some())
    }

    fn check_assistant(&mut self, block: &Block) -> bool {
        match block.kind() {
            BlockKind::ToolUse(tool_use) => {
                self.open.push(tool_use.id.clone());
                is_object(&tool_use.input)
                    && is_valid_id(&tool_use.id)
                    && self.tool_uses.insert(tool_use.id.clone())
            }
            BlockKind::ToolResult { .. } => false,
            _ => !block.is_blank(),
        }
    }

    fn check_user(&mut self, block: &Block) -> bool {
        if let BlockKind::ToolResult { tool_use_id, .. } = block.kind() {
            let place = self.open.iter().position(|open| open == tool_use_id);
            return place.map(|place| self.open.remove(place)).is_some() && !holds_blank(block);
        }
        // Whatever is said closes the list of results: one behind it finds its call closed.
        self.open.is_empty() && block.as_tool_use().is_none() && !block.is_thinking() && !block.is_blank()
    }
}

/// Whether a result of several blocks has blank text among them. One that is a plain text is not looked into.
fn holds_blank(result: &Block) -> bool {
    result.json().contains(r#""text""#) && result.result_blocks().iter().any(Block::is_blank)
}

/// What the API takes as the id of a tool use.
pub(crate) fn is_valid_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(is_valid_id_byte)
}

/// The nearest id that the API takes.
pub(crate) fn valid_id(id: &str) -> String {
    let id: String =
        id.chars().map(|c| if c.is_ascii() && is_valid_id_byte(c as u8) { c } else { '_' }).collect();
    if id.is_empty() { "toolu".into() } else { id }
}

fn is_valid_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether the JSON of an input is an object, as what stands for text is.
fn is_object(input: &ToolInput) -> bool {
    matches!(input, ToolInput::Unparsed(_)) || input.get().trim_start().starts_with('{')
}

/// Mends a conversation so that it can be sent, and says what was mended.
pub fn repair(messages: &Transcript) -> (Transcript, Vec<Repair>) {
    let (messages, renamed) = rename(messages);
    let mut mender = Mender::new(&messages);
    mender.repairs = renamed;
    while let Some(group) = mender.groups.next() {
        match group.role {
            Role::Assistant => mender.mend_assistant(&group),
            Role::User => mender.mend_user(&group, &[]),
        }
    }
    mender.finish()
}

/// Gives tool uses whose id the API refuses another one, and their results with them.
fn rename(messages: &Transcript) -> (Transcript, Vec<Repair>) {
    let mut repairs = Vec::new();
    let mut renamed = |block: &Block| {
        let id = match block.kind() {
            BlockKind::ToolUse(tool_use) => &tool_use.id,
            BlockKind::ToolResult { tool_use_id, .. } => tool_use_id,
            _ => return block.clone(),
        };
        if is_valid_id(id) {
            return block.clone();
        }
        if block.as_tool_use().is_some() {
            repairs.push(Repair::RenamedToolUse { tool_use_id: id.clone() });
        }
        // A sum over the bytes keeps ids apart that differ only in what is refused.
        let sum = id.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        block.with_tool_use_id(&format!("{}_{sum:x}", valid_id(id)))
    };
    let rebuilt = messages.iter().map(|message| {
        let blocks = message.blocks.iter().map(&mut renamed).collect();
        Arc::new(message.with_blocks(blocks))
    });
    (rebuilt.collect(), repairs)
}

/// Neighbouring messages of one role as one message: so the API sees them.
fn groups(messages: &Transcript) -> Vec<Message> {
    let list: Vec<&Arc<Message>> = messages.iter().collect();
    let joined = list.chunk_by(|one, next| one.role == next.role).map(|group| {
        let blocks = group.iter().flat_map(|message| message.blocks.iter().cloned());
        group[0].with_blocks(blocks.collect())
    });
    joined.collect()
}

struct Mender {
    groups: Peekable<IntoIter<Message>>,
    mended: Transcript,
    repairs: Vec<Repair>,
    tool_uses: BTreeSet<Arc<str>>,
    /// Every result of the conversation, the first for each id, until it is used.
    results: BTreeMap<Arc<str>, Block>,
    /// Results that found their place.
    placed: BTreeSet<Arc<str>>,
}

impl Mender {
    fn new(messages: &Transcript) -> Self {
        let mut results = BTreeMap::new();
        for block in messages.iter().filter(|m| m.role == Role::User).flat_map(|message| &message.blocks) {
            if let BlockKind::ToolResult { tool_use_id, .. } = block.kind() {
                results.entry(tool_use_id.clone()).or_insert_with(|| block.clone());
            }
        }
        Self {
            groups: groups(messages).into_iter().peekable(),
            mended: Transcript::default(),
            repairs: Vec::new(),
            tool_uses: BTreeSet::new(),
            results,
            placed: BTreeSet::new(),
        }
    }

    fn mend_assistant(&mut self, group: &Message) {
        let mut blocks: Vec<Block> =
            group.blocks.iter().filter_map(|block| self.mend_assistant_block(block)).collect();
        while blocks.last().is_some_and(Block::is_thinking) {
            blocks.pop();
            self.repairs.push(Repair::DroppedThinking);
        }
        let calls: Vec<Arc<str>> =
            blocks.iter().filter_map(Block::as_tool_use).map(|tool_use| tool_use.id.clone()).collect();
        self.push(group.with_blocks(blocks));
        let answer = self.groups.next_if(|group| group.role == Role::User);
        if answer.is_some() || !calls.is_empty() {
            let empty = Message::user(group.id, Origin::Repair, Vec::new());
            self.mend_user(&answer.unwrap_or(empty), &calls);
        }
    }

    fn mend_assistant_block(&mut self, block: &Block) -> Option<Block> {
        match block.kind() {
            BlockKind::ToolUse(tool_use) if !self.tool_uses.insert(tool_use.id.clone()) => {
                self.repairs.push(Repair::DroppedToolUse { tool_use_id: tool_use.id.clone() });
                None
            }
            BlockKind::ToolUse(tool_use) if !is_object(&tool_use.input) => {
                self.repairs.push(Repair::WrappedInput { tool_use_id: tool_use.id.clone() });
                Some(block.clone().with_unparsed_input(tool_use.input.get()))
            }
            BlockKind::ToolResult { tool_use_id, .. } => {
                self.repairs.push(Repair::DroppedResult { tool_use_id: tool_use_id.clone() });
                None
            }
            _ => self.unless_blank(block.clone()),
        }
    }

    /// The user's side after an assistant message with these calls: their results first, then the rest.
    fn mend_user(&mut self, group: &Message, calls: &[Arc<str>]) {
        let mut here = BTreeSet::new();
        let mut rest = Vec::new();
        let mut moved = BTreeSet::new();
        for block in &group.blocks {
            match block.kind() {
                BlockKind::ToolResult { tool_use_id, .. } => {
                    let wanted = calls.contains(tool_use_id) && here.insert(tool_use_id.clone());
                    if wanted && !rest.is_empty() {
                        moved.insert(tool_use_id.clone());
                    } else if !wanted && !self.finds_its_place(tool_use_id, &here) {
                        self.repairs.push(Repair::DroppedResult { tool_use_id: tool_use_id.clone() });
                    }
                }
                BlockKind::ToolUse(tool_use) => {
                    self.repairs.push(Repair::DroppedToolUse { tool_use_id: tool_use.id.clone() });
                }
                BlockKind::Thinking | BlockKind::RedactedThinking => {
                    self.repairs.push(Repair::DroppedThinking);
                }
                _ => rest.extend(self.unless_blank(block.clone())),
            }
        }
        let mut blocks: Vec<Block> = calls.iter().map(|call| self.result_of(call, &here, &moved)).collect();
        blocks.append(&mut rest);
        self.push(group.with_blocks(blocks));
    }

    /// Whether a result that is not wanted here was or will be put where it belongs.
    fn finds_its_place(&self, tool_use_id: &Arc<str>, here: &BTreeSet<Arc<str>>) -> bool {
        self.placed.contains(tool_use_id) && !here.contains(tool_use_id)
    }

    fn result_of(&mut self, call: &Arc<str>, here: &BTreeSet<Arc<str>>, moved: &BTreeSet<Arc<str>>) -> Block {
        let tool_use_id = call.clone();
        let Some(block) = self.results.remove(call) else {
            self.repairs.push(Repair::AddedResult { tool_use_id });
            return Block::tool_result(call, &[Block::text(NO_RESULT)], /* is an error */ true);
        };
        if !here.contains(call) || moved.contains(call) {
            self.repairs.push(Repair::MovedResult { tool_use_id });
        }
        self.placed.insert(call.clone());
        if !holds_blank(&block) {
            return block;
        }
        self.repairs.push(Repair::DroppedText);
        let is_error = matches!(block.kind(), BlockKind::ToolResult { is_error: true, .. });
        Block::tool_result(call, &block.result_blocks(), is_error)
    }

    fn unless_blank(&mut self, block: Block) -> Option<Block> {
        if block.is_blank() {
            self.repairs.push(Repair::DroppedText);
            return None;
        }
        Some(block)
    }

    fn push(&mut self, message: Message) {
        if message.blocks.is_empty() {
            self.repairs.push(Repair::DroppedMessage);
            return;
        }
        if self.mended.is_empty() && message.role == Role::Assistant {
            self.add_user(message.id, "(The beginning of this conversation is missing.)");
        }
        self.mended.push(Arc::new(message));
    }

    fn add_user(&mut self, id: MessageId, text: &str) {
        self.repairs.push(Repair::AddedUser);
        self.mended.push(Arc::new(Message::user(id, Origin::Repair, vec![Block::text(text)])));
    }

    fn finish(mut self) -> (Transcript, Vec<Repair>) {
        let last = self.mended.last().map(|message| (message.id, message.role));
        match last {
            Some((_, Role::User)) => (),
            Some((id, Role::Assistant)) => self.add_user(id, "Continue."),
            None => self.add_user(MessageId(0), "(This conversation is empty.)"),
        }
        (self.mended, self.repairs)
    }
}

const NO_RESULT: &str =
    "No result: the call was interrupted or its result was lost, so what it did is unknown.";
