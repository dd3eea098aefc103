//! One configured handler: of a settings file, or a function of a Rust program or of a host that is asked over a protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use windlass_ports::{BoxFuture, CancellationToken};
use windlass_protocol::HookEvent;

use crate::events;
use crate::matcher::{Condition, Matcher};
use crate::set::{HookProblem, SourceKind};

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
    pub(crate) is_once: bool,
    /// Whether what it guards is blocked when it fails.
    pub(crate) should_block_on_failure: bool,
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
    /// It runs beside the session; with `should_wake`, its objection wakes an idle one.
    Background {
        should_wake: bool,
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
    pub(crate) should_continue_on_block: bool,
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
        self.is_once && self.has_worked.load(Ordering::Relaxed)
    }

    pub(crate) fn note_success(&self) {
        self.has_worked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn name(&self) -> String {
        format!("The {} hook of {}", self.event.name(), self.origin)
    }
}

/// A function that is asked like any other hook.
pub trait HookCallback: Send + Sync + 'static {
    /// Gives the object that a command would print; an error is no objection. `cancel` fires if it is late.
    fn call(
        &self,
        input: CallbackInput,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Value, String>>;
}

impl std::fmt::Debug for dyn HookCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HookCallback")
    }
}

/// What a callback is asked.
#[derive(Clone, Debug)]
pub struct CallbackInput {
    /// The event.
    pub event: HookEvent,
    /// The call it is about, by the provider's id.
    pub tool_use_id: Option<Arc<str>>,
    /// What a command would read: one JSON object.
    pub json: Arc<str>,
}

/// A callback and what decides whether it is asked.
#[derive(Clone)]
pub struct CallbackHook {
    /// The event it is asked about.
    pub event: HookEvent,
    /// What people read where it fails.
    pub name: String,
    /// Which calls it is for; all of them if it is empty.
    pub matcher: String,
    /// How long it may take; a minute if nothing is said.
    pub timeout: Option<Duration>,
    /// Whether what it guards is blocked when it fails.
    pub should_block_on_failure: bool,
    /// What is asked.
    pub callback: Arc<dyn HookCallback>,
}

impl CallbackHook {
    /// A callback for every call of an event.
    pub fn new(event: HookEvent, name: &str, callback: Arc<dyn HookCallback>) -> Self {
        let (name, matcher) = (name.to_owned(), String::new());
        Self { event, name, matcher, timeout: None, should_block_on_failure: false, callback }
    }

    pub(crate) fn into_handler(self) -> Result<Handler, HookProblem> {
        let row = events::find(self.event.name());
        let matching = row.map_or(events::MatcherSubject::Nothing, |row| row.matching);
        let matcher = Matcher::parse(&self.matcher, matching).map_err(|what| {
            HookProblem::new(&self.name, what, "give another").leaves("this hook does not run")
        })?;
        Ok(Handler {
            event: self.event,
            origin: self.name,
            source: SourceKind::Caller,
            matcher,
            condition: Condition::None,
            timeout: self.timeout,
            status: None,
            is_once: false,
            should_block_on_failure: self.should_block_on_failure,
            action: HandlerAction::Callback(self.callback),
            spec: Value::Null,
            has_worked: AtomicBool::new(false),
        })
    }
}
