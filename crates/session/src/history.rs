//! A session as people read it: every message as it was written, with one line in memory at a time.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;

use serde_json::Value;
use windlass_protocol::RawObject;

use crate::catalogue::SessionInfo;
use crate::preview::{OWN, flag, members, own_members, text};
use crate::read::LineReader;

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchSpeaker {
    /// A person, or the program that speaks for one.
    User,
    /// The model.
    Assistant,
    /// A tool: what a call returned.
    Tool(String),
    /// The engine, to the model.
    Engine,
    /// The summary of what was compacted.
    Summary,
    /// A title that a user or a program gave.
    Title,
}

/// Something that happened in a conversation.
#[derive(Debug)]
pub(crate) enum HistoryItem {
    Said(Utterance),
    /// From here on the model no longer sees what stands before.
    Compacted(CompactionNote),
    /// The conversation goes on from an earlier message.
    Rewound,
}

/// One message, or a block of one.
#[derive(Debug)]
pub(crate) struct Utterance {
    pub(crate) uuid: String,
    pub(crate) at_ms: Option<u64>,
    pub(crate) who: SearchSpeaker,
    /// The message as it was written.
    pub(crate) message: String,
    pub(crate) pieces: Vec<ContentPiece>,
    /// Its number, if we wrote it.
    n: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct CompactionNote {
    pub(crate) at_ms: Option<u64>,
    pub(crate) trigger: Option<String>,
    pub(crate) tokens_before: Option<u64>,
}

/// A block as people read it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ContentPiece {
    Text(String),
    Thinking(String),
    Call {
        name: String,
        input: String,
    },
    Result {
        text: String,
        is_error: bool,
    },
    /// A picture, a document, something encrypted.
    Other(String),
}

impl ContentPiece {
    /// What it says, for whoever looks for words.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Thinking(text) | Self::Result { text, .. } => text,
            Self::Call { input, .. } => input,
            Self::Other(_) => "",
        }
    }
}

/// Reads a session from its beginning.
pub(crate) struct SessionHistory<'a> {
    path: &'a Path,
    lines: LineReader,
    seen: HashSet<String>,
    /// Names of the tools that were called, by the id of the call.
    tools: BTreeMap<String, String>,
    /// The numbers of messages that were taken back; not read yet if nothing.
    retracted: Option<HashSet<u64>>,
}

impl<'a> SessionHistory<'a> {
    pub(crate) fn open(path: &'a Path) -> io::Result<Self> {
        let lines = LineReader::open(path)?;
        Ok(Self { path, lines, seen: HashSet::new(), tools: BTreeMap::new(), retracted: None })
    }

    /// The next thing, if its line passes a test that is cheaper than reading it.
    pub(crate) fn next(
        &mut self,
        mut is_worth_reading: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<Option<HistoryItem>> {
        while let Some(line) = self.lines.next_bytes()? {
            // Results are known by the names of their calls, so calls are always read.
            let has_call = memchr::memmem::find(line, b"\"tool_use\"").is_some();
            if !has_call && !is_worth_reading(line) {
                continue;
            }
            if let Some(item) = item(line, &mut self.seen, &mut self.tools) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Whether a message was taken back: its response did not stand.
    pub(crate) fn has_retracted(&mut self, said: &Utterance) -> io::Result<bool> {
        let Some(n) = &said.n else { return Ok(false) };
        let numbers = match &mut self.retracted {
            Some(numbers) => numbers,
            none => none.insert(retracted_lines(self.path)?),
        };
        Ok(numbers.contains(n))
    }
}

fn retracted_lines(path: &Path) -> io::Result<HashSet<u64>> {
    let mut lines = LineReader::open(path)?;
    let mut numbers = HashSet::new();
    while let Some(line) = lines.next_bytes()? {
        if let Some(members) = own_members(line, "retracted") {
            numbers.extend(members.read::<Vec<u64>>("of").unwrap_or_default());
        }
    }
    Ok(numbers)
}

fn item(
    line: &[u8],
    seen: &mut HashSet<String>,
    tools: &mut BTreeMap<String, String>,
) -> Option<HistoryItem> {
    if line.starts_with(OWN) {
        return own_members(line, "rewound").map(|_| HistoryItem::Rewound);
    }
    let members = members(line)?;
    let uuid = text(&members, "uuid").filter(|uuid| seen.insert(uuid.clone()))?;
    let at_ms = text(&members, "timestamp").and_then(|time| crate::time::parse(&time));
    let kind = text(&members, "type")?;
    if kind == "system" {
        return (text(&members, "subtype")? == "compact_boundary")
            .then(|| HistoryItem::Compacted(compaction_note(&members, at_ms)));
    }
    let message = members.get("message")?.get().to_owned();
    let value: Value = serde_json::from_str(&message).ok()?;
    let own: Value = members.read("windlass").unwrap_or_default();
    let who = match kind.as_str() {
        "assistant" => SearchSpeaker::Assistant,
        "user" if flag(&members, "isCompactSummary") => SearchSpeaker::Summary,
        "user" if !flag(&members, "isMeta") => speaker(&value, &own, tools),
        "user" | "attachment" => SearchSpeaker::Engine,
        _ => return None,
    };
    let pieces = pieces(&value["content"], tools);
    Some(HistoryItem::Said(Utterance { uuid, at_ms, who, message, pieces, n: own["n"].as_u64() }))
}

fn compaction_note(members: &RawObject<'_>, at_ms: Option<u64>) -> CompactionNote {
    let about: Value = members.read("compactMetadata").unwrap_or_default();
    CompactionNote {
        at_ms,
        trigger: about["trigger"].as_str().map(str::to_owned),
        tokens_before: about["preTokens"].as_u64(),
    }
}

/// Who speaks in a message of the user's side: results come from tools.
fn speaker(message: &Value, own: &Value, tools: &BTreeMap<String, String>) -> SearchSpeaker {
    let results = message["content"].as_array().into_iter().flatten();
    let result = results.into_iter().find(|block| block["type"] == "tool_result");
    let Some(result) = result else { return SearchSpeaker::User };
    let called = result["tool_use_id"].as_str().and_then(|id| tools.get(id));
    let name = own["name"].as_str().or(called.map(String::as_str));
    SearchSpeaker::Tool(name.unwrap_or("a tool").to_owned())
}

fn pieces(content: &Value, tools: &mut BTreeMap<String, String>) -> Vec<ContentPiece> {
    match content {
        Value::String(text) => vec![ContentPiece::Text(text.clone())],
        Value::Array(blocks) => blocks.iter().map(|block| piece(block, tools)).collect(),
        _ => Vec::new(),
    }
}

fn piece(block: &Value, tools: &mut BTreeMap<String, String>) -> ContentPiece {
    let field = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str().unwrap_or_default() {
        "text" => ContentPiece::Text(field("text")),
        "thinking" => ContentPiece::Thinking(field("thinking")),
        "tool_use" | "server_tool_use" => {
            tools.insert(field("id"), field("name"));
            ContentPiece::Call { name: field("name"), input: block["input"].to_string() }
        }
        "tool_result" => {
            ContentPiece::Result { text: result(&block["content"]), is_error: block["is_error"] == true }
        }
        other => ContentPiece::Other(other.to_owned()),
    }
}

fn result(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let shown = |block: &Value| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block["type"].as_str().unwrap_or("unknown content")),
            };
            blocks.iter().map(shown).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Numbers and the end of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOutline {
    /// How many prompts there are.
    pub prompts: u64,
    /// How many calls were made.
    pub calls: u64,
    /// How often the conversation was compacted.
    pub compactions: u64,
    /// What was said last.
    pub last_prompt: Option<String>,
    /// What the model said to it, as far as it did.
    pub last_answer: Option<String>,
}

/// Reads a session from end to end, a line at a time.
pub fn outline(session: &SessionInfo) -> io::Result<SessionOutline> {
    let mut history = SessionHistory::open(&session.path)?;
    let mut outline = SessionOutline::default();
    while let Some(item) = history.next(|_| true)? {
        match item {
            HistoryItem::Said(said) if !history.has_retracted(&said)? => outline.take(&said),
            HistoryItem::Compacted(_) => outline.compactions += 1,
            HistoryItem::Said(_) | HistoryItem::Rewound => {}
        }
    }
    Ok(outline)
}

impl SessionOutline {
    fn take(&mut self, said: &Utterance) {
        let calls = said.pieces.iter().filter(|piece| matches!(piece, ContentPiece::Call { .. })).count();
        self.calls += calls as u64;
        let texts = said.pieces.iter().filter_map(|piece| match piece {
            ContentPiece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        match said.who {
            SearchSpeaker::User => {
                self.prompts += 1;
                self.last_prompt = Some(text);
                self.last_answer = None;
            }
            SearchSpeaker::Assistant if !text.is_empty() => self.last_answer = Some(text),
            _ => {}
        }
    }
}
