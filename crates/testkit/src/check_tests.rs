use std::time::Instant;

use serde_json::json;

use super::*;

fn request(body: &Value) -> HttpRequest {
    let headers =
        [("x-api-key", "k"), ("anthropic-version", "2023-06-01"), ("content-type", "application/json")];
    HttpRequest {
        method: "POST".to_owned(),
        target: "/v1/messages".to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: body.to_string().into_bytes(),
        first_byte: Instant::now(),
        read: Instant::now(),
    }
}

fn body(messages: &Value) -> Value {
    json!({ "model": "m", "max_tokens": 10, "stream": true, "messages": messages })
}

/// The status and the message of the answer, or `ok`.
fn verdict(request: &HttpRequest) -> String {
    match check_request(request, |_| false) {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let body: Value = serde_json::from_str(&error.body).unwrap();
            format!("{} {}", error.code, body["error"]["message"].as_str().unwrap())
        }
    }
}

/// For messages written as `u: text`, `a: tool 1, tool 2`, `u: result 1, text`.
fn check(messages: &[&str], expected: &str) {
    let block = |word: &str| match word.split_once(' ') {
        Some(("tool", id)) => json!({ "type": "tool_use", "id": id, "name": "Read", "input": {} }),
        Some(("result", id)) => json!({ "type": "tool_result", "tool_use_id": id }),
        _ if word == "thinking" => json!({ "type": "thinking", "thinking": "", "signature": "s" }),
        _ if word == "empty" => json!({ "type": "text", "text": "" }),
        _ if word == "blank" => json!({ "type": "text", "text": " \n" }),
        _ if word == "marked" => {
            json!({ "type": "text", "text": "x", "cache_control": {"type": "ephemeral"} })
        }
        _ => json!({ "type": "text", "text": word }),
    };
    let message = |line: &&str| {
        let (role, words) = line.split_once(": ").unwrap();
        let role = if role == "u" { "user" } else { "assistant" };
        json!({ "role": role, "content": words.split(", ").map(block).collect::<Vec<_>>() })
    };
    let messages: Value = messages.iter().map(message).collect();
    assert_eq!(verdict(&request(&body(&messages))), expected, "for {messages}");
}

const PREFILL: &str = "400 This model does not support assistant message prefill. The conversation must end with a user message.";

fn missing(at: usize, ids: &str) -> String {
    format!(
        "400 messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each \
         `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
}

fn unexpected(place: &str, id: &str) -> String {
    format!(
        "400 {place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
         have a corresponding `tool_use` block in the previous message."
    )
}

#[test]
fn calls_and_results_must_pair() {
    check(&["u: hi"], "ok");
    check(&["u: hi", "a: tool 1, tool 2", "u: result 2, result 1, go on"], "ok");
    check(&["u: hi", "a: tool 1", "u: result 1", "u: go on"], "ok");
    check(&["u: hi", "a: tool 1", "u: result 1", "a: tool 2", "u: result 2"], "ok");
    check(&["u: hi", "a: tool 1, tool 2", "u: result 1"], &missing(1, "2"));
    check(&["u: hi", "a: tool 1", "u: text first, result 1"], &missing(1, "1"));
    check(&["u: hi", "a: tool 1", "u: go on"], &missing(1, "1"));
    check(&["u: hi", "a: text", "u: result 1"], &unexpected("messages.2.content.0", "1"));
    check(&["u: result 1"], &unexpected("messages.0.content.0", "1"));
    check(&["u: hi", "a: tool 1", "u: result 1, text, result 9"], &unexpected("messages.2.content.2", "9"));
    check(
        &["u: hi", "a: tool 1", "u: result 1, result 1"],
        "400 messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with \
         id: 1",
    );
    check(
        &["u: hi", "a: tool 1", "u: result 1", "a: tool 1", "u: result 1"],
        "400 messages: `tool_use` ids must be unique",
    );
    check(
        &["u: hi", "a: tool a.b", "u: result a.b"],
        "400 messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    );
    check(&["u: tool 1"], "400 messages.0.content.0: `tool_use` blocks can only be in `assistant` messages");
}

#[test]
fn messages_must_be_well_formed() {
    check(&[], "400 messages: at least one message is required");
    check(&["a: hi"], "400 messages: first message must use the \"user\" role");
    check(&["u: hi", "a: text"], PREFILL);
    check(&["u: empty"], "400 messages: text content blocks must be non-empty");
    check(&["u: blank"], "400 messages: text content blocks must contain non-whitespace text");
    check(&["u: hi", "a: thinking, text", "u: hi"], "ok");
    check(
        &["u: hi", "a: text, thinking", "u: hi"],
        "400 messages.1: The final block in an assistant message cannot be `thinking`.",
    );
    check(&["u: marked, marked, marked, marked"], "ok");
    check(
        &["u: marked, marked, marked, marked, marked"],
        "400 A maximum of 4 blocks with cache_control may be provided. Found 5.",
    );
}

#[test]
fn other_parts_of_the_body_are_checked() {
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut body = body(&json!([{ "role": "user", "content": "hi" }]));
        change(&mut body);
        assert_eq!(verdict(&request(&body)), expected, "for {body}");
    };
    let tool = |name: &str| json!({ "name": name, "input_schema": { "type": "object" } });
    check(&|_| {}, "ok");
    check(&|body| body["tools"] = json!([tool("A"), tool("B")]), "ok");
    check(&|body| body["model"] = json!(null), "400 model: Field required");
    check(&|body| body["max_tokens"] = json!(0), "400 max_tokens: Field required");
    check(&|body| body["messages"] = json!("hi"), "400 messages: Field required");
    check(&|body| body["stream"] = json!(false), "ok");
    check(&|body| body["stream"] = json!("no"), "400 stream: Input should be a valid boolean");
    check(&|body| body["tools"] = json!([tool("A"), tool("A")]), "400 tools: Tool names must be unique.");
    check(
        &|body| body["tools"] = json!([tool("a b")]),
        "400 tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    );
    check(
        &|body| body["tools"] = json!([{ "name": "A", "input_schema": {} }]),
        "400 tools.0.custom.input_schema.type: Input should be 'object'",
    );
    check(&|body| body["system"] = json!(""), "400 system: text content blocks must be non-empty");
    check(
        &|body| body["system"] = json!([{ "type": "text", "text": " " }]),
        "400 system: text content blocks must contain non-whitespace text",
    );
    check(
        &|body| body["messages"][0]["content"] = json!([]),
        "400 messages.0: all messages must have non-empty content except for the optional final assistant message",
    );
    check(
        &|body| body["messages"][0]["role"] = json!("tool"),
        "400 messages.0.role: Input should be 'user' or 'assistant'",
    );
}

#[test]
fn the_head_is_checked() {
    let check = |change: &dyn Fn(&mut HttpRequest), expected: &str| {
        let mut request = request(&body(&json!([{ "role": "user", "content": "hi" }])));
        change(&mut request);
        assert_eq!(verdict(&request), expected);
    };
    let without = |name: &'static str| {
        move |request: &mut HttpRequest| request.headers.retain(|(header, _)| header != name)
    };
    check(&|request| request.target = "/v1/messages?beta=true".to_owned(), "ok");
    check(&|request| request.target = "/messages".to_owned(), "404 Not found: /messages");
    check(&|request| request.method = "GET".to_owned(), "405 Method Not Allowed");
    check(&without("x-api-key"), "401 x-api-key header is required");
    check(&without("anthropic-version"), "400 anthropic-version: header is required");
    check(&without("content-type"), "400 content-type: expected application/json");
    let bearer = ("authorization".to_owned(), "Bearer t".to_owned());
    check(
        &|request| request.headers.push(bearer.clone()),
        "400 send one of x-api-key and authorization, not both",
    );
    check(
        &|request| request.body = b"{".to_vec(),
        "400 The request body is not valid JSON: EOF while parsing an object at line 1 column 1",
    );
}

/// For a body with further fields, sent to a model with these betas.
fn check_settings_of(model: &str, betas: &str, fields: &Value, expected: &str) {
    let mut body = body(&json!([{ "role": "user", "content": "hi" }]));
    body["model"] = json!(model);
    body["max_tokens"] = json!(4000);
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let mut request = request(&body);
    request.headers.push(("anthropic-beta".to_owned(), betas.to_owned()));
    let seen = verdict(&request);
    assert!(seen.starts_with(expected), "{seen}, not {expected}, for {body}");
}

#[test]
fn thinking_is_checked() {
    let check = |model: &str, thinking: Value, expected: &str| {
        check_settings_of(model, "", &json!({ "thinking": thinking }), expected);
    };
    check("m", json!({ "type": "adaptive" }), "ok");
    check("m", json!({ "type": "adaptive", "display": "omitted" }), "ok");
    check("m", json!({ "type": "enabled", "budget_tokens": 1024 }), "ok");
    check("m", json!({ "type": "sometimes" }), "400 thinking: Input tag 'sometimes'");
    check(
        "m",
        json!({ "type": "adaptive", "display": "all" }),
        "400 thinking.adaptive.display: Input should be",
    );
    check(
        "m",
        json!({ "type": "adaptive", "budget_tokens": 1 }),
        "400 thinking.adaptive.budget_tokens: Extra",
    );
    check("m", json!({ "type": "enabled" }), "400 thinking.enabled.budget_tokens: Field required");
    check(
        "m",
        json!({ "type": "enabled", "budget_tokens": 1023 }),
        "400 thinking.enabled.budget_tokens: Input",
    );
    check("m", json!({ "type": "enabled", "budget_tokens": 4000 }), "400 `max_tokens` must be greater than");
    check("claude-opus-5-5", json!({ "type": "adaptive" }), "ok");
    check(
        "claude-opus-5-5",
        json!({ "type": "disabled" }),
        "400 \"thinking.type.disabled\" is not supported",
    );
    check(
        "claude-opus-5-5",
        json!({ "type": "enabled", "budget_tokens": 1024 }),
        "400 \"thinking.type.enabled\" is not supported",
    );
    check(
        "claude-sonnet-4-5",
        json!({ "type": "adaptive" }),
        "400 \"thinking.type.adaptive\" is not supported",
    );
    check("claude-opus-5", json!({ "type": "disabled" }), "ok");
    check_settings_of(
        "claude-opus-5",
        "",
        &json!({ "thinking": { "type": "disabled" }, "output_config": { "effort": "max" } }),
        "400 \"thinking.type.disabled\" is not supported",
    );
}

#[test]
fn effort_caps_and_betas_are_checked() {
    let effort = |model: &str, level: &str, expected: &str| {
        check_settings_of(model, "", &json!({ "output_config": { "effort": level } }), expected);
    };
    effort("m", "xhigh", "ok");
    effort("m", "huge", "400 output_config.effort: Input should be");
    effort("claude-opus-4-6", "xhigh", "400 This model does not support the effort level 'xhigh'");
    effort("claude-haiku-4-5", "low", "400 This model does not support the effort parameter");
    check_settings_of(
        "claude-haiku-4-5",
        "",
        &json!({ "max_tokens": 64_001 }),
        "400 max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens",
    );
    let bound = json!({ "thinking": { "type": "adaptive", "block_binding": {} } });
    check_settings_of("m", "", &bound, "400 thinking.block_binding: Extra inputs are not permitted");
    check_settings_of("m", "x, thinking-binding-controls-2026-08-01", &bound, "ok");
    let budget =
        |total: u64| json!({ "output_config": { "task_budget": { "type": "tokens", "total": total } } });
    let beta = "task-budgets-2026-03-13";
    check_settings_of("m", "", &budget(20_000), "400 output_config.task_budget: Extra inputs");
    check_settings_of("m", beta, &budget(20_000), "ok");
    check_settings_of("m", beta, &budget(19_999), "400 output_config.task_budget.total: Input should be");
    check_settings_of(
        "claude-sonnet-5",
        beta,
        &budget(20_000),
        "400 This model does not support task budgets",
    );
    let edits = |name: &str| json!({ "context_management": { "edits": [{ "type": name }] } });
    let beta = "context-management-2025-06-27";
    check_settings_of("m", "", &edits("clear_tool_uses_20250919"), "400 context_management: Extra inputs");
    check_settings_of("m", beta, &edits("clear_tool_uses_20250919"), "ok");
    check_settings_of("m", beta, &edits("clear_all"), "400 context_management.edits.0.type: Input should be");
}

#[test]
fn thinking_goes_back_only_while_it_is_on() {
    let messages = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "", "signature": "s" }, { "type": "text", "text": "a" },
        ] },
        { "role": "user", "content": "go on" },
    ]);
    let check = |model: &str, thinking: Value, expected: &str| {
        let fields = json!({ "messages": messages, "thinking": thinking });
        check_settings_of(model, "", &fields, expected);
    };
    let refused = "400 messages.1.content.0: thinking blocks may only be sent while thinking is enabled";
    check("m", json!(null), "ok");
    check("m", json!({ "type": "disabled" }), refused);
    check("claude-opus-5-5", json!(null), "ok");
    check("claude-opus-4-8", json!(null), refused);
    check("claude-opus-4-8", json!({ "type": "adaptive" }), "ok");
}

#[test]
fn only_a_paused_answer_may_stand_last() {
    let messages = json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "a" }]);
    let request = request(&body(&messages));
    assert!(check_request(&request, |model| model == "m").is_ok());
    assert!(check_request(&request, |model| model == "n").is_err());
}
