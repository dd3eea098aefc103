//! Lines of our own, which other programs skip: everything that is not said in the conversation itself.

use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;
use windlass_protocol::{FinishedCall, Input, RawValueEq, Record, RunEnding, SessionSnapshot};

use super::LogTime;
use super::chain::Chain;
use super::decode::Flaw;
use super::field_forms::{FieldForm, FieldValue, Hex, JsonFields, PlainForm, object, put_json};
use super::header::Header;
use super::stored_elsewhere::StoredElsewhere;

/// Something about the session itself.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionMark {
    /// Which repository it belongs to; any JSON.
    Repository(Arc<RawValueEq>),
    /// The conversation goes on from an earlier entry, or from the start. A snapshot follows.
    Rewound {
        /// The entry.
        to: Option<Uuid>,
    },
    /// What stands before was copied from another session.
    Forked {
        /// That session.
        source: Uuid,
        /// The last entry that was taken over, if not all were.
        entry: Option<Uuid>,
    },
    /// A kind that this version does not know, or that is not its business.
    Other {
        /// The kind.
        kind: Arc<str>,
        /// What it says.
        body: Arc<RawValueEq>,
    },
}

/// What a line of our own says.
#[derive(Clone, Debug)]
pub(crate) enum OwnLineBody {
    Opened(Box<Header>),
    Mark(SessionMark),
    Heard { input: Box<Input>, held: Option<StoredElsewhere> },
    Record(Box<Record>),
    Snapshot { snapshot: Box<SessionSnapshot>, header: Box<Header>, chain: Box<Chain> },
}

struct RewindTarget {
    to: Option<Uuid>,
}

struct ForkOrigin {
    source: Uuid,
    entry: Option<Uuid>,
}

// The line itself tells when it was heard.
object!(Input { entropy: Hex, event } without { at_ms, wall_ms });
object!(RewindTarget { to });
object!(ForkOrigin { source, entry });
object!(FinishedCall { call, tool_use_id, is_error });
object!(RunEnding { terminal, rest });

/// How every line of our own begins.
pub(crate) const BEGINNING: &str = r#"{"type":"windlass","kind":""#;

/// How a line begins that restates everything.
pub(crate) const SNAPSHOT_BEGINNING: &str = r#"{"type":"windlass","kind":"facts","#;

/// A line that is being written, without what it says.
#[derive(Default, Serialize)]
pub(crate) struct OwnLineFrame<'a> {
    #[serde(rename = "type")]
    pub(crate) owner: &'static str,
    pub(crate) kind: &'a str,
    pub(crate) seq: u64,
    pub(crate) at: u64,
    pub(crate) wall: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<FieldValue<&'a Header>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<FieldValue<&'a Chain>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<FieldValue<&'a StoredElsewhere>>,
}

impl<'a> OwnLineFrame<'a> {
    pub(crate) fn new(kind: &'a str, seq: u64, at: LogTime) -> Self {
        let LogTime { at_ms: at, wall_ms: wall } = at;
        Self { owner: "windlass", kind, seq, at, wall, ..Self::default() }
    }

    /// Appends the line.
    pub(crate) fn put<T>(&self, of: &T, out: &mut Vec<u8>)
    where
        PlainForm: FieldForm<T>,
    {
        let start = out.len();
        put_json(self, out);
        out.pop();
        out.extend_from_slice(br#","of":"#);
        put_json(&FieldValue::<_, PlainForm>::new(of), out);
        out.push(b'}');
        put_sum(start, out);
    }

    /// Appends the line of something about which there is no more to say.
    pub(crate) fn put_bare(&self, out: &mut Vec<u8>) {
        let start = out.len();
        put_json(self, out);
        put_sum(start, out);
    }
}

/// Puts its sum at the end of the object that begins there, and ends the line.
pub(crate) fn put_sum(start: usize, out: &mut Vec<u8>) {
    out.pop();
    let sum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(format!("{SUM_KEY}{sum:08x}\"}}\n").as_bytes());
}

const SUM_KEY: &str = r#","sum":""#;
const SUM_LENGTH: usize = SUM_KEY.len() + 10;

/// The sum at the end of a line and whether it is right; `None` for a line that somebody wrote anew.
pub(crate) fn check_sum(line: &str) -> Option<Result<u32, Flaw>> {
    let (before, end) = line.split_at_checked(line.len().checked_sub(SUM_LENGTH)?)?;
    let digits = end.strip_prefix(SUM_KEY)?.strip_suffix("\"}")?;
    let written = u32::from_str_radix(digits, 16).ok()?;
    let sum = crc32fast::hash(before.as_bytes());
    Some(if sum == written { Ok(sum) } else { Err(Flaw("checksum mismatch".into())) })
}

impl SessionMark {
    /// Appends its line.
    pub(crate) fn put(&self, seq: u64, at: LogTime, out: &mut Vec<u8>) {
        let frame = |kind| OwnLineFrame::new(kind, seq, at);
        match self {
            Self::Repository(body) => frame("repository").put(body, out),
            Self::Rewound { to } => frame("rewound").put(&RewindTarget { to: *to }, out),
            Self::Forked { source, entry } => {
                frame("forked").put(&ForkOrigin { source: *source, entry: *entry }, out);
            }
            Self::Other { kind, body } => frame(kind).put(body, out),
        }
    }
}

/// What a line of this kind says.
pub(crate) fn take(kind: &str, at: LogTime, fields: &JsonFields<'_>) -> serde_json::Result<OwnLineBody> {
    let record = match kind {
        "opened" => return Ok(OwnLineBody::Opened(fields.plain("of")?)),
        "repository" => return Ok(OwnLineBody::Mark(SessionMark::Repository(fields.plain("of")?))),
        "rewound" => {
            let RewindTarget { to } = fields.plain("of")?;
            return Ok(OwnLineBody::Mark(SessionMark::Rewound { to }));
        }
        "forked" => {
            let ForkOrigin { source, entry } = fields.plain("of")?;
            return Ok(OwnLineBody::Mark(SessionMark::Forked { source, entry }));
        }
        "heard" => {
            let mut input: Box<Input> = fields.plain("of")?;
            (input.at_ms, input.wall_ms) = (at.at_ms, at.wall_ms);
            return Ok(OwnLineBody::Heard { input, held: fields.plain("held")? });
        }
        "facts" => {
            let (snapshot, header) = (fields.plain("of")?, fields.plain("header")?);
            return Ok(OwnLineBody::Snapshot { snapshot, header, chain: fields.plain("chain")? });
        }
        "retracted" => Record::Retracted(fields.plain("of")?),
        "queued" => Record::Queued(fields.plain("of")?),
        "dequeued" => Record::Dequeued,
        "requested" => Record::Requested(fields.plain("of")?),
        "ruled" => Record::Ruled(fields.plain("of")?),
        "intended" => Record::Intended(fields.plain("of")?),
        "finished" => Record::Finished(fields.plain("of")?),
        "decided" => Record::Decided(fields.plain("of")?),
        "spent" => Record::Spent(fields.plain("of")?),
        "repaired" => Record::Repaired(fields.plain("of")?),
        "ended" => Record::Ended(fields.plain("of")?),
        other => {
            let body = fields.plain("of")?;
            return Ok(OwnLineBody::Mark(SessionMark::Other { kind: other.into(), body }));
        }
    };
    Ok(OwnLineBody::Record(Box::new(record)))
}
