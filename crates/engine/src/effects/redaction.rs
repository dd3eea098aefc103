//! Secrets are taken out of what tools print before the core hears of it, so that model, screen and log hold the same bytes.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use windlass_protocol::{
    AmbientChanges, Block, BlockKind, HookAnswer, HookPermission, RawValueEq, ToolOutput, ToolProgress,
};
use windlass_secrets::Redactor;

/// What a tool returned.
pub(super) fn output(redactor: &Redactor, mut output: ToolOutput) -> ToolOutput {
    for block in &mut output.content {
        redact_block(redactor, block);
    }
    output.structured = output.structured.and_then(|json| redact_structured(redactor, json));
    output
}

/// How a tool is getting on.
pub(crate) fn progress(redactor: &Redactor, progress: ToolProgress) -> ToolProgress {
    match redactor.redact_line(&progress.text) {
        Cow::Owned(text) => ToolProgress { text },
        Cow::Borrowed(_) => progress,
    }
}

/// What was found around a run: it holds text of files and of commands.
pub(super) fn surroundings(redactor: &Redactor, mut found: AmbientChanges) -> AmbientChanges {
    let shared = |text: &mut Arc<str>| {
        if let Cow::Owned(redacted) = redactor.redact(text) {
            *text = redacted.into();
        }
    };
    for change in &mut found.changed {
        if let Cow::Owned(redacted) = redactor.redact(&change.note) {
            change.note = redacted;
        }
    }
    found.tasks.iter_mut().chain(&mut found.background).for_each(shared);
    found.shown.iter_mut().map(|(_, text)| text).for_each(shared);
    found
}

/// What hooks said. The input that a call is to have stays as it is: it is what runs.
pub(super) fn answer(redactor: &Redactor, mut answer: HookAnswer) -> HookAnswer {
    let reason = match &mut answer.permission {
        Some(HookPermission::Deny(reason) | HookPermission::Ask(reason)) => Some(reason),
        Some(HookPermission::Allow | HookPermission::Defer) | None => None,
    };
    let lists = answer.blocks.iter_mut().chain(&mut answer.context).chain(&mut answer.notices);
    let failures = answer.failures.iter_mut().map(|failure| &mut failure.text);
    let runs = answer.runs.iter_mut().flat_map(|run| [&mut run.hook, &mut run.said]);
    for text in lists.chain(failures).chain(runs).chain(&mut answer.stop).chain(reason) {
        if let Cow::Owned(redacted) = redactor.redact(text) {
            *text = redacted;
        }
    }
    if let Some(output) = &mut answer.output
        && let Cow::Owned(redacted) = redactor.redact_json(output.get())
    {
        // What cannot be written without its secrets is nothing.
        *output = RawValue::from_string(redacted).unwrap_or_default().into();
    }
    answer
}

fn redact_block(redactor: &Redactor, block: &mut Block) {
    let may_hold_some = match block.kind() {
        BlockKind::Text(text) => matches!(redactor.redact(text), Cow::Owned(_)),
        BlockKind::Image => false,
        _ => true,
    };
    if may_hold_some
        && let Cow::Owned(json) = redactor.redact_json(block.json())
        && let Ok(redacted) = Block::from_json(&json)
    {
        *block = redacted;
    }
}

/// JSON that cannot be written without its secrets is left out.
fn redact_structured(redactor: &Redactor, json: Arc<RawValueEq>) -> Option<Arc<RawValueEq>> {
    match redactor.redact_json(json.0.get()) {
        Cow::Borrowed(_) => Some(json),
        Cow::Owned(redacted) => RawValue::from_string(redacted).ok().map(|raw| Arc::new(RawValueEq(raw))),
    }
}
