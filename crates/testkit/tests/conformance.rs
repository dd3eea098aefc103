//! A script means the same inside the process and over HTTP: every fault and every kind of block comes out of
//! `ScriptModel` as it comes out of the real client.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use windlass_models::{AnthropicClient, AnthropicSettings, Script, ScriptModel, WatchdogLimits};
use windlass_ports::ModelClient;
use windlass_protocol::{Block, Message, MessageId, ModelEvent, ModelRequest, Origin, Secret};
use windlass_testkit::Server;

fn request() -> Arc<ModelRequest> {
    let prompt = Message::user(MessageId(1), Origin::Prompt, vec![Block::text("hi")]);
    Arc::new(ModelRequest {
        model: "any".into(),
        system: "Be brief.".into(),
        tools: [].into(),
        transcript: std::iter::once(Arc::new(prompt)).collect(),
        breakpoints: vec![0],
        output_tokens_max: 100,
        ..ModelRequest::default()
    })
}

fn settings(server: &Server) -> AnthropicSettings {
    AnthropicSettings {
        base_url: server.url(),
        api_key: Some(Secret::new("k")),
        should_use_environment_proxies: false,
        ..AnthropicSettings::default()
    }
}

/// What a caller can tell about an event; words of failures may differ, what follows from them may not.
fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Failed(failure) => {
            format!(
                "failed {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                failure.class,
                failure.status,
                failure.retry_after_ms,
                failure.should_retry,
                failure.overflow,
                // A wait becomes a moment of the clock, which goes on between the two.
                failure.resets_at.map(|moment| moment / 60),
                failure.culprit
            )
        }
        event => format!("{event:?}"),
    }
}

async fn lines(client: &dyn ModelClient) -> Vec<String> {
    client.stream(request()).map(|event| line(&event)).collect().await
}

/// Plays one response both ways and compares all events.
async fn check(response: &str) {
    let script = Script::parse(&format!(r#"{{"responses":[{response}]}}"#)).unwrap();
    let server = Server::start(script.clone()).unwrap();
    let settings = settings(&server);
    let real = lines(&AnthropicClient::new(settings).unwrap()).await;
    let played = lines(&ScriptModel::new(script)).await;
    assert_eq!(played, real, "for {response}");
}

#[tokio::test]
async fn responses_are_the_same() {
    check(r#"{"blocks":[{"text":"héllo"},{"tool":"Read","input":{"b":1,"a":{"c":[]}}}],"delta_chars":3}"#)
        .await;
    check(r#"{"blocks":[{"thinking":"hm","signature":"s"},{"redacted_thinking":"x"},{"raw":{"type":"new","a":1}}]}"#).await;
    check(r#"{"blocks":[{"tool":"Read","input_json":"{\"fi"}]}"#).await;
    check(r#"{"blocks":[],"stop_reason":"refusal","usage":{"output_tokens":7}}"#).await;
    check(r#"{"blocks":[{"text":"a"}],"stop_reason":"pause_turn","model":"other"}"#).await;
    check(r#"{"blocks":[{"text":"a"}],"when":{"model":"any","contains":"hi"}}"#).await;
    check(
        r#"{"blocks":[],"notes":{"refusal":{"category":"bio","explanation":"no"},"cleared":{"tool_results":3,"tokens":9},
            "thinking_dropped":{"paths":["messages.1.content.0"],"reason":"r"}}}"#,
    )
    .await;
    check(r#"{"blocks":[{"text":"a","delay_ms":5}],"delay_ms":5,"delta_delay_ms":5,"end_delay_ms":5}"#).await;
}

#[tokio::test]
async fn faults_are_the_same() {
    for code in [400, 401, 402, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529] {
        check(&format!(r#"{{"fault":{{"status":{{"code":{code}}}}}}}"#)).await;
    }
    check(r#"{"fault":{"status":{"code":429,"headers":{"retry-after":"7","x-should-retry":"false"}}}}"#)
        .await;
    check(r#"{"fault":{"status":{"code":502,"body":"<html>Bad Gateway</html>"}}}"#).await;
    check(r#"{"fault":"refuse"}"#).await;
    for class in [
        "overflow",
        "media",
        "rate_limited",
        "quota",
        "overloaded",
        "server",
        "auth",
        "forbidden",
        "not_found",
        "bad_request",
        "binding",
    ] {
        check(&format!(r#"{{"fault":{{"failure":{{"class":"{class}","retry_after_ms":5}}}}}}"#)).await;
    }
    check(r#"{"fault":{"failure":{"class":"overflow","needed":9,"limit":8}}}"#).await;
    check(r#"{"fault":{"failure":{"class":"quota","resets_at":1763200000}}}"#).await;
    check(r#"{"fault":{"failure":{"class":"binding","culprit":[3,1]}}}"#).await;
    for fault in [
        r#"{"error":{"type":"overloaded_error","message":"busy","after_events":0}}"#,
        r#"{"error":{"type":"api_error","message":"oh","after_events":4}}"#,
        r#"{"cut":{"after_events":0}}"#,
        r#"{"cut":{"after_events":3}}"#,
        r#"{"cut":{"after_bytes":0}}"#,
        r#"{"cut":{"after_bytes":700}}"#,
        r#"{"malformed":{"after_events":0}}"#,
        r#"{"malformed":{"after_events":3}}"#,
    ] {
        check(&format!(r#"{{"blocks":[{{"text":"abc"}},{{"text":"def"}}],"fault":{fault}}}"#)).await;
    }
}

/// A stall ends with the watchdog, which the script plays with its default limits and the client here with short ones.
#[tokio::test]
async fn a_stall_ends_the_same_way() {
    for ping in ["", r#","ping_ms":10"#] {
        let script = format!(
            r#"{{"responses":[{{"blocks":[{{"text":"a"}}],"fault":{{"stall":{{"after_events":3{ping}}}}}}}]}}"#
        );
        let script = Script::parse(&script).unwrap();
        let server = Server::start(script.clone()).unwrap();
        let watchdog = WatchdogLimits {
            bytes: Some(Duration::from_millis(300)),
            events: Some(Duration::from_millis(450)),
        };
        let real =
            lines(&AnthropicClient::new(AnthropicSettings { watchdog, ..settings(&server) }).unwrap()).await;
        tokio::time::pause();
        let played = lines(&ScriptModel::new(script)).await;
        tokio::time::resume();
        assert_eq!(played, real);
        assert!(real.last().unwrap().starts_with("failed Stalled"), "{real:?}");
    }
}
