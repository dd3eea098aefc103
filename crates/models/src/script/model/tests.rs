use futures_util::StreamExt as _;
use tokio::time::Instant;
use windlass_protocol::{Block, Message, MessageId, Origin, StopReason, Transcript};

use super::*;

fn request(messages: &[(Role, Block)]) -> Arc<ModelRequest> {
    let message = |(role, block): &(Role, Block)| {
        Arc::new(Message::new(MessageId(1), *role, Origin::Prompt, vec![block.clone()]))
    };
    Arc::new(ModelRequest {
        model: "any".into(),
        system: "".into(),
        tools: [].into(),
        transcript: messages.iter().map(message).collect::<Transcript>(),
        breakpoints: vec![],
        output_tokens_max: 100,
        ..ModelRequest::default()
    })
}

fn prompt(text: &str) -> Arc<ModelRequest> {
    request(&[(Role::User, Block::text(text))])
}

fn model(responses: &str) -> ScriptModel {
    ScriptModel::new(Script::parse(&format!(r#"{{"responses":[{responses}]}}"#)).unwrap())
}

/// What a request comes to: the texts and tools of its blocks, then how it ended.
async fn outcome(model: &ScriptModel, request: Arc<ModelRequest>) -> String {
    let events: Vec<_> = model.stream(request).collect().await;
    let last = events.len() - 1;
    let mut words = Vec::new();
    for (index, event) in events.iter().enumerate() {
        match event {
            ModelEvent::Block { block, .. } => words.push(match block.as_tool_use() {
                Some(tool) => format!("{}{}", tool.name, tool.input.json()),
                None => block.as_text().map_or_else(|| block.json().to_owned(), str::to_owned),
            }),
            ModelEvent::Ended { stop, .. } => words.push(format!("= {}", stop.name())),
            ModelEvent::Failed(failure) => words.push(format!("= {:?}", failure.class)),
            _ => continue,
        }
        if words.last().is_some_and(|word| word.starts_with("= ")) {
            assert_eq!(index, last, "nothing follows the end");
        }
    }
    words.join(" ")
}

async fn check(response: &str, expected: &str) {
    assert_eq!(outcome(&model(response), prompt("hi")).await, expected, "for {response}");
}

#[tokio::test(start_paused = true)]
async fn responses_and_faults_come_out_as_from_a_real_model() {
    check(
        r#"{"blocks":[{"text":"Looking."},{"tool":"Read","input":{"file_path":"a"}}]}"#,
        r#"Looking. Read{"file_path":"a"} = tool_use"#,
    )
    .await;
    check(r#"{"blocks":[{"tool":"Read","input_json":"{\"fi"}]}"#, r#"Read{"unparsed":"{\"fi"} = tool_use"#)
        .await;
    check(
        r#"{"blocks":[{"thinking":"hm","signature":"s"},{"raw":{"type":"x","y":1}}]}"#,
        r#"{"type":"thinking","thinking":"hm","signature":"s"} {"type":"x","y":1} = end_turn"#,
    )
    .await;
    check(r#"{"blocks":[],"stop_reason":"refusal"}"#, "= refusal").await;
    check(r#"{"fault":{"status":{"code":529}}}"#, "= Overloaded").await;
    check(r#"{"fault":{"status":{"code":401}}}"#, "= Auth").await;
    check(r#"{"fault":"refuse"}"#, "= Cut").await;
    let text = |fault: &str| format!(r#"{{"blocks":[{{"text":"a"}},{{"text":"b"}}],"fault":{fault}}}"#);
    check(&text(r#"{"error":{"type":"overloaded_error","after_events":4}}"#), "a = Overloaded").await;
    check(&text(r#"{"cut":{"after_events":5}}"#), "a = Cut").await;
    check(&text(r#"{"cut":{"after_bytes":0}}"#), "= Cut").await;
    check(&text(r#"{"cut":{"after_events":0}}"#), "= Cut").await;
    check(&text(r#"{"malformed":{"after_events":4}}"#), "a = Malformed").await;
}

#[tokio::test(start_paused = true)]
async fn a_stall_lasts_until_the_watchdog() {
    for (stall, seconds) in [(r#"{"after_events":4}"#, 90), (r#"{"after_events":4,"ping_ms":1000}"#, 300)] {
        let began = Instant::now();
        check(&format!(r#"{{"blocks":[{{"text":"a"}}],"fault":{{"stall":{stall}}}}}"#), "a = Stalled").await;
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn waits_add_up() {
    let began = Instant::now();
    check(r#"{"blocks":[{"text":"abc","delay_ms":100}],"delta_chars":1,"delta_delay_ms":10,"block_delay_ms":1000,
        "end_delay_ms":10000,"delay_ms":100000}"#, "abc = end_turn").await;
    assert_eq!(began.elapsed().as_millis(), 111_130);
}

#[tokio::test]
async fn requests_get_responses_in_order_and_clones_share_the_place() {
    let first = model(r#"{"fault":{"status":{"code":500}}},{"blocks":[{"text":"b"}],"repeat":2}"#);
    let second = first.clone();
    assert_eq!(outcome(&first, prompt("hi")).await, "= Server");
    assert_eq!(outcome(&second, prompt("hi")).await, "b = end_turn");
    assert_eq!(outcome(&first, prompt("hi")).await, "b = end_turn");
    let events: Vec<_> = second.stream(prompt("hi")).collect().await;
    let [ModelEvent::Failed(failure)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(failure.class, FailureClass::BadRequest);
    assert_eq!(
        failure.message,
        "The request does not match the script: the script has responses for 3 requests, and this is request 4. Add a response or \"then\": \"repeat\"."
    );
}

#[tokio::test]
async fn a_stream_that_is_not_polled_takes_no_turn() {
    let model = model(r#"{"blocks":[{"text":"a"}]}"#);
    drop(model.stream(prompt("hi")));
    assert_eq!(model.played_count(), 0);
    assert_eq!(outcome(&model, prompt("hi")).await, "a = end_turn");
    assert_eq!(model.played_count(), 1);
}

#[tokio::test]
async fn an_unexpected_request_is_told_what_was_expected_and_what_came() {
    let result = Block::tool_result("t", &[Block::text("four lines")], false);
    let request = request(&[
        (Role::User, Block::text("old")),
        (Role::Assistant, Block::text("x")),
        (Role::User, result),
        (Role::User, Block::text("and hurry")),
    ]);
    let script = |text: &str| model(&format!(r#"{{"blocks":[],"expect":{{"contains":"{text}"}}}}"#));
    assert_eq!(outcome(&script("four"), request.clone()).await, "= end_turn");
    assert_eq!(outcome(&script("hurry"), request.clone()).await, "= end_turn");
    let events: Vec<_> = script("old").stream(request).collect().await;
    let [ModelEvent::Failed(failure)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(failure.class, FailureClass::BadRequest);
    assert_eq!(
        failure.message,
        "The request does not match the script: request 1: the script expects the last user message to contain \"old\", \
         but it is \"four lines\\nand hurry\"."
    );
}

#[tokio::test]
async fn usage_and_model_are_reported() {
    let events: Vec<_> = model(r#"{"blocks":[{"text":"a"}]}"#).stream(prompt("hi")).collect().await;
    let Some(ModelEvent::Started { model, usage, .. }) = events.first() else { panic!("{events:?}") };
    assert_eq!((&**model, usage.cache_creation_input_tokens), ("scripted", 1_800));
    let Some(ModelEvent::Ended { stop: StopReason::EndTurn, usage }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!((usage.input_tokens, usage.output_tokens), (4, 5));
}

fn asks(model: &str, text: &str) -> Arc<ModelRequest> {
    let request = prompt(text);
    Arc::new(ModelRequest { model: model.into(), ..(*request).clone() })
}

#[tokio::test]
async fn responses_with_a_condition_answer_out_of_turn() {
    let script = r#"{"responses":[
        {"when":{"contains":"summarise"},"blocks":[{"text":"short"},{"tool":"Read"}],"repeat":2},
        {"blocks":[{"tool":"Read"}]},
        {"when":{"model":"haiku"},"model":"claude-haiku-5-5","blocks":[{"text":"label"}]},
        {"expect":{"model":"opus"},"blocks":[{"text":"done"}]}]}"#;
    let model = ScriptModel::new(Script::parse(script).unwrap());
    let seen = |model: &str, text: &str| asks(model, text);
    assert_eq!(outcome(&model, seen("opus", "now summarise")).await, "short Read{} = tool_use");
    assert_eq!(outcome(&model, seen("opus", "hi")).await, "Read{} = tool_use");
    let events: Vec<_> = model.stream(seen("claude-haiku", "x")).collect().await;
    let Some(ModelEvent::Started { model: named, .. }) = events.first() else { panic!("{events:?}") };
    assert_eq!(&**named, "claude-haiku-5-5");
    let events: Vec<_> = model.stream(seen("opus", "summarise again")).collect().await;
    let ids = format!("{events:?}");
    assert!(ids.contains("toolu_script_w1_2_2"), "{ids}");
    let wrong = outcome(&model.clone(), seen("sonnet", "go on")).await;
    assert_eq!(wrong, "= BadRequest");
    assert_eq!(model.played_count(), 5);
}

#[tokio::test]
async fn another_model_than_expected_is_named() {
    let model = model(r#"{"blocks":[],"expect":{"model":"opus"}}"#);
    let events: Vec<_> = model.stream(asks("claude-haiku", "hi")).collect().await;
    let [ModelEvent::Failed(failure)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        failure.message,
        "The request does not match the script: request 1: the script expects the model \"opus\", but the request is for \
         \"claude-haiku\"."
    );
}

/// Every failure by its class comes out as that class, with its numbers.
#[tokio::test]
async fn failures_by_class() {
    use FailureClass::*;
    let classes = [
        ("overflow", Overflow),
        ("media", Media),
        ("rate_limited", RateLimited),
        ("quota", Quota),
        ("overloaded", Overloaded),
        ("server", Server),
        ("auth", Auth),
        ("forbidden", Forbidden),
        ("not_found", NotFound),
        ("bad_request", BadRequest),
        ("binding", Binding),
    ];
    for (name, class) in classes {
        let failure =
            failure(&format!(r#"{{"class":"{name}","message":"And so on.","should_retry":true}}"#)).await;
        assert_eq!((failure.class, failure.should_retry), (class, Some(true)), "{name}: {}", failure.message);
        assert!(failure.message.contains("And so on."), "{}", failure.message);
    }
    let overflow = failure(r#"{"class":"overflow","needed":210,"limit":200}"#).await.overflow.unwrap();
    assert_eq!((overflow.needed, overflow.limit), (210, 200));
    let quota = failure(r#"{"class":"quota","resets_at":1763200000}"#).await;
    assert_eq!(quota.resets_at, Some(1_763_200_000));
    let soon = failure(r#"{"class":"quota","resets_in_s":3600}"#).await.resets_at.unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!((now + 3_000..=now + 3_600).contains(&soon), "{soon}");
    let limited = failure(r#"{"class":"rate_limited","retry_after_ms":20}"#).await;
    assert_eq!(limited.retry_after_ms, Some(20));
    let bound = failure(r#"{"class":"binding","culprit":[3,1]}"#).await.culprit.unwrap();
    assert_eq!((bound.message, bound.block), (3, Some(1)));
}

async fn failure(fields: &str) -> Failure {
    let events: Vec<_> =
        model(&format!(r#"{{"fault":{{"failure":{fields}}}}}"#)).stream(prompt("hi")).collect().await;
    let [ModelEvent::Failed(failure)] = &events[..] else { panic!("{events:?}") };
    (**failure).clone()
}

#[tokio::test]
async fn stop_reasons_and_notes_come_through() {
    for stop in ["max_tokens", "pause_turn", "model_context_window_exceeded", "news"] {
        check(&format!(r#"{{"blocks":[{{"text":"a"}}],"stop_reason":"{stop}"}}"#), &format!("a = {stop}"))
            .await;
    }
    let notes = r#"{"blocks":[],"notes":{"cleared":{"tool_results":2,"tokens":9},"refusal":{"category":"bio"},
        "thinking_dropped":{"paths":["messages.1.content.0"],"reason":"r"}}}"#;
    for delivery in [windlass_protocol::Delivery::Streamed, windlass_protocol::Delivery::Whole] {
        let request = Arc::new(ModelRequest { delivery, ..(*prompt("hi")).clone() });
        let events: Vec<_> = model(notes).stream(request).collect().await;
        let told: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Note(note) => Some(format!("{note:?}")),
                ModelEvent::Ended { stop, .. } => Some(stop.name().to_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(
            told,
            [
                r#"ThinkingDropped { blocks: 1, reason: "r" }"#,
                r#"Refusal { category: Some("bio"), explanation: None }"#,
                "Cleared { tool_results: 2, thinking_turns: 0, tokens: 9 }",
                "refusal",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_asked_for_whole() {
    let whole = |response: &str| {
        let model = model(response);
        let request = Arc::new(ModelRequest {
            delivery: windlass_protocol::Delivery::Whole,
            ..(*prompt("hi")).clone()
        });
        async move { outcome(&model, request).await }
    };
    let began = Instant::now();
    let response = r#"{"blocks":[{"text":"abc"},{"tool":"Read","input":{"b":1}},{"thinking":"h"}],"delta_delay_ms":10,"delta_chars":1,"delay_ms":5}"#;
    assert_eq!(
        whole(response).await,
        r#"abc Read{"b":1} {"type":"thinking","thinking":"h","signature":"script"} = tool_use"#
    );
    assert!(began.elapsed() >= Duration::from_millis(105), "{:?}", began.elapsed());
    let broken = |fault: &str| format!(r#"{{"blocks":[{{"text":"a"}}],"fault":{fault}}}"#);
    let cut = r#"{"blocks":[{"tool":"Read","input_json":"{\"fi"}]}"#;
    assert_eq!(whole(cut).await, r#"Read{"unparsed":"{\"fi"} = tool_use"#);
    assert_eq!(whole(&broken(r#"{"cut":{"after_events":1}}"#)).await, "= Cut");
    assert_eq!(whole(&broken(r#"{"stall":{}}"#)).await, "= Stalled");
    assert_eq!(whole(&broken(r#"{"malformed":{}}"#)).await, "= Malformed");
    assert_eq!(whole(&broken(r#"{"error":{"type":"overloaded_error"}}"#)).await, "= Overloaded");
    assert_eq!(whole(&broken(r#""refuse""#)).await, "= Cut");
    assert_eq!(whole(&broken(r#"{"failure":{"class":"overflow"}}"#)).await, "= Overflow");
}
