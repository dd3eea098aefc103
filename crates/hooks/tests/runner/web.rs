//! Hooks that are web addresses, over loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use windlass_hooks::HookHost;

use crate::stage::{Stage, bash, stop, words};

/// A server that answers every request with the same bytes, and what it was asked.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

pub(crate) async fn server(answer: String) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, heard) = (answer.clone(), heard.clone());
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while !is_whole(&request) {
                    match stream.read(&mut piece).await {
                        Ok(count @ 1..) => request.extend_from_slice(&piece[..count]),
                        _ => return,
                    }
                }
                heard.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    Server { url, seen }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

pub(crate) fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn hook(url: &str) -> Value {
    json!({"type": "http", "url": url})
}

async fn check(status: &str, body: &str, expected: &str) {
    let server = server(response(status, body)).await;
    let seen = words(&Stage::one("PreToolUse", hook(&server.url)).ask(bash("ls")).await);
    assert_eq!(seen, expected, "{status} {body}");
}

#[tokio::test]
async fn an_answer_is_read_like_the_output_of_a_program() {
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
    let no_say = ". Its answer is ignored.";
    check("200 OK", "", "").await;
    check("204 No Content", "", "").await;
    check("200 OK", "{}", "").await;
    check("200 OK", deny, "deny no | notice objects: no").await;
    check(
        "200 OK",
        "fine",
        &format!("notice gave an answer that cannot be read: it is not a JSON object{no_say}"),
    )
    .await;
    check(
        "200 OK",
        "[]",
        &format!("notice gave an answer that cannot be read: it is not a JSON object{no_say}"),
    )
    .await;
    check("500 Oh No", deny, &format!("notice answered with status 500{no_say}")).await;
    check("404 Not Found", "", &format!("notice answered with status 404{no_say}")).await;
    let long = "x".repeat(2 << 20);
    let cut = "its answer is longer than 1 MiB and was cut off";
    check("200 OK", &long, &format!("deny {cut} | notice objects: {cut}")).await;
}

#[tokio::test]
async fn the_question_is_posted_with_headers_that_are_told_only_listed_variables() {
    let server = server(response("200 OK", "")).await;
    let handler = json!({
        "type": "http", "url": server.url, "headers": {"Authorization": "Bearer $TEAM_TOKEN", "X-User": "${OTHER}"},
        "allowedEnvVars": ["TEAM_TOKEN"]
    });
    let stage = Stage::one("PreToolUse", handler);
    let environment = vec![("TEAM_TOKEN".into(), "t-1".into()), ("OTHER".into(), "o-1".into())];
    let runner = stage.runner_with(HookHost { environment, ..stage.host() });
    assert_eq!(words(&stage.ask_with(&runner, bash("ls")).await), "");
    let seen = server.seen.lock().unwrap().join("");
    assert!(seen.starts_with("POST /hook HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("content-type: application/json\r\n"), "{seen}");
    assert!(seen.contains("authorization: Bearer t-1\r\n") && !seen.contains("o-1"), "{seen}");
    let body: Value = serde_json::from_str(seen.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["tool_input"]["command"], "ls");
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let behind = server(response("200 OK", r#"{"systemMessage":"reached"}"#)).await;
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", behind.url);
    let front = server(answer).await;
    let seen = words(&Stage::one("Stop", hook(&front.url)).ask(stop()).await);
    assert_eq!(seen, "notice answered with status 302. Its answer is ignored.");
    assert!(behind.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn only_listed_addresses_are_reached() {
    let server = server(response("200 OK", "")).await;
    let stage = Stage::one("Stop", hook(&server.url));
    let check = |urls: Vec<String>, is_reached: bool| {
        let runner = stage.runner_with(HookHost { http_urls: Some(urls), ..stage.host() });
        let (stage, server) = (&stage, &server);
        async move {
            server.seen.lock().unwrap().clear();
            let seen = words(&stage.ask_with(&runner, stop()).await);
            assert_eq!(!server.seen.lock().unwrap().is_empty(), is_reached, "{seen}");
            assert_eq!(seen.contains("allowedHttpHookUrls does not list"), !is_reached, "{seen}");
        }
    };
    check(vec!["http://127.0.0.1:*".into()], true).await;
    check(vec!["https://hooks.example/*".into()], false).await;
    check(Vec::new(), false).await;
}

#[tokio::test]
async fn an_address_that_cannot_be_reached_or_does_not_answer_is_a_failure() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let seen = words(&Stage::one("Stop", hook(&url)).ask(stop()).await);
    assert!(seen.starts_with("notice could not be started: "), "{seen}");
    let strict = json!({"type": "http", "url": url, "onFailure": "block"});
    let seen = words(&Stage::one("PreToolUse", strict).ask(bash("ls")).await);
    assert!(seen.starts_with("deny ") && seen.ends_with("Blocked: this hook must succeed."), "{seen}");

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let handler = json!({"type": "http", "url": url, "timeout": 0.3});
    let started = std::time::Instant::now();
    let seen = words(&Stage::one("Stop", handler).ask(stop()).await);
    assert_eq!(seen, "notice took longer than 0.3 s and was stopped. Its answer is ignored.");
    assert!(started.elapsed() < Duration::from_secs(5));
}
