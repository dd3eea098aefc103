//! What the headers of an error answer say.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::moments;

/// The limits whose headers the Messages API sends, by the middle of their names.
const BUCKETS: &[&str] = &["requests", "tokens", "input-tokens", "output-tokens"];

/// What the headers of an error answer say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorHeaders {
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) should_retry: Option<bool>,
    pub(crate) request_id: Option<String>,
    /// The type of the error, where it stands in the head.
    pub(super) kind: Option<String>,
    /// Whether a quota of the account is said to be used up.
    pub(super) quota_rejected: bool,
    /// When what is used up is there again, in seconds since 1970.
    pub(super) resets_at: Option<u64>,
    /// When the answer came, in seconds since 1970; 0 if nobody said.
    pub(super) now: u64,
}

/// Reads the headers of an error answer; `header` looks one up by its lower-case name.
pub(crate) fn read_headers<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> ErrorHeaders {
    let from_ms = header("retry-after-ms").and_then(|text| duration_ms(text, 1.0));
    let from_seconds = || {
        let text = header("retry-after")?;
        duration_ms(text, 1000.0).or_else(|| date_ms(text, now))
    };
    let status = header("anthropic-ratelimit-unified-status");
    ErrorHeaders {
        retry_after_ms: from_ms.or_else(from_seconds),
        should_retry: header("x-should-retry").and_then(|text| text.trim().parse().ok()),
        request_id: header("request-id").or_else(|| header("x-request-id")).map(str::to_owned),
        kind: header("x-amzn-errortype").and_then(|text| text.split(':').next()).map(str::to_owned),
        quota_rejected: status.is_some_and(|status| status.trim().eq_ignore_ascii_case("rejected")),
        resets_at: resets_at(&header),
        now: now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    }
}

/// The reset of the account's quota, or the latest of the limits of which nothing is left.
fn resets_at<'a>(header: &impl Fn(&str) -> Option<&'a str>) -> Option<u64> {
    let whole = ["anthropic-ratelimit-unified-reset", "x-ratelimit-reset"];
    let of_account = || whole.iter().find_map(|name| moments::moment(header(name)?));
    let of_bucket = |bucket: &&str| {
        let field = |what: &str| header(&format!("anthropic-ratelimit-{bucket}-{what}"));
        let used_up = field("remaining").is_some_and(|left| left.trim() == "0");
        field("reset").filter(|_| used_up).and_then(moments::moment)
    };
    of_account().or_else(|| BUCKETS.iter().filter_map(of_bucket).max())
}

/// A positive number of units as milliseconds; anything else says nothing.
fn duration_ms(text: &str, unit_ms: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    let seconds = number * unit_ms / 1000.0;
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(duration.as_millis()).ok().filter(|ms| *ms > 0)
}

fn date_ms(text: &str, now: SystemTime) -> Option<u64> {
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    let wait = date.duration_since(now).ok()?;
    u64::try_from(wait.as_millis()).ok().filter(|ms| *ms > 0)
}
