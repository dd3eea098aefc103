//! Where the turns of a conversation begin in its log.

use std::io;
use std::path::Path;

use uuid::Uuid;
use windlass_protocol::{Origin, Record};

use crate::checkpoints::can_change_files;
use crate::format::{
    EntryKind, EntryOrigin, LogEntry, LogLine, OwnLine, OwnLineBody, SessionMark, decode_line,
};
use crate::preview::message_texts;
use crate::read::LineReader;

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
    pub is_kept: bool,
    /// Whether a call that may change files followed it, up to the next one; or something that cannot be read.
    pub is_changing: bool,
    /// Whether the conversation did not go back behind it.
    pub is_standing: bool,
    /// Up to here nothing of it is in the log.
    pub starts_at: u64,
    /// What it says, as far as it is text.
    pub text: String,
    /// When it was said: milliseconds since 1970.
    pub wall_ms: Option<u64>,
}

/// The prompts of a log, in their order. Those that were rewound or compacted away are among them.
pub fn prompts(path: &Path) -> io::Result<Vec<PromptLine>> {
    Ok(TurnReader::read(path)?.prompts)
}

/// What a log tells of its turns.
#[derive(Default)]
struct TurnReader {
    prompts: Vec<PromptLine>,
    entries: Vec<ConversationEntry>,
    /// Where the next prompt begins. What was heard, and what the engine put in front, belong to the prompt behind them.
    start: Option<u64>,
    is_kept: bool,
}

struct ConversationEntry {
    uuid: Uuid,
    is_prompt: bool,
    is_meta: bool,
    /// Whether the conversation did not go back behind it.
    is_standing: bool,
}

impl TurnReader {
    fn read(path: &Path) -> io::Result<Self> {
        let mut reader = Self::default();
        let mut lines = LineReader::open(path)?;
        while let Some(raw) = lines.next()? {
            match raw.bytes.map(decode_line) {
                Some(Ok(LogLine::Own(own))) => reader.take_own(&own, raw.offset),
                Some(Ok(LogLine::Entry(entry))) => reader.entry(&entry, raw.offset),
                Some(Ok(LogLine::Other)) => reader.start = None,
                Some(Err(_)) | None => {
                    reader.start = None;
                    reader.changes();
                }
            }
        }
        Ok(reader)
    }

    fn entry(&mut self, entry: &LogEntry, offset: u64) {
        let (uuid, is_meta, is_prompt) = (entry.uuid, entry.is_meta, is_prompt(entry));
        if is_meta {
            self.start.get_or_insert(offset);
        } else {
            let start = self.start.take().unwrap_or(offset);
            if is_prompt {
                self.prompt(entry, start);
            }
        }
        if !entry.is_aside {
            self.entries.push(ConversationEntry { uuid, is_prompt, is_meta, is_standing: true });
        }
    }

    fn prompt(&mut self, entry: &LogEntry, starts_at: u64) {
        let (number, also) = ids(entry);
        self.prompts.push(PromptLine {
            uuid: entry.uuid,
            also,
            number,
            is_kept: self.is_kept,
            is_changing: false,
            is_standing: true,
            starts_at,
            text: entry.message.as_deref().map(message_texts).unwrap_or_default().join("\n"),
            wall_ms: entry.wall_ms,
        });
    }

    fn take_own(&mut self, own: &OwnLine, offset: u64) {
        if matches!(own.own, OwnLineBody::Heard { .. }) {
            self.start.get_or_insert(offset);
            return;
        }
        self.start = None;
        match &own.own {
            OwnLineBody::Opened(header) | OwnLineBody::Snapshot { header, .. } => {
                self.is_kept = header.has_pre_images();
            }
            OwnLineBody::Mark(SessionMark::Rewound { to }) => self.goes_back(*to),
            _ if matches!(own.record(), Some(Record::Intended(call)) if can_change_files(call)) => {
                self.changes();
            }
            _ => {}
        }
    }

    fn changes(&mut self) {
        if let Some(last) = self.prompts.last_mut() {
            last.is_changing = true;
        }
    }

    fn goes_back(&mut self, to: Option<Uuid>) {
        let last = self.entries.iter().rposition(|entry| Some(entry.uuid) == to);
        let (before, behind) = self.entries.split_at_mut(last.map_or(0, |last| last + 1));
        let prompts = before.iter().filter(|entry| entry.is_prompt).count();
        for entry in behind {
            entry.is_standing = false;
        }
        for prompt in &mut self.prompts[prompts..] {
            prompt.is_standing = false;
        }
    }
}

/// Checks that everything behind an entry belongs to the turn of one prompt. The error says what does not.
pub fn check_dropped(path: &Path, behind: Uuid, turn: &str) -> Result<(), String> {
    let turn =
        Uuid::parse_str(turn.trim()).map_err(|_| "the value is not the UUID of a prompt".to_owned())?;
    let read = TurnReader::read(path).map_err(|error| format!("cannot read the session: {error}"))?;
    let mut standing = read.entries.iter().filter(|entry| entry.is_standing);
    if !standing.any(|entry| entry.uuid == behind) {
        return Err(format!("there is no message {behind}"));
    }
    let mut is_in_turn = false;
    for entry in standing {
        if entry.is_prompt && (entry.uuid != turn || is_in_turn) {
            return Err(format!("this would also drop the prompt {}", entry.uuid));
        }
        is_in_turn |= entry.is_prompt;
        if !is_in_turn && !entry.is_meta {
            return Err(format!("the message {} does not belong to that turn", entry.uuid));
        }
    }
    if is_in_turn { Ok(()) } else { Err(format!("the turn of {turn} does not come after it")) }
}

/// The number of a prompt, and its ids besides the entry's own.
fn ids(entry: &LogEntry) -> (u64, Vec<Uuid>) {
    let Some(EntryOrigin::Said { n, prompts, .. }) = &entry.meta else { return (0, Vec::new()) };
    let ids = prompts.iter().filter_map(|prompt| Uuid::parse_str(prompt).ok());
    (n.0, ids.filter(|id| *id != entry.uuid).collect())
}

fn is_prompt(entry: &LogEntry) -> bool {
    let answers = entry.message.as_ref().is_some_and(|message| message.get().contains("\"tool_result\""));
    let is_note = matches!(&entry.meta, Some(EntryOrigin::Said { origin: Origin::Interruption, .. }));
    let is_said = entry.kind == EntryKind::User && !entry.is_meta && !entry.is_summary && !entry.is_aside;
    is_said && !answers && !is_note
}
