use std::time::{Duration, SystemTime};

use windlass_protocol::FailureClass::{self, *};

use super::{ErrorBody, ErrorHeaders, answer_failure, class_of, read_headers};

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
    check("Your credit balance is too low to access the API.", Forbidden);
    check("You have reached your specified API usage limits.", Quota);
    check("`tool_use` ids were found without `tool_result` blocks immediately after", BadRequest);
    check("text content blocks must be non-empty", BadRequest);
    check("A maximum of 4 blocks with cache_control may be provided. Found 5.", BadRequest);
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
    assert_eq!(told(400, &error("x", "No.")), "http://a did not accept the request (HTTP 400): No.");
}
