//! An answer that did not stream is a stream of one item per block.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{ModelEvent, replace_lone_surrogates};

use crate::Assembler;

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// The events of a whole message, or what is wrong with it. `model` is the one that was asked.
pub(super) fn events(json: &str, model: Arc<str>) -> Result<VecDeque<ModelEvent>, String> {
    let json = replace_lone_surrogates(json);
    let whole: Whole<'_> = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    if whole.kind != "message" {
        return Err(format!("its type is `{}`", whole.kind));
    }
    let or_null = |field: Option<&RawValue>| field.map_or("null", RawValue::get).to_owned();
    let usage = or_null(whole.usage);
    let mut response = Assembler::for_model(model);
    let (id, model, stop) = (or_null(whole.id), or_null(whole.model), or_null(whole.stop_reason));
    let mut events = VecDeque::new();
    let mut take = |event: String| events.extend(response.on_event(&event));
    take(format!(r#"{{"type":"message_start","message":{{"id":{id},"model":{model},"usage":{usage}}}}}"#));
    for (index, block) in whole.content.iter().enumerate() {
        take(format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#));
        take(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    }
    take(format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{stop}}},"usage":{usage}}}"#));
    take(r#"{"type":"message_stop"}"#.to_owned());
    Ok(events)
}
