//! The table that tells the class of a failure. The first row that fits counts; an empty column fits everything, and all
//! words of a row must be in the message, in lower case. Wording changes without notice, so codes come first, and words
//! count only where status and type leave their meaning open: a rate limit speaks of long prompts too.

use windlass_protocol::FailureClass::{
    self, Auth, BadRequest, Binding, Forbidden, Media, NotFound, Overflow, Overloaded, Quota, RateLimited,
    Server,
};

use super::ErrorBody;

/// Where a row counts.
#[derive(Clone, Copy, Debug)]
enum RowScope {
    Anything,
    /// Statuses from, to. An error without a status has none of them.
    Status(u16, u16),
    /// What a server says about the request itself.
    Request,
    /// What a server says about how much was asked of it, under whatever status.
    Limit,
    /// What a server says when it cannot serve anybody.
    Load,
}

struct ClassRule {
    class: FailureClass,
    scope: RowScope,
    kinds: &'static [&'static str],
    codes: &'static [&'static str],
    words: &'static [&'static str],
}

const fn code(class: FailureClass, codes: &'static [&'static str]) -> ClassRule {
    ClassRule { class, scope: RowScope::Anything, kinds: &[], codes, words: &[] }
}

const fn kind(class: FailureClass, kinds: &'static [&'static str]) -> ClassRule {
    ClassRule { class, scope: RowScope::Anything, kinds, codes: &[], words: &[] }
}

const fn words(class: FailureClass, scope: RowScope, words: &'static [&'static str]) -> ClassRule {
    ClassRule { class, scope, kinds: &[], codes: &[], words }
}

const fn status(class: FailureClass, from: u16, to: u16) -> ClassRule {
    ClassRule { class, scope: RowScope::Status(from, to), kinds: &[], codes: &[], words: &[] }
}

const RULES: &[ClassRule] = &[
    // A single request over a limit per minute comes as a rate limit, but only a smaller request helps.
    words(Overflow, RowScope::Anything, &["request too large for", "requested"]),
    code(Quota, &["enforced_spend_limit_reached", "billing_hard_limit_reached"]),
    code(Quota, &["insufficient_quota", "usage_limit_reached", "usage_not_included"]),
    code(RateLimited, &["ramp_limit_exceeded", "rate_limit_exceeded"]),
    code(Overflow, &["context_length_exceeded", "model_max_prompt_tokens_exceeded"]),
    code(Overloaded, &["compaction_unavailable", "NoCapacity", "engine_overloaded"]),
    code(NotFound, &["model_not_found", "DeploymentNotFound", "model_decommissioned"]),
    code(Auth, &["invalid_api_key"]),
    code(BadRequest, &["content_filter"]),
    // Only waiting for long or paying helps with a quota, a moment helps with a rate limit.
    words(Quota, RowScope::Limit, &["too many tokens per day"]),
    words(Quota, RowScope::Limit, &["free-models-per-day"]),
    words(RateLimited, RowScope::Limit, &["exceeded your current quota", "please retry in"]),
    words(RateLimited, RowScope::Limit, &["please wait before trying again"]),
    words(Quota, RowScope::Limit, &["exceeded your current quota"]),
    words(Quota, RowScope::Limit, &["reached your specified api usage limits"]),
    words(Quota, RowScope::Limit, &["usage limit reached"]),
    words(Quota, RowScope::Limit, &["usage limit has been reached"]),
    words(RateLimited, RowScope::Limit, &["hit your", "rate limit"]),
    words(Quota, RowScope::Limit, &["hit your", "limit"]),
    words(Quota, RowScope::Limit, &["spend limit"]),
    words(Quota, RowScope::Limit, &["budget has been exceeded"]),
    words(Forbidden, RowScope::Limit, &["credit balance is too low"]),
    words(Overloaded, RowScope::Load, &["overloaded"]),
    words(Overloaded, RowScope::Load, &["capacity exceeded"]),
    words(Overloaded, RowScope::Load, &["over capacity"]),
    words(Overloaded, RowScope::Load, &["too many connections"]),
    words(Overloaded, RowScope::Load, &["server busy"]),
    words(Overloaded, RowScope::Load, &["high demand"]),
    words(BadRequest, RowScope::Request, &["max_tokens: ", "maximum allowed number of output tokens"]),
    words(BadRequest, RowScope::Request, &["assistant message prefill"]),
    words(Overflow, RowScope::Request, &["prompt is too long"]),
    words(Overflow, RowScope::Request, &["prompt too long"]),
    words(Overflow, RowScope::Request, &["too long to fit into the model"]),
    words(Overflow, RowScope::Request, &["input is too long"]),
    words(Overflow, RowScope::Request, &["too many tokens"]),
    words(Overflow, RowScope::Request, &["exceed context limit"]),
    words(Overflow, RowScope::Request, &["exceed", "context window"]),
    words(Overflow, RowScope::Request, &["exceed", "context length"]),
    words(Overflow, RowScope::Request, &["longer than", "context length"]),
    words(Overflow, RowScope::Request, &["greater than", "context length"]),
    words(Overflow, RowScope::Request, &["context length is only"]),
    words(Overflow, RowScope::Request, &["context length of only"]),
    words(Overflow, RowScope::Request, &["maximum context length"]),
    words(Overflow, RowScope::Request, &["maximum model length"]),
    words(Overflow, RowScope::Request, &["maximum prompt length"]),
    words(Overflow, RowScope::Request, &["exceeds the available context size"]),
    words(Overflow, RowScope::Request, &["input token count", "exceeds"]),
    words(Overflow, RowScope::Request, &["number of input tokens exceeds"]),
    words(Overflow, RowScope::Request, &["prompt token count", "exceeds"]),
    words(Overflow, RowScope::Request, &["prompt exceeds max length"]),
    words(Overflow, RowScope::Request, &["exceeded model token limit"]),
    words(Overflow, RowScope::Request, &["range of input length should be"]),
    words(Overflow, RowScope::Request, &["reduce the length of the messages"]),
    words(Overflow, RowScope::Request, &["`inputs` tokens + `max_new_tokens` must be"]),
    words(Binding, RowScope::Request, &["invalid", "signature", "thinking"]),
    words(Binding, RowScope::Request, &["thinking", "cannot be modified"]),
    words(Binding, RowScope::Request, &["expected `thinking`", "but found"]),
    words(Media, RowScope::Request, &["image.source.base64"]),
    words(Media, RowScope::Request, &["pdf.source.base64"]),
    words(Media, RowScope::Request, &["image exceeds"]),
    words(Media, RowScope::Request, &["image dimensions exceed"]),
    words(Media, RowScope::Request, &["too many images and documents"]),
    words(Media, RowScope::Request, &["could not process image"]),
    words(Media, RowScope::Request, &["unable to process input image"]),
    words(Media, RowScope::Request, &["unsupported image"]),
    words(Media, RowScope::Request, &["could not process pdf"]),
    words(Media, RowScope::Request, &["pdf specified was not valid"]),
    words(Media, RowScope::Request, &["pdf specified is password protected"]),
    words(Media, RowScope::Request, &["pdf pages"]),
    words(Media, RowScope::Request, &["image input is not supported"]),
    words(Media, RowScope::Request, &["file format is invalid or unsupported"]),
    words(NotFound, RowScope::Request, &["model identifier is invalid"]),
    words(NotFound, RowScope::Request, &["is not a valid model id"]),
    words(NotFound, RowScope::Request, &["invalid model name passed"]),
    words(Auth, RowScope::Status(400, 403), &["api key not valid"]),
    words(Auth, RowScope::Status(400, 403), &["security token included in the request is"]),
    kind(Auth, &["authentication_error", "UNAUTHENTICATED", "UnrecognizedClientException"]),
    kind(Auth, &["ExpiredTokenException", "InvalidSignatureException"]),
    kind(Forbidden, &["permission_error", "billing_error", "PERMISSION_DENIED", "AccessDeniedException"]),
    kind(NotFound, &["not_found_error", "NOT_FOUND", "ResourceNotFoundException"]),
    kind(Quota, &["insufficient_quota", "exceeded_current_quota_error", "usage_limit_reached"]),
    kind(Quota, &["ServiceQuotaExceededException"]),
    kind(RateLimited, &["rate_limit_error", "ThrottlingException", "RESOURCE_EXHAUSTED"]),
    kind(Overloaded, &["overloaded_error", "ServiceUnavailableException", "ModelNotReadyException"]),
    kind(Server, &["timeout_error", "conflict_error", "ModelTimeoutException", "InternalServerException"]),
    kind(Overflow, &["request_too_large", "exceed_context_size_error"]),
    status(Auth, 401, 401),
    status(Forbidden, 402, 403),
    status(NotFound, 404, 405),
    status(Server, 408, 409),
    status(Overflow, 413, 413),
    status(RateLimited, 429, 429),
    status(Overloaded, 498, 498),
    status(BadRequest, 400, 499),
    status(Overloaded, 529, 529),
    status(Server, 500, 599),
    kind(BadRequest, &["invalid_request_error"]),
];

/// The class of an error answer, or of an `error` event if there is no status.
pub(super) fn class_of(status: Option<u16>, body: &ErrorBody) -> FailureClass {
    deciding_row(status, body).map_or(Server, |row| RULES[row].class)
}

/// The row that decides about an error.
fn deciding_row(status: Option<u16>, body: &ErrorBody) -> Option<usize> {
    let words = body.words.to_ascii_lowercase();
    let fits = |rule: &ClassRule| {
        (rule.codes.is_empty() || rule.codes.contains(&body.code.as_str()))
            && (rule.kinds.is_empty() || rule.kinds.contains(&body.kind.as_str()))
            && rule.scope.is_met(status, &body.kind)
            && rule.words.iter().all(|word| words.contains(word))
    };
    RULES.iter().position(fits)
}

impl RowScope {
    fn is_met(self, status: Option<u16>, kind: &str) -> bool {
        let about_the_request = || match status {
            Some(status) => matches!(status, 400 | 413 | 422 | 500),
            None => matches!(kind, "invalid_request_error" | "api_error" | ""),
        };
        let is_limit = || match status {
            Some(status) => status == 429,
            None => kind == "rate_limit_error",
        };
        match self {
            Self::Anything => true,
            Self::Status(from, to) => status.is_some_and(|status| (from..=to).contains(&status)),
            Self::Request => about_the_request(),
            Self::Limit => about_the_request() || is_limit(),
            Self::Load => status.is_none_or(|status| matches!(status, 429 | 498 | 500..=599)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// A row that no fixture needs is a row nobody can change safely.
    #[test]
    fn every_row_decides_about_a_fixture() {
        let fixtures: Vec<Value> = serde_json::from_str(include_str!("fixtures.json")).unwrap();
        let row = |fixture: &Value| {
            let text = fixture["body"].as_str().map_or_else(|| fixture["body"].to_string(), str::to_owned);
            let mut body = ErrorBody::parse(&text);
            if let Some(kind) =
                fixture["headers"]["x-amzn-errortype"].as_str().filter(|_| body.kind.is_empty())
            {
                body.kind = kind.split(':').next().unwrap_or_default().to_owned();
            }
            let status = fixture["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            deciding_row(status.filter(|status| *status >= 400), &body)
        };
        let used: BTreeSet<usize> = fixtures.iter().filter_map(row).collect();
        let unused: Vec<_> = (0..RULES.len()).filter(|row| !used.contains(row)).collect();
        let name = |row: &usize| {
            let rule = &RULES[*row];
            format!("{:?} {:?} {:?} {:?} {:?}", rule.class, rule.scope, rule.kinds, rule.codes, rule.words)
        };
        assert!(unused.is_empty(), "{:#?}", unused.iter().map(name).collect::<Vec<_>>());
    }
}
