//! What goes wrong with a response of a script.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::failure::FailureSpec;

/// What goes wrong with a response. Positions count events of the stream from the first, `message_start`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptFault {
    /// A failure by its class, in the words and with the headers of the real API.
    Failure(FailureSpec),
    /// An error status instead of a stream.
    Status {
        /// The HTTP status.
        code: u16,
        /// The provider's name of the error; by default the usual one of the status.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// The provider's message.
        message: Option<String>,
        /// Headers such as `retry-after`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The body as it stands, instead of the JSON made from `type` and `message`.
        body: Option<String>,
    },
    /// An `error` event, after which the stream ends.
    Error {
        /// The provider's name of the error.
        #[serde(rename = "type")]
        kind: String,
        /// The provider's message.
        #[serde(default)]
        message: String,
        /// How many events come before it.
        #[serde(default)]
        after_events: usize,
    },
    /// The connection closes.
    Cut(CutAfter),
    /// Nothing comes any more; the connection stays open.
    Stall {
        /// How many events come before.
        #[serde(default)]
        after_events: usize,
        /// Sends a `ping` at this interval instead of being silent.
        ping_ms: Option<u64>,
    },
    /// An event that is not JSON.
    Malformed {
        /// How many events come before it.
        #[serde(default)]
        after_events: usize,
        /// The event's data; by default a piece of an object.
        data: Option<String>,
    },
    /// The connection closes before anything is answered.
    Refuse,
}

/// Where a connection closes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "CutFields")]
pub enum CutAfter {
    /// After so many events.
    Events(usize),
    /// After so many bytes of the stream.
    Bytes(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutFields {
    after_events: Option<usize>,
    after_bytes: Option<usize>,
}

impl TryFrom<CutFields> for CutAfter {
    type Error = String;

    fn try_from(fields: CutFields) -> Result<Self, String> {
        match (fields.after_events, fields.after_bytes) {
            (Some(events), None) => Ok(Self::Events(events)),
            (None, Some(bytes)) => Ok(Self::Bytes(bytes)),
            _ => Err("expected one of `after_events`, `after_bytes`".to_owned()),
        }
    }
}
