//! What a provider says about a request it took. Worth less than the answer it comes with: what is not as it should be
//! says nothing.

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::ModelNote;

use crate::usage::read;

#[derive(Deserialize)]
struct Management {
    #[serde(default)]
    applied_edits: Vec<AppliedEdit>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AppliedEdit {
    #[serde(rename = "cleared_tool_uses")]
    tool_uses: u32,
    #[serde(rename = "cleared_thinking_turns")]
    thinking_turns: u32,
    #[serde(rename = "cleared_input_tokens")]
    input_tokens: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Transformation {
    #[serde(rename = "type")]
    kind: String,
    reason: String,
}

#[derive(Deserialize)]
struct Details {
    category: Option<String>,
    explanation: Option<String>,
}

/// What the provider cleared from its copy of the transcript.
pub(super) fn cleared(management: Option<&RawValue>) -> Option<ModelNote> {
    let edits = read::<Management>(management)?.applied_edits;
    let sum = edits.into_iter().reduce(|sum, edit| AppliedEdit {
        tool_uses: sum.tool_uses.saturating_add(edit.tool_uses),
        thinking_turns: sum.thinking_turns.saturating_add(edit.thinking_turns),
        input_tokens: sum.input_tokens.saturating_add(edit.input_tokens),
    })?;
    let AppliedEdit { tool_uses: tool_results, thinking_turns, input_tokens: tokens } = sum;
    let is_nothing = tool_results == 0 && thinking_turns == 0 && tokens == 0;
    (!is_nothing).then_some(ModelNote::Cleared { tool_results, thinking_turns, tokens })
}

/// What the provider left out of the request, one note for each reason.
pub(super) fn dropped(transformations: Option<&RawValue>) -> Vec<ModelNote> {
    let list: Vec<Transformation> = read(transformations).unwrap_or_default();
    let mut reasons: Vec<(String, u32)> = Vec::new();
    for entry in list.into_iter().filter(|entry| entry.kind == "thinking_dropped") {
        match reasons.iter_mut().find(|(reason, _)| *reason == entry.reason) {
            Some((_, blocks)) => *blocks += 1,
            None => reasons.push((entry.reason, 1)),
        }
    }
    let note = |(reason, blocks): (String, u32)| ModelNote::ThinkingDropped { blocks, reason: reason.into() };
    reasons.into_iter().map(note).collect()
}

/// Why the model declined.
pub(super) fn refusal(details: Option<&RawValue>) -> Option<ModelNote> {
    let Details { category, explanation } = read(details)?;
    if category.is_none() && explanation.is_none() {
        return None;
    }
    Some(ModelNote::Refusal { category: category.map(Into::into), explanation: explanation.map(Into::into) })
}
