//! Thinking that is bound to its prefix, through the real client: what a rewrite of history may do and what not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use futures_util::StreamExt as _;
use windlass_models::{AnthropicClient, AnthropicSettings};
use windlass_ports::ModelClient;
use windlass_protocol::{
    Block, Failure, FailureClass, Message, MessageId, ModelEvent, ModelNote, ModelRequest, Origin,
    RequestThinking, Secret,
};
use windlass_testkit::{Script, Server, ServerBuilder};

/// Binds thinking, and its client sends no control of its own for models that are not in its table.
const UNKNOWN: &str = "some-model";
const BINDING: &str = "claude-opus-5-5";

const SCRIPT: &str = r#"{"responses":[
    {"blocks":[{"thinking":"one"},{"tool":"Read","input":{"n":1}}]},
    {"blocks":[{"thinking":"two"},{"redacted_thinking":"x"},{"tool":"Read","input":{"n":2}}]},
    {"blocks":[{"thinking":"three"},{"text":"done"}],"repeat":9}]}"#;

fn server() -> ServerBuilder {
    Server::builder(Script::parse(SCRIPT).unwrap()).bind_thinking()
}

/// A conversation that goes on with every answer.
struct Conversation {
    client: AnthropicClient,
    request: ModelRequest,
    messages: Vec<Message>,
}

impl Conversation {
    fn new(server: &Server, model: &str) -> Self {
        let settings = AnthropicSettings {
            base_url: server.url(),
            api_key: Some(Secret::new("k")),
            should_use_environment_proxies: false,
            ..AnthropicSettings::default()
        };
        let request = ModelRequest {
            model: model.into(),
            system: "Be brief.".into(),
            output_tokens_max: 1000,
            thinking: RequestThinking::Adaptive { display: None },
            ..ModelRequest::default()
        };
        let prompt = Message::user(MessageId(0), Origin::Prompt, vec![Block::text("hi")]);
        Self { client: AnthropicClient::new(settings).unwrap(), request, messages: vec![prompt] }
    }

    /// Asks, and takes the answer and a result for each call into the conversation.
    async fn ask(&mut self) -> Result<Vec<ModelNote>, Failure> {
        let transcript = self.messages.iter().cloned().map(Arc::new).collect();
        let last = self.messages.len().saturating_sub(1);
        let request = ModelRequest { transcript, breakpoints: vec![last], ..self.request.clone() };
        let events: Vec<_> = self.client.stream(Arc::new(request)).collect().await;
        let mut blocks = Vec::new();
        let mut notes = Vec::new();
        for event in events {
            match event {
                ModelEvent::Block { block, .. } => blocks.push(block),
                ModelEvent::Note(note) => notes.push(note),
                ModelEvent::Failed(failure) => return Err(*failure),
                _ => {}
            }
        }
        let calls: Vec<_> =
            blocks.iter().filter_map(|block| Some(block.as_tool_use()?.id.to_string())).collect();
        let id = |n: usize| MessageId(n as u64);
        self.messages.push(Message::assistant(id(self.messages.len()), self.request.model.clone(), blocks));
        let results =
            calls.iter().map(|call| Block::tool_result(call, &[Block::text("fine")], false)).collect();
        self.messages.push(Message::user(id(self.messages.len()), Origin::Prompt, results));
        Ok(notes)
    }

    /// Two rounds, after which a request replays three blocks of thinking.
    async fn after_two_rounds(server: &Server, model: &str) -> Self {
        let mut conversation = Self::new(server, model);
        for _ in 0..2 {
            assert_eq!(conversation.ask().await.unwrap(), []);
        }
        conversation
    }

    fn drop_blocks(&mut self, message: usize, gone: impl Fn(&str) -> bool) {
        self.messages[message].blocks.retain(|block| !gone(block.json()));
    }

    fn replace(&mut self, message: usize, block: usize, json: &str) {
        self.messages[message].blocks[block] = Block::from_json(json).unwrap();
    }
}

fn is_thinking(json: &str) -> bool {
    json.contains("\"thinking\"") || json.contains("redacted_thinking")
}

/// What a change before the third request comes to: `ok`, or the place that is refused.
async fn check(change: impl FnOnce(&mut Conversation), expected: &str) {
    let server = server().start().unwrap();
    let mut conversation = Conversation::after_two_rounds(&server, UNKNOWN).await;
    change(&mut conversation);
    let seen = match conversation.ask().await {
        Ok(_) => "ok".to_owned(),
        Err(failure) => {
            assert_eq!(failure.class, FailureClass::Binding, "{}", failure.message);
            let place = failure.culprit.unwrap();
            assert!(
                failure.message.contains("Invalid `signature` in `thinking` block"),
                "{}",
                failure.message
            );
            assert_eq!(server.refusals().len(), 1);
            format!("{}.{}", place.message, place.block.unwrap())
        }
    };
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_keeps_thinking_valid() {
    check(|_| (), "ok").await;
    check(|now| now.request.output_tokens_max = 7, "ok").await;
    check(|now| now.drop_blocks(1, is_thinking), "ok").await;
    let drop_all = |now: &mut Conversation| (1..4).for_each(|message| now.drop_blocks(message, is_thinking));
    check(drop_all, "ok").await;
    let rewritten_without = |now: &mut Conversation| {
        drop_all(now);
        now.replace(0, 0, r#"{"type":"text","text":"Summary."}"#);
    };
    check(rewritten_without, "ok").await;
}

#[tokio::test]
async fn what_makes_thinking_invalid() {
    check(|now| now.request.system = "Be long.".into(), "1.0").await;
    check(|now| now.replace(0, 0, r#"{"type":"text","text":"ho"}"#), "1.0").await;
    let cleared = |now: &mut Conversation| {
        let call = now.messages[1].blocks[1].as_tool_use().unwrap().id.to_string();
        now.messages[2].blocks = vec![Block::tool_result(&call, &[Block::text("[cleared]")], false)];
    };
    check(cleared, "3.0").await;
    let middle = |now: &mut Conversation| now.drop_blocks(3, |json| json.contains("\"two\""));
    check(middle, "3.0").await;
    let changed = |now: &mut Conversation| {
        let json = now.messages[1].blocks[0].json().replace("one", "won");
        now.replace(1, 0, &json);
    };
    check(changed, "1.0").await;
    check(|now| now.request.model = "other-model".into(), "1.0").await;
}

#[tokio::test]
async fn a_client_that_asks_for_it_has_blocks_dropped() {
    let server = server().start().unwrap();
    let mut conversation = Conversation::after_two_rounds(&server, BINDING).await;
    let call = conversation.messages[1].blocks[1].as_tool_use().unwrap().id.to_string();
    conversation.messages[2].blocks = vec![Block::tool_result(&call, &[Block::text("[cleared]")], false)];
    let dropped = ModelNote::ThinkingDropped { blocks: 2, reason: "prefix_binding_mismatch".into() };
    assert_eq!(conversation.ask().await.unwrap(), [dropped]);
    assert!(server.refusals().is_empty());
    let last = server.exchanges().pop().unwrap();
    assert_eq!(last.betas(), ["thinking-binding-controls-2026-08-01"]);
}

#[tokio::test]
async fn an_endpoint_without_the_control_is_asked_again_without_it() {
    let server = server().refuse_beta("thinking-binding-controls-2026-08-01").start().unwrap();
    let mut conversation = Conversation::new(&server, BINDING);
    conversation.ask().await.unwrap();
    let refused = conversation.ask().await.unwrap_err();
    assert_eq!((refused.class, refused.should_retry), (FailureClass::BadRequest, Some(true)));
    assert_eq!(conversation.ask().await.unwrap(), []);
    let last = server.exchanges().pop().unwrap();
    assert_eq!(last.json()["thinking"].to_string(), r#"{"type":"adaptive"}"#);
    assert!(last.betas().is_empty());
}

/// A pause puts two answers into one message: both keep their thinking.
#[tokio::test]
async fn a_paused_answer_goes_on_behind_its_own_blocks() {
    let script = r#"{"responses":[
        {"blocks":[{"thinking":"one"},{"text":"wait"}],"stop_reason":"pause_turn"},
        {"blocks":[{"thinking":"two"},{"text":"done"}]},
        {"blocks":[{"text":"bye"}]}]}"#;
    let server = Server::builder(Script::parse(script).unwrap()).bind_thinking().start().unwrap();
    let mut conversation = Conversation::new(&server, UNKNOWN);
    for _ in 0..2 {
        conversation.ask().await.unwrap();
        let empty = conversation.messages.pop().unwrap();
        assert!(empty.blocks.is_empty());
    }
    let refused = conversation.ask().await.unwrap_err();
    assert!(refused.message.contains("prefill"), "{}", refused.message);
    let more = Message::user(MessageId(9), Origin::Prompt, vec![Block::text("more")]);
    conversation.messages.push(more);
    conversation.ask().await.unwrap();
}
