//! What the server does besides playing one script: windows, counts, answers that come whole, other models, limits.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use futures_util::StreamExt as _;
use windlass_models::{AnthropicClient, AnthropicSettings, ScriptModel};
use windlass_ports::ModelClient;
use windlass_protocol::{
    Block, ContextEdits, Delivery, Effort, FailureClass, Message, MessageId, ModelEvent, ModelNote,
    ModelRequest, Origin, Overflow, Secret, Usage,
};
use windlass_testkit::{Script, Server};

const HELLO: &str = r#"{"responses":[{"blocks":[{"text":"hello"}]}],"then":"repeat"}"#;

fn script(json: &str) -> Script {
    Script::parse(json).unwrap()
}

fn client(server: &Server) -> AnthropicClient {
    AnthropicClient::new(AnthropicSettings {
        base_url: server.url(),
        api_key: Some(Secret::new("k")),
        should_use_environment_proxies: false,
        ..AnthropicSettings::default()
    })
    .unwrap()
}

fn request(texts: &[&str]) -> ModelRequest {
    let message = |text: &&str| Message::user(MessageId(0), Origin::Prompt, vec![Block::text(text)]);
    ModelRequest {
        model: "some-model".into(),
        system: "Be brief.".into(),
        transcript: texts.iter().map(message).map(Arc::new).collect(),
        output_tokens_max: 1000,
        ..ModelRequest::default()
    }
}

async fn ask(client: &dyn ModelClient, request: ModelRequest) -> Vec<ModelEvent> {
    client.stream(Arc::new(request)).collect().await
}

async fn usage(client: &dyn ModelClient, request: ModelRequest) -> Usage {
    let events = ask(client, request).await;
    let Some(ModelEvent::Ended { usage, .. }) = events.last() else { panic!("{events:?}") };
    (**usage).clone()
}

#[tokio::test]
async fn a_prompt_over_the_window_is_refused_with_its_numbers() {
    let server = Server::builder(script(HELLO)).window_tokens(1000).start().unwrap();
    let client = client(&server);
    assert!(matches!(ask(&client, request(&["hi"])).await.last(), Some(ModelEvent::Ended { .. })));
    let events = ask(&client, request(&[&"x".repeat(8000)])).await;
    let Some(ModelEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
    assert_eq!(failure.class, FailureClass::Overflow, "{}", failure.message);
    let Some(Overflow { needed, limit: 1000 }) = failure.overflow else { panic!("{failure:?}") };
    assert!((2000..2100).contains(&needed), "{needed}");
    assert_eq!((server.turns_played(), server.refusals().len()), (1, 1));
}

#[tokio::test]
async fn usage_follows_the_size_of_requests_and_what_they_share() {
    let server = Server::builder(script(HELLO)).count_tokens().start().unwrap();
    let client = client(&server);
    let long = "x".repeat(4000);
    let first = usage(&client, request(&[&long])).await;
    assert_eq!(first.cache_read_input_tokens, 0);
    assert!((1000..1100).contains(&first.cache_creation_input_tokens), "{first:?}");
    let second = usage(&client, request(&[&long, "more"])).await;
    assert!((1000..1100).contains(&second.cache_read_input_tokens), "{second:?}");
    assert!(second.cache_creation_input_tokens < 30, "{second:?}");
    let prompts: Vec<_> = server.exchanges().iter().map(windlass_testkit::Exchange::prompt).collect();
    assert!(prompts[1].starts_with(prompts[0].trim_end_matches([']', '}'])), "{prompts:?}");
    let changed = usage(&client, request(&["other", "more"])).await;
    assert!(changed.cache_read_input_tokens < 40, "{changed:?}");
}

/// A conversation of calls with results of 4,000 bytes.
fn rounds(count: u64) -> ModelRequest {
    let mut messages = vec![Message::user(MessageId(0), Origin::Prompt, vec![Block::text("hi")])];
    for n in 0..count {
        let call = format!(r#"{{"type":"tool_use","id":"t{n}","name":"Read","input":{{}}}}"#);
        let call = Block::from_json(&call).unwrap();
        messages.push(Message::assistant(MessageId(2 * n + 1), "some-model".into(), vec![call]));
        let result = Block::tool_result(&format!("t{n}"), &[Block::text(&"x".repeat(4000))], false);
        messages.push(Message::user(MessageId(2 * n + 2), Origin::Prompt, vec![result]));
    }
    ModelRequest { transcript: messages.into_iter().map(Arc::new).collect(), ..request(&[]) }
}

#[tokio::test]
async fn old_results_are_cleared_on_request() {
    let server = Server::builder(script(HELLO)).window_tokens(5_000).start().unwrap();
    let client = client(&server);
    let cleared = |count: u64, clear_at_least_tokens: u64| {
        let edits = ContextEdits { trigger_tokens: 3_000, keep_results: 2, clear_at_least_tokens };
        let client = client.clone();
        async move {
            let events = ask(&client, ModelRequest { edits: Some(edits), ..rounds(count) }).await;
            match events.last() {
                Some(ModelEvent::Failed(failure)) => return format!("{:?}", failure.class),
                last => assert!(matches!(last, Some(ModelEvent::Ended { .. })), "{events:?}"),
            }
            let note = events.iter().find_map(|event| match event {
                ModelEvent::Note(ModelNote::Cleared { tool_results, tokens, .. }) => {
                    Some(format!("{tool_results} results, {} k", tokens / 1000))
                }
                _ => None,
            });
            note.unwrap_or_default()
        }
    };
    assert_eq!(cleared(2, 100).await, "");
    assert_eq!(cleared(8, 100).await, "6 results, 5 k");
    assert_eq!(cleared(4, 100_000).await, "");
    assert_eq!(cleared(8, 100_000).await, "Overflow");
}

#[tokio::test]
async fn given_usage_wins_over_counts() {
    let given =
        r#"{"responses":[{"blocks":[],"usage":{"input_tokens":9,"cache_read_input_tokens":190000}}]}"#;
    let server = Server::builder(script(given)).count_tokens().start().unwrap();
    let usage = usage(&client(&server), request(&["hi"])).await;
    assert_eq!((usage.input_tokens, usage.cache_read_input_tokens), (9, 190_000));
}

/// Everything a script can say comes out whole as it does inside the process.
#[tokio::test]
async fn answers_that_come_whole() {
    let whole = || ModelRequest { delivery: Delivery::Whole, ..request(&["hi"]) };
    for response in [
        r#"{"blocks":[{"thinking":"h","signature":"s"},{"text":"héllo"},{"tool":"Read","input":{"b":1}}]}"#,
        r#"{"blocks":[{"redacted_thinking":"x"},{"raw":{"type":"new","a":[1]}}],"stop_reason":"max_tokens"}"#,
        r#"{"blocks":[],"notes":{"refusal":{"category":"bio"},"cleared":{"tool_results":1}}}"#,
        r#"{"blocks":[{"text":"a"}],"fault":{"cut":{"after_events":3}}}"#,
        r#"{"blocks":[{"text":"a"}],"fault":{"malformed":{}}}"#,
        r#"{"fault":{"error":{"type":"overloaded_error","message":"busy"}}}"#,
        r#"{"fault":{"failure":{"class":"quota","resets_at":1763200000}}}"#,
        r#"{"fault":"refuse"}"#,
    ] {
        let script = script(&format!(r#"{{"responses":[{response}]}}"#));
        let server = Server::start(script.clone()).unwrap();
        let real = ask(&client(&server), whole()).await;
        let played = ask(&ScriptModel::new(script), whole()).await;
        let lines = |events: &[ModelEvent]| -> Vec<String> {
            let line = |event: &ModelEvent| match event {
                ModelEvent::Failed(failure) => format!("failed {:?} {:?}", failure.class, failure.resets_at),
                event => format!("{event:?}"),
            };
            events.iter().map(line).collect()
        };
        assert_eq!(lines(&played), lines(&real), "for {response}");
        assert!(!server.exchanges()[0].is_streamed);
    }
}

#[tokio::test]
async fn each_exchange_says_whether_it_was_streamed() {
    let server = Server::start(script(HELLO)).unwrap();
    let client = client(&server);
    for delivery in [Delivery::Streamed, Delivery::Whole, Delivery::Streamed] {
        ask(&client, ModelRequest { delivery, ..request(&["hi"]) }).await;
    }
    let streamed: Vec<_> = server.exchanges().iter().map(|exchange| exchange.is_streamed).collect();
    assert_eq!(streamed, [true, false, true]);
}

#[tokio::test]
async fn each_model_may_have_its_own_script() {
    let small = r#"{"responses":[{"blocks":[{"text":"small"}]}]}"#;
    let server = Server::builder(script(HELLO)).script_for("haiku", script(small)).start().unwrap();
    let client = client(&server);
    let text = |events: &[ModelEvent]| {
        let text = |event: &ModelEvent| match event {
            ModelEvent::Block { block, .. } => block.as_text().map(str::to_owned),
            _ => None,
        };
        events.iter().find_map(text).unwrap_or_default()
    };
    let to = |model: &str| ModelRequest { model: model.into(), ..request(&["hi"]) };
    assert_eq!(text(&ask(&client, to("claude-opus-5")).await), "hello");
    assert_eq!(text(&ask(&client, to("claude-haiku-5-5")).await), "small");
    assert_eq!(text(&ask(&client, to("claude-opus-5")).await), "hello");
    assert_eq!(server.turns_played(), 2);
    let models: Vec<_> = server.exchanges().iter().map(windlass_testkit::Exchange::model).collect();
    assert_eq!(models, ["claude-opus-5", "claude-haiku-5-5", "claude-opus-5"]);
    let events = ask(&client, to("claude-haiku-5-5")).await;
    assert!(matches!(events.last(), Some(ModelEvent::Failed(_))), "its script is used up");
}

#[tokio::test]
async fn limits_stand_in_the_head_of_every_answer() {
    let limited = r#"{"responses":[{"fault":{"failure":{"class":"rate_limited"}}}]}"#;
    let server = Server::builder(script(limited))
        .header("anthropic-ratelimit-tokens-remaining", "0")
        .header("anthropic-ratelimit-tokens-reset", "2199-01-01T00:00:00Z")
        .start()
        .unwrap();
    let events = ask(&client(&server), request(&["hi"])).await;
    let Some(ModelEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
    assert_eq!(failure.class, FailureClass::RateLimited);
    assert!(failure.retry_after_ms.is_some_and(|wait| wait > 1_000_000_000), "{failure:?}");
}

#[tokio::test]
async fn a_field_that_the_endpoint_does_not_know_is_left_out_next_time() {
    let server = Server::builder(script(HELLO)).refuse_field("output_config").start().unwrap();
    let client = client(&server);
    let with_effort = || ModelRequest { effort: Some(Effort::High), ..request(&["hi"]) };
    let events = ask(&client, with_effort()).await;
    let Some(ModelEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
    assert_eq!(failure.should_retry, Some(true));
    assert!(matches!(ask(&client, with_effort()).await.last(), Some(ModelEvent::Ended { .. })));
}
