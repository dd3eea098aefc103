//! Reports about one handler: to a host that listens, while it runs, and to people where a run ends.

use std::sync::Arc;
use std::time::Duration;

use windlass_protocol::{
    HookAnswer, HookCall, HookEnding, HookEvent, HookMoment, HookNews, HookPrinted, HookRun,
};
use windlass_text::shorten::shorten;

use crate::answers::HandlerFailure;
use crate::events;
use crate::handler::{CommandForm, Handler, HandlerAction};

/// As much of a command line, an address or a question is shown.
const NAME_CHARS: usize = 200;
/// As much of what it said is shown; the rest is where the answer goes.
const SAID_CHARS: usize = 2_000;

pub(crate) fn report(handler: &Handler, took: Duration, answer: &HookAnswer, seen: &ObservedEnd) -> HookRun {
    HookRun {
        hook: shorten(&action_name(handler), NAME_CHARS, "…").into_owned(),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        ending: if seen.has_failed { HookEnding::Failed } else { HookEnding::Worked },
        said: shorten(&words_of(answer, seen), SAID_CHARS, "…").into_owned(),
    }
}

fn action_name(handler: &Handler) -> String {
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
fn words_of(answer: &HookAnswer, seen: &ObservedEnd) -> String {
    let failures = answer.failures.iter().map(|failure| &failure.text);
    let said = answer.stop.iter().chain(&answer.blocks).chain(&answer.context).chain(failures);
    let words: Vec<&str> = said.map(String::as_str).collect();
    let output = seen.printed.output.trim();
    if !words.is_empty() {
        words.join("\n")
    } else if output.starts_with('{') {
        answer.notices.join("\n")
    } else {
        [output, seen.printed.errors.trim()].join("\n").trim().to_owned()
    }
}

pub(crate) type NewsListener = Arc<dyn Fn(HookNews) + Send + Sync>;

/// Sees one run of a handler. Should nobody wait for its end, that is told when this goes.
pub(crate) struct RunObserver {
    tell: Option<NewsListener>,
    run: u64,
    event: HookEvent,
    name: Arc<str>,
}

#[derive(Debug, Default)]
pub(crate) struct ObservedEnd {
    pub(crate) printed: HookPrinted,
    pub(crate) code: Option<i32>,
    pub(crate) has_failed: bool,
}

impl ObservedEnd {
    /// It had its say in these words.
    pub(crate) fn success(output: &str) -> Self {
        let printed = HookPrinted { output: output.to_owned(), errors: String::new() };
        Self { printed, ..Self::default() }
    }

    /// It failed, and said this before.
    pub(crate) fn failure(output: &str, why: &HandlerFailure) -> Self {
        let printed = HookPrinted { output: output.to_owned(), errors: why.words() };
        Self { printed, code: None, has_failed: true }
    }
}

/// The name of a handler for hosts: the event, and what its matcher was compared with.
pub(crate) fn host_name(call: &HookCall) -> Arc<str> {
    let event = call.event().name();
    events::word(call).map_or_else(|| event.into(), |word| format!("{event}:{word}").into())
}

impl RunObserver {
    pub(crate) fn begins(tell: Option<NewsListener>, run: u64, event: HookEvent, name: Arc<str>) -> Self {
        let observer = Self { tell, run, event, name };
        observer.tell(HookMoment::Began);
        observer
    }

    /// Sees a program that is no handler, and tells nobody.
    pub(crate) fn blind() -> Self {
        Self { tell: None, run: 0, event: HookEvent::SessionStart, name: "".into() }
    }

    /// It goes on and has printed this so far.
    pub(crate) fn note_printed(&self, output: &[u8], errors: &[u8]) {
        if self.tell.is_some() {
            self.tell(HookMoment::Printed(printed_text(output, errors)));
        }
    }

    pub(crate) fn ends(mut self, seen: ObservedEnd) {
        let ObservedEnd { printed, code, has_failed } = seen;
        let ending = if has_failed { HookEnding::Failed } else { HookEnding::Worked };
        self.tell(HookMoment::Ended { printed, code, ending });
        self.tell = None;
    }

    fn tell(&self, moment: HookMoment) {
        if let Some(tell) = &self.tell {
            tell(HookNews { run: self.run, event: self.event, name: self.name.clone(), moment });
        }
    }
}

impl Drop for RunObserver {
    fn drop(&mut self) {
        let (printed, ending) = (HookPrinted::default(), HookEnding::Cancelled);
        self.tell(HookMoment::Ended { printed, code: None, ending });
    }
}

pub(crate) fn printed_text(output: &[u8], errors: &[u8]) -> HookPrinted {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    HookPrinted { output: text(output), errors: text(errors) }
}
