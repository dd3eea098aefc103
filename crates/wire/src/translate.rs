//! From the updates of a run to lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use windlass_protocol::{
    Block, BlockKind, CallId, Denial, Failure, HostUsage, MessageId, ModelSpend, Outcome, Repair, SessionKey,
    ShownParts, Terminal, ToolUse, Update, Usage,
};

use crate::fit::{self, block_at};
use crate::lines::{
    AssistantLine, AssistantMessage, Lifecycle, LineEnvelope, LineUuid, Prompts, SystemBody, UserLine,
    UserMessage,
};
use crate::result::{self, ResultContext};
use crate::stream::Events;
use crate::{COMPATIBLE_VERSION, time};

/// How long a call runs before hosts are told that it still does, and again after each such time.
const HEARTBEAT_MS: u64 = 30_000;

/// The fields of `system/init` that hosts read only where they say something.
const ABSENT_IF_EMPTY: [&str; 3] = ["untrusted_settings", "betas", "additional_directories"];

/// What a host is told about the session when a run begins.
#[derive(Clone, Debug, Default)]
pub struct SessionSetup {
    /// The working directory.
    pub cwd: String,
    /// Working directories added to it.
    pub additional_directories: Vec<String>,
    /// The model's id.
    pub model: String,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// The permission mode, in the protocol's word.
    pub permission_mode: String,
    /// Where the key comes from, in the protocol's word.
    pub api_key_source: String,
    /// Beta features asked for.
    pub betas: Vec<String>,
    /// Commands that may stand for a prompt, without their slash.
    pub slash_commands: Vec<String>,
    /// Parts of the project's settings that wait for trust.
    pub untrusted_settings: Vec<String>,
    /// What hosts may rely on, in the protocol's words.
    pub capabilities: Vec<String>,
    /// Whether `stream_event` lines are wanted.
    pub has_partial_messages: bool,
}

/// When something happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimePoint {
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// Milliseconds since some fixed moment; never goes back.
    pub monotonic_ms: u64,
}

/// The ids of a session's lines.
#[derive(Debug)]
pub(crate) struct LineIds {
    key: SessionKey,
    without_message: u64,
}

impl LineIds {
    pub(crate) fn new(key: SessionKey) -> Self {
        Self { key, without_message: 0 }
    }

    pub(crate) fn session(&self) -> LineUuid {
        LineUuid(self.key.id)
    }

    pub(crate) fn message_uuid(&self, message: MessageId) -> LineUuid {
        LineUuid(self.key.seed.message_uuid(message))
    }

    /// An id for a line that belongs to no message. Counted from the far end, where no message ever gets.
    pub(crate) fn next(&mut self) -> LineUuid {
        let id = LineUuid(self.key.process.message_uuid(MessageId(u64::MAX - self.without_message)));
        self.without_message += 1;
        id
    }

    pub(crate) fn envelope<T>(&mut self, body: T) -> LineEnvelope<T> {
        LineEnvelope { body, session_id: self.session(), uuid: self.next() }
    }
}

/// Translates the updates of a session's runs into lines, appended to the caller's buffer.
///
/// For each run: [`Translator::begin`], then [`Translator::update`] for each update up to [`Update::Done`].
#[derive(Debug)]
#[must_use]
pub struct Translator {
    setup: SessionSetup,
    pub(crate) ids: LineIds,
    /// The response that is being written.
    message_id: Arc<str>,
    model: Arc<str>,
    usage: Usage,
    now: TimePoint,
    requested_ms: u64,
    pub(crate) run: CurrentRun,
    /// The last notice of the run: what it said is not said again at the end.
    pub(crate) noticed: Option<String>,
    /// The last message that was shown.
    pub(crate) latest: Option<MessageId>,
    /// Prompts that a former process left, and what became of them.
    left: Vec<(Arc<str>, Lifecycle)>,
    /// What was shown of each message.
    pub(crate) shown: ShownParts,
    /// Of the whole session.
    results: u32,
    spent: BTreeMap<Arc<str>, ModelSpend>,
}

/// What is known of the run that goes on, and of no other.
#[derive(Debug, Default)]
pub(crate) struct CurrentRun {
    began_ms: u64,
    ttft_ms: Option<u64>,
    retracted: Vec<LineUuid>,
    calls: Vec<RunningCall>,
    /// Prompts that nothing has answered yet, by the ids their senders gave them.
    unanswered: Vec<Arc<str>>,
    pub(crate) is_compacting: bool,
}

#[derive(Debug)]
struct RunningCall {
    call: CallId,
    tool_use: ToolUse,
    started_ms: u64,
    next_beat_ms: u64,
}

/// Who gives an answer.
enum AnswerSource<'a> {
    Model {
        is_aborted: bool,
    },
    /// Nobody: a failure stands in its place, with its category and the provider's id of the request.
    Failure(&'static str, Option<&'a str>),
}

/// A message from the user's side: the result of a call, or text.
struct UserContent<'a> {
    id: MessageId,
    blocks: &'a [Block],
    /// The structured form of a result, which repeats its content.
    structured: Option<&'a RawValue>,
    is_synthetic: bool,
    /// The ids their senders gave to the prompts in it.
    prompts: &'a [Arc<str>],
}

impl Translator {
    /// A translator for this session.
    pub fn new(session: impl Into<SessionKey>, setup: SessionSetup) -> Self {
        Self {
            message_id: "".into(),
            model: setup.model.as_str().into(),
            setup,
            ids: LineIds::new(session.into()),
            usage: Usage::default(),
            now: TimePoint::default(),
            requested_ms: 0,
            run: CurrentRun::default(),
            noticed: None,
            latest: None,
            left: Vec::new(),
            shown: ShownParts::default(),
            results: 0,
            spent: BTreeMap::new(),
        }
    }

    /// The session took this before: results tell what it took in all.
    pub fn resumed(self, spent: &BTreeMap<Arc<str>, ModelSpend>) -> Self {
        Self { spent: spent.clone(), ..self }
    }

    /// A former process left these prompts, which is told with the first run.
    pub fn with_left_prompts(self, prompts: Vec<(Arc<str>, Lifecycle)>) -> Self {
        Self { left: prompts, ..self }
    }

    /// Begins a run: `system/init`.
    pub fn begin(&mut self, at: TimePoint, out: &mut Vec<u8>) {
        self.run = CurrentRun { began_ms: at.monotonic_ms, ..CurrentRun::default() };
        fit::append_plain(out, &self.init_line());
        for (prompt, state) in std::mem::take(&mut self.left) {
            self.write_lifecycle(&prompt, state, out);
        }
    }

    fn init_line(&mut self) -> Value {
        let setup = &self.setup;
        let mut line = json!({
            "type": "system",
            "subtype": "init",
            "cwd": setup.cwd,
            "session_id": self.ids.session(),
            "model": setup.model,
            "tools": setup.tools,
            "mcp_servers": [],
            "permissionMode": setup.permission_mode,
            "slash_commands": setup.slash_commands,
            "untrusted_settings": setup.untrusted_settings,
            "apiKeySource": setup.api_key_source,
            "claude_code_version": COMPATIBLE_VERSION,
            "output_style": "default",
            "agents": [],
            "skills": [],
            "plugins": [],
            "capabilities": setup.capabilities,
            "betas": setup.betas,
            "additional_directories": setup.additional_directories,
            "uuid": self.ids.next(),
        });
        if let Some(fields) = line.as_object_mut() {
            let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
            fields.retain(|name, value| !(ABSENT_IF_EMPTY.contains(&name.as_str()) && is_empty(value)));
        }
        line
    }

    /// Appends the lines of one update, if it has any.
    pub fn update(&mut self, update: &Update, at: TimePoint, out: &mut Vec<u8>) {
        self.now = at;
        self.shown.note(update);
        match update {
            Update::Requesting { .. } => self.on_requesting(out),
            Update::Responding { message_id, model, usage, .. } => {
                self.on_responding(message_id, model, usage, out);
            }
            Update::Delta { index, delta } => self.write_stream(out, |events| events.delta(*index, delta)),
            Update::Block { id, index, block, is_aborted } => {
                self.latest = Some(*id);
                let source = AnswerSource::Model { is_aborted: *is_aborted };
                self.write_answer(self.ids.message_uuid(*id), block, &source, out);
                if !is_aborted {
                    self.write_stream(out, |events| events.block_stopped(*index));
                }
            }
            Update::Responded { stop_reason, usage, .. } => {
                self.write_stream(out, |events| events.end_message(stop_reason, usage));
            }
            Update::Retracted { messages, calls } => {
                self.run.calls.retain(|running| !calls.contains(&running.call));
                self.run.retracted.extend(messages.iter().map(|id| self.ids.message_uuid(*id)));
            }
            Update::ToolStarted { call, tool_use, .. } => self.on_tool_started(*call, tool_use),
            // What is done gives no more signs of life, also while its result waits for its turn.
            Update::ToolFinished { call, .. } => self.run.calls.retain(|running| running.call != *call),
            Update::ToolResult { id, call, result, structured, .. } => {
                self.run.calls.retain(|running| running.call != *call);
                let said = UserContent {
                    id: *id,
                    blocks: std::slice::from_ref(result),
                    structured: structured.as_ref().map(|raw| &*raw.0),
                    is_synthetic: false,
                    prompts: &[],
                };
                self.write_user(&said, out);
            }
            Update::UserText { id, blocks, is_synthetic, prompts } => {
                let said =
                    UserContent { id: *id, blocks, structured: None, is_synthetic: *is_synthetic, prompts };
                self.write_user(&said, out);
            }
            // Answering is the caller's business; the progress of a call shows as a heartbeat.
            Update::Question(_) | Update::ToolProgress { .. } => {}
            Update::Denied(denial) => self.on_denied(denial, out),
            Update::Retrying { attempt, retries_max, delay_ms, failure } => {
                let body = json!({
                    "attempt": attempt,
                    "max_retries": retries_max,
                    "retry_delay_ms": delay_ms,
                    "error_status": failure.status,
                    "error": failure.category(),
                });
                self.write_system("api_retry", &body, out);
            }
            Update::Repaired(repairs) => self.informational(&describe(repairs), "notice", out),
            Update::PromptsStarted(ids) => self.on_started(ids, out),
            Update::PromptsRefused(ids) => {
                for id in ids {
                    self.write_lifecycle(id, Lifecycle::Refused, out);
                }
            }
            Update::Failed { terminal, text, failure } => {
                self.on_failed(*terminal, text, failure.as_deref(), out);
            }
            Update::Done(outcome) => self.on_done(outcome, out),
            other => self.on_context(other, out),
        }
    }

    /// When [`Translator::heartbeat`] next has something to say.
    pub fn next_heartbeat_ms(&self) -> Option<u64> {
        self.run.calls.iter().map(|running| running.next_beat_ms).min()
    }

    /// Appends a sign of life for each call that has run for long.
    pub fn heartbeat(&mut self, at: TimePoint, out: &mut Vec<u8>) {
        for running in &mut self.run.calls {
            if running.next_beat_ms > at.monotonic_ms {
                continue;
            }
            running.next_beat_ms = at.monotonic_ms + HEARTBEAT_MS;
            let body = json!({
                "type": "tool_progress",
                "tool_use_id": &*running.tool_use.id,
                "tool_name": &*running.tool_use.name,
                "parent_tool_use_id": null,
                "elapsed_time_seconds": at.monotonic_ms.saturating_sub(running.started_ms) / 1000,
                "heartbeat": true,
            });
            fit::append_plain(out, &self.ids.envelope(body));
        }
    }

    /// Appends a note for the host's log.
    pub fn informational(&mut self, content: &str, level: &str, out: &mut Vec<u8>) {
        self.write_system("informational", &json!({ "content": content, "level": level }), out);
    }

    fn on_tool_started(&mut self, call: CallId, tool_use: &ToolUse) {
        self.run.calls.push(RunningCall {
            call,
            tool_use: tool_use.clone(),
            started_ms: self.now.monotonic_ms,
            next_beat_ms: self.now.monotonic_ms + HEARTBEAT_MS,
        });
    }

    /// Hosts are told what a rule denied; what a person denied they know.
    fn on_denied(&mut self, denial: &Denial, out: &mut Vec<u8>) {
        if denial.is_by_person {
            return;
        }
        let body = json!({
            "tool_name": &*denial.tool_use.name,
            "tool_use_id": &*denial.tool_use.id,
            "message": denial.reason,
        });
        self.write_system("permission_denied", &body, out);
    }

    fn on_requesting(&mut self, out: &mut Vec<u8>) {
        self.requested_ms = self.now.monotonic_ms;
        if self.setup.has_partial_messages {
            self.write_system("status", &json!({ "status": "requesting" }), out);
        }
    }

    fn on_responding(&mut self, message_id: &Arc<str>, model: &Arc<str>, usage: &Usage, out: &mut Vec<u8>) {
        let now_ms = self.now.monotonic_ms;
        self.message_id = message_id.clone();
        self.model = model.clone();
        self.usage = usage.clone();
        self.run.ttft_ms.get_or_insert(now_ms.saturating_sub(self.run.began_ms));
        let ttft_ms = now_ms.saturating_sub(self.requested_ms);
        self.write_stream(out, |events| events.start_message(message_id, model, usage, ttft_ms));
    }

    /// Writes one block of an answer.
    fn write_answer(&mut self, uuid: LineUuid, block: &Block, source: &AnswerSource<'_>, out: &mut Vec<u8>) {
        let (failure, aborted) = match *source {
            AnswerSource::Failure(category, request_id) => (Some((category, request_id)), false),
            AnswerSource::Model { is_aborted } => (None, is_aborted),
        };
        let (synthetic_id, no_usage) = (failure.map(|_| uuid.0.to_string()), Usage::default());
        let (id, model, usage) = match &synthetic_id {
            Some(id) => (id.as_str(), "<synthetic>", &no_usage),
            None => (&*self.message_id, &*self.model, &self.usage),
        };
        let supersedes = std::mem::take(&mut self.run.retracted);
        let answered = std::mem::take(&mut self.run.unanswered);
        let timestamp = time::iso(self.now.wall_ms);
        fit::append(out, |detail, out| {
            let line = AssistantLine {
                message: AssistantMessage {
                    id,
                    kind: "message",
                    role: "assistant",
                    model,
                    content: &[sign_thinking(block_at(block, detail))],
                    stop_reason: failure.map(|_| "stop_sequence"),
                    stop_sequence: failure.map(|_| ""),
                    usage: HostUsage::from(usage),
                },
                parent_tool_use_id: None,
                session_id: self.ids.session(),
                uuid,
                timestamp: &timestamp,
                error: failure.map(|(category, _)| category),
                request_id: failure.and_then(|(_, request_id)| request_id),
                aborted,
                supersedes: &supersedes,
                prompts: Prompts::new(&answered),
            };
            fit::write_json(&line, out);
        });
    }

    fn write_user(&mut self, said: &UserContent<'_>, out: &mut Vec<u8>) {
        self.latest = Some(said.id);
        let timestamp = time::iso(self.now.wall_ms);
        fit::append(out, |detail, out| {
            let content: Vec<Block> = said.blocks.iter().map(|block| block_at(block, detail)).collect();
            let line = UserLine {
                message: UserMessage { role: "user", content: &content },
                parent_tool_use_id: None,
                session_id: self.ids.session(),
                uuid: LineUuid(self.ids.key.said_uuid(said.id, said.prompts)),
                timestamp: &timestamp,
                tool_use_result: said.structured.filter(|_| detail == fit::DetailLevel::Whole),
                is_synthetic: said.is_synthetic,
                is_replay: false,
            };
            fit::write_json(&line, out);
        });
    }

    fn on_done(&mut self, outcome: &Outcome, out: &mut Vec<u8>) {
        self.run.calls.clear();
        self.end_compaction(out);
        let noticed = self.noticed.take();
        for warning in outcome.warnings.iter().filter(|warning| noticed.as_ref() != Some(warning)) {
            self.informational(warning, "warning", out);
        }
        match outcome.terminal {
            Terminal::Refused => self.write_refusal(outcome, out),
            _ if !self.run.retracted.is_empty() => {
                self.run.retracted.clear();
                self.informational("Part of the answer shown above was retracted.", "notice", out);
            }
            _ => {}
        }
        let is_success = outcome.terminal.is_success();
        let state = if is_success { Lifecycle::Completed } else { Lifecycle::Cancelled };
        for id in &outcome.prompts {
            self.write_lifecycle(id, state, out);
        }
        self.result(outcome, out);
    }

    /// Prompts are part of a run; the first answer names them.
    fn on_started(&mut self, ids: &[Arc<str>], out: &mut Vec<u8>) {
        for id in ids {
            self.write_lifecycle(id, Lifecycle::Started, out);
        }
        self.run.unanswered.extend(ids.iter().cloned());
    }

    /// Appends what became of a prompt or command that its sender gave an id.
    fn write_lifecycle(&mut self, prompt: &str, state: Lifecycle, out: &mut Vec<u8>) {
        let body = json!({ "type": "command_lifecycle", "command_uuid": prompt, "state": state });
        self.write_line(&body, out);
    }

    /// Appends the `result` alone, for hosts that want nothing else.
    pub fn result(&mut self, outcome: &Outcome, out: &mut Vec<u8>) {
        ModelSpend::add(&mut self.spent, &outcome.models);
        for (model, total) in &mut self.spent {
            if let Some(spend) = outcome.models.get(model) {
                (total.window_tokens, total.output_tokens_max) =
                    (spend.window_tokens, spend.output_tokens_max);
            }
        }
        result::append(outcome, &self.result_context(), out);
        self.results += 1;
    }

    /// Appends the `result` of a prompt that nothing was done about, and why.
    pub fn refuse(&mut self, error: &str, prompt: Option<&Arc<str>>, out: &mut Vec<u8>) {
        if let Some(id) = prompt {
            self.write_lifecycle(id, Lifecycle::Refused, out);
        }
        let context = self.result_context();
        let prompts = prompt.map(std::slice::from_ref).unwrap_or_default();
        result::append_refusal(&[error.to_owned()], prompts, &context, out);
        self.results += 1;
    }

    fn result_context(&mut self) -> ResultContext<'_> {
        ResultContext {
            session_id: self.ids.session(),
            uuid: self.ids.next(),
            result_index: self.results,
            ttft_ms: self.run.ttft_ms,
            spent: &self.spent,
        }
    }

    /// The failure that ended the run, in the form hosts show: an answer nobody gave.
    fn on_failed(&mut self, terminal: Terminal, text: &str, failure: Option<&Failure>, out: &mut Vec<u8>) {
        let request_id = failure.and_then(|failure| failure.request_id.as_deref());
        let source = AnswerSource::Failure(terminal.failure_category(failure), request_id);
        let uuid = self.ids.next();
        self.write_answer(uuid, &Block::text(text), &source, out);
    }

    fn write_refusal(&mut self, outcome: &Outcome, out: &mut Vec<u8>) {
        let mut body = json!({
            "original_model": &*self.model,
            "request_id": null,
            "content": outcome.error_text(),
        });
        if !self.run.retracted.is_empty() {
            body["retracted_message_uuids"] = json!(std::mem::take(&mut self.run.retracted));
        }
        self.write_system("model_refusal_no_fallback", &body, out);
    }

    pub(crate) fn write_system(&mut self, subtype: &str, body: &Value, out: &mut Vec<u8>) {
        self.write_line(&SystemBody { subtype, body }, out);
    }

    /// Appends a line with the ids of session and line behind its own fields.
    pub(crate) fn write_line(&mut self, body: &impl Serialize, out: &mut Vec<u8>) {
        fit::append_plain(out, &self.ids.envelope(body));
    }

    /// Writes stream events, if they are wanted.
    fn write_stream(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Events<'_>)) {
        if self.setup.has_partial_messages {
            write(&mut Events { ids: &mut self.ids, prompts: &self.run.unanswered, out });
        }
    }
}

/// The block with a signature if it is thinking without one: a host in Python stops at a missing key.
fn sign_thinking(block: Block) -> Block {
    if block.kind() != &BlockKind::Thinking {
        return block;
    }
    let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(block.json()) else { return block };
    let lacks = |fields: &Map<String, Value>, key| !fields.get(key).is_some_and(Value::is_string);
    let missing: Vec<&str> =
        ["thinking", "signature"].into_iter().filter(|key| lacks(&fields, *key)).collect();
    if missing.is_empty() {
        return block;
    }
    fields.extend(missing.into_iter().map(|key| (key.to_owned(), "".into())));
    Block::from_json(&Value::Object(fields).to_string()).unwrap_or(block)
}

/// What the last gate did, for a host's log.
fn describe(repairs: &[Repair]) -> String {
    let list: Vec<String> = repairs.iter().map(describe_one).collect();
    format!("Repaired the request before sending it: {}.", list.join(", "))
}

fn describe_one(repair: &Repair) -> String {
    match repair {
        Repair::AddedResult { tool_use_id } => format!("added a missing result for {tool_use_id}"),
        Repair::DroppedResult { tool_use_id } => format!("dropped an unexpected result for {tool_use_id}"),
        Repair::MovedResult { tool_use_id } => format!("moved the result for {tool_use_id}"),
        Repair::RenamedToolUse { tool_use_id } => format!("gave tool use {tool_use_id} a valid id"),
        Repair::DroppedToolUse { tool_use_id } => format!("dropped the duplicate tool use {tool_use_id}"),
        Repair::DroppedText => "dropped an empty text".into(),
        Repair::WrappedInput { tool_use_id } => format!("wrapped the input of {tool_use_id}"),
        Repair::DroppedThinking => "dropped thinking at the end of an answer".into(),
        Repair::DroppedMessage => "dropped an empty message".into(),
        Repair::AddedUser => "added a user message".into(),
    }
}
