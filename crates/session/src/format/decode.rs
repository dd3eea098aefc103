//! From a line to what it says.

use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;
use windlass_protocol::{MessageId, Record};

use super::LogTime;
use super::entry::EntryOrigin;
use super::field_forms::{JsonFields, text};
use super::own_lines::{self, OwnLineBody};

/// No log has so many lines, and readers in other languages could not tell larger numbers apart.
const SEQ_MAX: u64 = 1 << 53;

/// What a line says.
#[derive(Clone, Debug)]
pub(crate) enum LogLine {
    Own(OwnLine),
    Entry(Box<LogEntry>),
    /// Something else, of other programs or for them, or nothing at all.
    Other,
}

/// A line of our own.
#[derive(Clone, Debug)]
pub(crate) struct OwnLine {
    pub(crate) seq: u64,
    pub(crate) at: LogTime,
    /// Its sum; none if somebody wrote the line anew.
    pub(crate) sum: Option<u32>,
    pub(crate) own: OwnLineBody,
}

/// An entry of the conversation, as other programs read it.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub(crate) kind: EntryKind,
    pub(crate) uuid: Uuid,
    pub(crate) parent: Option<Uuid>,
    /// The entry before a compaction.
    pub(crate) logical_parent: Option<Uuid>,
    /// The entry of the call that it answers.
    pub(crate) source: Option<Uuid>,
    /// When it was written: milliseconds since 1970.
    pub(crate) wall_ms: Option<u64>,
    /// Whether it belongs to another conversation beside this one.
    pub(crate) is_aside: bool,
    /// Whether only the model sees it.
    pub(crate) is_meta: bool,
    /// Whether it stands for everything before a compaction.
    pub(crate) is_summary: bool,
    /// Whether everything before it was compacted.
    pub(crate) is_boundary: bool,
    pub(crate) message: Option<Arc<RawValue>>,
    pub(crate) structured: Option<Arc<RawValue>>,
    pub(crate) metadata: Option<Arc<RawValue>>,
    pub(crate) meta: Option<EntryOrigin>,
}

/// The kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    User,
    Assistant,
    System,
    /// What the model was told besides.
    Attachment,
    /// How something is getting on.
    Progress,
}

/// Why a line cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Flaw(pub(crate) String);

impl Flaw {
    pub(crate) fn too_long() -> Self {
        Self("the line is too long".into())
    }
}

impl From<serde_json::Error> for Flaw {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

impl OwnLine {
    pub(crate) fn record(&self) -> Option<&Record> {
        match &self.own {
            OwnLineBody::Record(record) => Some(record),
            _ => None,
        }
    }

    pub(crate) fn mark(&self) -> Option<&super::SessionMark> {
        match &self.own {
            OwnLineBody::Mark(mark) => Some(mark),
            _ => None,
        }
    }
}

impl LogEntry {
    /// The number of the message that it is part of, if it is of ours.
    pub(crate) fn number(&self) -> Option<MessageId> {
        match self.meta.as_ref()? {
            EntryOrigin::Front { n, .. }
            | EntryOrigin::Said { n, .. }
            | EntryOrigin::Answered { n, .. }
            | EntryOrigin::Result { n, .. }
            | EntryOrigin::Summary { n, .. } => Some(*n),
            EntryOrigin::Boundary { .. } => None,
        }
    }

    /// The first message that a compaction of ours left.
    pub(crate) fn compaction_tail(&self) -> Option<MessageId> {
        match self.meta.as_ref()? {
            EntryOrigin::Boundary { tail, .. } => *tail,
            _ => None,
        }
    }
}

/// What a line says, given without the line feed at its end.
pub(crate) fn decode_line(line: &[u8]) -> Result<LogLine, Flaw> {
    let line = std::str::from_utf8(line).map_err(|error| Flaw(format!("not valid UTF-8: {error}")))?;
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(LogLine::Other);
    }
    let fields: JsonFields<'_> = serde_json::from_str(line)?;
    let kind = fields.raw("type").and_then(|kind| text(kind).ok());
    let kind = kind.ok_or_else(|| Flaw("the field `type` is missing".into()))?;
    if kind == "windlass" {
        return own_line(line, &fields).map(LogLine::Own);
    }
    let entry = match &*kind {
        "user" => EntryKind::User,
        "assistant" => EntryKind::Assistant,
        "system" => EntryKind::System,
        "attachment" => EntryKind::Attachment,
        "progress" => EntryKind::Progress,
        _ => return Ok(LogLine::Other),
    };
    let uuid = fields.raw("uuid").and_then(name);
    Ok(uuid.map_or(LogLine::Other, |uuid| LogLine::Entry(Box::new(self::entry(entry, uuid, &fields)))))
}

fn own_line(line: &str, fields: &JsonFields<'_>) -> Result<OwnLine, Flaw> {
    let sum = own_lines::check_sum(line).transpose()?;
    let kind: String = fields.plain::<_, serde_json::Error>("kind")?;
    let at = LogTime {
        at_ms: fields.plain::<_, serde_json::Error>("at")?,
        wall_ms: fields.plain::<_, serde_json::Error>("wall")?,
    };
    let own = own_lines::take(&kind, at, fields).map_err(|why| Flaw(format!("`{kind}`: {why}")))?;
    let seq = fields.plain::<_, serde_json::Error>("seq")?;
    if seq > SEQ_MAX {
        return Err(Flaw("the line number is too large".into()));
    }
    Ok(OwnLine { seq, at, sum, own })
}

fn entry(kind: EntryKind, uuid: Uuid, fields: &JsonFields<'_>) -> LogEntry {
    let is = |key: &str| fields.raw(key).is_some_and(|value| value.get() == "true");
    let says =
        |key: &str| fields.raw(key).is_some_and(|value| value.get() != "null" && value.get() != "false");
    let kept = |key: &str| fields.raw(key).map(|value| Arc::from(value.to_owned()));
    let named = |key: &str| fields.raw(key).and_then(name);
    let subtype = fields.raw("subtype").and_then(|subtype| text(subtype).ok());
    let wall_ms =
        fields.raw("timestamp").and_then(|time| text(time).ok()).and_then(|time| crate::time::parse(&time));
    LogEntry {
        kind,
        uuid,
        parent: named("parentUuid"),
        logical_parent: named("logicalParentUuid"),
        source: named("sourceToolAssistantUUID"),
        wall_ms,
        is_aside: is("isSidechain") || says("teamName"),
        is_meta: is("isMeta"),
        is_summary: is("isCompactSummary"),
        is_boundary: kind == EntryKind::System && subtype.as_deref() == Some("compact_boundary"),
        message: kept("message"),
        structured: kept("toolUseResult"),
        metadata: kept("compactMetadata"),
        meta: fields.plain::<_, serde_json::Error>("windlass").unwrap_or_default(),
    }
}

/// The id of an entry. One that is no UUID, which only files of other programs can have, gets one that follows from it.
fn name(value: &RawValue) -> Option<Uuid> {
    let id = text(value).ok()?;
    Some(Uuid::parse_str(&id).unwrap_or_else(|_| {
        let half = |start: u64| {
            id.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        };
        Uuid::from_u64_pair(half(0xcbf2_9ce4_8422_2325), half(0x9e37_79b9_7f4a_7c15))
    }))
}
