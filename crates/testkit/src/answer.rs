//! Which answer a request gets.

use std::sync::Arc;

use serde_json::Value;
use windlass_models::{
    DroppedSpec, RequestView, ScriptPlayer, ScriptResponse, ScriptTurn, StatusError, newest_user_text,
};
use windlass_protocol::Delivery;

use crate::binding::{self, CheckedThinking};
use crate::check::{bad, check_request};
use crate::counting::RequestSize;
use crate::http::HttpRequest;
use crate::render::RenderedResponse;
use crate::server::ServerState;

/// The head of a body in which a client that does not want a stream says so.
const HEAD_BYTES: usize = 4096;

/// An answer and what was found about its request.
pub(crate) struct ApiAnswer {
    pub(crate) rendered: Arc<RenderedResponse>,
    pub(crate) is_streamed: bool,
    /// Why the server itself refused the request.
    pub(crate) refusal: Option<String>,
}

/// The response to a request: the next of the script, or an error of the API if the request is not valid. An
/// invalid request does not take a turn.
pub(crate) fn choose(shared: &ServerState, request: &HttpRequest) -> ApiAnswer {
    let refused = |is_streamed: bool, error: &StatusError| ApiAnswer {
        rendered: Arc::new(RenderedResponse::status(error, &shared.behaviour.headers)),
        is_streamed,
        refusal: Some(error.body.clone()),
    };
    let (body, delivery) = match read(shared, request) {
        Ok(read) => read,
        Err(error) => return refused(asks_for_stream(&request.body), &error),
    };
    let is_streamed = delivery == Delivery::Streamed;
    match answer(shared, request, &body, delivery) {
        Ok(rendered) => ApiAnswer { rendered, is_streamed, refusal: None },
        Err(error) => refused(is_streamed, &error),
    }
}

/// The body, as far as somebody wants to see it, and how the answer is to come.
fn read(shared: &ServerState, request: &HttpRequest) -> Result<(Value, Delivery), StatusError> {
    let delivery = |streamed| if streamed { Delivery::Streamed } else { Delivery::Whole };
    if shared.options.should_check_requests {
        let body = check_request(request, |model| shared.is_paused(model))?;
        let streamed = body["stream"] == true;
        return Ok((body, delivery(streamed)));
    }
    let wanted = shared.looks_at_requests();
    let body = wanted.then(|| serde_json::from_slice(&request.body).unwrap_or_default());
    Ok((body.unwrap_or_default(), delivery(asks_for_stream(&request.body))))
}

fn asks_for_stream(body: &[u8]) -> bool {
    let head = &body[..body.len().min(HEAD_BYTES)];
    let says = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    !says(br#""stream":false"#) && !says(br#""stream": false"#)
}

fn answer(
    shared: &ServerState,
    request: &HttpRequest,
    body: &Value,
    delivery: Delivery,
) -> Result<Arc<RenderedResponse>, StatusError> {
    check_endpoint(shared, request, body).map_err(|what| bad(&what))?;
    let bound = shared.behaviour.is_thinking_bound.then(|| binding::check(body));
    let thinking = bound.transpose().map_err(|what| bad(&what))?;
    let counted = shared.behaviour.can_count_tokens.then(|| RequestSize::of(body));
    if let (Some(limit), Some(counted)) = (shared.behaviour.window_tokens, &counted)
        && counted.tokens > limit
    {
        return Err(bad(&format!("prompt is too long: {} tokens > {limit} maximum", counted.tokens)));
    }
    let model = body["model"].as_str().unwrap_or_default();
    let player = shared.player_for(model);
    let play = player.next(|| request_view(body)).map_err(|mismatch| bad(&mismatch.to_string()))?;
    shared.note_stop(model, play.response);
    if let Some(prepared) = prepared_response(shared, player, &play, delivery) {
        return Ok(prepared);
    }
    let response = adapt_response(shared, model, play.response, thinking.as_ref(), counted);
    let playback = play.playback_of(&response, delivery);
    Ok(Arc::new(RenderedResponse::new(&playback, &shared.behaviour.headers)))
}

/// The answer that was made before, if it is the same for every request.
fn prepared_response(
    shared: &ServerState,
    player: &ScriptPlayer,
    play: &ScriptTurn<'_>,
    delivery: Delivery,
) -> Option<Arc<RenderedResponse>> {
    let usual = std::ptr::eq(player, &raw const shared.player)
        && delivery == Delivery::Streamed
        && !shared.behaviour.looks_at_requests();
    shared.prepared.get(play.number.filter(|_| usual)?).cloned()
}

/// The response with what depends on the request.
fn adapt_response(
    shared: &ServerState,
    model: &str,
    response: &ScriptResponse,
    thinking: Option<&CheckedThinking>,
    counted: Option<RequestSize>,
) -> ScriptResponse {
    let mut response = response.clone();
    if let Some(thinking) = thinking {
        thinking.seal(&mut response);
        if let Some((_, reason)) = thinking.dropped.first() {
            let paths = thinking.dropped.iter().map(|(path, _)| path.clone()).collect();
            response.notes.thinking_dropped = Some(DroppedSpec { paths, reason: (*reason).to_owned() });
        }
    }
    if let Some(counted) = counted {
        response.notes.cleared = response.notes.cleared.or(counted.cleared);
        shared.report(model, counted, &mut response.usage);
    }
    response
}

/// What this endpoint does not know.
fn check_endpoint(shared: &ServerState, request: &HttpRequest, body: &Value) -> Result<(), String> {
    let refused = |beta: &&str| shared.behaviour.refused_betas.iter().any(|name| name == beta || name == "*");
    let betas: Vec<_> = request.betas().into_iter().filter(refused).map(|beta| format!("`{beta}`")).collect();
    if !betas.is_empty() {
        return Err(format!(
            "Unexpected value(s) {} for the `anthropic-beta` header. Please consult our documentation or try again \
             without the header.",
            betas.join(", ")
        ));
    }
    let has = |path: &&String| !path.split('.').fold(body, |value, name| &value[name]).is_null();
    match shared.behaviour.refused_fields.iter().find(has) {
        Some(path) => Err(format!("{path}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn request_view(body: &Value) -> RequestView {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let newest: Vec<_> = messages.iter().rev().take_while(|message| message["role"] == "user").collect();
    RequestView {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        newest: newest_user_text(newest.into_iter().rev().map(|message| &message["content"])),
    }
}
