//! The rules of the Messages API for requests, with the API's own words, so that a mistake of ours shows in a test
//! as it would show in use.

use std::collections::HashSet;

use serde_json::Value;
use windlass_models::StatusError;

use crate::check_settings::{check_settings, check_thinking_is_on};
use crate::http::HttpRequest;

const CACHE_MARKERS_MAX: usize = 4;

/// Checks a request as the real API does, and gives its body; the error is its answer. `paused` says whether the last answer
/// of a model was paused, which is the only one that may stand last in a request.
pub(crate) fn check_request(
    request: &HttpRequest,
    paused: impl Fn(&str) -> bool,
) -> Result<Value, StatusError> {
    check_head(request)?;
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|error| bad(&format!("The request body is not valid JSON: {error}")))?;
    check_body(&body, &request.betas(), paused).map_err(|what| bad(&what))?;
    Ok(body)
}

fn check_body(body: &Value, betas: &[&str], paused: impl Fn(&str) -> bool) -> Result<(), String> {
    check_fields(body)?;
    check_settings(body, betas)?;
    check_tools(list(&body["tools"]))?;
    check_system(&body["system"])?;
    let messages = merge_messages(list(&body["messages"]))?;
    check_messages(&messages, paused(body["model"].as_str().unwrap_or_default()))?;
    check_thinking_is_on(body, &messages)?;
    check_markers(body)
}

pub(crate) fn bad(what: &str) -> StatusError {
    StatusError::new(400, "invalid_request_error", what)
}

fn check_head(request: &HttpRequest) -> Result<(), StatusError> {
    let path = request.target.split('?').next().unwrap_or_default();
    if path != "/v1/messages" {
        return Err(StatusError::new(404, "not_found_error", &format!("Not found: {path}")));
    }
    if request.method != "POST" {
        return Err(StatusError::new(405, "invalid_request_error", "Method Not Allowed"));
    }
    let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    match (request.header("x-api-key").filter(|key| !key.is_empty()), token) {
        (None, None) => {
            return Err(StatusError::new(401, "authentication_error", "x-api-key header is required"));
        }
        (Some(_), Some(_)) => return Err(bad("send one of x-api-key and authorization, not both")),
        _ => {}
    }
    if request.header("anthropic-version").is_none() {
        return Err(bad("anthropic-version: header is required"));
    }
    let json = |kind: &str| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json");
    if !request.header("content-type").is_some_and(json) {
        return Err(bad("content-type: expected application/json"));
    }
    Ok(())
}

fn check_fields(body: &Value) -> Result<(), String> {
    if !body["model"].is_string() {
        return Err("model: Field required".to_owned());
    }
    if body["max_tokens"].as_u64().is_none_or(|cap| cap == 0) {
        return Err("max_tokens: Field required".to_owned());
    }
    if !body["messages"].is_array() {
        return Err("messages: Field required".to_owned());
    }
    Ok(())
}

fn check_tools(tools: &[Value]) -> Result<(), String> {
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_identifier(name) || name.len() > 128 {
            return Err(format!(
                "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if tool["input_schema"]["type"] != "object" {
            return Err(format!("tools.{index}.custom.input_schema.type: Input should be 'object'"));
        }
        if !names.insert(name) {
            return Err("tools: Tool names must be unique.".to_owned());
        }
    }
    Ok(())
}

fn check_system(system: &Value) -> Result<(), String> {
    match system {
        Value::Null => Ok(()),
        Value::String(text) => check_text("system", text),
        blocks => list(blocks)
            .iter()
            .try_for_each(|block| check_text("system", block["text"].as_str().unwrap_or_default())),
    }
}

/// A message as the server sees it: neighbours of one role are one message.
pub(crate) struct RequestMessage<'a> {
    pub(crate) role: &'a str,
    pub(crate) blocks: Vec<&'a Value>,
}

fn check_messages(messages: &[RequestMessage<'_>], is_paused: bool) -> Result<(), String> {
    let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
        return Err("messages: at least one message is required".to_owned());
    };
    if first.role != "user" {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    if last.role != "user" && !is_paused {
        return Err("This model does not support assistant message prefill. \
             The conversation must end with a user message."
            .to_owned());
    }
    let mut ids = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        check_blocks(at, message, &mut ids)?;
        let before = at.checked_sub(1).map(|at| &messages[at]);
        check_results(at, message, before)?;
    }
    Ok(())
}

pub(crate) fn merge_messages(messages: &[Value]) -> Result<Vec<RequestMessage<'_>>, String> {
    let mut merged: Vec<RequestMessage<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !["user", "assistant"].contains(&role) {
            return Err(format!("messages.{at}.role: Input should be 'user' or 'assistant'"));
        }
        let content = &message["content"];
        let blocks: Vec<_> = match content {
            Value::String(text) => {
                check_text("messages", text)?;
                vec![content]
            }
            blocks => list(blocks).iter().collect(),
        };
        if blocks.is_empty() {
            return Err(format!(
                "messages.{at}: all messages must have non-empty content \
                 except for the optional final assistant message"
            ));
        }
        match merged.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            _ => merged.push(RequestMessage { role, blocks }),
        }
    }
    Ok(merged)
}

fn check_blocks<'a>(
    at: usize,
    message: &RequestMessage<'a>,
    ids: &mut HashSet<&'a str>,
) -> Result<(), String> {
    for (index, block) in message.blocks.iter().enumerate() {
        let place = format!("messages.{at}.content.{index}");
        match kind(block) {
            "" if !block.is_string() => return Err(format!("{place}.type: Field required")),
            "text" => check_text("messages", block["text"].as_str().unwrap_or_default())?,
            "tool_use" => check_tool_use(&place, message, block, ids)?,
            "tool_result" if message.role != "user" => {
                return Err(format!("{place}: `tool_result` blocks can only be in `user` messages"));
            }
            "thinking" if !block["signature"].is_string() => {
                return Err(format!("{place}.thinking.signature: Field required"));
            }
            "tool_result" => {
                for inner in list(&block["content"]).iter().filter(|inner| kind(inner) == "text") {
                    check_text("messages", inner["text"].as_str().unwrap_or_default())?;
                }
            }
            _ => {}
        }
    }
    match message.blocks.last() {
        Some(last) if message.role == "assistant" && is_thinking(last) => {
            Err(format!("messages.{at}: The final block in an assistant message cannot be `{}`.", kind(last)))
        }
        _ => Ok(()),
    }
}

fn check_tool_use<'a>(
    place: &str,
    message: &RequestMessage<'_>,
    block: &'a Value,
    ids: &mut HashSet<&'a str>,
) -> Result<(), String> {
    let id = block["id"].as_str().unwrap_or_default();
    if message.role != "assistant" {
        return Err(format!("{place}: `tool_use` blocks can only be in `assistant` messages"));
    }
    if !is_identifier(id) {
        return Err(format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"));
    }
    if !block["input"].is_object() {
        return Err(format!("{place}.tool_use.input: Input should be a valid dictionary"));
    }
    if !ids.insert(id) {
        return Err("messages: `tool_use` ids must be unique".to_owned());
    }
    Ok(())
}

/// Every tool use of the message before is answered exactly once, and before anything else is said.
fn check_results(
    at: usize,
    message: &RequestMessage<'_>,
    before: Option<&RequestMessage<'_>>,
) -> Result<(), String> {
    let calls = before.map(|before| before.blocks.as_slice()).unwrap_or_default();
    let calls =
        calls.iter().filter(|block| kind(block) == "tool_use").filter_map(|block| block["id"].as_str());
    let mut open: Vec<&str> = calls.collect();
    let mut answered = HashSet::new();
    for (index, block) in message.blocks.iter().enumerate() {
        if kind(block) != "tool_result" {
            if !open.is_empty() {
                break;
            }
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if let Some(found) = open.iter().position(|open| *open == id) {
            answered.insert(open.remove(found));
        } else if answered.contains(id) {
            return Err(format!(
                "messages.{at}.content.{index}: each tool_use must have a single result. \
                 Found multiple `tool_result` blocks with id: {id}"
            ));
        } else {
            return Err(format!(
                "messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                 Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        at - 1,
        open.join(", ")
    ))
}

fn check_markers(body: &Value) -> Result<(), String> {
    let mut found = 0;
    count_markers(body, &mut found)?;
    if found > CACHE_MARKERS_MAX {
        return Err(format!(
            "A maximum of {CACHE_MARKERS_MAX} blocks with cache_control may be provided. Found {found}."
        ));
    }
    Ok(())
}

fn count_markers(value: &Value, found: &mut usize) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| count_markers(item, found)),
        Value::Object(fields) => {
            if fields.get("cache_control").is_some_and(|marker| !marker.is_null()) {
                *found += 1;
                if is_thinking(value) {
                    return Err("cache_control: Extra inputs are not permitted on thinking blocks".to_owned());
                }
            }
            // What a tool is called with or described by is data, whatever its keys are called.
            let inner = fields.iter().filter(|(name, _)| !["input", "input_schema"].contains(&name.as_str()));
            inner.map(|(_, value)| value).try_for_each(|value| count_markers(value, found))
        }
        _ => Ok(()),
    }
}

fn check_text(place: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("{place}: text content blocks must be non-empty"));
    }
    if text.trim().is_empty() {
        return Err(format!("{place}: text content blocks must contain non-whitespace text"));
    }
    Ok(())
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or_default()
}

pub(crate) fn is_thinking(block: &Value) -> bool {
    ["thinking", "redacted_thinking"].contains(&kind(block))
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
