//! An answer that did not stream is a stream of one item per block.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{ModelEvent, replace_lone_surrogates};

use crate::ResponseAssembler;

#[derive(Deserialize)]
struct WholeMessage<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    id: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    content: Vec<&'a RawValue>,
    stop_reason: Option<&'a RawValue>,
    stop_details: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    context_management: Option<&'a RawValue>,
    input_transformations: Option<&'a RawValue>,
}

/// Why an answer is not a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageError {
    /// It ends in the middle.
    Cut,
    /// It is something else.
    Wrong(String),
}

/// The events of a whole message, or what is wrong with it. `model` is the one that was asked.
pub(crate) fn events(json: &str, model: Arc<str>) -> Result<VecDeque<ModelEvent>, MessageError> {
    let json = replace_lone_surrogates(json);
    let unreadable = |error: serde_json::Error| {
        if error.is_eof() { MessageError::Cut } else { MessageError::Wrong(error.to_string()) }
    };
    let whole: WholeMessage<'_> = serde_json::from_str(&json).map_err(unreadable)?;
    if whole.kind != "message" {
        return Err(MessageError::Wrong(format!("its type is `{}`", whole.kind)));
    }
    let or_null = |field: Option<&RawValue>| field.map_or("null", RawValue::get).to_owned();
    let usage = or_null(whole.usage);
    let dropped = or_null(whole.input_transformations);
    let mut response = ResponseAssembler::for_model(model);
    let (id, model, stop) = (or_null(whole.id), or_null(whole.model), or_null(whole.stop_reason));
    let (details, edits) = (or_null(whole.stop_details), or_null(whole.context_management));
    let mut events = VecDeque::new();
    let mut take = |event: String| {
        events.extend(response.on_event(&event));
        events.extend(std::iter::from_fn(|| response.take_held()));
    };
    take(format!(
        r#"{{"type":"message_start","message":{{"id":{id},"model":{model},"usage":{usage},"input_transformations":{dropped}}}}}"#
    ));
    for (index, block) in whole.content.iter().enumerate() {
        take(format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#));
        take(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    }
    take(format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":{stop},"stop_details":{details}}},"usage":{usage},"context_management":{edits}}}"#
    ));
    take(r#"{"type":"message_stop"}"#.to_owned());
    Ok(events)
}
