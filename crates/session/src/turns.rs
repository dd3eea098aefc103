//! Where the turns of a conversation begin in its log.

use std::io;
use std::path::Path;

use serde_json::Value;
use uuid::Uuid;
use windlass_protocol::{Origin, Record};

use crate::checkpoints::may_change_files;
use crate::format::{EntryKind, LogEntry, LogLine, Meta, OwnLine, OwnLineBody, SessionMark};
use crate::read::lines;

/// A prompt in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptLine {
    /// Its id.
    pub uuid: Uuid,
    /// Further ids under which it is known.
    pub also: Vec<Uuid>,
    /// Its number in the conversation; 0 in the files of others.
    pub number: u64,
    /// Whether what calls behind it change is kept, as far as the log says.
    pub kept: bool,
    /// Whether a call that may change files followed it, up to the next one; or something that cannot be read.
    pub changing: bool,
    /// Whether the conversation did not go back behind it.
    pub standing: bool,
    /// Up to here nothing of it is in the log.
    pub starts_at: u64,
    /// What it says, as far as it is text.
    pub text: String,
    /// When it was said: milliseconds since 1970.
    pub wall_ms: Option<u64>,
}

/// The prompts of a log, in their order. Those that were rewound or compacted away are among them.
pub fn prompts(path: &Path) -> io::Result<Vec<PromptLine>> {
    let mut gathering = PromptCollector::default();
    for located in lines(path)? {
        let located = located?;
        match &located.line {
            Ok(LogLine::Own(own)) => gathering.own(own, located.offset),
            Ok(LogLine::Entry(entry)) => gathering.entry(entry, located.offset),
            Ok(_) => gathering.start = None,
            Err(_) => {
                gathering.start = None;
                gathering.changes();
            }
        }
    }
    Ok(gathering.found)
}

#[derive(Default)]
struct PromptCollector {
    found: Vec<PromptLine>,
    /// Where the next prompt begins. What was heard, and what the engine put in front, belong to the prompt behind them.
    start: Option<u64>,
    kept: bool,
    /// The entries of the conversation, each with how many prompts there were up to it.
    entries: Vec<(Uuid, usize)>,
}

impl PromptCollector {
    fn entry(&mut self, entry: &LogEntry, offset: u64) {
        if entry.is_meta {
            self.start.get_or_insert(offset);
        } else {
            let start = self.start.take().unwrap_or(offset);
            if is_prompt(entry) {
                self.prompt(entry, start);
            }
        }
        if !entry.is_aside {
            self.entries.push((entry.uuid, self.found.len()));
        }
    }

    fn prompt(&mut self, entry: &LogEntry, starts_at: u64) {
        let (number, also) = ids(entry);
        self.found.push(PromptLine {
            uuid: entry.uuid,
            also,
            number,
            kept: self.kept,
            changing: false,
            standing: true,
            starts_at,
            text: text(entry),
            wall_ms: entry.wall_ms,
        });
    }

    fn own(&mut self, own: &OwnLine, offset: u64) {
        if matches!(own.own, OwnLineBody::Heard { .. }) {
            self.start.get_or_insert(offset);
            return;
        }
        self.start = None;
        match &own.own {
            OwnLineBody::Opened(header) | OwnLineBody::Snapshot { header, .. } => {
                self.kept = header.has_pre_images();
            }
            OwnLineBody::Mark(SessionMark::Rewound { to }) => self.goes_back(*to),
            _ if matches!(own.record(), Some(Record::Intended(call)) if may_change_files(call)) => {
                self.changes();
            }
            _ => {}
        }
    }

    fn changes(&mut self) {
        if let Some(last) = self.found.last_mut() {
            last.changing = true;
        }
    }

    fn goes_back(&mut self, to: Option<Uuid>) {
        let entry = self.entries.iter().rfind(|(uuid, _)| Some(*uuid) == to);
        let standing = entry.map_or(0, |(_, prompts)| *prompts);
        for prompt in &mut self.found[standing..] {
            prompt.standing = false;
        }
    }
}

/// Checks that everything behind an entry belongs to the turn of one prompt. The error says what does not.
pub fn check_dropped(path: &Path, behind: Uuid, turn: &str) -> Result<(), String> {
    let turn =
        Uuid::parse_str(turn.trim()).map_err(|_| "the value is not the UUID of a prompt".to_owned())?;
    let standing = standing(path).map_err(|error| format!("cannot read the session: {error}"))?;
    let Some(place) = standing.iter().position(|entry| entry.uuid == behind) else {
        return Err(format!("there is no message {behind}"));
    };
    let mut is_in_turn = false;
    for entry in &standing[place + 1..] {
        if entry.prompts && (entry.uuid != turn || is_in_turn) {
            return Err(format!("this would also drop the prompt {}", entry.uuid));
        }
        is_in_turn |= entry.prompts;
        if !is_in_turn && !entry.is_meta {
            return Err(format!("the message {} does not belong to that turn", entry.uuid));
        }
    }
    if is_in_turn { Ok(()) } else { Err(format!("the turn of {turn} does not come after it")) }
}

/// An entry of the conversation.
struct StandingEntry {
    uuid: Uuid,
    prompts: bool,
    is_meta: bool,
}

/// The entries of a log, in their order, without those that the session went back behind.
fn standing(path: &Path) -> io::Result<Vec<StandingEntry>> {
    let mut standing: Vec<StandingEntry> = Vec::new();
    for located in lines(path)? {
        match located?.line {
            Ok(LogLine::Own(own)) => {
                let Some(SessionMark::Rewound { to }) = own.mark() else { continue };
                let place = standing.iter().rposition(|entry| Some(entry.uuid) == *to);
                standing.truncate(place.map_or(0, |place| place + 1));
            }
            Ok(LogLine::Entry(entry)) if !entry.is_aside => {
                let (uuid, prompts) = (entry.uuid, is_prompt(&entry));
                standing.push(StandingEntry { uuid, prompts, is_meta: entry.is_meta });
            }
            _ => {}
        }
    }
    Ok(standing)
}

/// The number of a prompt, and its ids besides the entry's own.
fn ids(entry: &LogEntry) -> (u64, Vec<Uuid>) {
    let Some(Meta::Said { n, prompts, .. }) = &entry.meta else { return (0, Vec::new()) };
    let ids = prompts.iter().filter_map(|prompt| Uuid::parse_str(prompt).ok());
    (n.0, ids.filter(|id| *id != entry.uuid).collect())
}

fn is_prompt(entry: &LogEntry) -> bool {
    let answers = entry.message.as_ref().is_some_and(|message| message.get().contains("\"tool_result\""));
    let is_note = matches!(&entry.meta, Some(Meta::Said { origin: Origin::Interruption, .. }));
    let is_said = entry.kind == EntryKind::User && !entry.is_meta && !entry.is_summary && !entry.is_aside;
    is_said && !answers && !is_note
}

fn text(entry: &LogEntry) -> String {
    let message: Option<Value> = entry.message.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let content = message.map(|mut message| message["content"].take()).unwrap_or_default();
    match content {
        Value::String(text) => text,
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
