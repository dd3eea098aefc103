//! What only some requests carry, answers that come whole, and endpoints that do not take everything.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use windlass_ports::ModelClient;
use windlass_protocol::{
    ContextEdits, Delivery, Effort, FailureClass, ModelEvent, ModelRequest, RequestThinking, TaskBudget,
};

use super::server::{Seen, Server, Step, good, send, whole};
use super::{client, line, lines, request, settings};
use crate::anthropic::{AnthropicClient, AnthropicSettings};

const JSON: &str = "content-type: application/json\r\n";

fn with(change: impl FnOnce(&mut ModelRequest)) -> Arc<ModelRequest> {
    let mut request = (*request("hi")).clone();
    change(&mut request);
    Arc::new(request)
}

async fn ask(client: &AnthropicClient, request: &Arc<ModelRequest>) -> Vec<ModelEvent> {
    let all = client.stream(Arc::clone(request)).collect();
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("an answer")
}

fn header(seen: &Seen, name: &str) -> Vec<String> {
    let start = format!("{name}: ");
    seen.head.lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
}

fn demanding() -> Arc<ModelRequest> {
    with(|request| {
        request.effort = Some(Effort::High);
        request.task_budget = Some(TaskBudget { total: 20_000, remaining: None });
        request.edits = Some(ContextEdits { trigger_tokens: 9, keep_results: 5, clear_at_least_tokens: 1 });
    })
}

#[tokio::test]
async fn betas_go_out_only_with_what_needs_them() {
    let server = Server::start(vec![good(), good(), good()]);
    let betas = vec!["mine".to_owned()];
    let client = AnthropicClient::new(AnthropicSettings { betas, ..settings(&server.url()) }).unwrap();
    for request in [request("hi"), demanding(), with(|request| request.effort = Some(Effort::Low))] {
        assert!(line(ask(&client, &request).await.last().unwrap()).starts_with("ended"));
    }
    let seen = server.seen();
    assert_eq!(header(&seen[0], "anthropic-beta"), ["mine"]);
    assert_eq!(
        header(&seen[1], "anthropic-beta"),
        ["mine,task-budgets-2026-03-13,context-management-2025-06-27"]
    );
    assert_eq!(header(&seen[2], "anthropic-beta"), ["mine"]);
    assert!(seen[2].body.contains(r#","output_config":{"effort":"low"},"#), "{}", seen[2].body);
}

fn refusal(message: &str) -> Vec<Step> {
    let body =
        serde_json::json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    whole("400 Bad Request", JSON, &body.to_string())
}

#[tokio::test]
async fn what_an_endpoint_refuses_is_left_out_of_the_next_attempt() {
    let refused = refusal("context_management: Extra inputs are not permitted");
    let server = Server::start(vec![refused, good(), good()]);
    let client = client(&server.url());
    let first = ask(&client, &demanding()).await;
    let Some(ModelEvent::Failed(failure)) = first.last() else { panic!("{:?}", lines(&first)) };
    assert_eq!((failure.class, failure.should_retry), (FailureClass::BadRequest, Some(true)));
    assert!(failure.message.ends_with(" Windlass retries without it."), "{}", failure.message);
    for _ in 0..2 {
        assert!(line(ask(&client, &demanding()).await.last().unwrap()).starts_with("ended"));
    }
    let seen = server.seen();
    assert!(seen[0].body.contains("context_management"));
    for later in &seen[1..] {
        assert!(!later.body.contains("context_management"), "{}", later.body);
        assert!(later.body.contains(r#""effort":"high""#), "{}", later.body);
        assert_eq!(header(later, "anthropic-beta"), [""; 0]);
    }
}

#[tokio::test]
async fn a_refusal_of_something_else_is_not_tried_again() {
    let server = Server::start(vec![refusal("metadata: Extra inputs are not permitted"), good()]);
    let client = client(&server.url());
    let first = ask(&client, &demanding()).await;
    let Some(ModelEvent::Failed(failure)) = first.last() else { panic!("{:?}", lines(&first)) };
    assert_eq!((failure.class, failure.should_retry), (FailureClass::BadRequest, None));
    ask(&client, &demanding()).await;
    assert_eq!(server.seen()[0].body, server.seen()[1].body);
}

fn in_one() -> Arc<ModelRequest> {
    with(|request| {
        request.delivery = Delivery::Whole;
        request.output_tokens_max = 64_000;
        request.thinking = RequestThinking::Adaptive { display: None };
    })
}

const MESSAGE: &str = r#"{"id":"m1","type":"message","role":"assistant","model":"x","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t","name":"N","input":{"b": 1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4},"input_transformations":[{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"}],"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":2,"cleared_input_tokens":900}]}}"#;

#[tokio::test]
async fn a_whole_answer_is_told_as_events() {
    let server = Server::start(vec![whole("200 OK", JSON, MESSAGE)]);
    let seen = lines(&ask(&client(&server.url()), &in_one()).await);
    assert_eq!(
        seen,
        [
            "started m1 x",
            r#"note ThinkingDropped { blocks: 1, reason: "prefix_binding_mismatch" }"#,
            "start 0",
            r#"block 0 {"type":"thinking","thinking":"hm","signature":"s"}"#,
            "start 1",
            r#"block 1 {"type":"tool_use","id":"t","name":"N","input":{"b": 1}}"#,
            "note Cleared { tool_results: 2, thinking_turns: 0, tokens: 900 }",
            "ended tool_use in=3 out=4",
        ]
    );
    let sent = &server.seen()[0];
    assert!(sent.body.starts_with(r#"{"model":"m","max_tokens":21333,"stream":false,"#), "{}", sent.body);
    assert_eq!(header(sent, "accept"), ["application/json"]);
}

#[tokio::test]
async fn a_server_may_stream_nevertheless() {
    let server = Server::start(vec![good()]);
    let seen = lines(&ask(&client(&server.url()), &in_one()).await);
    assert_eq!(seen.last().unwrap(), "ended end_turn in=3 out=5");
}

/// How a request for a whole answer ends, with the base URL left out.
async fn check_whole(answer: Vec<Step>, whole_wait: Option<Duration>, expected: &str) {
    let server = Server::start(vec![answer]);
    let settings = AnthropicSettings { whole_wait, ..settings(&server.url()) };
    let events = ask(&AnthropicClient::new(settings).unwrap(), &in_one()).await;
    let last = line(events.last().unwrap()).replace(&server.url(), "BASE");
    assert!(last.starts_with(expected), "{last}");
    assert_eq!(events.len(), 1, "nothing of a broken answer is told");
}

#[tokio::test]
async fn whole_answers_that_break() {
    let minute = Some(Duration::from_mins(1));
    let half = &MESSAGE[..MESSAGE.len() / 2];
    check_whole(whole("200 OK", JSON, half), minute, "Cut: BASE broke off the response.").await;
    let promised = MESSAGE.len();
    let short = send(format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {promised}\r\n\r\n{half}"));
    check_whole(vec![short, Step::Close], minute, "Cut: The connection to BASE broke off").await;
    check_whole(
        whole("200 OK", "content-type: text/html\r\n", "<html>"),
        minute,
        "Malformed: BASE sent text/html instead of a message.",
    )
    .await;
    check_whole(whole("200 OK", JSON, "[1]"), minute, "Malformed: BASE sent JSON that is not").await;
    check_whole(whole("200 OK", "", "no"), minute, "Malformed: BASE sent JSON that is not").await;
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    check_whole(whole("200 OK", JSON, error), minute, "Overloaded: BASE is overloaded").await;
    let little = Some(Duration::from_millis(100));
    check_whole(vec![Step::AwaitClose], little, "Stalled: BASE sent nothing for 0.1 s.").await;
}

/// The model writes in silence before a whole answer, so the limits for streams do not count.
#[tokio::test]
async fn a_whole_answer_may_take_longer_than_a_stream_may_be_silent() {
    let mut answer = vec![Step::Pause(400)];
    answer.extend(whole("200 OK", JSON, MESSAGE));
    let server = Server::start(vec![answer]);
    let limit = Some(Duration::from_millis(100));
    let watchdog = super::WatchdogLimits { bytes: limit, events: limit };
    let settings = AnthropicSettings { watchdog, ..settings(&server.url()) };
    let events = ask(&AnthropicClient::new(settings).unwrap(), &in_one()).await;
    assert!(line(events.last().unwrap()).starts_with("ended"), "{:?}", lines(&events));
}
