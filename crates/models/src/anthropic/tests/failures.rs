//! What goes wrong, seen through real connections.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use futures_util::StreamExt;
use windlass_ports::ModelClient;
use windlass_protocol::{Failure, FailureClass, ModelEvent};

use super::server::{Server, Step, chunk, events, good, send, stream_end, stream_head, whole};
use super::{KEY, ask, check_unreachable, client, line, lines, request, settings};
use crate::anthropic::{AnthropicClient, AnthropicSettings, WatchdogLimits};

const JSON: &str = "content-type: application/json\r\nrequest-id: req_9\r\n";

/// The failure an answer leads to, which is the last item, and its message with the base URL left out.
async fn failure_of(answer: Vec<Step>) -> (Failure, String) {
    let server = Server::start(vec![answer]);
    let events = ask(&client(&server.url())).await;
    let Some(ModelEvent::Failed(failure)) = events.last() else {
        panic!("no failure: {:?}", lines(&events));
    };
    assert!(!failure.message.contains(KEY), "{}", failure.message);
    let told = failure.message.replace(&server.url(), "BASE");
    ((**failure).clone(), told)
}

async fn check(answer: Vec<Step>, class: FailureClass, message: &str) -> Failure {
    let (failure, told) = failure_of(answer).await;
    assert_eq!(failure.class, class, "{told}");
    assert_eq!(told, message);
    failure
}

#[tokio::test]
async fn a_response_that_breaks_off_is_cut() {
    let half = &events().into_bytes()[..300];
    let in_a_chunk = vec![stream_head(), chunk(half), send("ff\r\nevent:"), Step::Close];
    let (failure, told) = failure_of(in_a_chunk).await;
    assert_eq!(failure.class, FailureClass::Cut, "{told}");
    assert!(told.starts_with("The connection to BASE broke off during the response ("), "{told}");
    assert_eq!(failure.request_id.as_deref(), Some("req_7"));

    let with_a_clean_end = vec![stream_head(), chunk(half), stream_end()];
    let told = "The response stream broke off during the response.";
    check(with_a_clean_end, FailureClass::Cut, told).await;

    let (failure, told) = failure_of(vec![Step::Close]).await;
    assert_eq!(failure.class, FailureClass::Cut, "{told}");
    assert!(told.starts_with("BASE closed the connection before it responded ("), "{told}");
}

async fn check_stall(answer: Vec<Step>, limits: WatchdogLimits, message: &str) {
    let server = Server::start(vec![answer]);
    let settings = AnthropicSettings { watchdog: limits, ..settings(&server.url()) };
    let events = ask(&AnthropicClient::new(settings).unwrap()).await;
    let last = line(events.last().unwrap()).replace(&server.url(), "BASE");
    assert_eq!(last, message);
}

#[tokio::test]
async fn silence_is_a_stall() {
    let bytes = WatchdogLimits { bytes: Some(Duration::from_millis(200)), events: None };
    let told = "Stalled: BASE sent nothing for 0.2 s.";
    let beginning = chunk(&events().as_bytes()[..200]);
    check_stall(vec![Step::AwaitClose], bytes, told).await;
    check_stall(vec![stream_head(), Step::AwaitClose], bytes, told).await;
    check_stall(vec![stream_head(), beginning, Step::AwaitClose], bytes, told).await;
}

#[tokio::test]
async fn pings_are_no_events() {
    let ping = || chunk(b"event: ping\ndata: {\"type\": \"ping\"}\n\n");
    let mut answer = vec![stream_head()];
    for _ in 0..100 {
        answer.extend([ping(), Step::Pause(25)]);
    }
    let limits =
        WatchdogLimits { bytes: Some(Duration::from_millis(800)), events: Some(Duration::from_secs(1)) };
    check_stall(answer, limits, "Stalled: BASE sent no event for 1 s.").await;
}

#[tokio::test]
async fn a_wrong_key() {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"authentication_error","message":"invalid x-api-key {KEY}"}}}}"#
    );
    let failure = check(
        whole("401 Unauthorized", JSON, &body),
        FailureClass::Auth,
        "BASE rejected the API key or token (HTTP 401): invalid x-api-key [redacted]. Check ANTHROPIC_API_KEY or \
         ANTHROPIC_AUTH_TOKEN.",
    )
    .await;
    assert_eq!((failure.status, failure.request_id.as_deref()), (Some(401), Some("req_9")));
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let limited = format!("{JSON}retry-after-ms: 1500\r\nretry-after: 60\r\nx-should-retry: true\r\n");
    let failure = check(
        whole("429 Too Many Requests", &limited, body),
        FailureClass::RateLimited,
        "BASE reports too many requests (HTTP 429): slow down.",
    )
    .await;
    assert_eq!((failure.retry_after_ms, failure.should_retry), (Some(1500), Some(true)));
}

#[tokio::test]
async fn servers_that_fail() {
    let body =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_b"}"#;
    let told = "BASE is overloaded (HTTP 529): Overloaded.";
    let failure = check(whole("529 ", "", body), FailureClass::Overloaded, told).await;
    assert_eq!(failure.request_id.as_deref(), Some("req_b"));

    let page = "<html>\n<head><title>502 Bad Gateway</title></head></html>";
    check(
        whole("502 Bad Gateway", "content-type: text/html\r\n", page),
        FailureClass::Server,
        "BASE failed (HTTP 502): an HTML page, “502 Bad Gateway”.",
    )
    .await;
    let endless = format!("<html><title>oops</title>{}", "x".repeat(1_000_000));
    check(
        whole("500 Internal Server Error", "", &endless),
        FailureClass::Server,
        "BASE failed (HTTP 500): an HTML page, “oops”.",
    )
    .await;
    check(
        whole("404 Not Found", "", ""),
        FailureClass::NotFound,
        "BASE does not know this model or URL (HTTP 404). Check the model name, and ANTHROPIC_BASE_URL if set.",
    )
    .await;
}

/// Servers refuse a request that is too large before they have read it, and close. Whether their answer still arrives
/// is a matter of luck, but sending the same again is wrong either way.
#[tokio::test]
async fn a_request_that_is_too_large_to_be_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
        let head = "HTTP/1.1 413 Payload Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
    });
    let events: Vec<_> = client(&url).stream(request(&"x".repeat(24_000_000))).collect().await;
    let told = lines(&events).join("\n");
    assert!(told.starts_with("Overflow: "), "{told}");
}

#[tokio::test]
async fn errors_in_the_stream() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let failure = check(
        vec![stream_head(), chunk(error.as_bytes()), stream_end()],
        FailureClass::Overloaded,
        "The model's server is overloaded: Overloaded.",
    )
    .await;
    assert_eq!(failure.request_id.as_deref(), Some("req_7"));

    let words = b"event: error\ndata: upstream timed out\n\n";
    let told = "The model's server failed: upstream timed out.";
    check(vec![stream_head(), chunk(words), stream_end()], FailureClass::Server, told).await;

    let (failure, told) = failure_of(vec![stream_head(), chunk(b"data: {\"type\":\n\n"), stream_end()]).await;
    assert_eq!(failure.class, FailureClass::Malformed);
    assert!(told.starts_with("Invalid response stream: not JSON ("), "{told}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Server::start(vec![good()]);
    let location = format!("location: http://user:word@{}/v1/messages\r\n", other.address);
    let failure = check(
        whole("307 Temporary Redirect", &location, ""),
        FailureClass::NotFound,
        &format!(
            "BASE redirects to {}/v1/messages (HTTP 307). Windlass does not send credentials to a redirect; set ANTHROPIC_BASE_URL to the final address.",
            other.url()
        ),
    )
    .await;
    assert_eq!(failure.status, Some(307));
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn answers_that_are_not_a_response() {
    let told =
        |what: &str| format!("BASE sent {what} instead of a stream of events. Check ANTHROPIC_BASE_URL.");
    check(
        whole("200 OK", JSON, r#"{"type":"list"}"#),
        FailureClass::Malformed,
        &told("JSON that is not a message (missing field `content` at line 1 column 15)"),
    )
    .await;
    let page = whole("200 OK", "content-type: text/html\r\n", "<html>");
    check(page, FailureClass::Malformed, &told("text/html")).await;
    let packed = whole("200 OK", "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", "\u{1f}");
    let what = told("unexpected encoding gzip");
    check(packed, FailureClass::Malformed, &what).await;
    check(
        whole("200 OK", JSON, r#"{"error":{"type":"overloaded_error","message":"no"}}"#),
        FailureClass::Overloaded,
        "BASE is overloaded (HTTP 200): no.",
    )
    .await;
    check(
        whole("200 OK", JSON, r#"{"error":{"code":429,"message":"slow down"}}"#),
        FailureClass::RateLimited,
        "BASE reports too many requests (HTTP 200): slow down.",
    )
    .await;
}

#[tokio::test]
async fn servers_that_cannot_be_reached() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let advice = "Check that it is running and reachable, and ANTHROPIC_BASE_URL if set.";
    check_unreachable(
        &format!("http://user:word@{free}"),
        FailureClass::Connect,
        &format!("http://{free} refused the connection. {advice}"),
    )
    .await;
    check_unreachable(
        "http://no-such-host.invalid",
        FailureClass::Connect,
        "Cannot resolve the host name of http://no-such-host.invalid. Check the host name in ANTHROPIC_BASE_URL.",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_speaks_something_else() {
    let greeting = vec![send("220 mail.example ESMTP ready\r\n"), Step::AwaitClose];
    let told = "BASE does not speak HTTP. Check ANTHROPIC_BASE_URL.";
    check(greeting, FailureClass::Malformed, told).await;
}
