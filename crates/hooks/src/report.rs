//! What became of one handler where a run ends: the part of the report that is about it.

use std::time::Duration;

use windlass_protocol::{HookAnswer, HookEnding, HookRun};

use crate::handler::{CommandForm, Handler, Kind};
use crate::witness::Seen;

/// As much of a command line, an address or a question is shown.
const NAME_CHARS: usize = 200;
/// As much of what it said is shown; the rest is where the answer goes.
const SAID_CHARS: usize = 2_000;

/// Reports one run of a handler.
pub(crate) fn report(handler: &Handler, took: Duration, answer: &HookAnswer, seen: &Seen) -> HookRun {
    HookRun {
        hook: cut(&name(handler), NAME_CHARS),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        ending: if seen.failed { HookEnding::Failed } else { HookEnding::Worked },
        said: cut(&said(answer, seen), SAID_CHARS),
    }
}

fn name(handler: &Handler) -> String {
    match &handler.kind {
        Kind::Command(command) => match &command.form {
            CommandForm::Shell { line, .. } => line.clone(),
            CommandForm::Exec { argv } => argv.join(" "),
        },
        Kind::Http(http) => http.url.clone(),
        Kind::Prompt(prompt) => prompt.prompt.clone(),
        Kind::Callback(_) => handler.origin.clone(),
    }
}

/// Its words, in the form that people read: an object is told by what it means, anything else as it was printed.
fn said(answer: &HookAnswer, seen: &Seen) -> String {
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

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
