//! One configured handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use windlass_protocol::HookEvent;

use crate::callback::HookCallback;
use crate::condition::Condition;
use crate::matcher::Matcher;
use crate::set::SourceKind;

/// A handler and what decides whether it is asked.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) event: HookEvent,
    /// Where it was configured, for people.
    pub(crate) origin: String,
    pub(crate) source: SourceKind,
    pub(crate) matcher: Matcher,
    pub(crate) condition: Condition,
    pub(crate) timeout: Option<Duration>,
    /// What is shown while it runs.
    pub(crate) status: Option<String>,
    /// Whether it is asked only until it has worked once.
    pub(crate) once: bool,
    /// Whether what it guards is blocked when it fails.
    pub(crate) blocks_on_failure: bool,
    pub(crate) action: HandlerAction,
    /// What was configured, to recognise the same handler in another file.
    pub(crate) spec: Value,
    pub(crate) has_worked: AtomicBool,
}

#[derive(Debug)]
pub(crate) enum HandlerAction {
    Command(CommandHandler),
    Http(HttpHandler),
    Prompt(PromptHandler),
    Callback(Arc<dyn HookCallback>),
}

#[derive(Debug)]
pub(crate) struct CommandHandler {
    pub(crate) form: CommandForm,
    pub(crate) pace: HandlerPace,
}

#[derive(Debug)]
pub(crate) enum CommandForm {
    /// A line for a shell, and which.
    Shell { line: String, shell: &'static str },
    /// A program and its arguments; no shell reads them.
    Exec { argv: Vec<String> },
}

/// Whether anybody waits for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerPace {
    Awaited,
    /// It runs beside the session; with `wakes`, its objection wakes an idle one.
    Background {
        wakes: bool,
    },
}

#[derive(Debug)]
pub(crate) struct HttpHandler {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The variables that headers may name.
    pub(crate) variables: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct PromptHandler {
    pub(crate) prompt: String,
    pub(crate) model: Option<String>,
    pub(crate) continue_on_block: bool,
}

const USUAL: Duration = Duration::from_mins(10);
const QUICK: Duration = Duration::from_secs(30);
const CALLBACK: Duration = Duration::from_mins(1);

impl Handler {
    /// How long it may take. A person waits behind a prompt, so hooks of prompts have less time.
    pub(crate) fn time(&self) -> Duration {
        self.timeout.unwrap_or(match (&self.action, self.event) {
            (HandlerAction::Callback(_), _) => CALLBACK,
            (HandlerAction::Prompt(_), _) | (_, HookEvent::UserPromptSubmit) => QUICK,
            (HandlerAction::Command(_) | HandlerAction::Http(_), _) => USUAL,
        })
    }

    pub(crate) fn is_background(&self) -> bool {
        matches!(&self.action, HandlerAction::Command(command) if command.pace != HandlerPace::Awaited)
    }

    /// Whether both are one handler that stands in several settings files.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        let is_settings = |handler: &Self| handler.source != SourceKind::Skill;
        let is_callback = matches!(self.action, HandlerAction::Callback(_))
            || matches!(other.action, HandlerAction::Callback(_));
        !is_callback && is_settings(self) && is_settings(other) && self.spec == other.spec
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.once && self.has_worked.load(Ordering::Relaxed)
    }

    pub(crate) fn worked(&self) {
        self.has_worked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn name(&self) -> String {
        format!("The {} hook of {}", self.event.name(), self.origin)
    }
}
