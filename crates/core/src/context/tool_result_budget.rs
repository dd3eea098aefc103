//! Layer 1: results that are too large go to files, and a preview takes their place.
//!
//! A result is decided on once, when it is about to be sent for the first time; what was sent never changes.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_protocol::{Block, Decision, Message, Role, StoredResult, Update};

use super::results::{self, answered_call};
use crate::effect::Effect;
use crate::step::Cx;
use crate::turn::prepare::{LayerQuestion, LayerReply, LayerStep, Preparation};

/// A result that goes to a file.
#[derive(Clone, Debug)]
pub(crate) struct LargeResult {
    tool_use_id: Arc<str>,
    result: Block,
    chars: usize,
}

pub(crate) fn tool_result_budget(
    cx: &mut Cx<'_>,
    preparing: &mut Preparation,
    reply: Option<LayerReply>,
) -> LayerStep {
    if cx.config.source.is_summariser() {
        return LayerStep::Passed;
    }
    if let Some(LayerReply::Stored(files)) = reply {
        let large = std::mem::take(&mut preparing.storing);
        keep_previews(cx, large, files);
        return mark_decided(cx);
    }
    let large: Vec<LargeResult> = new_messages(cx).flat_map(|message| large_results(cx, message)).collect();
    if large.is_empty() {
        return mark_decided(cx);
    }
    let store = cx.state.ids.store();
    let results = large.iter().map(|large| (large.tool_use_id.clone(), large.result.clone())).collect();
    cx.effects.push(Effect::Store(store, results));
    preparing.storing = large;
    LayerStep::Asked(LayerQuestion::Store(store))
}

fn mark_decided(cx: &mut Cx<'_>) -> LayerStep {
    let carry = &mut cx.state.carry;
    carry.compactions.decided_to = carry.messages.last().map(|message| message.id);
    LayerStep::Passed
}

/// The messages that no request has carried yet: the last ones of the user's side that were not decided on.
fn new_messages<'a>(cx: &'a Cx<'_>) -> impl Iterator<Item = &'a Arc<Message>> {
    let decided_to = cx.state.carry.compactions.decided_to;
    let newest = cx.state.carry.messages.iter().rev().take_while(|message| message.role == Role::User);
    newest.take_while(move |message| Some(message.id) > decided_to)
}

/// The results over their tool's own limit, and the largest others until the rest is within the limit of a message.
fn large_results(cx: &Cx<'_>, message: &Message) -> Vec<LargeResult> {
    let policy = &cx.config.context;
    let limits: Vec<(&Arc<str>, &Block, Option<usize>)> = message
        .blocks
        .iter()
        .filter_map(|block| answered_call(block).map(|(id, _)| (id, block, own_limit(cx, id))))
        .collect();
    // The JSON of a text is never shorter than the text, so most results need no closer look.
    let bytes: usize = limits.iter().map(|(_, block, _)| block.json().len()).sum();
    let is_over = |size: usize, own: Option<usize>| own.is_some_and(|own| size > own);
    let all_small = limits.iter().all(|(_, block, own)| !is_over(block.json().len(), *own));
    if all_small && bytes <= policy.message_result_chars_max {
        return Vec::new();
    }
    let (mut large, mut rest) = (Vec::new(), Vec::new());
    for (id, result, own) in limits {
        let chars = results::text(result).chars().count();
        let list = if is_over(chars, own) { &mut large } else { &mut rest };
        list.push(LargeResult { tool_use_id: id.clone(), result: result.clone(), chars });
    }
    rest.sort_by_key(|result| result.chars);
    let mut total =
        large.len() * policy.preview_chars + rest.iter().map(|result| result.chars).sum::<usize>();
    while total > policy.message_result_chars_max
        && let Some(largest) = rest.pop_if(|largest| largest.chars > policy.preview_chars)
    {
        total = total - largest.chars + policy.preview_chars;
        large.push(largest);
    }
    large
}

/// The limit of the tool that a result comes from.
fn own_limit(cx: &Cx<'_>, tool_use_id: &str) -> Option<usize> {
    let answers = cx.state.carry.messages.iter().rev().skip_while(|message| message.role == Role::User);
    let mut calls = answers
        .take_while(|message| message.role == Role::Assistant)
        .flat_map(|message| &message.blocks)
        .filter_map(Block::as_tool_use);
    let name = calls.find(|call| *call.id == *tool_use_id).map(|call| &call.name)?;
    cx.config.tools.iter().find(|tool| tool.name == *name).and_then(|tool| tool.result_chars_max)
}

/// Puts previews where files were written. What could not be written stays whole.
fn keep_previews(cx: &mut Cx<'_>, large: Vec<LargeResult>, files: Vec<Option<PathBuf>>) {
    let files = files.into_iter().chain(std::iter::repeat(None));
    let preview_chars = cx.config.context.preview_chars;
    let mut stored = Vec::new();
    for (LargeResult { tool_use_id, result, chars }, path) in large.into_iter().zip(files) {
        let Some(path) = path else {
            cx.emit(Update::Notice(format!(
                "Cannot move a result of {chars} characters (call {tool_use_id}) to a file, so the model \
                 gets it whole. Check the free space and permissions of the session's directory."
            )));
            continue;
        };
        cx.state.carry.tools.readable.insert(path.clone());
        stored.push(StoredResult {
            preview: results::preview(&result, &path, preview_chars),
            tool_use_id,
            path,
        });
    }
    if !stored.is_empty() {
        cx.change(Decision::Stored(stored));
    }
}
