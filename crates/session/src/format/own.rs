//! Lines of our own, which other programs skip: everything that is not said in the conversation itself.

use std::sync::Arc;

use uuid::Uuid;
use windlass_protocol::{CallId, Decision, Event, Facts, Input, RawValueEq, Record, Rest, Terminal};

use super::At;
use super::chain::Chain;
use super::header::Header;
use super::held::Held;
use super::json::{Fields, Hex, Object, Plain, Unfit, object};

/// Something about the session itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Which repository it belongs to; any JSON.
    Repository(Arc<RawValueEq>),
    /// The conversation goes on from an earlier entry, or from the start. Facts follow.
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
pub(crate) enum Own {
    Opened(Box<Header>),
    Mark(Mark),
    Heard { input: Box<Input>, held: Option<Held> },
    Record(Box<Record>),
    Facts { facts: Box<Facts>, header: Box<Header>, chain: Box<Chain> },
}

/// What was heard; the line itself tells when.
struct Heard {
    entropy: u64,
    event: Event,
}

struct Rewound {
    to: Option<Uuid>,
}

struct Forked {
    source: Uuid,
    entry: Option<Uuid>,
}

struct Finished {
    call: CallId,
    tool_use_id: Arc<str>,
    is_error: bool,
}

struct Ended {
    terminal: Terminal,
    rest: Box<Rest>,
}

object!(Heard { entropy: Hex, event });
object!(Rewound { to });
object!(Forked { source, entry });
object!(Finished { call, tool_use_id, is_error });
object!(Ended { terminal, rest });

/// How every line of our own begins.
pub(crate) const BEGINNING: &str = r#"{"type":"windlass","kind":""#;

/// How a line begins that restates everything.
pub(crate) const FACTS_BEGINNING: &str = r#"{"type":"windlass","kind":"facts","#;

/// A line that is being written.
pub(crate) struct Frame<'a> {
    pub(crate) kind: &'a str,
    pub(crate) seq: u64,
    pub(crate) at: At,
}

impl Frame<'_> {
    /// Appends the line; `fill` writes what it says.
    pub(crate) fn put(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let start = out.len();
        let mut line = Object::open(out);
        line.text("type", "windlass");
        line.text("kind", self.kind);
        line.write::<_, Plain>("seq", &self.seq);
        line.write::<_, Plain>("at", &self.at.at_ms);
        line.write::<_, Plain>("wall", &self.at.wall_ms);
        fill(&mut line);
        let sum = crc32fast::hash(&out[start..]);
        out.extend_from_slice(format!("{SUM_KEY}{sum:08x}\"}}\n").as_bytes());
    }
}

const SUM_KEY: &str = r#","sum":""#;
const SUM_LENGTH: usize = SUM_KEY.len() + 10;

/// The sum at the end of a line and whether it is right; `None` for a line that somebody wrote anew.
pub(crate) fn check_sum(line: &str) -> Option<Result<u32, Unfit>> {
    let (before, end) = line.split_at_checked(line.len().checked_sub(SUM_LENGTH)?)?;
    let digits = end.strip_prefix(SUM_KEY)?.strip_suffix("\"}")?;
    let written = u32::from_str_radix(digits, 16).ok()?;
    let sum = crc32fast::hash(before.as_bytes());
    Some(if sum == written { Ok(sum) } else { Err(Unfit("checksum mismatch".into())) })
}

/// The kind of the line of a record that is neither an entry nor something heard.
pub(crate) fn kind(record: &Record) -> Option<&'static str> {
    match record {
        Record::Heard(_)
        | Record::Said(_)
        | Record::Answered(_)
        | Record::Result(_)
        | Record::Decided(Decision::Compacted(_)) => None,
        Record::Retracted(_) => Some("retracted"),
        Record::Queued(_) => Some("queued"),
        Record::Dequeued => Some("dequeued"),
        Record::Requested(_) => Some("requested"),
        Record::Ruled(_) => Some("ruled"),
        Record::Intended(_) => Some("intended"),
        Record::Finished { .. } => Some("finished"),
        Record::Decided(_) => Some("decided"),
        Record::Spent(_) => Some("spent"),
        Record::Repaired(_) => Some("repaired"),
        Record::Ended { .. } => Some("ended"),
        Record::Facts(_) => Some("facts"),
    }
}

/// Writes what was heard, and where the rest of it stands.
pub(crate) fn put_heard(input: &Input, held: Option<&Held>, line: &mut Object<'_>) {
    if let Some(held) = held {
        line.write::<_, Plain>("held", held);
    }
    let mut heard = Object::open(line.name("of"));
    heard.write::<_, Hex>("entropy", &input.entropy);
    heard.write::<_, Plain>("event", &input.event);
    heard.close();
}

/// Writes what any other record says.
pub(crate) fn put_record(record: &Record, line: &mut Object<'_>) {
    match record {
        Record::Retracted(messages) => line.write::<_, Plain>("of", messages),
        Record::Queued(prompt) => line.write::<_, Plain>("of", prompt),
        Record::Requested(requested) => line.write::<_, Plain>("of", requested),
        Record::Ruled(ruled) => line.write::<_, Plain>("of", ruled),
        Record::Intended(intended) => line.write::<_, Plain>("of", intended),
        Record::Finished { call, tool_use_id, is_error } => {
            let finished = Finished { call: *call, tool_use_id: tool_use_id.clone(), is_error: *is_error };
            line.write::<_, Plain>("of", &finished);
        }
        Record::Decided(decision) => line.write::<_, Plain>("of", decision),
        Record::Spent(spent) => line.write::<_, Plain>("of", spent),
        Record::Repaired(repairs) => line.write::<_, Plain>("of", repairs),
        Record::Ended { terminal, rest } => {
            line.write::<_, Plain>("of", &Ended { terminal: *terminal, rest: rest.clone() });
        }
        Record::Facts(facts) => line.write::<_, Plain>("of", facts),
        Record::Heard(_) | Record::Dequeued | Record::Said(_) | Record::Answered(_) | Record::Result(_) => {}
    }
}

impl Mark {
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Repository(_) => "repository",
            Self::Rewound { .. } => "rewound",
            Self::Forked { .. } => "forked",
            Self::Other { kind, .. } => kind,
        }
    }

    pub(crate) fn put(&self, line: &mut Object<'_>) {
        match self {
            Self::Repository(body) | Self::Other { body, .. } => line.write::<_, Plain>("of", body),
            Self::Rewound { to } => line.write::<_, Plain>("of", &Rewound { to: *to }),
            Self::Forked { source, entry } => {
                line.write::<_, Plain>("of", &Forked { source: *source, entry: *entry });
            }
        }
    }
}

/// What a line of this kind says.
pub(crate) fn take(kind: &str, at: At, fields: &Fields<'_>) -> Result<Own, Unfit> {
    let record = match kind {
        "opened" => return Ok(Own::Opened(fields.read::<_, Plain>("of")?)),
        "repository" => return Ok(Own::Mark(Mark::Repository(fields.read::<_, Plain>("of")?))),
        "rewound" => {
            let Rewound { to } = fields.read::<_, Plain>("of")?;
            return Ok(Own::Mark(Mark::Rewound { to }));
        }
        "forked" => {
            let Forked { source, entry } = fields.read::<_, Plain>("of")?;
            return Ok(Own::Mark(Mark::Forked { source, entry }));
        }
        "heard" => {
            let Heard { entropy, event } = fields.read::<_, Plain>("of")?;
            let input = Box::new(Input { at_ms: at.at_ms, wall_ms: at.wall_ms, entropy, event });
            return Ok(Own::Heard { input, held: fields.read::<_, Plain>("held")? });
        }
        "facts" => {
            let (facts, header) = (fields.read::<_, Plain>("of")?, fields.read::<_, Plain>("header")?);
            return Ok(Own::Facts { facts, header, chain: fields.read::<_, Plain>("chain")? });
        }
        "retracted" => Record::Retracted(fields.read::<_, Plain>("of")?),
        "queued" => Record::Queued(fields.read::<_, Plain>("of")?),
        "dequeued" => Record::Dequeued,
        "requested" => Record::Requested(fields.read::<_, Plain>("of")?),
        "ruled" => Record::Ruled(fields.read::<_, Plain>("of")?),
        "intended" => Record::Intended(fields.read::<_, Plain>("of")?),
        "finished" => {
            let Finished { call, tool_use_id, is_error } = fields.read::<_, Plain>("of")?;
            Record::Finished { call, tool_use_id, is_error }
        }
        "decided" => Record::Decided(fields.read::<_, Plain>("of")?),
        "spent" => Record::Spent(fields.read::<_, Plain>("of")?),
        "repaired" => Record::Repaired(fields.read::<_, Plain>("of")?),
        "ended" => {
            let Ended { terminal, rest } = fields.read::<_, Plain>("of")?;
            Record::Ended { terminal, rest }
        }
        other => {
            let body = fields.read::<_, Plain>("of")?;
            return Ok(Own::Mark(Mark::Other { kind: other.into(), body }));
        }
    };
    Ok(Own::Record(Box::new(record)))
}
