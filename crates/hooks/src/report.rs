//! What became of one handler where a run ends: the part of the report that is about it.

use std::time::Duration;

use windlass_protocol::{HookAnswer, HookEnding, HookRun};
use windlass_text::shorten::shorten;

use crate::handler::{CommandForm, Handler, HandlerAction};
use crate::observer::ObservedEnd;

/// As much of a command line, an address or a question is shown.
const NAME_CHARS: usize = 200;
/// As much of what it said is shown; the rest is where the answer goes.
const SAID_CHARS: usize = 2_000;

pub(crate) fn report(handler: &Handler, took: Duration, answer: &HookAnswer, seen: &ObservedEnd) -> HookRun {
    HookRun {
        hook: shorten(&name(handler), NAME_CHARS, "…").into_owned(),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        ending: if seen.failed { HookEnding::Failed } else { HookEnding::Worked },
        said: shorten(&said(answer, seen), SAID_CHARS, "…").into_owned(),
    }
}

fn name(handler: &Handler) -> String {
    match &handler.action {
        HandlerAction::Command(command) => match &command.form {
            CommandForm::Shell { line, .. } => line.clone(),
            CommandForm::Exec { argv } => argv.join(" "),
        },
        HandlerAction::Http(http) => http.url.clone(),
        HandlerAction::Prompt(prompt) => prompt.prompt.clone(),
        HandlerAction::Callback(_) => handler.origin.clone(),
    }
}

/// Its words, in the form that people read: an object is told by what it means, anything else as it was printed.
fn said(answer: &HookAnswer, seen: &ObservedEnd) -> String {
    let failures = answer.failures.iter().map(|failure| &failure.text);
    let words: Vec<&str> = answer
        .stop
        .iter()
        .chain(&answer.blocks)
        .chain(&answer.context)
        .chain(failures)
        .map(String::as_str)
        .collect();
    let output = seen.printed.output.trim();
    if !words.is_empty() {
        words.join("\n")
    } else if output.starts_with('{') {
        answer.notices.join("\n")
    } else {
        [output, seen.printed.errors.trim()].map(str::to_owned).join("\n").trim().to_owned()
    }
}
