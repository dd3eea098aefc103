//! Decides what kind of failure an error answer or `error` event is, by the table in `rules`. Numbers and moments are
//! read from the words, since few servers have fields for them.

mod body;
mod moments;
mod numbers;
mod rules;

use std::fmt::Write as _;

use windlass_protocol::{Failure, FailureClass};

pub(crate) use body::{ErrorBody, ErrorHeaders, read_headers};

/// The failure an error answer stands for. `place` names the server at the beginning of a sentence, without credentials.
pub(crate) fn answer_failure(status: u16, body: &ErrorBody, headers: ErrorHeaders, place: &str) -> Failure {
    // An error under a good status tells its class by itself, as in a stream.
    let failure = read(Some(status).filter(|status| *status >= 400), body, &headers);
    Failure {
        message: explain(&failure, Some(status), body, place),
        status: Some(status),
        should_retry: headers.should_retry,
        request_id: headers.request_id.or(failure.request_id),
        ..failure
    }
}

/// The failure an `error` event stands for.
pub(crate) fn stream_failure(body: &ErrorBody) -> Failure {
    let failure = read(None, body, &ErrorHeaders::default());
    Failure { message: explain(&failure, None, body, "The model's server"), ..failure }
}

/// The failure without its message.
fn read(status: Option<u16>, body: &ErrorBody, headers: &ErrorHeaders) -> Failure {
    let named = body.status.filter(|status| (400..=599).contains(status));
    let class = match rules::class_of(status.or(named), &with_kind(body, headers)) {
        FailureClass::RateLimited if headers.is_quota_rejected => FailureClass::Quota,
        class => class,
    };
    let wait_ms = headers.retry_after_ms.or(body.wait_ms).or_else(|| match class {
        FailureClass::RateLimited | FailureClass::Quota => moments::wait_in(&body.words),
        _ => None,
    });
    let resets_at = body.resets_at.or_else(|| moments::moment_in(&body.words)).or(headers.resets_at);
    let failure = Failure {
        retry_after_ms: wait_ms,
        request_id: body.request_id.clone(),
        culprit: numbers::culprit(&body.words),
        ..Failure::new(class, "")
    };
    match class {
        FailureClass::Overflow => {
            Failure { overflow: body.overflow.or_else(|| numbers::overflow(&body.words)), ..failure }
        }
        FailureClass::Quota => {
            let after_wait = wait_ms.filter(|_| headers.now > 0).map(|ms| headers.now + ms.div_ceil(1000));
            Failure { resets_at: resets_at.or(after_wait), ..failure }
        }
        FailureClass::RateLimited => {
            let to_reset = resets_at.and_then(|at| at.checked_sub(headers.now)).filter(|_| headers.now > 0);
            Failure { retry_after_ms: wait_ms.or(to_reset.map(|seconds| seconds * 1000)), ..failure }
        }
        _ => failure,
    }
}

/// The body with the type that some servers write into the head.
fn with_kind(body: &ErrorBody, headers: &ErrorHeaders) -> ErrorBody {
    match &headers.kind {
        Some(kind) if body.kind.is_empty() => ErrorBody { kind: kind.clone(), ..body.clone() },
        _ => body.clone(),
    }
}

fn explain(failure: &Failure, status: Option<u16>, body: &ErrorBody, place: &str) -> String {
    let what = match failure.class {
        FailureClass::Auth => "rejected the API key or token",
        FailureClass::Forbidden => "denied access",
        FailureClass::NotFound => "does not know this model or URL",
        FailureClass::RateLimited => "reports too many requests",
        FailureClass::Quota => "reports that a usage limit is reached",
        FailureClass::Overloaded => "is overloaded",
        FailureClass::Overflow => "rejected the prompt as too long",
        FailureClass::Media => "rejected an image or document",
        FailureClass::Binding => "rejected the thinking blocks of this conversation",
        FailureClass::BadRequest => "rejected the request",
        _ => "failed",
    };
    let mut text = format!("{place} {what}");
    if let Some(status) = status {
        let _ = write!(text, " (HTTP {status})");
    }
    if !body.message.is_empty() {
        let _ = write!(text, ": {}", body.message);
    }
    if !text.ends_with(['.', '!', '?', '…']) {
        text.push('.');
    }
    text.push_str(&advice(failure, body));
    text
}

fn advice(failure: &Failure, body: &ErrorBody) -> String {
    use FailureClass::{Auth, BadRequest, Forbidden, Media, NotFound, Overflow, Quota};
    let advice = match (failure.class, failure.resets_at) {
        (Auth, _) => " Check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN.",
        (NotFound, _) => " Check the model name, and ANTHROPIC_BASE_URL if set.",
        (Forbidden, _) => " Check the permissions of the API key and the billing of its account.",
        (Quota, Some(moment)) => return format!(" The limit resets at {}.", moments::in_utc(moment)),
        (Quota, None) => " Raise the limit at the provider, or wait until it resets.",
        (Overflow, _) => " Start a new session, or give it less to read.",
        (Media, _) => " Use a smaller file in a common format, or start a new session without it.",
        (BadRequest, _) if body.words.starts_with("max_tokens: ") => {
            " Lower CLAUDE_CODE_MAX_OUTPUT_TOKENS to the model's limit."
        }
        _ => "",
    };
    advice.to_owned()
}

#[cfg(test)]
mod tests;
