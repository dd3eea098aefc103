//! What goes wrong with a response of a script. A failure is given by its class: the error answer by which the real API tells each.

use std::collections::BTreeMap;

use serde::Deserialize;
use windlass_text::time::now_ms;

use super::expand::StatusError;
use super::format::checked;

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

/// A failure of a script.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct FailureSpec {
    /// The kind.
    pub class: ScriptClass,
    /// What the server says besides.
    pub message: Option<String>,
    /// For an overflow: the tokens of the request.
    pub needed: Option<u64>,
    /// For an overflow: the tokens that fit.
    pub limit: Option<u64>,
    /// For a quota: when it is there again, in seconds since 1970.
    pub resets_at: Option<u64>,
    /// For a quota: how many seconds after the answer it is there again.
    pub resets_in_s: Option<u64>,
    /// For media and binding: the message and the block that are refused, counted from 0.
    pub culprit: Option<(usize, usize)>,
    /// How long the server asks to wait.
    pub retry_after_ms: Option<u64>,
    /// The server's own verdict on retrying.
    pub should_retry: Option<bool>,
}

/// The classes that an error answer can have. The others are faults of their own: `cut`, `stall`, `malformed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptClass {
    /// The prompt does not fit the window.
    Overflow,
    /// A picture or document is refused.
    Media,
    /// Too many requests.
    RateLimited,
    /// A quota is used up.
    Quota,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Server,
    /// The key is wrong.
    Auth,
    /// Not allowed.
    Forbidden,
    /// No such model.
    NotFound,
    /// The request is invalid.
    BadRequest,
    /// Thinking is bound to another prefix.
    Binding,
}

checked!(FailureSpec);

impl FailureSpec {
    fn check(&self) -> Result<(), String> {
        if self.needed.is_some() != self.limit.is_some() {
            return Err("expected `needed` and `limit` together".to_owned());
        }
        if self.resets_at.is_some() && self.resets_in_s.is_some() {
            return Err("expected only one of `resets_at`, `resets_in_s`".to_owned());
        }
        let has_place = matches!(self.class, ScriptClass::Media | ScriptClass::Binding);
        let has_reset = self.resets_at.or(self.resets_in_s).is_some();
        let companions = [
            ("needed", self.needed.is_some(), self.class == ScriptClass::Overflow, "overflow"),
            ("resets_at", has_reset, self.class == ScriptClass::Quota, "quota"),
            ("culprit", self.culprit.is_some(), has_place, "media and binding"),
        ];
        match companions.iter().find(|(_, given, fits, _)| *given && !fits) {
            Some((field, _, _, owner)) => Err(format!("`{field}` belongs to the class {owner}")),
            None => Ok(()),
        }
    }

    /// The answer.
    pub(super) fn status(&self) -> StatusError {
        let (code, kind, words) = self.answer();
        let message = match &self.message {
            Some(message) => format!("{words} {message}"),
            None => words,
        };
        let mut error = StatusError::new(code, kind, &message);
        let mut add = |name: &str, value: String| error.headers.push((name.to_owned(), value));
        if let Some(wait) = self.retry_after_ms {
            add("retry-after-ms", wait.to_string());
        }
        if let Some(verdict) = self.should_retry {
            add("x-should-retry", verdict.to_string());
        }
        let after = |seconds: u64| (now_ms() / 1000).saturating_add(seconds);
        if let Some(moment) = self.resets_at.or(self.resets_in_s.map(after)) {
            add("anthropic-ratelimit-unified-status", "rejected".to_owned());
            add("anthropic-ratelimit-unified-reset", moment.to_string());
        }
        error
    }

    /// Status, type and the API's own words, by which the class is known.
    fn answer(&self) -> (u16, &'static str, String) {
        let (message, block) = self.culprit.unwrap_or_default();
        let place = format!("messages.{message}.content.{block}");
        let invalid = |words: String| (400, "invalid_request_error", words);
        let known = |code, kind, words: &str| (code, kind, words.to_owned());
        match self.class {
            ScriptClass::Overflow => invalid(match self.needed.zip(self.limit) {
                Some((needed, limit)) => format!("prompt is too long: {needed} tokens > {limit} maximum"),
                None => "prompt is too long".to_owned(),
            }),
            ScriptClass::Media => invalid(format!("{place}.image.source.base64: image exceeds 5 MB maximum")),
            ScriptClass::Binding => invalid(format!(
                "{place}: Invalid `signature` in `thinking` block. The block belongs to a different conversation."
            )),
            ScriptClass::BadRequest => invalid("Scripted failure.".to_owned()),
            ScriptClass::RateLimited => {
                known(429, "rate_limit_error", "This request would exceed your organization's rate limit.")
            }
            ScriptClass::Quota => known(429, "rate_limit_error", "You've hit your usage limit."),
            ScriptClass::Overloaded => known(529, "overloaded_error", "Overloaded"),
            ScriptClass::Server => known(500, "api_error", "Internal server error"),
            ScriptClass::Auth => known(401, "authentication_error", "invalid x-api-key"),
            ScriptClass::Forbidden => {
                known(403, "permission_error", "Your API key has no permission for this.")
            }
            ScriptClass::NotFound => known(404, "not_found_error", "model: not found"),
        }
    }
}
