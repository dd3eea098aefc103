//! What hosts write to standard input: prompts and requests, one line of JSON each.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use windlass_protocol::{Block, Priority, SessionKey};

use crate::lines::{LineUuid, UserLine, UserMessage};
use crate::{fit, time};

/// The most bytes of a line: what the largest request to a provider may have.
pub const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// One line.
#[derive(Debug)]
pub enum InputLine {
    /// A prompt.
    Prompt(InputPrompt),
    /// Stop the run that goes on; answered by [`control_success`].
    Interrupt {
        /// The request, as its sender calls it.
        request_id: String,
        /// What is said instead.
        prompt: Option<InputPrompt>,
    },
    /// A request that makes no sense; answered by [`control_error`].
    Invalid {
        /// The request, as its sender calls it.
        request_id: String,
        /// What is wrong with it.
        problem: InputProblem,
    },
    /// A request that is not supported; answered by [`control_error`].
    Unsupported {
        /// The request, as its sender calls it.
        request_id: String,
        /// What was asked for.
        subtype: String,
    },
    /// A sign of life, or an answer to nothing.
    Ignored,
    /// A kind of line that is not known, by its name.
    Unknown(String),
}

/// A prompt.
#[derive(Debug)]
pub struct InputPrompt {
    /// What is said.
    pub blocks: Vec<Block>,
    /// The id its sender gave it.
    pub uuid: Option<Arc<str>>,
    /// Whether it wants an answer; otherwise it is only kept for the next prompt.
    pub has_answer_due: bool,
    /// When it goes in, if it has to wait.
    pub priority: Priority,
    /// Whether its text is meant as it is: no command, whatever it begins with.
    pub is_verbatim: bool,
}

impl InputPrompt {
    /// The text, if it is nothing but text.
    pub fn text(&self) -> Option<&str> {
        match self.blocks.as_slice() {
            [only] => only.as_text(),
            _ => None,
        }
    }
}

/// What is wrong with a line; for the user.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputProblem(pub String);

#[derive(Deserialize)]
struct LineType {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct UserJson {
    message: MessageJson,
    uuid: Option<Arc<str>>,
    #[serde(rename = "shouldQuery")]
    should_query: Option<bool>,
    priority: Option<Priority>,
    client_composed: Option<bool>,
}

#[derive(Deserialize)]
struct MessageJson {
    role: Option<String>,
    /// A text or a list of blocks.
    content: Box<RawValue>,
}

#[derive(Deserialize)]
struct ControlJson {
    request_id: String,
    request: RequestJson,
}

#[derive(Deserialize)]
struct RequestJson {
    subtype: String,
}

/// An interrupt may bring what is said instead.
#[derive(Deserialize)]
struct InterruptJson {
    request: InterruptRequest,
}

#[derive(Deserialize)]
struct InterruptRequest {
    message: Option<MessageJson>,
    uuid: Option<Arc<str>>,
}

impl InputLine {
    /// Reads a line; blank lines say nothing.
    pub fn parse(line: &str) -> Result<Self, InputProblem> {
        if line.trim().is_empty() {
            return Ok(Self::Ignored);
        }
        let kind = serde_json::from_str::<LineType>(line)?.kind;
        Ok(match kind.as_str() {
            "user" => Self::Prompt(prompt(serde_json::from_str(line)?)?),
            "control_request" => {
                let ControlJson { request_id, request } = serde_json::from_str(line)?;
                match request.subtype.as_str() {
                    "interrupt" => match interrupt_prompt(line) {
                        Ok(prompt) => Self::Interrupt { request_id, prompt },
                        Err(problem) => Self::Invalid { request_id, problem },
                    },
                    _ => Self::Unsupported { request_id, subtype: request.subtype },
                }
            }
            "keep_alive" | "control_response" | "control_cancel_request" => Self::Ignored,
            _ => Self::Unknown(kind),
        })
    }
}

impl From<serde_json::Error> for InputProblem {
    fn from(error: serde_json::Error) -> Self {
        Self(format!("invalid message: {error}"))
    }
}

/// What an interrupt brings is said at once.
fn interrupt_prompt(line: &str) -> Result<Option<InputPrompt>, InputProblem> {
    let InterruptRequest { message, uuid } = serde_json::from_str::<InterruptJson>(line)?.request;
    let priority = Some(Priority::Now);
    let json = |message| UserJson { message, uuid, priority, should_query: None, client_composed: None };
    message.map(|message| prompt(json(message))).transpose()
}

fn prompt(json: UserJson) -> Result<InputPrompt, InputProblem> {
    if json.message.role.as_deref().is_some_and(|role| role != "user") {
        return Err(InputProblem("the role of a prompt must be `user`".into()));
    }
    let content = json.message.content.get();
    let blocks = if content.starts_with('"') {
        vec![Block::text(&serde_json::from_str::<String>(content)?)]
    } else {
        let blocks: Vec<&RawValue> = serde_json::from_str(content).map_err(|_| {
            InputProblem("the content of a prompt must be a string or a list of blocks".into())
        })?;
        blocks.into_iter().map(block).collect::<Result<_, _>>()?
    };
    if blocks.iter().all(Block::is_blank) {
        return Err(InputProblem("the prompt is empty".into()));
    }
    Ok(InputPrompt {
        blocks,
        uuid: json.uuid,
        has_answer_due: json.should_query.unwrap_or(true),
        priority: json.priority.unwrap_or_default(),
        is_verbatim: json.client_composed.unwrap_or(false),
    })
}

fn block(raw: &RawValue) -> Result<Block, InputProblem> {
    Block::from_json(raw.get()).map_err(|error| InputProblem(format!("invalid block in the prompt: {error}")))
}

/// Appends the answer to an interrupt: the ids of the prompts that still wait.
pub fn control_success(request_id: &str, still_queued: &[Arc<str>], out: &mut Vec<u8>) {
    let response = json!({ "still_queued": still_queued });
    let response = json!({ "subtype": "success", "request_id": request_id, "response": response });
    fit::append_plain(out, &json!({ "type": "control_response", "response": response }));
}

/// Appends the answer to a request that cannot be met.
pub fn control_error(request_id: &str, error: &str, out: &mut Vec<u8>) {
    let response = json!({ "subtype": "error", "request_id": request_id, "error": error });
    fit::append_plain(out, &json!({ "type": "control_response", "response": response }));
}

/// Appends a prompt that was taken, for its sender.
pub fn replay(session: impl Into<SessionKey>, uuid: &str, blocks: &[Block], wall_ms: u64, out: &mut Vec<u8>) {
    let (session, timestamp) = (session.into(), time::iso(wall_ms));
    fit::append(out, |detail, out| {
        let content: Vec<Block> = blocks.iter().map(|block| fit::block_at(block, detail)).collect();
        let line = UserLine {
            message: UserMessage { role: "user", content: &content },
            parent_tool_use_id: None,
            session_id: LineUuid(session.id),
            uuid,
            timestamp: &timestamp,
            tool_use_result: None,
            is_synthetic: false,
            is_replay: true,
        };
        fit::write_json(&line, out);
    });
}
