//! Failures of a script by their class: the error answer by which the real API tells each.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use super::expand::StatusError;

/// A failure of a script.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "FailureFields")]
pub struct FailureSpec {
    /// The kind.
    pub class: ScriptClass,
    /// What the server says besides.
    pub message: Option<String>,
    /// For an overflow: the tokens of the request, and what fits.
    pub overflow: Option<(u64, u64)>,
    /// For a quota: when it is there again.
    pub resets: Option<ResetsAt>,
    /// For media and binding: the message and the block that are refused, counted from 0.
    pub culprit: (usize, usize),
    /// How long the server asks to wait.
    pub retry_after_ms: Option<u64>,
    /// The server's own verdict on retrying.
    pub should_retry: Option<bool>,
}

/// When a quota is there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetsAt {
    /// At this moment, in seconds since 1970.
    Moment(u64),
    /// So many seconds after the answer was made.
    Wait(u64),
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

/// The fields of a failure as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureFields {
    class: ScriptClass,
    message: Option<String>,
    needed: Option<u64>,
    limit: Option<u64>,
    resets_at: Option<u64>,
    resets_in_s: Option<u64>,
    culprit: Option<(usize, usize)>,
    retry_after_ms: Option<u64>,
    should_retry: Option<bool>,
}

impl TryFrom<FailureFields> for FailureSpec {
    type Error = String;

    fn try_from(fields: FailureFields) -> Result<Self, String> {
        let overflow = match (fields.needed, fields.limit) {
            (Some(needed), Some(limit)) => Some((needed, limit)),
            (None, None) => None,
            _ => return Err("expected `needed` and `limit` together".to_owned()),
        };
        let resets = match (fields.resets_at, fields.resets_in_s) {
            (Some(_), Some(_)) => return Err("expected only one of `resets_at`, `resets_in_s`".to_owned()),
            (Some(moment), None) => Some(ResetsAt::Moment(moment)),
            (None, Some(wait)) => Some(ResetsAt::Wait(wait)),
            (None, None) => None,
        };
        let has_place = matches!(fields.class, ScriptClass::Media | ScriptClass::Binding);
        let companions = [
            ("needed", overflow.is_some(), fields.class == ScriptClass::Overflow, "overflow"),
            ("resets_at", resets.is_some(), fields.class == ScriptClass::Quota, "quota"),
            ("culprit", fields.culprit.is_some(), has_place, "media and binding"),
        ];
        if let Some((field, _, _, owner)) = companions.iter().find(|(_, given, fits, _)| *given && !fits) {
            return Err(format!("`{field}` belongs to the class {owner}"));
        }
        Ok(Self {
            class: fields.class,
            message: fields.message,
            overflow,
            resets,
            culprit: fields.culprit.unwrap_or_default(),
            retry_after_ms: fields.retry_after_ms,
            should_retry: fields.should_retry,
        })
    }
}

impl FailureSpec {
    /// The answer.
    pub(super) fn status(&self) -> StatusError {
        let (code, kind) = match self.class {
            ScriptClass::Overflow | ScriptClass::Media | ScriptClass::BadRequest | ScriptClass::Binding => {
                (400, "invalid_request_error")
            }
            ScriptClass::RateLimited | ScriptClass::Quota => (429, "rate_limit_error"),
            ScriptClass::Overloaded => (529, "overloaded_error"),
            ScriptClass::Server => (500, "api_error"),
            ScriptClass::Auth => (401, "authentication_error"),
            ScriptClass::Forbidden => (403, "permission_error"),
            ScriptClass::NotFound => (404, "not_found_error"),
        };
        let message = match &self.message {
            Some(message) => format!("{} {message}", self.words()),
            None => self.words(),
        };
        let mut error = StatusError::new(code, kind, &message);
        let mut add = |name: &str, value: String| error.headers.push((name.to_owned(), value));
        if let Some(wait) = self.retry_after_ms {
            add("retry-after-ms", wait.to_string());
        }
        if let Some(verdict) = self.should_retry {
            add("x-should-retry", verdict.to_string());
        }
        if let Some(resets) = self.resets {
            add("anthropic-ratelimit-unified-status", "rejected".to_owned());
            add("anthropic-ratelimit-unified-reset", resets.moment().to_string());
        }
        error
    }

    /// The API's own words, by which the class is known.
    fn words(&self) -> String {
        let place = |(message, block)| format!("messages.{message}.content.{block}");
        match self.class {
            ScriptClass::Overflow => match self.overflow {
                Some((needed, limit)) => format!("prompt is too long: {needed} tokens > {limit} maximum"),
                None => "prompt is too long".to_owned(),
            },
            ScriptClass::Media => {
                format!("{}.image.source.base64: image exceeds 5 MB maximum", place(self.culprit))
            }
            ScriptClass::Binding => format!(
                "{}: Invalid `signature` in `thinking` block. The block belongs to a different conversation.",
                place(self.culprit)
            ),
            ScriptClass::RateLimited => {
                "This request would exceed your organization's rate limit.".to_owned()
            }
            ScriptClass::Quota => "You've hit your usage limit.".to_owned(),
            ScriptClass::Overloaded => "Overloaded".to_owned(),
            ScriptClass::Server => "Internal server error".to_owned(),
            ScriptClass::Auth => "invalid x-api-key".to_owned(),
            ScriptClass::Forbidden => "Your API key has no permission for this.".to_owned(),
            ScriptClass::NotFound => "model: not found".to_owned(),
            ScriptClass::BadRequest => "Scripted failure.".to_owned(),
        }
    }
}

impl ResetsAt {
    fn moment(self) -> u64 {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        match self {
            Self::Moment(moment) => moment,
            Self::Wait(seconds) => now().saturating_add(seconds),
        }
    }
}
