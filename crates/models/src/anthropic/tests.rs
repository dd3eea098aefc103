mod failures;
mod optional_fields;
mod server;
mod tls;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use windlass_ports::ModelClient;
use windlass_protocol::{Block, FailureClass, Message, MessageId, ModelEvent, ModelRequest, Origin, Secret};

use super::{AnthropicClient, AnthropicSettings, WatchdogLimits};
use server::{Server, Step, chunk, events, good, send, stream_end, stream_head, whole};

const KEY: &str = "sk-test-0123456789";

fn settings(base_url: &str) -> AnthropicSettings {
    AnthropicSettings {
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new(KEY)),
        should_use_environment_proxies: false,
        ..AnthropicSettings::default()
    }
}

fn client(base_url: &str) -> AnthropicClient {
    AnthropicClient::new(settings(base_url)).unwrap()
}

fn request(text: &str) -> Arc<ModelRequest> {
    let message = Message::user(MessageId(1), Origin::Prompt, vec![Block::text(text)]);
    Arc::new(ModelRequest {
        model: "m".into(),
        system: "".into(),
        tools: Arc::new([]),
        transcript: [Arc::new(message)].into_iter().collect(),
        breakpoints: vec![0],
        output_tokens_max: 100,
        ..ModelRequest::default()
    })
}

fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Started { message_id, model, .. } => format!("started {message_id} {model}"),
        ModelEvent::Delta { index, delta: windlass_protocol::Delta::Start(_) } => format!("start {index}"),
        ModelEvent::Delta { index, .. } => format!("delta {index}"),
        ModelEvent::Note(note) => format!("note {note:?}"),
        ModelEvent::Block { index, block } => format!("block {index} {block:?}"),
        ModelEvent::Ended { stop, usage } => {
            format!("ended {} in={} out={}", stop.name(), usage.input_tokens, usage.output_tokens)
        }
        ModelEvent::Failed(failure) => format!("{:?}: {}", failure.class, failure.message),
    }
}

async fn ask(client: &AnthropicClient) -> Vec<ModelEvent> {
    let limit = Duration::from_secs(30);
    let all = client.stream(request("hi")).collect();
    tokio::time::timeout(limit, all).await.expect("an answer, long before the watchdogs' own limits")
}

fn lines(events: &[ModelEvent]) -> Vec<String> {
    events.iter().map(line).collect()
}

const GOOD: [&str; 5] = [
    "started m1 x",
    "start 0",
    "delta 0",
    "block 0 {\"type\":\"text\",\"text\":\"Grüße 😀\"}",
    "ended end_turn in=3 out=5",
];

#[tokio::test]
async fn a_response_streams() {
    let server = Server::start(vec![good()]);
    assert_eq!(lines(&ask(&client(&server.url())).await), GOOD);
}

#[tokio::test]
async fn bytes_may_be_split_anywhere() {
    let pieces = events().into_bytes();
    let mut answer = vec![stream_head()];
    for (number, piece) in pieces.chunks(3).enumerate() {
        answer.push(chunk(piece));
        if number % 40 == 0 {
            answer.push(Step::Pause(1));
        }
    }
    answer.push(stream_end());
    let server = Server::start(vec![answer]);
    assert_eq!(lines(&ask(&client(&server.url())).await), GOOD);
}

#[tokio::test]
async fn events_are_handed_out_as_they_come() {
    let text = events();
    let (first, _) = text.split_at(text.find("event: e\r\ndata: {\"type\":\"content_block_stop").unwrap());
    // The rest never comes: whoever waits for it waits too long.
    let server = Server::start(vec![vec![stream_head(), chunk(first.as_bytes()), Step::AwaitClose]]);
    let beginning = client(&server.url()).stream(request("hi")).take(3).collect::<Vec<_>>();
    let seen =
        tokio::time::timeout(Duration::from_secs(20), beginning).await.expect("what came is handed out");
    assert_eq!(lines(&seen), GOOD[..3]);
}

#[tokio::test]
async fn the_request_as_it_goes_out() {
    let server = Server::start(vec![good()]);
    let mut settings = settings(&format!("{}/gateway/", server.url()));
    settings.betas = vec!["one".into(), "two".into()];
    settings.custom_headers = vec![("X-Team".into(), Secret::new("blue"))];
    settings.user_agent = "test/1".into();
    ask(&AnthropicClient::new(settings).unwrap()).await;
    let seen = &server.seen()[0];
    let mut head: Vec<_> = seen.head.trim_end().split("\r\n").collect();
    assert_eq!(head.remove(0), "POST /gateway/v1/messages HTTP/1.1");
    head.sort_unstable();
    let host = format!("host: {}", server.address);
    let length = format!("content-length: {}", seen.body.len());
    assert_eq!(
        head,
        [
            "accept: text/event-stream",
            "anthropic-beta: one,two",
            "anthropic-version: 2023-06-01",
            &length,
            "content-type: application/json",
            &host,
            "user-agent: test/1",
            &format!("x-api-key: {KEY}"),
            "x-team: blue",
        ]
    );
    assert_eq!(
        seen.body,
        r#"{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}"#
    );
}

#[tokio::test]
async fn one_connection_serves_all_requests() {
    let late_end = vec![stream_head(), chunk(events().as_bytes()), Step::Pause(5), stream_end()];
    let refusal = whole("429 Too Many Requests", "", "{}");
    let server = Server::start(vec![good(), late_end, refusal, good(), good()]);
    let client = client(&server.url());
    for number in 0..5 {
        let events = ask(&client).await;
        assert_eq!(events.len(), if number == 2 { 1 } else { 5 });
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(server.connections(), 1);
    assert!(server.seen().iter().all(|seen| seen.connection == 1));
}

#[tokio::test]
async fn a_large_transcript_arrives_whole() {
    let server = Server::start(vec![good()]);
    let text = "0123456789".repeat(5_000);
    let message = |n| Arc::new(Message::user(MessageId(n), Origin::Prompt, vec![Block::text(&text)]));
    let large = ModelRequest {
        transcript: (0..40).map(message).collect(),
        breakpoints: vec![38, 39],
        ..(*request("")).clone()
    };
    let meant = large.transcript.to_json();
    let events: Vec<_> = client(&server.url()).stream(Arc::new(large)).collect().await;
    assert_eq!(lines(&events), GOOD);
    let sent = server.seen()[0].body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    assert!(sent.len() > 2_000_000);
    assert!(sent.contains(&format!(r#""messages":{meant}}}"#)));
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let server = Server::start(vec![good()]);
    let stream = client(&server.url()).stream(request("hi"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(stream);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_request() {
    let beginning = chunk(&events().as_bytes()[..150]);
    let server = Server::start(vec![vec![stream_head(), beginning, Step::AwaitClose]]);
    let client = client(&server.url());
    let mut stream = client.stream(request("hi"));
    assert_eq!(line(&stream.next().await.unwrap()), GOOD[0]);
    drop(stream);
    let start = Instant::now();
    while server.closed_by_client() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "the connection is still open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_server_that_keeps_the_answer_open_does_not_hold_the_response() {
    let open = vec![stream_head(), chunk(events().as_bytes()), Step::AwaitClose];
    let server = Server::start(vec![open, good()]);
    let client = client(&server.url());
    assert_eq!(lines(&ask(&client).await), GOOD);
    assert_eq!(lines(&ask(&client).await), GOOD);
}

#[tokio::test]
async fn a_slow_reader_does_not_stall_the_stream() {
    let text = events();
    let mut answer = vec![stream_head()];
    let pieces = text.split_inclusive("\r\n\r\n").map(|event| chunk(event.as_bytes()));
    answer.extend(pieces.flat_map(|piece| [piece, Step::Pause(1)]));
    answer.push(stream_end());
    let server = Server::start(vec![answer]);
    let limit = Some(Duration::from_secs(1));
    let settings = AnthropicSettings {
        watchdog: WatchdogLimits { bytes: limit, events: limit },
        ..settings(&server.url())
    };
    let mut stream = AnthropicClient::new(settings).unwrap().stream(request("hi"));
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        seen.push(line(&event));
        if seen.len() < 3 {
            tokio::time::sleep(Duration::from_millis(1200)).await;
        }
    }
    assert_eq!(seen, GOOD);
}

#[tokio::test]
async fn an_answer_that_does_not_stream_is_taken_too() {
    let message = r#"{"id":"m1","type":"message","model":"x","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"N","input":{"b": 1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}"#;
    let server = Server::start(vec![whole("200 OK", "content-type: application/json\r\n", message)]);
    assert_eq!(
        lines(&ask(&client(&server.url())).await),
        [
            "started m1 x",
            "start 0",
            "block 0 {\"type\":\"text\",\"text\":\"a\"}",
            "start 1",
            "block 1 {\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"N\",\"input\":{\"b\": 1}}",
            "ended tool_use in=3 out=4",
        ]
    );
}

#[tokio::test]
async fn an_answer_without_a_model_is_from_the_one_that_was_asked() {
    let start = r#"{"type":"message_start","message":{"id":"m1","model":""}}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let streamed = vec![send(head), send(format!("data: {start}\n\n")), Step::Close];
    let message = r#"{"id":"m1","type":"message","content":[],"stop_reason":"end_turn"}"#;
    let in_one = whole("200 OK", "content-type: application/json\r\n", message);
    let server = Server::start(vec![streamed, in_one]);
    let client = client(&server.url());
    for _ in 0..2 {
        assert_eq!(lines(&ask(&client).await)[0], "started m1 m");
    }
}

#[tokio::test]
async fn a_stream_needs_no_content_type() {
    let head = send("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
    let server = Server::start(vec![vec![head, send(format!("data:\n\n{}", events())), Step::Close]]);
    assert_eq!(lines(&ask(&client(&server.url())).await), GOOD);
}

#[tokio::test]
async fn a_ping_may_say_anything() {
    for ping in ["event: ping\n\n", "event: ping\ndata: {}\n\n", "event: ping\ndata: still here\n\n"] {
        let answer = format!("{ping}{}", events());
        let server = Server::start(vec![vec![stream_head(), chunk(answer.as_bytes()), stream_end()]]);
        assert_eq!(lines(&ask(&client(&server.url())).await), GOOD, "{ping:?}");
    }
}

#[tokio::test]
async fn blocks_are_handed_out_in_the_order_of_the_response() {
    let event = |json: &str| format!("data: {json}\n\n");
    let block = |index: u32| {
        let start = format!(r#""index":{index},"content_block":{{"type":"text","text":"{index}"}}"#);
        event(&format!(r#"{{"type":"content_block_start",{start}}}"#))
    };
    let stop = |index: u32| event(&format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    let answer = [
        event(r#"{"type":"message_start","message":{"id":"m1","model":"x"}}"#),
        [block(0), block(1), stop(1), stop(0)].concat(),
        event(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#),
        event(r#"{"type":"message_stop"}"#),
    ];
    let server = Server::start(vec![vec![stream_head(), chunk(answer.concat().as_bytes()), stream_end()]]);
    let seen = lines(&ask(&client(&server.url())).await);
    let text = |index: u32| format!(r#"block {index} {{"type":"text","text":"{index}"}}"#);
    assert_eq!(seen[3..5], [text(0), text(1)], "{seen:?}");
}

/// The failure of a base URL that leads nowhere.
async fn check_unreachable(base_url: &str, class: FailureClass, message: &str) {
    let events = ask(&client(base_url)).await;
    let Some(ModelEvent::Failed(failure)) = events.last() else {
        panic!("no failure: {:?}", lines(&events));
    };
    assert_eq!(failure.class, class, "{}", failure.message);
    assert_eq!(failure.message, message);
}

const CHILD_URL: &str = "WINDLASS_TEST_CHILD_URL";

/// What the environment says about proxies, so that a child knows only what its test says.
const PROXY_VARIABLES: [&str; 8] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// What a process of its own with these variables hears from `url`. The environment belongs to the process, so that
/// settings of the environment cannot be tested in this one.
fn told_to_a_child(url: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for name in PROXY_VARIABLES {
        command.env_remove(name);
    }
    let output = command
        .args(["--exact", "anthropic::tests::asks_as_a_child", "--nocapture"])
        .env_remove("SSL_CERT_DIR")
        .env(CHILD_URL, url)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn asks_as_a_child() {
    let Ok(url) = std::env::var(CHILD_URL) else { return };
    let settings = AnthropicSettings { should_use_environment_proxies: true, ..settings(&url) };
    let events = ask(&AnthropicClient::new(settings).unwrap()).await;
    println!("{}", lines(&events).join("\n"));
}

#[test]
fn proxies_of_the_environment_are_used() {
    let proxy = Server::start(vec![good()]);
    let url = proxy.url();
    let run =
        |no_proxy| told_to_a_child("http://model.invalid", &[("HTTP_PROXY", &url), ("NO_PROXY", no_proxy)]);
    let told = run("model.invalid");
    assert!(told.contains("Check the network, the proxy in HTTP_PROXY"), "{told}");
    assert!(proxy.seen().is_empty());
    let told = run("");
    assert!(told.contains("ended end_turn"), "{told}");
    let head = &proxy.seen()[0].head;
    assert!(head.starts_with("POST http://model.invalid/v1/messages HTTP/1.1"), "{head}");
}

#[test]
fn each_variable_names_the_proxy_for_its_addresses() {
    for name in ["http_proxy", "ALL_PROXY", "all_proxy"] {
        let proxy = Server::start(vec![good()]);
        let told = told_to_a_child("http://model.invalid", &[(name, &proxy.url())]);
        assert!(told.contains("ended end_turn"), "{name}: {told}");
        let head = &proxy.seen()[0].head;
        assert!(head.starts_with("POST http://model.invalid/v1/messages HTTP/1.1"), "{name}: {head}");
    }
    let (proxy, server) = (Server::start(vec![good()]), Server::start(vec![good()]));
    let told = told_to_a_child(&server.url(), &[("HTTPS_PROXY", &proxy.url())]);
    assert!(told.contains("ended end_turn"), "{told}");
    assert_eq!((proxy.seen().len(), server.seen().len()), (0, 1));
}

#[test]
fn a_client_does_not_show_its_key() {
    let text = format!("{:?}", client("http://a"));
    assert!(text.contains("[redacted]") && !text.contains(KEY), "{text}");
}
