//! Decides what kind of failure an error answer is, from status, body and headers.
//!
//! The wording of errors changes without notice, so machine codes and types come first and phrases are matched
//! loosely. One table serves error answers and `error` events of a stream, whose status says 200.

mod phrases;

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use windlass_protocol::{Failure, FailureClass};

/// How much of a server's own words goes into a message.
const MESSAGE_CHARS_MAX: usize = 600;

/// What an error answer says, whatever its shape was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// The type of the error, empty if there is none.
    pub(crate) kind: String,
    /// The stable machine code, empty if there is none.
    pub(crate) code: String,
    /// The server's words, made fit for one line; empty if there are none.
    pub(crate) message: String,
    /// The provider's id of the request.
    pub(crate) request_id: Option<String>,
}

/// What the headers of an error answer say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorHeaders {
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) should_retry: Option<bool>,
    pub(crate) request_id: Option<String>,
}

/// The failure an error answer stands for. `place` names the server, without credentials.
pub(crate) fn answer_failure(status: u16, body: &ErrorBody, headers: ErrorHeaders, place: &str) -> Failure {
    // An error under a good status tells its class by its type, as in a stream.
    let class = class_of(Some(status).filter(|status| *status >= 400), body);
    Failure {
        status: Some(status),
        retry_after_ms: headers.retry_after_ms,
        should_retry: headers.should_retry,
        request_id: headers.request_id.or_else(|| body.request_id.clone()),
        ..Failure::new(class, explain(class, Some(status), body, place))
    }
}

/// The failure an `error` event stands for.
pub(crate) fn stream_failure(body: &ErrorBody) -> Failure {
    let class = class_of(None, body);
    let message = explain(class, None, body, "the model's server");
    Failure { request_id: body.request_id.clone(), ..Failure::new(class, message) }
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

    fn from_words(words: &str) -> Self {
        Self { message: one_line(words), ..Self::default() }
    }

    fn from_value(value: &Value) -> Self {
        let Value::Object(body) = value else {
            return Self::from_words(&words_of(value));
        };
        let error = body.get("error").unwrap_or(&Value::Null);
        let details = &error["details"];
        let message = [&error["message"], error, &body_field(value, "message"), &body_field(value, "detail")]
            .into_iter()
            .find(|words| !words.is_null() && !words.is_object())
            .or_else(|| body.get("detail"))
            .map_or_else(|| value.to_string(), words_of);
        Self {
            kind: kind_of(value, error),
            code: [&details["error_code"], &error["code"]]
                .into_iter()
                .map(string)
                .find(|code| !code.is_empty())
                .unwrap_or_default(),
            message: one_line(&message),
            request_id: Some(string(&body_field(value, "request_id"))).filter(|id| !id.is_empty()),
        }
    }
}

/// `error.type`, or the type as AWS writes it, which may have a namespace in front.
fn kind_of(body: &Value, error: &Value) -> String {
    let aws = || body["__type"].as_str().and_then(|name| name.rsplit('#').next());
    error["type"].as_str().or_else(aws).unwrap_or_default().to_owned()
}

fn body_field(body: &Value, name: &str) -> Value {
    body.get(name).cloned().unwrap_or(Value::Null)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn words_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text on one line, without control characters, cut to a size people read.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (count, word) in
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).enumerate()
    {
        if count > 0 {
            line.push(' ');
        }
        line.push_str(word);
        if let Some((end, _)) = line.char_indices().nth(MESSAGE_CHARS_MAX) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
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
    format!("an HTML page, “{}”", one_line(&words))
}

/// The class of an error answer, or of an `error` event if there is no status.
pub(crate) fn class_of(status: Option<u16>, body: &ErrorBody) -> FailureClass {
    let by_code = match body.code.as_str() {
        "enforced_spend_limit_reached" | "insufficient_quota" => Some(FailureClass::Quota),
        "ramp_limit_exceeded" | "rate_limit_exceeded" => Some(FailureClass::RateLimited),
        "context_length_exceeded" | "model_max_prompt_tokens_exceeded" => Some(FailureClass::Overflow),
        "compaction_unavailable" => Some(FailureClass::Overloaded),
        _ => None,
    };
    by_code
        .or_else(|| class_of_words(status, body))
        .or_else(|| class_of_kind(&body.kind))
        .or_else(|| status.and_then(class_of_status))
        .unwrap_or(match (status, body.kind.as_str()) {
            (None, "invalid_request_error") | (Some(400..=499), _) => FailureClass::BadRequest,
            _ => FailureClass::Server,
        })
}

/// Words count only where the type or status leaves their meaning open: a rate limit speaks of long prompts too.
fn class_of_words(status: Option<u16>, body: &ErrorBody) -> Option<FailureClass> {
    let about_the_request = match status {
        Some(status) => matches!(status, 400 | 413 | 422 | 500),
        None => matches!(body.kind.as_str(), "invalid_request_error" | "api_error" | ""),
    };
    let about_a_limit = match status {
        Some(status) => status == 429,
        None => body.kind == "rate_limit_error",
    };
    if !about_the_request && !about_a_limit {
        return None;
    }
    let message = body.message.to_ascii_lowercase();
    phrases::class_of_limit(&message)
        .or_else(|| phrases::class_of_request(&message).filter(|_| about_the_request))
}

/// The class of the types that mean one thing whatever the status is.
fn class_of_kind(kind: &str) -> Option<FailureClass> {
    Some(match kind {
        "authentication_error" => FailureClass::Auth,
        "permission_error" | "billing_error" => FailureClass::Forbidden,
        "not_found_error" => FailureClass::NotFound,
        "rate_limit_error" | "ThrottlingException" => FailureClass::RateLimited,
        "insufficient_quota" | "exceeded_current_quota_error" => FailureClass::Quota,
        "overloaded_error" => FailureClass::Overloaded,
        "timeout_error" | "conflict_error" => FailureClass::Server,
        "request_too_large" | "exceed_context_size_error" => FailureClass::Overflow,
        _ => return None,
    })
}

fn class_of_status(status: u16) -> Option<FailureClass> {
    Some(match status {
        401 => FailureClass::Auth,
        402 | 403 => FailureClass::Forbidden,
        404 | 405 => FailureClass::NotFound,
        413 => FailureClass::Overflow,
        429 => FailureClass::RateLimited,
        529 => FailureClass::Overloaded,
        408 | 409 | 500..=599 => FailureClass::Server,
        _ => return None,
    })
}

fn explain(class: FailureClass, status: Option<u16>, body: &ErrorBody, place: &str) -> String {
    let what = match class {
        FailureClass::Auth => "refused the key or token",
        FailureClass::Forbidden => "does not allow this request",
        FailureClass::NotFound => "does not know this model or address",
        FailureClass::RateLimited => "has too many requests from you",
        FailureClass::Quota => "says that a usage limit is reached",
        FailureClass::Overloaded => "is overloaded",
        FailureClass::Overflow => "cannot take a prompt of this size",
        FailureClass::Media => "cannot take a picture or document of this request",
        FailureClass::Binding => "does not accept the thinking blocks of this transcript",
        FailureClass::BadRequest => "did not accept the request",
        _ => "failed",
    };
    let mut text = capitalised(place);
    let _ = write!(text, " {what}");
    if let Some(status) = status {
        let _ = write!(text, " (HTTP {status})");
    }
    if !body.message.is_empty() {
        let _ = write!(text, ": {}", body.message);
    }
    if !text.ends_with(['.', '!', '?', '…']) {
        text.push('.');
    }
    let advice = match class {
        FailureClass::Auth => " Check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN.",
        FailureClass::NotFound => " Check the model's name, and ANTHROPIC_BASE_URL if it is set.",
        FailureClass::Forbidden => " Check what the key is allowed to do, and the billing of its account.",
        FailureClass::Quota => " Raise the limit with the provider, or wait until it is reset.",
        FailureClass::Overflow => " Begin a new session, or give it less to read.",
        FailureClass::Media => " Give a smaller one in a common format, or begin a new session without it.",
        _ => "",
    };
    text.push_str(advice);
    text
}

fn capitalised(place: &str) -> String {
    match place.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => place.to_owned(),
    }
}

/// Reads the headers of an error answer; `header` looks one up by its lower-case name.
pub(crate) fn read_headers<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> ErrorHeaders {
    let from_ms = header("retry-after-ms").and_then(|text| duration_ms(text, 1.0));
    let from_seconds = || {
        let text = header("retry-after")?;
        duration_ms(text, 1000.0).or_else(|| date_ms(text, now))
    };
    ErrorHeaders {
        retry_after_ms: from_ms.or_else(from_seconds),
        should_retry: header("x-should-retry").and_then(|text| text.trim().parse().ok()),
        request_id: header("request-id").or_else(|| header("x-request-id")).map(str::to_owned),
    }
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

#[cfg(test)]
mod tests;
