mod fixtures;

use std::time::{Duration, SystemTime};

use windlass_protocol::FailureClass::{self, *};

use super::rules::class_of;
use super::{ErrorBody, ErrorHeaders, answer_failure, read_headers};

fn error(kind: &str, message: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

fn check_class(status: u16, body: &str, expected: FailureClass) {
    let seen = class_of(Some(status), &ErrorBody::parse(body));
    assert_eq!(seen, expected, "{status} {body}");
}

#[test]
fn types_and_statuses() {
    check_class(400, &error("invalid_request_error", "messages: field required"), BadRequest);
    check_class(401, &error("authentication_error", "invalid x-api-key"), Auth);
    check_class(402, &error("billing_error", "pay"), Forbidden);
    check_class(403, &error("permission_error", "no"), Forbidden);
    check_class(404, &error("not_found_error", "model: x"), NotFound);
    check_class(408, "", Server);
    check_class(409, &error("conflict_error", "busy"), Server);
    check_class(413, "<html><h1>413 Request Entity Too Large</h1></html>", Overflow);
    check_class(413, &error("request_too_large", "Request exceeds the maximum size"), Overflow);
    check_class(429, &error("rate_limit_error", "This request would exceed your limit"), RateLimited);
    check_class(499, "", BadRequest);
    check_class(500, &error("api_error", "Internal server error"), Server);
    check_class(503, "", Server);
    check_class(504, &error("timeout_error", "late"), Server);
    check_class(529, "", Overloaded);
    check_class(500, &error("overloaded_error", "Overloaded"), Overloaded);
    check_class(400, &error("authentication_error", "no key"), Auth);
    check_class(405, "", NotFound);
    check_class(418, "", BadRequest);
}

#[test]
fn phrases_of_bad_requests() {
    let check =
        |message: &str, expected| check_class(400, &error("invalid_request_error", message), expected);
    check("prompt is too long: 210000 tokens > 200000 maximum", Overflow);
    check("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", Overflow);
    check("Input is too long for requested model.", Overflow);
    check("messages.3.content.0: Invalid `signature` in `thinking` block", Binding);
    check(
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
        Binding,
    );
    check("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 MB", Media);
    check("At least one of the image dimensions exceed max allowed size for many-image requests", Media);
    check("Could not process image", Media);
    check("A maximum of 100 PDF pages may be provided.", Media);
    check("messages.2.content.0.pdf.source.base64.data: The PDF specified was not valid.", Media);
    check(
        "messages.6.content.5.image.source.base64.data: Image does not match the provided media type",
        Media,
    );
    check("The file format is invalid or unsupported", Media);
    check(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When \
         `thinking` is enabled, a final `assistant` message must start with a thinking block",
        Binding,
    );
    check("Your credit balance is too low to access the API.", Forbidden);
    check("You have reached your specified API usage limits.", Quota);
    check("`tool_use` ids were found without `tool_result` blocks immediately after", BadRequest);
    check("text content blocks must be non-empty", BadRequest);
    check("A maximum of 4 blocks with cache_control may be provided. Found 5.", BadRequest);
}

#[test]
fn how_other_servers_say_that_a_prompt_is_too_long() {
    let check = |message: &str| {
        check_class(400, &serde_json::json!({"error": {"message": message}}).to_string(), Overflow);
    };
    check("Your input exceeds the context window of this model.");
    check("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens");
    check("The decoder prompt (length 5000) is longer than the maximum model length of 4096.");
    check("the request exceeds the available context size, try increasing it");
    check("the input length exceeds the context length");
    check("prompt too long; exceeded max context length by 12 tokens");
    check(
        "The number of tokens to keep from the initial prompt is greater than the context length (n_ctx: 4096).",
    );
    check("The input (9000 tokens) is longer than the model's context length (8192 tokens).");
    check("prompt token count of 130000 exceeds the limit of 128000");
    check("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)");
    check("Prompt exceeds max length");
    check("invalid params, context window exceeds limit (2013)");
    check("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]");
    check("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).");
    check("Please reduce the length of the messages or completion.");
    check("Too many tokens in the request.");
    check_class(400, r#"{"error":"the input length exceeds the context length"}"#, Overflow);
    check_class(
        400,
        r#"{"object":"error","message":"longer than the maximum model length of 4096.","type":"BadRequestError","code":400}"#,
        Overflow,
    );
    check_class(400, r#"{"error":{"code":"model_max_prompt_tokens_exceeded","message":"m"}}"#, Overflow);
}

#[test]
fn what_is_used_up_is_no_matter_of_waiting_a_moment() {
    let limit = |message: &str| error("rate_limit_error", message);
    check_class(429, &limit("You've hit your usage limit. Resets at 3pm"), Quota);
    check_class(429, &limit("You've hit your org's monthly usage limit"), Quota);
    check_class(429, &limit("Your organization has reached its spend limit"), Quota);
    check_class(429, &limit("You have reached your specified API usage limits."), Quota);
    check_class(429, r#"{"error":{"type":"insufficient_quota","code":null,"message":"m"}}"#, Quota);
    check_class(429, r#"{"error":{"type":"exceeded_current_quota_error","message":"m"}}"#, Quota);
    let gemini = |message: &str| serde_json::json!({"error": {"code": 429, "message": message}}).to_string();
    check_class(429, &gemini("You exceeded your current quota, please check your plan and billing"), Quota);
    check_class(429, &gemini("You exceeded your current quota. Please retry in 58.82s."), RateLimited);
    assert_eq!(class_of(None, &ErrorBody::parse(&limit("You've hit your usage limit."))), Quota);
    check_class(429, &limit("This request would exceed your account's rate limit."), RateLimited);
}

#[test]
fn throttling_under_another_status_is_a_rate_limit() {
    let check = |body: &str| check_class(400, body, RateLimited);
    check(r#"{"__type":"ThrottlingException","message":"Rate exceeded"}"#);
    check(r#"{"__type":"com.amazon.coral#ThrottlingException","message":"Rate exceeded"}"#);
    check(r#"{"message":"Too many tokens, please wait before trying again."}"#);
}

#[test]
fn machine_codes_beat_types() {
    let code = |kind: &str, code: &str| {
        serde_json::json!({"error": {"type": kind, "message": "m", "details": {"error_code": code}}})
            .to_string()
    };
    check_class(429, &code("rate_limit_error", "enforced_spend_limit_reached"), Quota);
    check_class(429, &code("rate_limit_error", "ramp_limit_exceeded"), RateLimited);
    check_class(529, &code("overloaded_error", "compaction_unavailable"), Overloaded);
    check_class(429, r#"{"error":{"code":"insufficient_quota","message":"m"}}"#, Quota);
    check_class(400, r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#, Overflow);
    check_class(400, r#"{"error":{"type":"exceed_context_size_error","code":400,"message":"m"}}"#, Overflow);
}

#[test]
fn a_rate_limit_that_speaks_of_tokens_is_no_overflow() {
    check_class(
        429,
        &error("rate_limit_error", "input is too long to fit your tokens per minute"),
        RateLimited,
    );
    check_class(500, r#"{"detail":"upstream: prompt is too long: 5 tokens > 4 maximum"}"#, Overflow);
}

#[test]
fn bodies_of_any_shape() {
    let check = |body: &str, expected: &str| assert_eq!(ErrorBody::parse(body).message, expected, "{body}");
    check(&error("x", "two\n  lines\u{7}"), "two lines");
    check(r#"{"error":"bare"}"#, "bare");
    check(r#"{"detail":"Not Found"}"#, "Not Found");
    check(r#"{"detail":[{"loc":["body"],"msg":"m"}]}"#, r#"[{"loc":["body"],"msg":"m"}]"#);
    check(r#"{"detail":{"msg":"m"}}"#, r#"{"msg":"m"}"#);
    check(r#"{"message":"Too many tokens"}"#, "Too many tokens");
    check(r#""just a string""#, "just a string");
    check(r#"{"something":"else"}"#, r#"{"something":"else"}"#);
    check("upstream connect error", "upstream connect error");
    check("<html><head><TITLE> 502\nBad </TITLE></head></html>", "an HTML page, “502 Bad”");
    check("<!DOCTYPE html><body><h1>No</h1> <p>way</p></body>", "an HTML page, “No way”");
    check("\u{feff}{\"error\":\"bom\"}", "bom");
    check("", "");
    let long = ErrorBody::parse(&"é".repeat(5000)).message;
    assert_eq!(long.chars().count(), 601);
    let cut = ErrorBody::parse("<html><title>İİİ</title");
    assert!(cut.message.starts_with("an HTML page"), "{}", cut.message);
}

#[test]
fn how_long_to_wait() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let check = |name: &'static str, value: &'static str, expected: Option<u64>| {
        let headers = read_headers(|asked| (asked == name).then_some(value), now);
        assert_eq!(headers.retry_after_ms, expected, "{name}: {value}");
    };
    check("retry-after-ms", "1500", Some(1500));
    check("retry-after-ms", "0.4", None);
    check("retry-after", "2", Some(2000));
    check("retry-after", " 0.25 ", Some(250));
    check("retry-after", "0", None);
    check("retry-after", "-3", None);
    check("retry-after", "NaN", None);
    check("retry-after", "1e300", None);
    check("retry-after", "soon", None);
    check("retry-after", "Mon, 12 Jan 1970 13:47:10 GMT", Some(30_000));
    check("retry-after", "Mon, 12 Jan 1970 13:00:00 GMT", None);
    check("other", "2", None);
}

#[test]
fn what_the_headers_say_else() {
    let read = |pairs: &'static [(&str, &str)]| {
        let find = |asked: &str| pairs.iter().find(|(name, _)| *name == asked).map(|(_, value)| *value);
        read_headers(find, SystemTime::now())
    };
    let headers = read(&[("x-should-retry", "false"), ("request-id", "a"), ("x-request-id", "b")]);
    assert_eq!((headers.should_retry, headers.request_id.as_deref()), (Some(false), Some("a")));
    let headers = read(&[("x-should-retry", "maybe"), ("x-request-id", "b")]);
    assert_eq!((headers.should_retry, headers.request_id.as_deref()), (None, Some("b")));
}

#[test]
fn messages_end_like_sentences() {
    let told = |status, body: &str| {
        answer_failure(status, &ErrorBody::parse(body), ErrorHeaders::default(), "http://a").message
    };
    assert_eq!(told(500, ""), "http://a failed (HTTP 500).");
    assert_eq!(told(400, &error("x", "No.")), "http://a rejected the request (HTTP 400): No.");
}

#[test]
fn messages_say_what_to_do_when_somebody_must_act() {
    let check = |status, message: &str, expected: &str| {
        let body = ErrorBody::parse(&error("x", message));
        let failure = answer_failure(status, &body, ErrorHeaders::default(), "http://a");
        assert_eq!(failure.message, expected);
    };
    check(
        403,
        "Not for you",
        "http://a denied access (HTTP 403): Not for you. Check the permissions of the API key and the billing of its account.",
    );
    check(
        413,
        "",
        "http://a rejected the prompt as too long (HTTP 413). Start a new session, or give it less to read.",
    );
    check(
        429,
        "You've hit your usage limit.",
        "http://a reports that a usage limit is reached (HTTP 429): You've hit your usage limit. Raise the limit at the provider, or wait until it resets.",
    );
    check(
        400,
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5",
        "http://a rejected the request (HTTP 400): max_tokens: 100000 > 64000, which is the maximum allowed \
         number of output tokens for claude-haiku-4-5. Lower CLAUDE_CODE_MAX_OUTPUT_TOKENS to the model's limit.",
    );
    check(
        429,
        "Claude AI usage limit reached|1763200000",
        "http://a reports that a usage limit is reached (HTTP 429): Claude AI usage limit reached|1763200000. The limit resets at 2025-11-15 09:46 UTC.",
    );
    check(
        400,
        "Could not process image",
        "http://a rejected an image or document (HTTP 400): Could not process image. Use a smaller file in a common format, or start a new session without it.",
    );
}
