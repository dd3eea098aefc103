//! Sessions of any length, put into their logs by the writer that ships, with the records an engine would append.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::json;
use serde_json::value::to_raw_value;
use windlass_ports::{AppendProgress, SessionLog as _};
use windlass_protocol::{
    AnswerBlock, Block, BlockKind, CallId, CallIntent, CallKind, CallResult, CompactTrigger, Compaction,
    Decision, Durability, Event, FinishedCall, Input, Message, MessageId, ModelEvent, Origin, Prompt,
    RawValueEq, Record, RequestEntry, RequestId, RunEnding, SessionMemory, SessionSeed, SessionSnapshot,
    StopReason, Terminal, ToolOutput, Usage, UserEntry,
};
use windlass_session::{Header, LogOptions, LogWriter, SessionPaths, SyncPolicy};

const MODEL: &str = "claude-sonnet-5";
/// What a call returns in a long session.
const RESULT_BYTES: usize = 100_000;
/// Calls between two prompts.
const ROUNDS: usize = 6;
/// Old results are cleared, or everything is compacted, when the conversation is longer.
const LIVE_BYTES_MAX: usize = 1_500_000;
/// What the last conversation must have.
const LIVE_BYTES_MIN: usize = 1_000_000;
/// How many of the newest results stay when the others are cleared.
const RESULTS_KEPT: usize = 5;
/// How often results are cleared before everything is compacted: clearing restates nothing, so that a good part of the file has to
/// be read again when the session is opened.
const CLEARED_MAX: usize = 9;
const CLEARED: &str = "[Old tool result content cleared]";
/// The beginning of all time in these sessions.
const WALL_MS: u64 = 1_794_565_230_123;

/// Writes one session.
pub(super) struct Author {
    log: LogWriter,
    /// The conversation as the model sees it.
    live: Vec<Arc<Message>>,
    live_bytes: usize,
    cleared: usize,
    message: u64,
    call: u32,
    at_ms: u64,
}

impl Author {
    pub(super) fn new(paths: &SessionPaths, cwd: &Path) -> Self {
        let seed = SessionSeed(paths.id().as_u128());
        let header = Arc::new(Header::new(seed, cwd, WALL_MS));
        let options = LogOptions { sync: SyncPolicy::Never, ..LogOptions::default() };
        let log = LogWriter::create(paths, header, options);
        Self { log, live: Vec::new(), live_bytes: 0, cleared: 0, message: 0, call: 0, at_ms: 0 }
    }

    /// A prompt and its answer.
    pub(super) fn short(mut self, prompt: &str) -> Result<()> {
        self.prompt(prompt)?;
        self.end()
    }

    /// Prompts and calls with large results, until the log is longer than asked for and has a large conversation at its end, some
    /// way behind the last place at which everything is restated.
    pub(super) fn long(mut self, paths: &SessionPaths, bytes_min: u64) -> Result<u64> {
        loop {
            self.prompt("Look at the next few files.")?;
            for _ in 0..ROUNDS {
                self.round()?;
            }
            self.end()?;
            let length = std::fs::metadata(paths.file()).context("the log was not written")?.len();
            let is_hard = self.cleared >= CLEARED_MAX - 1 && self.live_bytes >= LIVE_BYTES_MIN;
            if length >= bytes_min && is_hard {
                return Ok(length);
            }
            if self.live_bytes > LIVE_BYTES_MAX {
                self.make_room()?;
            }
        }
    }

    fn prompt(&mut self, text: &str) -> Result<()> {
        let said = Message::user(self.next(), Origin::Prompt, vec![Block::text(text)]);
        let said = self.push(said);
        let records = [Record::Said(UserEntry::plain(said)), self.request_record()];
        self.append(Event::Submit(Prompt::from(text)), records)
    }

    /// A call and its result.
    fn round(&mut self) -> Result<()> {
        self.call += 1;
        let (call, id) = (CallId(self.call), format!("toolu_{}", self.call));
        let path = format!("/project/src/file-{}.rs", self.call);
        let input = to_raw_value(&json!({ "file_path": path }))?;
        let asked = Block::tool_use(&id, "Read", input);
        let asked_by = self.add_answer(asked.clone())?;
        let intended = CallIntent {
            call,
            tool_use_id: id.as_str().into(),
            tool: "Read".into(),
            kind: CallKind::Read,
            input_hash: u64::from(self.call),
            changes: Vec::new(),
        };
        self.append(
            self.model(ModelEvent::Ended { stop: StopReason::ToolUse, usage: Box::default() }),
            [Record::Intended(intended)],
        )?;
        let text = content(self.call);
        let structured =
            to_raw_value(&json!({ "type": "text", "file": { "filePath": path, "content": text } }))?;
        let structured = Some(Arc::new(RawValueEq(structured)));
        let outcome = ToolOutput { structured: structured.clone(), ..ToolOutput::text(&text) };
        let result = Block::tool_result(&id, &outcome.content, false);
        let answer = CallResult {
            id: self.next(),
            call,
            asked_by,
            name: "Read".into(),
            result: result.clone(),
            structured,
        };
        self.push(Message::user(answer.id, Origin::Results, vec![result]));
        let records = [
            Record::Finished(FinishedCall { call, tool_use_id: id.as_str().into(), is_error: false }),
            Record::Result(answer),
            self.request_record(),
        ];
        self.append(Event::Finished(call, outcome), records)
    }

    fn end(&mut self) -> Result<()> {
        self.add_answer(Block::text("They are as expected."))?;
        let ended = Record::Ended(RunEnding {
            terminal: Terminal::Completed,
            rest: Box::new(SessionMemory::default()),
        });
        self.append(
            self.model(ModelEvent::Ended { stop: StopReason::EndTurn, usage: Box::default() }),
            [ended],
        )
    }

    /// A block of an answer.
    fn add_answer(&mut self, block: Block) -> Result<MessageId> {
        let id = self.next();
        self.push(Message::assistant(id, MODEL.into(), vec![block.clone()]));
        let answered = AnswerBlock {
            id,
            request: RequestId(self.call),
            message_id: format!("msg_{}", id.0).into(),
            model: MODEL.into(),
            answered_by: MODEL.into(),
            index: 0,
            block: block.clone(),
            usage: Some(Box::new(Usage::default())),
            is_aborted: false,
        };
        self.append(self.model(ModelEvent::Block { index: 0, block }), [Record::Answered(answered)])?;
        Ok(id)
    }

    /// Clears old results, or compacts.
    fn make_room(&mut self) -> Result<()> {
        self.cleared += 1;
        let decision = if self.cleared < CLEARED_MAX { self.clear() } else { self.compact() };
        self.append(Event::Compact { focus: String::new() }, [Record::Decided(decision)])
    }

    fn clear(&mut self) -> Decision {
        let is_result = |message: &&mut Arc<Message>| message.origin == Origin::Results;
        let mut old: Vec<&mut Arc<Message>> = self.live.iter_mut().filter(is_result).collect();
        old.truncate(old.len().saturating_sub(RESULTS_KEPT));
        let mut results = Vec::new();
        for message in old {
            let Some(BlockKind::ToolResult { tool_use_id: id, .. }) =
                message.blocks.first().map(|block| block.kind().clone())
            else {
                continue;
            };
            let placeholder = Block::tool_result(&id, &[Block::text(CLEARED)], false);
            *message = Arc::new(message.with_blocks(vec![placeholder.clone()]));
            results.push((id, placeholder));
        }
        self.live_bytes = self.live.iter().map(|message| bytes(message)).sum();
        Decision::Cleared { results, tokens: 0, unbound_from: None }
    }

    fn compact(&mut self) -> Decision {
        self.cleared = 0;
        self.live.clear();
        self.live_bytes = 0;
        let summary = Block::text(&"They looked at one file after the other. ".repeat(100));
        let boundary = Message::user(self.next(), Origin::Boundary, vec![summary]);
        Decision::Compacted(Box::new(Compaction {
            trigger: CompactTrigger::Auto,
            boundary: self.push(boundary),
            tail: None,
            is_unbound: false,
            is_mechanical: false,
            tokens_before: 400_000,
            tokens_after: 1_000,
            duration_ms: 10,
        }))
    }

    /// Appends what was heard and what follows from it, and writes a snapshot where the log wants that.
    fn append<const N: usize>(&mut self, event: Event, records: [Record; N]) -> Result<()> {
        self.at_ms += 20;
        let heard = Input { at_ms: self.at_ms, wall_ms: WALL_MS + self.at_ms, entropy: 7, event };
        let mut batch = vec![Record::Heard(Box::new(heard))];
        batch.extend(records);
        self.write(&batch)?;
        if self.log.wants_snapshot() {
            let facts = SessionSnapshot {
                messages: self.live.clone(),
                last_message: MessageId(self.message),
                cwd: "/project".into(),
                ..SessionSnapshot::default()
            };
            self.write(&[Record::Snapshot(Box::new(facts))])?;
        }
        Ok(())
    }

    fn write(&mut self, records: &[Record]) -> Result<()> {
        match self.log.append(records, Durability::Written) {
            AppendProgress::Now(written) => written.context("the session cannot be written"),
            AppendProgress::Later(_) => anyhow::bail!("a log that is never synced made its writer wait"),
        }
    }

    fn model(&self, event: ModelEvent) -> Event {
        Event::Model(RequestId(self.call), event)
    }

    fn request_record(&self) -> Record {
        let parts = vec![("system".into(), 4_000), ("messages".into(), 100_000)];
        Record::Requested(RequestEntry {
            request: RequestId(self.call),
            model: MODEL.into(),
            attempt: 1,
            parts,
        })
    }

    fn next(&mut self) -> MessageId {
        self.message += 1;
        MessageId(self.message)
    }

    fn push(&mut self, message: Message) -> Arc<Message> {
        let message = Arc::new(message);
        self.live_bytes += bytes(&message);
        self.live.push(message.clone());
        message
    }
}

fn bytes(message: &Message) -> usize {
    message.blocks.iter().map(|block| block.json().len()).sum()
}

/// What a file says; each says something else.
fn content(number: u32) -> String {
    let mut text = format!("// file {number}\n");
    let line = format!("let answer_{number} = question.ponder(7_500_000, \"for long\").await?;\n");
    while text.len() < RESULT_BYTES {
        text.push_str(&line);
    }
    text
}
