use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_protocol::{
    Block, Message, MessageId, ModelRequest, Origin, RawValue, Role, ToolSpec, Transcript,
};

use windlass_protocol::{ContextEdits, Delivery, Effort, RequestThinking, TaskBudget};

use super::{BodyBuilder, OptionalFields, RequestBody};

fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap().into()
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "does \"it\"".into(),
        input_schema: raw(r#"{"type": "object", "z": 1, "a": 2}"#),
        result_chars_max: None,
        profile: windlass_protocol::ToolProfile::named(name),
    }
}

fn message(role: Role, blocks: Vec<Block>) -> Arc<Message> {
    Arc::new(Message::new(MessageId(0), role, Origin::Prompt, blocks))
}

fn user(text: &str) -> Arc<Message> {
    message(Role::User, vec![Block::text(text)])
}

fn thinking() -> Arc<Message> {
    let block = Block::from_json(r#"{"type":"thinking","thinking":"","signature":"s"}"#).unwrap();
    message(Role::Assistant, vec![block])
}

fn request(messages: Vec<Arc<Message>>, breakpoints: &[usize]) -> ModelRequest {
    ModelRequest {
        model: "m\"1".into(),
        system: "Be\nkind.".into(),
        tools: vec![tool("A"), tool("B")].into(),
        transcript: messages.into_iter().collect(),
        breakpoints: breakpoints.to_vec(),
        output_tokens_max: 8000,
        ..ModelRequest::default()
    }
}

fn build(builder: &BodyBuilder, request: &ModelRequest) -> RequestBody {
    builder.build(request, &OptionalFields::of(request, |_| false))
}

fn text_of(body: &RequestBody) -> String {
    let bytes: Vec<u8> = body.pieces.iter().flatten().copied().collect();
    assert_eq!(bytes.len() as u64, body.left, "the announced length is the real one");
    String::from_utf8(bytes).unwrap()
}

fn check(caching: bool, request: &ModelRequest, expected: &str) {
    assert_eq!(text_of(&build(&BodyBuilder::new(caching), request)), expected);
}

const TOOLS: &str = r#""tools":[{"name":"A","description":"does \"it\"","input_schema":{"type": "object", "z": 1, "a": 2}},{"name":"B","description":"does \"it\"","input_schema":{"type": "object", "z": 1, "a": 2}}]"#;

#[test]
fn the_bytes_of_a_request() {
    let all = request(vec![user("hi")], &[0]);
    check(
        true,
        &all,
        &format!(
            r#"{{"model":"m\"1","max_tokens":8000,"stream":true,"system":[{{"type":"text","text":"Be\nkind.","cache_control":{{"type":"ephemeral"}}}}],{TOOLS},"messages":[{{"role":"user","content":[{{"type":"text","text":"hi","cache_control":{{"type":"ephemeral"}}}}]}}]}}"#
        ),
    );
    check(
        false,
        &all,
        &format!(
            r#"{{"model":"m\"1","max_tokens":8000,"stream":true,"system":[{{"type":"text","text":"Be\nkind."}}],{TOOLS},"messages":[{{"role":"user","content":[{{"type":"text","text":"hi"}}]}}]}}"#
        ),
    );
    let bare = ModelRequest { system: " \n".into(), tools: Arc::new([]), ..request(vec![user("hi")], &[]) };
    check(
        true,
        &bare,
        r#"{"model":"m\"1","max_tokens":8000,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#,
    );
    let no_system = ModelRequest { system: "".into(), ..request(vec![], &[]) };
    let marked = TOOLS.replace("}}]", r#"},"cache_control":{"type":"ephemeral"}}]"#);
    check(
        true,
        &no_system,
        &format!(r#"{{"model":"m\"1","max_tokens":8000,"stream":true,{marked},"messages":[]}}"#),
    );
}

/// The messages that carry a marker, as `message.block` of the sent array.
fn check_marks(messages: Vec<Arc<Message>>, breakpoints: &[usize], expected: &[&str]) {
    let body = build(&BodyBuilder::new(true), &request(messages, breakpoints));
    let json: Value = serde_json::from_str(&text_of(&body)).unwrap();
    let mut seen = Vec::new();
    for (number, message) in json["messages"].as_array().unwrap().iter().enumerate() {
        for (place, block) in message["content"].as_array().unwrap().iter().enumerate() {
            if block["cache_control"] == json!({"type": "ephemeral"}) {
                seen.push(format!("{number}.{place}"));
            }
        }
    }
    assert_eq!(seen, expected);
    assert!(text_of(&body).matches("cache_control").count() <= 4);
}

#[test]
fn markers_go_where_they_may() {
    let answer = || message(Role::Assistant, vec![Block::text("a")]);
    check_marks(vec![user("1"), answer(), user("2")], &[0, 2], &["0.0", "2.0"]);
    check_marks(vec![user("1"), thinking(), user("2")], &[1, 2], &["0.0", "2.0"]);
    check_marks(vec![user("1"), user(" ")], &[1], &["0.0"]);
    check_marks(vec![thinking()], &[0], &[]);
    check_marks(vec![user("1"), thinking()], &[0, 1], &["0.0"]);
    check_marks(vec![user("1")], &[9], &[]);
    let five = || vec![user("1"), answer(), user("2"), answer(), user("3")];
    check_marks(five(), &[0, 1, 2, 3, 4], &["2.0", "3.0", "4.0"]);
    check_marks(vec![user("1"), user("2"), user("3")], &[0, 2], &["0.0", "0.2"]);
}

#[test]
fn tools_and_system_are_serialised_once() {
    let builder = BodyBuilder::new(true);
    let first = request(vec![user("1")], &[]);
    let one = builder.frozen(&first);
    let same = ModelRequest { transcript: Transcript::default(), ..first.clone() };
    assert_eq!(builder.frozen(&same).as_ptr(), one.as_ptr());
    let other = ModelRequest { system: "New.".into(), ..first.clone() };
    assert!(text_of(&build(&builder, &other)).contains("New."));
    assert!(text_of(&build(&builder, &first)).contains("kind."));
}

/// A megabyte of messages, as after 400 turns.
fn long_transcript() -> Transcript {
    let text = "line of output\n".repeat(166);
    (0..400)
        .map(|n| if n % 2 == 0 { user(&text) } else { message(Role::Assistant, vec![Block::text(&text)]) })
        .collect()
}

#[test]
fn a_long_transcript_is_sent_without_copying_it() {
    let request = ModelRequest { transcript: long_transcript(), ..request(vec![], &[396, 398]) };
    let builder = BodyBuilder::new(true);
    let body = build(&builder, &request);
    let shared = |piece: &[u8]| {
        request.transcript.segments().iter().any(|segment| {
            let range = segment.json().as_ptr_range();
            range.contains(&piece.as_ptr())
        })
    };
    let copied: usize = body.pieces.iter().filter(|piece| !shared(piece)).map(bytes::Bytes::len).sum();
    assert!(body.left > 1_000_000, "{}", body.left);
    assert!(copied < 64 * 1024, "{copied} bytes were copied");
    assert!(body.pieces.len() < 30, "{} pieces", body.pieces.len());
    serde_json::from_str::<Value>(&text_of(&body)).unwrap();

    let time = || {
        let start = Instant::now();
        build(&builder, &request);
        start.elapsed()
    };
    let best = (0..100).map(|_| time()).min().unwrap();
    assert!(best.as_micros() < 1000, "{best:?} for one body");
}

#[test]
fn a_short_request_is_one_piece() {
    let body = build(&BodyBuilder::new(true), &request(vec![user("1"), thinking(), user("2")], &[0, 2]));
    assert_eq!(body.pieces.len(), 1);
}

proptest! {
    #[test]
    fn a_body_says_what_the_transcript_says(
        list in prop::collection::vec((any::<bool>(), 0..3usize, 0..3000usize), 0..80),
        breakpoints in prop::collection::btree_set(0..80usize, 0..6),
    ) {
        let messages: Vec<_> = list.iter().map(|(is_user, kind, size)| {
            let role = if *is_user { Role::User } else { Role::Assistant };
            match kind {
                0 => thinking(),
                _ => message(role, vec![Block::text(&"é ".repeat(*size))]),
            }
        }).collect();
        let request = request(messages, &breakpoints.into_iter().collect::<Vec<_>>());
        let builder = BodyBuilder::new(true);
        let body = build(&builder, &request);
        let text = text_of(&body);
        prop_assert_eq!(&text, &text_of(&build(&builder, &request)), "same request, same bytes");
        prop_assert!(text.matches("cache_control").count() <= 4);
        let without = text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let sent: Value = serde_json::from_str(&without).unwrap();
        let meant: Value = serde_json::from_str(&request.transcript.to_json()).unwrap();
        prop_assert_eq!(&sent["messages"], &meant);
    }
}

#[test]
fn the_prefix_does_not_depend_on_what_is_asked_besides() {
    let plain = request(vec![user("1")], &[0]);
    let asked = ModelRequest {
        thinking: RequestThinking::Adaptive { display: None },
        effort: Some(Effort::Max),
        task_budget: Some(TaskBudget { total: 20_000, remaining: Some(7) }),
        edits: Some(ContextEdits { trigger_tokens: 1, keep_results: 2, clear_at_least_tokens: 3 }),
        delivery: Delivery::Whole,
        output_tokens_max: 1,
        ..plain.clone()
    };
    let prefix = |request: &ModelRequest| {
        let text = text_of(&build(&BodyBuilder::new(true), request));
        serde_json::from_str::<Value>(&text).unwrap();
        text[text.find(r#","system""#).unwrap()..].to_owned()
    };
    assert_eq!(prefix(&plain), prefix(&asked));
    let text = text_of(&build(&BodyBuilder::new(true), &asked));
    assert!(text.starts_with(r#"{"model":"m\"1","max_tokens":1,"stream":false,"thinking":"#), "{text}");
}
