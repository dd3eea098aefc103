//! Reads the body and the headers of an error answer, whatever their shape is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use windlass_protocol::Overflow;
use windlass_text::shorten::shorten;

use super::moments;

/// How much of a server's own words goes into a message.
const MESSAGE_CHARS_MAX: usize = 600;

/// How much of them is looked at: gateways put the words of others into their own.
const WORDS_CHARS_MAX: usize = 16_000;

/// What an error answer says, whatever its shape was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// The type of the error, empty if there is none.
    pub(crate) kind: String,
    /// The stable machine code, empty if there is none.
    pub(crate) code: String,
    /// The server's words, made fit for one line; empty if there are none.
    pub(crate) message: String,
    /// The same at a length that is not for people.
    pub(crate) words: String,
    /// The provider's id of the request.
    pub(crate) request_id: Option<String>,
    /// The status that the error itself names, for answers whose own status is that of a gateway.
    pub(super) status: Option<u16>,
    /// How far the prompt is over the window, where fields say it.
    pub(super) overflow: Option<Overflow>,
    /// When a quota is there again, in seconds since 1970, where a field says it.
    pub(super) resets_at: Option<u64>,
    /// How long to wait, where a field says it.
    pub(super) wait_ms: Option<u64>,
}

impl ErrorBody {
    /// Reads a body of any shape: the API's own, those of clones, a bare string, HTML, plain text.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}').trim();
        match serde_json::from_str::<Value>(text) {
            Ok(value) => Self::from_value(&value),
            Err(_) if looks_like_html(text) => Self::from_words(&html_words(text)),
            Err(_) => Self::from_words(text),
        }
    }

    /// Whether this says what is wrong in a way that something else would not.
    pub(crate) fn is_error(&self) -> bool {
        !self.kind.is_empty() || self.status.is_some()
    }

    fn from_words(words: &str) -> Self {
        Self {
            message: one_line(words, MESSAGE_CHARS_MAX),
            words: one_line(words, WORDS_CHARS_MAX),
            ..Self::default()
        }
    }

    fn from_value(value: &Value) -> Self {
        let Value::Object(body) = value else {
            return Self::from_words(&words_of(value));
        };
        let error = body.get("error").unwrap_or(&Value::Null);
        let details = &error["details"];
        let message = [&error["message"], error, &value["message"], &value["detail"]]
            .into_iter()
            .find(|words| !words.is_null() && !words.is_object())
            .or_else(|| body.get("detail"))
            .map_or_else(|| value.to_string(), words_of);
        // What a gateway was told by the server behind it.
        let message = match error["metadata"]["raw"].as_str() {
            Some(raw) => format!("{message}: {raw}"),
            None => message,
        };
        let codes = [&details["error_code"], &error["code"]];
        let code = codes.into_iter().filter_map(Value::as_str).find(|code| !code.is_empty());
        let seconds_ms = |value: &Value| value.as_u64().map(|seconds| seconds.saturating_mul(1000));
        Self {
            kind: kind_of(value, error),
            code: code.unwrap_or_default().to_owned(),
            request_id: value["request_id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned),
            status: error["code"].as_u64().and_then(|code| u16::try_from(code).ok()),
            overflow: overflow(error),
            resets_at: error["resets_at"].as_u64().and_then(moments::stamp),
            wait_ms: seconds_ms(&error["resets_in_seconds"]).or_else(|| retry_delay(details)),
            ..Self::from_words(&message)
        }
    }
}

/// `error.type`, or the type as Google or AWS writes it, which may have a namespace in front.
fn kind_of(body: &Value, error: &Value) -> String {
    let google = || error["status"].as_str();
    let aws = || body["__type"].as_str().and_then(|name| name.rsplit('#').next());
    error["type"].as_str().or_else(google).or_else(aws).unwrap_or_default().to_owned()
}

/// The numbers of llama.cpp.
fn overflow(error: &Value) -> Option<Overflow> {
    Some(Overflow { needed: error["n_prompt_tokens"].as_u64()?, limit: error["n_ctx"].as_u64()? })
}

/// The wait in the details of an error of Google.
fn retry_delay(details: &Value) -> Option<u64> {
    let delay = details.as_array()?.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    moments::wait_in(&format!("retry in {delay}"))
}

fn words_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text on one line, without control characters, cut to a size.
fn one_line(text: &str, chars_max: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    shorten(&words.collect::<Vec<_>>().join(" "), chars_max, "…").into_owned()
}

fn looks_like_html(text: &str) -> bool {
    let start: String = text.chars().take(200).collect::<String>().to_ascii_lowercase();
    start.starts_with('<')
        && ["<html", "<!doctype", "<head", "<body", "<title"].iter().any(|tag| start.contains(tag))
}

/// The title of a page, or else its words without the tags.
fn html_words(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let start = start + "<title>".len();
        let end = lower[start..].find("</title>")?;
        Some(page[start..start + end].trim().to_owned())
    });
    let words = title.filter(|title| !title.is_empty()).unwrap_or_else(|| {
        let after_tags = page.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
        after_tags.collect::<Vec<_>>().join(" ")
    });
    format!("an HTML page, “{}”", one_line(&words, MESSAGE_CHARS_MAX))
}

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
    pub(super) is_quota_rejected: bool,
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
        is_quota_rejected: status.is_some_and(|status| status.trim().eq_ignore_ascii_case("rejected")),
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
